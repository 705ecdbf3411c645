"""LiteLLM: a callback that sees the messages of each call, in the SDK and on the proxy."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from recede._bodies import KEPT_BY_PROVIDER, KEPT_INTERACTION
from recede._off import is_off
from recede._recall import recall_tool
from recede.clients._requests import has_message
from recede.integrations._shared import BATCHES_WORDS, Masking, base_url, is_kept, missing, say

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise missing("litellm", "litellm 1.80.5 or newer") from error

__all__ = ["RecedeCallback"]

_log = logging.getLogger("recede")

# The kind of a call -> the field that has its history.
_HISTORIES = {
    "completion": "messages",
    "acompletion": "messages",
    "anthropic_messages": "messages",
    "responses": "input",
    "aresponses": "input",
    "acreate": "input",  # of `litellm.interactions`
    "acreate_interaction": "input",  # the same on the proxy
}
_INTERACTIONS = {"acreate", "acreate_interaction"}
# The fields in which calls of other kinds may have a history, as those that the proxy passes through.
_FIELDS = ("messages", "input", "contents")
_BATCHES = {"create_batch", "acreate_batch"}
# Synchronous calls run no hook that may change their history.
_SYNC = {"completion": "completion", "responses": "responses", "create": "interactions.create"}


class _View(list[Any]):
    """The view of a history. Hooks run for the proxy, for the call, and again for each fallback."""

    def __init__(self, messages: list[Any], given: Sequence[Any]) -> None:
        super().__init__(messages)
        self.given = given
        self.reported: list[Any] = []  # usage, once: the copies that fallbacks make have it in common

    def __deepcopy__(self, memo: dict[int, Any]) -> _View:
        copied = _View(copy.deepcopy(list(self), memo), self.given)
        copied.reported = self.reported
        return copied


class RecedeCallback(Masking, CustomLogger):
    """Masks old tool messages in what LiteLLM sends; the lists that are given to it stay as they are.

    It masks `acompletion`, `aresponses`, `anthropic_messages` and `interactions.acreate`, those of a `Router` too, and
    what the proxy forwards. The synchronous `completion`, `responses` and `interactions.create` run no hook that may
    change their messages, and send them raw, with a warning: call `completion` of this object, or give them a `view`.

    Args:
        recall: placeholders name the handle of the result, for the tool `recall_tool`.

    The other options are those of its `masker`, a `recede.masker.Masker`; wrong ones are a TypeError or ValueError.
    One object serves any number of models and conversations.

    Attributes:
        recall_tool: a tool for ``tools=``, whose calls ``recalled(messages, handle)`` answers.

    Example::

        litellm.callbacks = [RecedeCallback(keep=10)]
    """

    def _begin(self, **options: Any) -> None:
        CustomLogger.__init__(self)
        super()._begin(**options)
        self.recall_tool: dict[str, Any] = recall_tool()

    def view(
        self, messages: Sequence[Any], model: str | None = None, request: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """The messages to send: for a call that runs no hook. A view is given back as it is.

        Args:
            messages: those of the call.
            model: its model, which says whose prompt cache it is.
            request: its other arguments: system prompt and tools count towards a limit.
        """
        if isinstance(messages, _View):
            return messages
        return _View(self._sent(list(messages), model, lambda: request or {}, base_url(request)), messages)

    async def aview(
        self, messages: Sequence[Any], model: str | None = None, request: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """`view`, awaiting a summarizer that is async."""
        if isinstance(messages, _View):
            return messages
        return _View(await self._asent(list(messages), model, lambda: request or {}, base_url(request)), messages)

    def completion(self, model: str, messages: list[Any], **options: Any) -> Any:
        """`litellm.completion` with the view of the messages."""
        view = self.view(messages, model, options)
        response = litellm.completion(model=model, messages=view, **options)
        self._report(view, response)
        return response

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: dict[str, Any]) -> None:
        """Warn about a synchronous call, whose messages cannot be changed here."""
        kind = kwargs.get("call_type")
        if kind in _SYNC and isinstance(messages, (list, tuple)) and not isinstance(messages, _View):
            say(
                f"litellm.{_SYNC[kind]} sends raw messages, since it runs no hook that may change them: call the "
                "async one, or completion of this RecedeCallback, or give it view(messages)"
            )

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Send the view: for the SDK."""
        return await self._masked(kwargs, call_type)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """Send the view: for the proxy, before it chooses a deployment."""
        return await self._masked(data, call_type)

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: Any
    ) -> None:
        """Report the usage of an answer."""
        self._report(request_data.get(_HISTORIES.get(_kind_of(request_data, call_type), "")), response)

    async def _masked(self, request: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        kind = _kind_of(request, call_type)
        key = _HISTORIES.get(kind)
        if is_off():
            return None
        if key is None:
            if kind in _BATCHES:
                say(BATCHES_WORDS)
            elif has_message([request.get(field) for field in _FIELDS]):
                say(f"calls of LiteLLM's kind {kind!r} are sent as they are: mask their messages with view(messages)")
            return None
        if is_kept(request, KEPT_INTERACTION if kind in _INTERACTIONS else KEPT_BY_PROVIDER):
            return None
        if key not in request:
            say(f"LiteLLM hides positional messages from its hooks: sent raw, give them as {key}=")
        given = request.get(key)
        if not isinstance(given, (list, tuple)):
            return None
        return {**request, key: await self.aview(given, request.get("model"), request)}

    def _report(self, sent: Any, response: Any) -> None:
        """Report the usage of an answer; an error in it never loses the answer."""
        usage = response.get("usage") if isinstance(response, dict) else getattr(response, "usage", None)
        if usage is None or not isinstance(sent, _View) or sent.reported:
            return
        sent.reported.append(usage)
        try:
            self.masker.reported(usage, list(sent.given))
        except Exception as error:
            _log.warning("what the provider counted is lost: %s", error)


def _kind_of(request: Mapping[str, Any], call_type: Any) -> Any:
    """The kind of a call; the hooks of the SDK get none for interactions, but their log does."""
    kind = getattr(call_type, "value", call_type)
    return kind or getattr(request.get("litellm_logging_obj"), "call_type", None)
