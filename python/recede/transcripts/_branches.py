"""Branches of a session whose user went back, and what a compaction shows again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, overload

from recede.transcripts._requests import Compaction

_Message = dict[str, Any]


class Branch(NamedTuple):
    """A part of a session that continues from one place of its history.

    Attributes:
        parent: the number of the branch that it left; None for the first.
        start: how many messages of the parent's history it continues.
        messages: its own messages.

    Example:
        >>> from recede.transcripts import Branch
        >>> Branch(0, 4, [{"role": "user", "content": "Again, but shorter."}]).start
        4
    """

    parent: int | None
    start: int
    messages: list[_Message]


def path_of(branches: Sequence[Any], number: int, first: int = 0, end: int | None = None, of: str = "messages") -> Any:
    """The history of a branch from one of its messages to another, those of the branches before it included.

    The branches are finished ones, or under construction; of these there are also the `lines`.
    """
    parts = []
    at: int | None = number
    end = branches[number].start + len(branches[number].messages) if end is None else end
    while at is not None and first < end:
        one = branches[at]
        parts.append(getattr(one, of)[max(0, first - one.start) : max(0, end - one.start)])
        at, end = one.parent, min(end, one.start)
    return [message for part in reversed(parts) for message in part]


def last_compaction(
    branches: Sequence[Any], marks: Sequence[Sequence[Compaction]], number: int | None, end: int
) -> Compaction:
    """The last compaction in so much of the history of a branch, by those of each; one of nothing if there is none."""
    while number is not None:
        if place := bisect_right(marks[number], end, key=attrgetter("messages")):
            return marks[number][place - 1]
        end, number = min(end, branches[number].start), branches[number].parent
    return Compaction(0, [])


class Shown(Sequence[_Message]):
    """The messages in place of a history; made when they are read, since many compactions may show the same."""

    def __init__(self, make: Callable[[], list[_Message]]) -> None:
        self._make = make

    @overload
    def __getitem__(self, index: int) -> _Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[_Message]: ...
    def __getitem__(self, index: int | slice) -> _Message | list[_Message]:
        return self._make()[index]

    def __len__(self) -> int:
        return len(self._make())

    def __iter__(self) -> Iterator[_Message]:
        return iter(self._make())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, Shown)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
