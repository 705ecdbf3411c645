"""Requests as a log records them: tokens, model and time; and the branches and compactions of their history."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from operator import attrgetter
from typing import Any, NamedTuple

from recede._usage import Beside, LoggedUsage


class LoggedRequest(NamedTuple):
    """A request to a model, as its session's log records it.

    Attributes:
        messages: the number of messages before its answer, in the history of its branch.
        model: the model, as the log names it.
        time: when the first record of its answer was written, in Unix seconds; UTC if the log names no time zone.
        usage: its tokens; None if the log omits them.
        id: what identifies it in any file; a session that is resumed begins with copies. None if the log omits it.
        tier: how it was served if that has a price of its own, such as ``"fast"``.
        beside: what was billed with it and is not in `usage`: an advisor, a compaction.
        cost: what it cost in US dollars, if the log says so; by the log's sum where only that is known.
        branch: the number of the branch that it belongs to (`Transcript.branches`).
        host: who served it, such as ``"openrouter"``, as the log names it; None if the log omits it.

    Example:
        >>> from recede import transcripts
        >>> session = b'{"sessionId": "1", "messages": [{"type": "gemini", "model": "g", "tokens": {"input": 9}}]}'
        >>> [request] = transcripts.read(session).requests
        >>> request.model, request.usage.sent_tokens
        ('g', 9)
    """

    messages: int
    model: str | None
    time: float | None
    usage: LoggedUsage | None
    id: str | None = None
    tier: str | None = None
    beside: tuple[Beside, ...] = ()
    cost: float | None = None
    branch: int = 0
    host: str | None = None


class Compaction(NamedTuple):
    """A point at which the agent replaced the history by something shorter.

    Attributes:
        messages: the number of messages before it, which the model no longer saw.
        shown: what it saw in their place, unless that follows as messages of the history.
        branch: the number of the branch that it belongs to (`Transcript.branches`).

    Example:
        >>> from recede.transcripts import Compaction
        >>> Compaction(40, [{"role": "user", "content": "So far: ..."}]).messages
        40
    """

    messages: int
    shown: Sequence[dict[str, Any]]
    branch: int = 0


def time_of(value: Any) -> float | None:
    """Unix seconds of an ISO time or a number of seconds; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if 0 <= value < 1e11 else None
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value.replace("Z", "+00:00"))
        return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()
    except (OverflowError, ValueError):
        return None


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
    messages: list[dict[str, Any]]


def path_of(
    branches: Sequence[Any], number: int, first: int = 0, end: int | None = None, of: str = "messages"
) -> list[Any]:
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


class Shown(Sequence[dict[str, Any]]):
    """The messages in place of a history; made when they are read, since many compactions may show the same."""

    def __init__(self, make: Callable[[], list[dict[str, Any]]], before: Compaction | None = None) -> None:
        self._make = make
        self.before = before  # where results alone were cleared, the compaction before that

    def __getitem__(self, index: Any) -> Any:
        return self._make()[index]

    def __len__(self) -> int:
        return len(self._make())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._make())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, Shown)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
