"""The messages of a `History` as objects of Python, those of an array as written, and the view as it was read last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from recede import _engine
from recede._bodies import dumps, loads
from recede._errors import TranscriptError
from recede._objects import is_object, plain, plain_message, restored
from recede.reduction._input import as_bytes
from recede.reduction._policy import compiled


def serialized(message: Any) -> tuple[bytes, bool, bool]:
    """A message as JSON, whether that has lone surrogates, and whether the message is or holds objects of a client."""
    has_objects = False

    def as_plain(value: Any) -> Any:
        nonlocal has_objects
        if not is_object(value):
            raise TypeError(f"a message holds a {type(value).__name__}, which JSON cannot represent")
        form = plain_message(value) if value is message else plain(value)
        if form is message:
            raise TypeError(
                f"a history takes messages, not a {type(message).__name__}: what its model_dump gives has neither "
                "a role nor a type"
            )
        has_objects = True
        return form

    return *as_bytes(dumps(message, as_plain)), has_objects


class Messages:
    """Messages as appended, or decoded when they are first read."""

    def __init__(self) -> None:
        self._objects: list[Any] = []  # None for one that was not read yet
        self._of_clients: set[int] = set()  # those that are, or hold, objects of a client

    def add(self, index: int, message: Any, has_objects: bool) -> None:
        if index >= len(self._objects):
            self._objects += [None] * (index + 1 - len(self._objects))
        self._objects[index] = message
        if has_objects:
            self._of_clients.add(index)

    def replace(self, messages: list[Any]) -> None:
        """Keep these objects, which are equal to those that were appended."""
        self._objects[: len(messages)] = messages

    def rewind(self, count: int) -> None:
        del self._objects[count:]
        self._of_clients = {index for index in self._of_clients if index < count}

    def at(self, session: Any, index: int) -> Any:
        message = self._objects[index] if index < len(self._objects) else None
        if message is None:
            message = loads(session.message(index))
            self.add(index, message, False)
        return message

    def shown(self, session: Any, item: int | bytes | dict[str, Any] | tuple[int, bytes]) -> Any:
        """A message of the view: unchanged; masked; a summary; or masked, in the kind in which it was appended."""
        if isinstance(item, int):
            return self.at(session, item)
        if isinstance(item, dict):
            return item
        if isinstance(item, bytes):
            return loads(item)
        index, data = item
        if index not in self._of_clients:
            return loads(data)
        return restored(self._objects[index], loads(session.message(index)), loads(data))


_decoder = json.JSONDecoder()
_WHITE_SPACE = " \t\n\r"


def written_messages(data: Any) -> Iterator[str]:
    """Yield the messages of an array as written, once it is known to be valid."""
    raw, surrogates = as_bytes(data)
    _engine.engine.reduce_json(raw, surrogates, compiled(_engine.engine, "truncate", {}))  # refuses what is no history
    if raw.lstrip()[:1] != b"[":
        raise TranscriptError("history", offset=0)
    loads(raw)  # refuses what Python cannot read, so that no view fails later
    return _elements(raw.decode("utf-8", "surrogatepass"))


def _elements(text: str) -> Iterator[str]:
    """Yield the elements of an array, as written; the text must be valid JSON."""
    at = text.index("[") + 1
    while True:
        while text[at] in _WHITE_SPACE or text[at] == ",":
            at += 1
        if text[at] == "]":
            return
        end = _decoder.raw_decode(text, at)[1]
        yield text[at:end]
        at = end


class CurrentView:
    """The view as it was read, of which only what has changed is read again."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """The next reading is from the start."""
        self._messages: list[Any] = []
        self._chunks: list[bytes] = []
        self._last = b""  # the chunk that still grows

    def replace(self, new: dict[int, Any]) -> None:
        """Show other objects for some messages, given by the id of the old ones."""
        self._messages = [new.get(id(message), message) for message in self._messages]

    def messages(self, core: Any, objects: Messages) -> list[Any]:
        """A new list of the messages."""
        first, changed = core.changes(len(self._messages))
        try:
            self._messages[first:] = [objects.shown(core, item) for item in changed]
        except BaseException:
            self.clear()
            raise
        return self._messages.copy()

    def chunks(self, core: Any) -> list[bytes]:
        """A new list of the chunks, most of them the objects of the last time."""
        reused, closed, growing = core.chunks(len(self._chunks))
        del self._chunks[reused:]
        self._chunks += closed
        self._last = self._last if growing == self._last else growing
        return [*self._chunks, self._last]
