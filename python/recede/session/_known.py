"""A list of messages that is handed over whole each time: what it has in common with the one before."""

from __future__ import annotations

from typing import Any

from recede import _engine

NEWEST = 16
"""This many of the newest messages are compared even if their objects are those of the last call."""


class DictComparison:
    """How dicts are compared, and objects of clients."""

    copies = True
    """Whether snapshots are all that there is to compare."""

    def prefix(self, old: list[Any], new: list[Any]) -> tuple[int, list[int]]:
        """How many of the first messages are the same, and which of these differ in their cache marks."""
        return _engine.engine.common_prefix(old, new)

    def snapshots(self, messages: list[Any]) -> list[Any]:
        """Snapshots of messages, which `unchanged` compares them with."""
        return list(map(_copied, messages))

    def unchanged(self, snapshots: list[Any], messages: list[Any]) -> tuple[int, list[int]]:
        """How many of the first messages are as they were, and which of these differ in their cache marks."""
        return self.prefix(snapshots, messages)


class KnownMessages:
    """The messages of the last call.

    Objects that were in it are taken to be unchanged, except the newest messages; with `check`, none are.
    """

    def __init__(self, comparison: Any, *, check: bool = False) -> None:
        self._comparison = comparison
        self._check = check
        self.messages: list[Any] = []
        self._snapshots: list[Any] = []  # of the newest messages

    def copy(self) -> KnownMessages:
        other = KnownMessages(self._comparison, check=self._check)
        other.messages, other._snapshots = list(self.messages), list(self._snapshots)
        return other

    def prefix(self, messages: list[Any]) -> tuple[int, list[int]]:
        """How many of the first messages are those of the last call, and which of these differ in their cache marks."""
        first = len(self.messages) - len(self._snapshots)
        is_copied = first == 0 and self._comparison.copies
        same, marked = (len(messages), []) if is_copied else self._comparison.prefix(self.messages, messages)
        if same > first:
            unchanged, more = self._comparison.unchanged(self._snapshots, messages[first:same])
            same, marked = first + unchanged, [*marked, *(first + place for place in more)]
        return same, [place for place in marked if place < same]

    def changed_in_place(self, same: int, messages: list[Any]) -> bool:
        """Whether the first message that is not the same, by its `prefix`, is the object of the last call."""
        return same < min(len(messages), len(self.messages)) and self.messages[same] is messages[same]

    def trusts(self, place: int, messages: list[Any]) -> bool:
        """Whether its `prefix` takes this message, the object of the last call, to be the same without comparing it."""
        return place < len(self.messages) - len(self._snapshots) and self.messages[place] is messages[place]

    def take(self, messages: list[Any], same: int, marked: list[int]) -> None:
        """Know the messages of this call, by their `prefix`."""
        before = len(self.messages) - len(self._snapshots)
        start = 0 if self._check else max(0, len(messages) - NEWEST)
        snapshots = self._comparison.snapshots
        kept = self._snapshots[start - before : max(0, same - before)] if start >= before else []
        self._snapshots = kept + snapshots(messages[start + len(kept) :])
        for place in marked:
            if place >= start:
                (self._snapshots[place - start],) = snapshots([messages[place]])
        self.messages = messages


def _copied(value: Any) -> Any:
    """A copy of the containers in a message; one that is too deep equals nothing."""
    try:
        return _copy(value)
    except RecursionError:
        return object()


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(field) if isinstance(field, (dict, list)) else field for key, field in value.items()}
    if isinstance(value, list):
        return [_copy(element) if isinstance(element, (dict, list)) else element for element in value]
    return value
