"""The view of a `History` as it was read last: its messages, and its bytes in chunks."""

from __future__ import annotations

from typing import Any

from recede.session._messages import Messages

__all__ = ["CurrentView"]


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
