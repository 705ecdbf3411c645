"""Streamed responses, assembled event by event; a partial response is available at any moment.

The clients' own accumulators (`MessageStream` of anthropic, `ChatCompletionStreamState` of openai) cannot do this. They
parse the input of a call in partial mode, so a call that lost its end would run with half of its arguments; they raise
an error at invalid JSON, at halves of a surrogate pair and at chunks without an index; openai's joins the ids and names
that some gateways repeat, and takes three to ten times as long. They also read objects of their client alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

from recede._answer import INVALID_JSON
from recede._encodable import encodable, parsed
from recede._objects import plain
from recede._steps import Call, Step

_ENDED: Any = object()  # in the place of an event: there are no more
_WRITTEN = "partial_json"
# For each kind of delta: its kind of block, and the field that it extends.
_DELTAS = {
    "text_delta": ("text", "text"),
    "citations_delta": ("text", "citation"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", _WRITTEN),
}
# For each kind of OpenAI call, the field that is streamed in pieces.
_KINDS = {"function": "arguments", "custom": "input"}


class _NextEvent:
    """A step: the next event of a stream that a client returned, or `_ENDED`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._events: Any = None

    def run(self) -> Any:
        if self._events is None:
            self._events = iter(self._stream)
        return next(self._events, _ENDED)

    async def run_async(self) -> Any:
        if self._events is None:
            if not hasattr(self._stream, "__aiter__"):
                raise TypeError("create gives a stream that is not async: use turn")
            self._events = aiter(self._stream)
        return await anext(self._events, _ENDED)


class Streamed:
    """The response assembled from the events of a stream, as a dict; those that cannot be read are skipped."""

    def __init__(self) -> None:
        self._message = _Record()  # Anthropic's message, or that of OpenAI's first choice
        self._parts: list[_Record] = []  # its content blocks, or its calls
        self._by_index: dict[Any, _Record] = {}
        self._rest: dict[str, Any] = {}  # OpenAI's fields besides the choices
        self._is_openai: bool | None = None
        self._reason: str | None = None
        self._is_ended = False
        self._half = ""  # a high surrogate at the end of the last text
        self._is_damaged = False  # an event could not be read

    def steps(self, request: Call, on_text: Callable[[str], Any]) -> Generator[Step, Any, dict[str, Any]]:
        """The steps of a streamed request, to the complete response; a ConnectionError if the stream ended early."""
        stream = yield request
        next_event = _NextEvent(stream)
        try:
            while (event := (yield next_event)) is not _ENDED:
                text = self.add(event)
                if text:
                    yield Call("on_text", on_text, (text,))
        finally:
            if hasattr(stream, "close"):
                yield Call("close", stream.close, ())
        if not self._is_ended and self._reason is None:
            raise ConnectionError("the stream ended before the answer was whole")
        return self._response(self._reason)

    def add(self, event: Any) -> str:
        """Add an event and return its text, which may be empty."""
        event = _dict(plain(event))
        if self._is_openai is None and isinstance(event.get("choices"), list):
            self._is_openai = True
        said = self._half + (self._add_chunk(event) if self._is_openai else self._add_event(event))
        # The two surrogates of a character may come in separate events.
        self._half = said[-1:] if "\ud800" <= said[-1:] <= "\udbff" else ""
        text: str = encodable(said[: len(said) - len(self._half)])
        return text

    def partial(self) -> dict[str, Any] | None:
        """The part that has arrived, as a truncated answer; None if nothing has."""
        if not self._message and not self._parts:
            return None
        return self._response(self._reason or ("length" if self._is_openai else "max_tokens"))

    def _response(self, reason: str | None) -> dict[str, Any]:
        if self._is_openai:
            message = {"role": "assistant", "content": None, **self._message.whole()}
            if self._parts:
                message["tool_calls"] = [_call(record) for record in self._parts]
            return {**self._rest, "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        content = [_block(record) for record in self._parts]
        if self._is_damaged:  # a provider refuses a signature whose thinking is incomplete
            content = [block for block in content if block["type"] != "thinking"]
        return {**self._message.whole(), "content": content, "stop_reason": reason}

    def _damage(self, *parts: _Record) -> None:
        """Mark these parts as damaged, or the newest: an event of them could not be read."""
        self._is_damaged = True
        for part in parts or self._parts[-1:]:
            part.is_damaged = True

    def _known(self, index: Any) -> _Record | None:
        return self._by_index.get(index) if isinstance(index, int) else None

    def _open(self, index: Any, fields: dict[str, Any]) -> _Record:
        record = _Record(fields)
        self._parts.append(record)
        self._by_index[index if isinstance(index, int) else len(self._parts) - 1] = record
        return record

    # Anthropic

    def _add_event(self, event: dict[str, Any]) -> str:
        kind = event.get("type")
        if kind in ("message_start", "content_block_start", "content_block_delta", "message_delta"):
            self._is_openai = False
        if kind == "message_start":
            self._message.fields = {**_dict(event.get("message")), **self._message.fields}
        elif kind == "content_block_start":
            self._add_block(event.get("index"), event.get("content_block"))
        elif kind == "content_block_delta":
            return self._add_delta(event.get("index"), _dict(event.get("delta")))
        elif kind == "message_delta":
            ended = _dict(event.get("delta"))
            reason = ended.pop("stop_reason", None)
            self._reason = reason if isinstance(reason, str) else self._reason
            self._message.fields.update(ended)
            # These are totals, of which an event may repeat only some.
            usage = {name: value for name, value in _dict(event.get("usage")).items() if value is not None}
            self._message.fields["usage"] = {**_dict(self._message.fields.get("usage")), **usage}
        elif kind == "message_stop":
            self._is_ended = self._is_openai is False
        elif not isinstance(kind, str) or event.get("delta") is not None:
            self._damage()
        return ""

    def _add_block(self, index: Any, block: Any) -> None:
        known = self._known(index)
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            self._is_damaged = True
        # A block that is started twice is one block.
        elif known is None or any(known.fields.get(name) != block.get(name) for name in ("type", "id")):
            self._open(index, block)
        else:
            self._is_damaged = True

    def _add_delta(self, index: Any, delta: dict[str, Any]) -> str:
        kind, block = delta.get("type"), self._known(index)
        if not isinstance(kind, str) or kind not in _DELTAS:
            # Future kinds of blocks may lack these fields.
            if not isinstance(kind, str) or (block is not None and not _fits(block, "text")):
                self._damage(*[block] if block else [])
            return ""
        of, field = _DELTAS[kind]
        piece = delta.get(field)
        if block is None:  # its start was lost
            self._damage()
            newest = self._parts[-1] if self._parts else None
            # Two calls are never merged.
            is_newest = newest is not None and _fits(newest, of) and not (of == "tool_use" and isinstance(index, int))
            block = newest if newest is not None and is_newest else self._open(index, {"type": of})
        if not _fits(block, of) or not isinstance(piece, dict if kind == "citations_delta" else str):
            self._damage(block, self._parts[-1])
        elif kind == "citations_delta":
            block.fields["citations"] = [*(block.fields.get("citations") or []), piece]
        elif kind == "signature_delta":
            block.fields["signature"] = piece
        else:
            block.add(field, str(piece))
            return str(piece) if of == "text" else ""
        return ""

    # OpenAI

    def _add_chunk(self, chunk: dict[str, Any]) -> str:
        said = ""
        choices = chunk.pop("choices", None)
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict):
                self._damage()
                continue
            if isinstance(choice.get("index"), int) and choice["index"] != 0:
                continue
            reason = choice.get("finish_reason")
            self._reason = reason if isinstance(reason, str) else self._reason
            if not isinstance(choice.get("delta"), (dict, type(None))):
                self._damage()
            for name, value in _dict(choice.get("delta")).items():
                if name == "tool_calls":
                    self._add_calls(value)
                elif isinstance(value, str) and name != "role":
                    self._message.add(name, value)
                    said += value if name == "content" else ""
                elif value is not None and name not in ("content", "refusal"):
                    self._message.fields[name] = value
        self._rest.update({name: value for name, value in chunk.items() if value is not None})
        return said

    def _add_calls(self, deltas: Any) -> None:
        for delta in deltas if isinstance(deltas, list) else [] if deltas is None else [deltas]:
            if not isinstance(delta, dict):
                self._damage()
                continue
            index = delta.pop("index", None)
            call = self._known(index)
            begins = delta.get("id") or any(_dict(delta.get(kind)).get("name") for kind in _KINDS)
            if call is None and self._parts and not begins:
                call = self._parts[-1]
            if call is None:
                call = self._open(index, {})
            call.merge(delta)


class _Record:
    """An object whose long texts arrive in pieces, which are joined once, on access."""

    def __init__(self, fields: dict[str, Any] | None = None) -> None:
        self.fields = {} if fields is None else fields
        self._pieces: dict[str, list[str]] = {}
        self._inner: dict[str, _Record] = {}
        self.is_damaged = False  # a piece could not be read

    def __bool__(self) -> bool:
        return bool(self.fields or self._pieces or self._inner)

    def add(self, name: str, piece: str) -> None:
        self._pieces.setdefault(name, []).append(piece)

    def merge(self, delta: dict[str, Any]) -> None:
        """Extend an OpenAI call: its arguments are streamed in pieces, ids, types and names whole."""
        for name, value in delta.items():
            if name in _KINDS:
                inner = self._inner.setdefault(name, _Record())
                inner.merge(_dict(value))
                self.is_damaged = self.is_damaged or inner.is_damaged or not isinstance(value, (dict, type(None)))
            elif name in _KINDS.values() and isinstance(value, str):
                self.add(name, value)
            elif name in self._pieces:
                self.is_damaged = self.is_damaged or value is not None
            elif value is not None and value != "":  # some gateways repeat ids and names as empty strings
                self.fields[name] = value

    def whole(self) -> dict[str, Any]:
        found = dict(self.fields)
        for name, pieces in self._pieces.items():
            begun = found.get(name)
            found[name] = "".join([begun, *pieces] if isinstance(begun, str) else pieces)
        return {**found, **{name: record.whole() for name, record in self._inner.items()}}


def _fits(block: _Record, of: str) -> bool:
    kind = block.fields["type"]
    return bool(kind == of or (of == "tool_use" and kind.endswith("_tool_use")))


def _block(record: _Record) -> dict[str, Any]:
    """A content block; the input of a call is parsed from its streamed text."""
    block = record.whole()
    written = block.pop(_WRITTEN, "" if record.is_damaged else None)
    if written is not None and _fits(record, "tool_use"):
        try:
            block["input"] = {INVALID_JSON: written} if record.is_damaged else parsed(written)
        except ValueError:
            block["input"] = {INVALID_JSON: written}
    return block


def _call(record: _Record) -> dict[str, Any]:
    """An OpenAI call; if some of its arguments were lost, the rest is not parsed."""
    call = record.whole()
    if record.is_damaged:
        for kind, field in _KINDS.items():
            if kind in call:
                call[kind][field] = json.dumps({INVALID_JSON: call[kind].get(field)})
    return call


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
