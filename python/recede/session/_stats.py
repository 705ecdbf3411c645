"""The figures of a `History`."""

from __future__ import annotations

from typing import Any, NamedTuple

from recede._report import BoundaryMove, OverLimit, Unmasked, changes_of, why_unmasked
from recede.reduction._kinds import tokens_of
from recede.session._reported import ReportedUsage, usage_of_sums

__all__ = ["HistoryStats", "stats_of"]

_SHOWN_MOVES = 3  # by `repr`, the newest: a long session has hundreds


class HistoryStats(NamedTuple):
    """The figures of a `History`, for a status line.

    Attributes:
        messages: appended messages.
        turns: runs of agent messages among them.
        raw_chars: their characters (Unicode code points; images at `image_chars`).
        view_messages: messages of the view.
        view_chars: their characters.
        masked_count: masked observations in the view.
        orphans: calls without result and results without call.
        changed_message, changed_byte: the first message of the most recent change, and its byte in the serialized
            view; the prefix before it is still in a prompt cache. None if no view changed yet.
        boundary_moves: the moves of the boundary, each a `BoundaryMove`.
        provider: the name of the provider whose prompt cache is assumed.
        observations: appended results.
        unmasked: what of them could be masked, if nothing is.
        summary_failures: how often the summarizer raised or returned no text, since this object was made.
        reported: what the provider counted, by `History.reported`.
        over_limit: what requests over the trigger or limit needed, whose views were taken since this object was made.

    Example:
        >>> import recede
        >>> history = recede.History()
        >>> history.append({"role": "user", "content": "hello"})
        >>> history.stats().raw_tokens, history.stats().view_tokens
        (2, 2)
        >>> history.stats().reason
        'nothing masked: there are no tool results'
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
    boundary_moves: tuple[BoundaryMove, ...]
    provider: str
    summary_failures: int
    observations: int
    unmasked: Unmasked
    reported: ReportedUsage = ReportedUsage()
    over_limit: OverLimit = OverLimit()

    @property
    def reason(self) -> str:
        """A sentence that says what was masked and dropped; or why nothing was, and what would change that."""
        request = self.boundary_moves[-1].request if self.masked_count and self.boundary_moves else None
        dropped = max(0, self.messages - self.view_messages)
        done = changes_of(self.masked_count, self.observations, request, 0, dropped)
        return done or "nothing masked: " + why_unmasked(self.observations, self.unmasked, self.provider)

    def __repr__(self) -> str:
        moves = repr(self.boundary_moves[-_SHOWN_MOVES:])
        if (earlier := len(self.boundary_moves) - _SHOWN_MOVES) > 0:
            moves = f"(<{earlier} earlier>, {moves[1:]}"
        shown = {name: moves if name == "boundary_moves" else repr(value) for name, value in self._asdict().items()}
        return f"HistoryStats({', '.join(f'{name}={value}' for name, value in shown.items())})"

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
    sums, _ = session.reported()
    stats: HistoryStats = session.stats(summary_failures, usage_of_sums(sums))
    return stats
