"""The messages of a `History` as objects of Python."""

from __future__ import annotations

from typing import Any

from recede._bodies import dumps, loads
from recede._objects import is_object, plain, plain_message, restored
from recede.reduction._input import as_bytes

__all__ = ["Messages", "serialized"]


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
        """Keep a message as it was appended."""
        if index >= len(self._objects):
            self._objects += [None] * (index + 1 - len(self._objects))
        self._objects[index] = message
        if has_objects:
            self._of_clients.add(index)

    def replace(self, messages: list[Any]) -> None:
        """Keep these objects, which are equal to those that were appended."""
        self._objects[: len(messages)] = messages

    def rewind(self, count: int) -> None:
        """Keep only this many of the first."""
        del self._objects[count:]
        self._of_clients = {index for index in self._of_clients if index < count}

    def at(self, session: Any, index: int) -> Any:
        """A message."""
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
