"""Requests of clients: where their history is, whose cache serves it, and what answers say of usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recede._bodies import KEPT_BY_PROVIDER
from recede._models import UnknownModels, model_row
from recede._serving import Serving, say, serving
from recede.providers import Provider, provider_of_model
from recede.reduction._input import caches_messages, marks_elsewhere

# The paths whose history is masked, without version and query -> the field that has it.
_COVERED = {
    "/messages": "messages",
    "/messages/count_tokens": "messages",
    "/chat/completions": "messages",
    "/responses": "input",
    "/responses/input_tokens": "input",
}
_COUNTING = ("/count_tokens", "/input_tokens")
# A file of requests, which only the provider reads.
_OF_FILES = {"/batches"}
_ROLES = {"assistant", "developer", "function", "model", "system", "tool", "user"}
_RESULTS = {"function_call_output", "tool_result"}
# Messages are not nested more deeply in the body of a batch.
_MOST_LEVELS = 8

_WORDS = (
    "which recede.wrap does not mask; it masks messages.create, chat.completions.create and responses.create, their "
    "stream and parse, and the counting of tokens: send it with the client that was wrapped, or mask its messages "
    "with a recede.masker.Masker first"
)
SOCKETS = f"a WebSocket sends messages, {_WORDS}"


def history_key(url: str, body: Any) -> str | None:
    """The field of the body that has the history; None without one, a TypeError for messages that are not masked."""
    path = _path_of(url)
    key = _COVERED.get(path)
    if key is not None and isinstance(body, dict):
        is_history = isinstance(body.get(key), list) and not any(body.get(name) for name in KEPT_BY_PROVIDER)
        return key if is_history else None
    if path in _OF_FILES or (key is not None and body is not None):
        raise TypeError(f"POST {path} sends messages in a form {_WORDS}")
    refuse_messages(path, body)
    return None


def is_covered(url: str) -> bool:
    """Whether the history of such a request is masked, unless the provider keeps it."""
    return _path_of(url) in _COVERED


def only_counts(url: str) -> bool:
    """Whether a request only asks how many tokens it has."""
    return url.partition("?")[0].endswith(_COUNTING)


def _path_of(url: str) -> str:
    return url.partition("?")[0].removeprefix("/v1")


def refuse_messages(path: str, body: Any) -> None:
    if has_message(body):
        raise TypeError(f"POST {path} sends messages, {_WORDS}")


def has_message(value: Any, level: int = 0) -> bool:
    """Whether there is a message, or a result, anywhere in a value."""
    if isinstance(value, dict):
        is_message = value.get("role") in _ROLES and ("content" in value or "parts" in value)
        if is_message or value.get("type") in _RESULTS:
            return True
        value = list(value.values())
    if not isinstance(value, (list, tuple)) or level > _MOST_LEVELS:
        return False
    return any(has_message(element, level + 1) for element in value)


class Answered:
    """The receiver of a request's usage, once it is known."""

    def __init__(self) -> None:
        self._started: dict[str, Any] = {}
        self._is_done = False

    def usage(self, data: Any) -> dict[str, Any] | None:
        """The usage of the whole answer, given with the answer or with the last event of a stream that has it."""
        if self._is_done or not isinstance(data, dict):
            return None
        kind = data.get("type")
        if kind in ("message_start", "message_delta"):  # of Anthropic: input first, then output
            self._started.update({name: count for name, count in _usage(data).items() if count is not None})
            return None
        usage = self._started if kind == "message_stop" else _usage(data)
        self._is_done = bool(usage)
        return usage or None


def _usage(data: dict[str, Any]) -> dict[str, Any]:
    for holder in (data, data.get("message"), data.get("response")):
        usage = holder.get("usage") if isinstance(holder, dict) else None
        if isinstance(usage, dict):
            return usage
    return {}


_MOST_NAME = 100  # characters of a model's name


class ModelProvider:
    """A provider at the prices of the model of each request.

    If the options name a provider, that is for all requests. Without a provider nothing is known, or, with `by_name`,
    what the names of models say.
    """

    def __init__(self, provider: str | None, options: Mapping[str, Any], *, by_name: bool = False) -> None:
        self._is_auto = options.get("provider", "auto") == "auto"
        self._provider = provider
        self._by_name = by_name
        self._unknown_models = UnknownModels()

    def assumed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options with this provider, where no model is named."""
        if self._provider is None or not self._is_auto:
            return dict(options)
        return {**options, "provider": self._provider}

    def of(self, model: Any, url: str = "") -> Provider | None:
        """The provider of a model at an address, at its usual prices if the model is not known; None: the options'."""
        found = self.serving(model, url)
        return None if found is None else found.provider

    def serving(self, model: Any, url: str = "") -> Serving | None:
        """Who serves a model at an address; None if the options say it, or nothing is known."""
        name = model[:_MOST_NAME] if isinstance(model, str) else ""
        if not self._is_auto or (self._provider is None and not (self._by_name and name)):
            return None
        if self._provider is None and provider_of_model(name) is None and not url:
            return None
        found = serving(name, url, self._provider or "openai")
        say(found, name)
        if name and not found.is_assumed and model_row(name, host=found.provider.name) is None:
            self._unknown_models.note(name, found.provider.name)
        return found

    def around(self, request: dict[str, Any], history: list[Any], url: str) -> dict[str, Any]:
        """Tell `Masker.view` of the request that has a history, and whose cache serves it at an address."""
        model = str(request.get("model") or "")
        found = self.serving(model, url)
        told: dict[str, Any] = {"marks_elsewhere": marks_elsewhere(request), "request": request, "provider": None}
        if found is None:
            return told
        if caches_messages(request, history):
            return {**told, "provider": found.marked(model).provider}
        if url and found.needs_marks:
            return {**told, "provider": Provider.of("none", model), "if_served": found.if_served}
        return {**told, "provider": found.provider}
