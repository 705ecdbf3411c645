"""Anthropic's client: middleware, which sees each request of it."""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncIterator, Generator, Iterator
from itertools import islice
from typing import Any, ClassVar

from recede._bodies import refuses_reasoning
from recede._recall import RECALL_DESCRIPTION, RECALL_PARAMETERS
from recede._steps import Call, Step, drive, drive_async
from recede.clients._requests import Answered, only_counts
from recede.integrations._shared import BATCHES_WORDS, Masking, field_of, is_kept, missing, say, unknown

try:
    from anthropic import APIResponse, AsyncAPIResponse, Middleware, beta_async_tool, beta_tool
except ImportError as error:
    raise missing("anthropic", "anthropic 0.109 or newer") from error

__all__ = ["RecedeMiddleware"]

_log = logging.getLogger("recede")

_PATHS = ("/v1/messages", "/v1/messages/count_tokens")
_BATCHES = "/v1/messages/batches"
_MOST_HELD = 100  # objects that functions of other middleware hold


class RecedeMiddleware(Masking, Middleware):
    """Masks old tool results in the messages that a client sends; the lists that are given to it stay as they are.

    It masks the messages of `messages.create`, `.stream`, `.parse` and `.count_tokens`, of ``beta`` too, and of a tool
    runner with ``thread=False``. Batches, and threads, which Anthropic keeps, are sent as they are; a warning says so
    once.

    Args:
        recall: placeholders name the handle of the result, with which `recall_tool` fetches its text.
        **options: as for `recede.reduce`. If the messages have marks of the cache, so has the last masked result.

    Wrong options are a TypeError or ValueError. Its `masker` is a `recede.masker.Masker`, with `masks` and `stats`.
    One object serves any number of clients and conversations.

    Attributes:
        recall_tool: a tool for the tool runner, or by its `to_dict` and `call` for a loop of one's own.
        async_recall_tool: the same for an `AsyncAnthropic`.

    Example::

        client = Anthropic(middleware=[RecedeMiddleware(keep=10)])
    """

    _provider: ClassVar[str | None] = "anthropic"

    def _begin(self, **options: Any) -> None:
        super()._begin(**options)
        described: dict[str, Any] = {"description": RECALL_DESCRIPTION, "input_schema": RECALL_PARAMETERS}

        def recall(handle: str) -> str:
            try:  # the client does not give its messages to tools
                return self.masker.recall_remembered(handle)
            except LookupError as error:
                return unknown(error)

        async def async_recall(handle: str) -> str:
            return recall(handle)

        self.recall_tool = beta_tool(recall, name="recall", **described)
        self.async_recall_tool = beta_async_tool(async_recall, name="recall", **described)

    def handle(self, request: Any, call_next: Any) -> APIResponse[Any]:
        """Send the view, and report the usage of the answer."""
        response: APIResponse[Any] = drive(self._steps(request, call_next, self._reporting))
        return response

    async def handle_async(self, request: Any, call_next: Any) -> AsyncAPIResponse[Any]:
        """Send the view, and report the usage of the answer."""
        response: AsyncAPIResponse[Any] = await drive_async(self._steps(request, call_next, self._async_reporting))
        return response

    def _steps(self, request: Any, call_next: Any, reporting: Any) -> Generator[Step, Any, Any]:
        history = self._history(request)
        if history is None:
            return (yield Call("call_next", call_next, (request,)))
        body = _body(request)
        told, is_sent = self._provider_of.around(body, history, _base_url(call_next)), not only_counts(request.url)

        def sent() -> Generator[Step, Any, Any]:
            view = yield from self.masker._viewing(history, **told, is_sent=is_sent)
            return (yield Call("call_next", call_next, (_with(request, view),)))

        response = yield from sent()
        if response.http_response.status_code == 400:
            said = (yield Call("read", response.read, ())).decode(errors="replace")
            if refuses_reasoning(400, said) and self.masker._is_mended(history, said, body, is_sent=is_sent):
                response = yield from sent()
        if request.stream and response.http_response.is_success:
            stream = yield Call("parse", response.parse, ())  # which the client gives to its caller
            stream._iterator = reporting(stream._iterator, history)
        elif response.http_response.is_success and response.http_response.is_closed:
            # An answer that is still to be read is its caller's.
            self._report(response.http_response.json, Answered(), history)
        return response

    def _history(self, request: Any) -> list[Any] | None:
        """Return the messages of a request that is masked."""
        path = request.url.partition("?")[0]
        if path == _BATCHES:
            say(BATCHES_WORDS)
        if path not in _PATHS:
            return None
        body = _body(request)
        if is_kept(body, more=": a tool runner sends all of it with thread=False"):
            return None
        history = body.get("messages")
        return history if isinstance(history, list) else None

    def _reporting(self, events: Iterator[Any], history: list[Any]) -> Iterator[Any]:
        answered = Answered()
        for event in events:
            if event.type.startswith("message"):
                self._report(event.to_dict, answered, history)
            yield event

    async def _async_reporting(self, events: AsyncIterator[Any], history: list[Any]) -> AsyncIterator[Any]:
        answered = Answered()
        async for event in events:
            if event.type.startswith("message"):
                self._report(event.to_dict, answered, history)
            yield event

    def _report(self, data: Any, answered: Answered, history: list[Any]) -> None:
        """Report the usage of an answer; an error in it never loses the answer."""
        try:
            usage = answered.usage(data())
            if usage is not None:
                self.masker.reported(usage, history)
        except Exception as error:
            _log.warning("what the provider counted is lost: %s", error)


def _base_url(call_next: Any) -> str:
    """Return the base URL of the client that sends with `call_next`; "" if it holds none.

    A request has only its path, but the function that sends it is one of the client's, or calls another middleware.
    """
    waiting = [call_next]
    for function in islice(waiting, _MOST_HELD):  # it grows meanwhile
        for cell in field_of(function, "__closure__") or ():
            held = field_of(cell, "cell_contents")
            url = str(field_of(held, "base_url"))
            if url.startswith("http"):
                return url
            waiting.append(held)
    return ""


def _with(request: Any, view: list[Any]) -> Any:
    """Build the request with the view; its `copy` would copy all messages."""
    request = copy.copy(request)
    request.options = copy.copy(request.options)
    request.options.json_data = {**request.json, "messages": view}
    return request


def _body(request: Any) -> dict[str, Any]:
    """Return the whole body: `extra_body` is added when the request is built."""
    parts = (request.json, getattr(request.options, "extra_json", None))
    return {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}
