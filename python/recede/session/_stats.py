"""The figures of a `History`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from recede._report import BoundaryMove
from recede.reduction._kinds import tokens_of
from recede.session._moves import StoredMoves
from recede.session._reported import ReportedUsage, usage_of_sums

__all__ = ["HistoryStats", "SessionStats", "stats_of"]


class SessionStats(NamedTuple):
    """The figures of a session of messages, as the core has them."""

    evicted_messages: int
    raw_chars: int
    turns: int
    orphans: int
    view_messages: int
    view_chars: int
    masked_count: int
    changed: tuple[int, int] | None  # message, byte
    stored_moves: int
    moves: int
    cold_requests: list[int]
    provider: str
    reported_sums: list[int]


class HistoryStats(NamedTuple):
    """The figures of a `History`, for a status line.

    Attributes:
        messages: appended messages.
        turns: runs of agent messages among them.
        raw_chars: their characters (Unicode code points; images at `image_chars`).
        view_messages: messages of the view.
        view_chars: their characters.
        masked_count: masked observations in the view.
        orphans: calls without result and results without call among what is planned.
        changed_message, changed_byte: the first message of the most recent change, and its byte in the serialized
            view; the prefix before it is still in a prompt cache. None if no view changed yet.
        boundary_moves: the moves of the boundary, each a `BoundaryMove`: a tuple, or once messages were evicted to a
            store, a sequence that reads them there.
        provider: the name of the provider whose prompt cache is assumed.
        summary_failures: how often the summarizer raised or returned no text, since this object was made.
        reported: what the provider counted, by `History.reported`.

    Example:
        >>> import recede
        >>> history = recede.History()
        >>> history.append({"role": "user", "content": "hello"})
        >>> history.stats().raw_tokens, history.stats().view_tokens
        (2, 2)
    """

    messages: int
    turns: int
    raw_chars: int
    view_messages: int
    view_chars: int
    masked_count: int
    orphans: int
    changed_message: int | None
    changed_byte: int | None
    boundary_moves: Sequence[BoundaryMove]
    provider: str
    summary_failures: int
    reported: ReportedUsage = ReportedUsage()

    @property
    def raw_tokens(self) -> int:
        """About how many tokens were appended, at four characters each."""
        return tokens_of(self.raw_chars)

    @property
    def view_tokens(self) -> int:
        """About how many tokens the view has."""
        return tokens_of(self.view_chars)


def stats_of(session: Any, summary_failures: int) -> HistoryStats:
    """The figures of a session, whose view is current."""
    stats: SessionStats = session.stats()
    changed_message, changed_byte = stats.changed or (None, None)
    moves = tuple(session.moves(stats.stored_moves).moves)
    return HistoryStats(
        messages=len(session),
        turns=stats.turns,
        raw_chars=stats.raw_chars,
        view_messages=stats.view_messages,
        view_chars=stats.view_chars,
        masked_count=stats.masked_count,
        orphans=stats.orphans,
        changed_message=changed_message,
        changed_byte=changed_byte,
        boundary_moves=StoredMoves(session, stats.stored_moves, moves) if stats.stored_moves else moves,
        provider=stats.provider,
        summary_failures=summary_failures,
        reported=usage_of_sums(stats.reported_sums),
    )
