"""The figures of a `History`, and what providers report about its requests."""

from __future__ import annotations

from typing import Any, NamedTuple

from recede._objects import plain
from recede._report import BoundaryMove, OverLimit, Unmasked, changes_of, why_unmasked
from recede._usage import LoggedUsage, reports_cache, usage_of
from recede.providers import Provider
from recede.reduction._kinds import CHARS_PER_TOKEN, tokens_of

# A shorter request may not be cached, whatever the provider.
_MIN_CACHED_TOKENS = Provider.of("anthropic").min_tokens or 0
# One cold request is a pause that is over; after this many in a row, the cache is taken to keep nothing.
_COLD_IN_A_ROW = 2
_LARGEST = (1 << 48) - 1  # of a stored number


class ReportedUsage(NamedTuple):
    """The tokens of all requests whose usage was given to `History.reported`.

    Attributes:
        requests: the number of these requests.
        input_tokens: input neither read from the cache nor written to it.
        cached_tokens: input read from the cache.
        written_tokens: input written to the cache, for any time.
        output_tokens: the answers.
        cold_count: how many of the requests found the cache cold; see `History.reported`.
        chars_per_token: characters for each token, by how views and requests have grown; None before two requests.

    Example:
        >>> import recede
        >>> history = recede.History()
        >>> history.append({"role": "user", "content": "Find the bug."})
        >>> request = history.view()
        >>> history.reported({"input_tokens": 4, "cache_creation_input_tokens": 3_000, "output_tokens": 20})
        >>> history.stats().reported.written_tokens
        3000
        >>> round(history.stats().reported.cost(recede.costs.Prices()), 5)
        0.01156
    """

    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    cold_count: int = 0
    chars_per_token: float | None = None

    def cost(self, prices: Any) -> float:
        """The cost of these tokens in dollars, at the prices of a `recede.costs.Prices`."""
        cost: float = prices.cost(*self[1:5])
        return cost


class Reported(NamedTuple):
    """A request whose usage was reported.

    Attributes:
        usage: its tokens.
        view: what identifies the beginning of its view: as long as it is the same, views only grow.
        view_chars, view_cost: characters of its view, and what it counts to limits.
        reports_cache: whether the provider reported what it read from the cache.
    """

    usage: LoggedUsage
    view: Any
    view_chars: int
    view_cost: int
    reports_cache: bool

    @classmethod
    def of(cls, usage: Any, view: Any, view_chars: int, view_cost: int | None = None) -> Reported | None:
        """Read a usage; None if it has no tokens."""
        value = plain(usage)
        if not isinstance(value, dict):
            raise TypeError(f"reported takes the usage of a response, not {type(usage).__name__}")
        found = usage_of(value, lambda note: None)
        if found is None:
            return None
        return cls(found, view, view_chars, view_chars if view_cost is None else view_cost, reports_cache(value))

    def counted(self, sums: list[int], static: int = 0) -> tuple[int, int, tuple[int, int]]:
        """What the provider counted of the input, the view and the growth so far, in the sums with this one.

        The limit of the view is less `static` quarter tokens: so is the input.
        """
        *_, tokens, cost = sums
        sent = max(0, self.usage.sent_tokens - static // CHARS_PER_TOKEN)
        return min(sent, _LARGEST), self.view_cost, (cost, tokens)

    def is_cold(self, before: Reported) -> bool:
        """Whether it was served less than half of the request before it, with which its view begins."""
        sent = before.usage.sent_tokens
        begins_with_it = self.view == before.view and self.view_chars >= before.view_chars
        return (
            self.reports_cache and begins_with_it and sent >= _MIN_CACHED_TOKENS and 2 * self.usage.cached_tokens < sent
        )


class Reports:
    """The sums, which the session keeps, and the last request, which it does not."""

    def __init__(self) -> None:
        self._last: Reported | None = None
        self._cold_in_a_row = 0

    def forget(self) -> None:
        """The next request begins with no earlier one."""
        self._last, self._cold_in_a_row = None, 0

    def take(self, session: Any, usage: Any, calibrates: bool) -> None:
        before, _ = session.reported()
        reported = Reported.of(usage, *session.view_identity())
        if reported is None:
            return
        sums, is_cold = self.add(before, reported)
        session.report(sums, reported.counted(sums) if calibrates else None, is_cold)

    def add(self, sums: list[int], reported: Reported) -> tuple[list[int], bool]:
        """The sums with this request, and whether the next one will find the cache cold."""
        last, self._last = self._last, reported
        is_cold = last is not None and reported.is_cold(last)
        self._cold_in_a_row = self._cold_in_a_row + 1 if is_cold else 0
        chars = tokens = cost = 0
        if last is not None and last.view == reported.view:
            chars = reported.view_chars - last.view_chars
            tokens = reported.usage.sent_tokens - last.usage.sent_tokens
            cost = reported.view_cost - last.view_cost
        if chars <= 0 or tokens <= 0 or cost <= 0:
            chars = tokens = cost = 0
        fresh, cached, written, written_1h, output = reported.usage
        new = (1, fresh, cached, written + written_1h, output, int(is_cold), chars, tokens, cost)
        before = _whole(sums)
        added = [min(one + other, _LARGEST) for one, other in zip(before, new, strict=True)]
        return added, self._cold_in_a_row >= _COLD_IN_A_ROW


def _whole(sums: list[int]) -> list[int]:
    """Sums as they are kept now: at first what views counted was their characters."""
    whole = sums or [0] * 8
    return whole if len(whole) > 8 else [*whole, whole[6]]


def usage_of_sums(sums: list[int]) -> ReportedUsage:
    requests, fresh, cached, written, output, cold, chars, tokens, _ = _whole(sums)
    ratio = chars / tokens if tokens else None
    return ReportedUsage(requests, fresh, cached, written, output, cold, ratio)


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
        reasoning_dropped: messages that the view shows without their signed reasoning, where the model verifies it.

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
    reasoning_dropped: int = 0

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
