"""Boundaries that only sessions and replays have: with summaries in the view, and with a high-water mark."""

from __future__ import annotations

from oracle.plan.boundary import NOTHING, Fold, Masks
from oracle.plan.cost_bound import Bill, Charged, again, charged, stays_cached
from oracle.plan.facts import Facts

Prices = tuple[float, float, float, float]
"""What a token costs: read from the cache, written to it, given to a model that summarizes, written by it."""


def call_cost(prices: Prices, call: tuple[int, int]) -> float:
    """What a model costs that is given so many chars for a summary, and writes so many."""
    return call[0] * prices[2] + call[1] * prices[3]


class HighWater(Fold):
    """Moves when the view has more than so many chars and the move removes so many."""

    def pays(self, bill: Bill) -> bool:
        _, chars, at_least = self.facts.policy.boundary
        return self.shown(self.end) > chars and self.facts.removed_chars(self.waiting) >= at_least


class WithCalls(Fold):
    """Pays for the calls of a model that writes summaries."""

    calls = (0, 0)  # chars given to models for summaries, and written by them

    def pays(self, bill: Bill) -> bool:
        return self.facts.policy.boundary[0] == "break_even" and super().pays(bill)

    def is_within(self, view: Charged, raw: Charged, read: float, write: float) -> bool:
        policy = self.facts.policy
        calls = 0.0 if policy.summaries is None else call_cost(policy.summaries[1], self.calls)
        most = (1.0 + policy.max_overcost) * self.paid_raw.and_(raw).cost(read, write)
        return bool(self.paid.and_(view).cost(read, write) + calls <= most)

    def permits_summary(self, end: int, chars: int, call: tuple[int, int]) -> bool:
        """Whether a summary keeps the bound on cost that leaves so many chars of the view, all written again."""
        policy = self.facts.policy
        rule, read, write = policy.boundary
        if rule != "break_even" or policy.max_overcost is None:
            return True
        raw, view = self.bill(end, False).raw, charged(chars, 0)
        before, self.calls = self.calls, (self.calls[0] + call[0], self.calls[1] + call[1])
        is_within = self.is_within(view.and_written(again(policy.cache, 0, False)), raw, read, write)
        self.calls = before
        return is_within and stays_cached(policy.cache, raw, view, policy.max_overcost, read, write)


class WithHidden(WithCalls):
    """The fold since a summary, of so many chars: counted at the first of the messages that it replaces."""

    def __init__(self, facts: Facts, hidden: frozenset[int], summary_chars: int, before: int) -> None:
        super().__init__(facts)
        self.hidden = hidden
        self.summary_chars = summary_chars
        self.before = before
        self.is_rewritten = before > 0  # the next request writes the whole view again
        for place, result in enumerate(facts.outline.results):
            self.exempt[place] = self.exempt[place] or result.message in hidden

    def request(self, end: int, is_now: bool = False) -> None:
        super().request(end, is_now)
        self.is_rewritten = False

    def shown(self, messages: int, waiting: Masks = NOTHING) -> int:
        hidden = sum(self.facts.raw_chars[place] for place in self.hidden if place < messages)
        return (
            super().shown(messages, waiting)
            - hidden
            + (self.summary_chars if messages > min(self.hidden, default=messages) else 0)
        )

    def bill(self, end: int, is_now: bool) -> Bill:
        bill = super().bill(end, is_now)
        if not self.is_rewritten:
            return bill
        chars, lost = self.shown(end), again(self.facts.policy.cache, 0, self.is_cold(end, is_now))
        move = charged(self.shown(end, self.waiting), 0)
        return Bill(bill.raw, charged(chars, 0).and_written(lost), move, lost)
