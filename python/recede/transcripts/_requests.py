"""Requests as a log records them: tokens, model and time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
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
