"""Turns and summaries: named tuples whose items have names too, as those of published designs."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Summary", "Turn", "head_of"]


def _item(row: Any, key: Any) -> Any:
    """An item of a named tuple, also by the name that published designs use as a key."""
    if not isinstance(key, str):
        return tuple.__getitem__(row, key)
    if key not in row._fields:
        raise KeyError(f"a {type(row).__name__.lower()} has no {key!r}; it has {', '.join(row._fields)}")
    return getattr(row, key)


class Turn(NamedTuple):
    """A turn of an agent, as it was added; ``turn["action"]`` is ``turn.action``, and ``dict(turn)`` is for JSON.

    Example:
        >>> import recede
        >>> recede.turns.Turn(1, "I must look.", "ls", "a.py b.py", 1.5e9)["action"]
        'ls'
    """

    turn: int  # from 1
    reasoning: str
    action: str
    observation: str  # unmasked
    timestamp: float  # when it was added, in seconds since 1970

    def __getitem__(self, key: Any) -> Any:
        return _item(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """The item of this name, as of a dict."""
        return getattr(self, key) if key in self._fields else default

    def keys(self) -> tuple[str, ...]:
        """The names of the items, so that ``dict(...)`` and ``**`` take it."""
        return self._fields


class Summary(NamedTuple):
    """A summary that replaces old turns; ``summary["content"]`` is ``summary.content``.

    Example:
        >>> import recede
        >>> recede.turns.Summary(33, "All files were read.")["end_turn"]
        33
    """

    end_turn: int  # the last turn in it
    content: str

    def __getitem__(self, key: Any) -> Any:
        return _item(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """The item of this name, as of a dict."""
        return getattr(self, key) if key in self._fields else default

    def keys(self) -> tuple[str, ...]:
        """The names of the items, so that ``dict(...)`` and ``**`` take it."""
        return self._fields

    def __str__(self) -> str:
        """The summary in a context, after another text."""
        return f"\n\n[Summary through turn {self.end_turn}:\n{self.content}\n]"


def head_of(number: int, reasoning: str, action: str) -> str:
    """The text of a turn before its observation, in a context."""
    return f"\n\nTurn {number}:\nReasoning: {reasoning}\nAction: {action}\nObservation: "
