"""Reports of providers about the requests of a `History`."""

from __future__ import annotations

from typing import Any, NamedTuple

from recede._objects import plain
from recede._usage import LoggedUsage, reports_cache, usage_of
from recede.providers import Provider

__all__ = ["ReportedUsage", "Reports", "usage_of_sums"]

# A shorter request may not be cached, whatever the provider.
_MIN_CACHED_TOKENS = Provider.of("anthropic").min_tokens
# One cold request is a pause that is over; after this many in a row, the cache is taken to keep nothing.
_COLD_IN_A_ROW = 2
# Bounds of the characters of a thousand tokens: beyond, something else than text was counted.
_LEAST_CHARS, _MOST_CHARS = 1_000, 8_000
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
        view_chars: characters of its view.
        reports_cache: whether the provider reported what it read from the cache.
    """

    usage: LoggedUsage
    view: Any
    view_chars: int
    reports_cache: bool

    @classmethod
    def of(cls, usage: Any, view: Any, view_chars: int) -> Reported | None:
        """Read a usage; None if it has no tokens."""
        value = plain(usage)
        if not isinstance(value, dict):
            raise TypeError(f"reported takes the usage of a response, not {type(usage).__name__}")
        found = usage_of(value, lambda note: None)
        return None if found is None else cls(found, view, view_chars, reports_cache(value))

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
        """Record what was reported of the request of the current view."""
        (before, _), view = session.reported(), session.view_identity()
        reported = Reported.of(usage, *view)
        if reported is None:
            return
        sums, is_cold = self.add(before, reported)
        *_, chars, tokens = sums
        measured = min(max(1_000 * chars // tokens, _LEAST_CHARS), _MOST_CHARS) if calibrates and tokens else None
        session.report(sums, measured, is_cold)

    def add(self, sums: list[int], reported: Reported) -> tuple[list[int], bool]:
        """The sums with this request, and whether the next one will find the cache cold."""
        last, self._last = self._last, reported
        is_cold = last is not None and reported.is_cold(last)
        self._cold_in_a_row = self._cold_in_a_row + 1 if is_cold else 0
        chars = tokens = 0
        if last is not None and last.view == reported.view:
            chars = reported.view_chars - last.view_chars
            tokens = reported.usage.sent_tokens - last.usage.sent_tokens
        if chars <= 0 or tokens <= 0:
            chars = tokens = 0
        fresh, cached, written, written_1h, output = reported.usage
        new = (1, fresh, cached, written + written_1h, output, int(is_cold), chars, tokens)
        before = sums or [0] * len(new)
        added = [min(one + other, _LARGEST) for one, other in zip(before, new, strict=True)]
        return added, self._cold_in_a_row >= _COLD_IN_A_ROW


def usage_of_sums(sums: list[int]) -> ReportedUsage:
    """The sums as they are shown."""
    requests, fresh, cached, written, output, cold, chars, tokens = sums or [0] * 8
    ratio = chars / tokens if tokens else None
    return ReportedUsage(requests, fresh, cached, written, output, cold, ratio)
