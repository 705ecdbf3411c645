"""The boundary at each request of a history: a fold over the requests.

Characters that could have been masked add to the waste of each request that sends them. Once reading the waste from
the cache has cost a given part of what writing the cache again costs, the boundary moves, if the bound on cost permits
it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from oracle.placeholder import Masked
from oracle.plan.agents import restored
from oracle.plan.cost_bound import Bill, Charged, again, charged, raw_request, served, stays_cached
from oracle.plan.facts import Facts, Move, Plan
from oracle.plan.window import ages_of, exempt
from oracle.policy import NOW

Masks = Mapping[int, Masked]
NOTHING: Masks = MappingProxyType({})


def remembers(facts: Facts) -> bool:
    """Whether the boundary depends on earlier requests."""
    return facts.policy.boundary[0] not in ("sliding", "stepped")


def fold_boundary(facts: Facts) -> Plan:
    """Masking by requests: one before each run, and one now unless the history ends with a run."""
    return planned(Fold(facts))


def planned(fold: Fold) -> Plan:
    """The plan after all requests of the history."""
    messages, boundary_before = fold.facts.outline.messages, 0
    ends = [(start, False) for start in fold.facts.runs.starts]
    if messages and not messages[-1].is_agent_made:
        ends.append((len(messages), True))
    for end, is_now in ends:
        boundary_before = fold.boundary
        fold.request(end, is_now)
    return replace(
        fold.facts.raw,
        stage="masking" if fold.masked else None,
        boundary=fold.boundary,
        boundary_before=boundary_before,
        masked=dict(sorted(fold.masked.items())),
        moves=tuple(fold.moves),
    )


class Fold:
    """The state between two requests."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.exempt = exempt(facts)
        # Observations in the order in which they leave the window, the next one last.
        ages = enumerate(ages_of(facts))
        self.to_come = sorted(((age, place) for place, age in ages if age < math.inf), reverse=True)
        self.end = self.older_end = 0
        self.waiting: dict[int, Masked] = {}  # maskable, but still raw
        self.masked: dict[int, Masked] = {}
        self.cleared: list[int] = []  # old, and cleared by the agent
        self.boundary = 0
        self.waste = 0
        self.requests = 0
        self.before = 0  # messages at the previous request; later ones are written to the cache in any case
        self.paid = self.paid_raw = Charged()  # by all requests, and with the raw history
        self.marked: int | None = None  # chars up to the boundary, if the request before was marked there
        self.moves: list[Move] = []

    def request(self, end: int, is_now: bool = False) -> None:
        """Make a request after this many messages."""
        self.grow(end)
        self.waste += self.gain()
        bill, is_pinned = self.bill(end, is_now), self._is_pinned()
        is_moved = (self.pays(bill) or self._is_over()) and self.move()
        self.paid = self.paid.and_(bill.move.and_written(bill.again) if is_moved else bill.stay)
        self.paid_raw = self.paid_raw.and_(bill.raw)
        self.marked = self._boundary_chars() if is_pinned and not is_moved else None
        self._pass_cleared()
        self.requests += 1
        self.before = end

    def grow(self, end: int) -> None:
        """Add the messages up to this one."""
        self.end = end
        while self.to_come and self.to_come[-1][0] <= end:
            _, place = self.to_come.pop()
            self.older_end = max(self.older_end, place + 1)
            masked = None if self.exempt[place] else self.facts.mask(self.facts.outline.results[place])
            if masked is not None:
                self.waiting[place] = masked
            elif self.facts.is_cleared(self.facts.outline.results[place]):
                self.cleared.append(place)

    def gain(self) -> int:
        """The chars that masking all old observations would remove, without those that references then show."""
        return max(0, self.shown(self.end) - self.shown(self.end, self.waiting))

    def _pass_cleared(self) -> None:
        """Move the boundary past what the agent has cleared, up to the first observation that can be masked."""
        last = max((place for place in self.cleared if place < min(self.waiting, default=math.inf)), default=-1)
        if last >= self.boundary:
            self.boundary, self.marked = last + 1, None

    def before_message(self, masked: dict[int, Masked], message: int) -> dict[int, Masked]:
        """Those of these observations that are before a message."""
        return {place: one for place, one in masked.items() if self.facts.outline.results[place].message < message}

    def shown(self, messages: int, waiting: Masks = NOTHING) -> int:
        """The chars of the view before a message, in which these are masked too."""
        masked = {**self.masked, **waiting}
        masked |= restored(self.facts, masked)
        removed = self.facts.removed_chars(self.before_message(masked, messages))
        return sum(self.facts.raw_chars[:messages]) - removed

    def _is_over(self) -> bool:
        """Whether the view is over the budget."""
        budget, view = self.facts.policy.max_cost_at(self.end), list(range(self.end))
        return budget is not None and self.facts.cost(replace(self.facts.raw, kept=view, masked=self.masked)) > budget

    def is_cold(self, end: int, is_now: bool) -> bool:
        """Whether the cache has nothing for a request after this many messages."""
        return end in self.facts.policy.cold or (is_now and NOW in self.facts.policy.cold)

    def bill(self, end: int, is_now: bool) -> Bill:
        """What a request is charged."""
        cache, is_cold, raw_chars = self.facts.policy.cache, self.is_cold(end, is_now), self.facts.raw_chars
        chars = self.shown(end)
        raw = raw_request(cache, sum(raw_chars[: self.before]), sum(raw_chars[:end]), is_cold)
        sent, kept = (0, 0) if is_cold else (self.shown(self.before), self._kept())
        stay = charged(chars, served(cache, sent)).and_written(again(cache, sent, is_cold))
        move = charged(self.shown(end, self.waiting), served(cache, kept))
        return Bill(raw, raw if chars == raw.chars else stay, move, again(cache, kept, is_cold))

    def pays(self, bill: Bill) -> bool:
        """Whether a move breaks even, and keeps the bound on cost."""
        policy = self.facts.policy
        _, read, write = policy.boundary
        extra = bill.move.cost(read, write) - bill.stay.cost(read, write)
        if not self.gain() or not self.waste * read >= policy.break_even_at * extra:
            return False
        if policy.max_overcost is None:
            return True
        is_cheaper = extra + bill.again * write <= 0
        is_within = is_cheaper or self.is_within(bill.move.and_written(bill.again), bill.raw, read, write)
        return is_within and stays_cached(policy.cache, bill.raw, bill.move, policy.max_overcost, read, write)

    def is_within(self, view: Charged, raw: Charged, read: float, write: float) -> bool:
        """Whether all requests, with one more, are within the bound on cost."""
        most = (1.0 + self.facts.policy.max_overcost) * self.paid_raw.and_(raw).cost(read, write)
        return bool(self.paid.and_(view).cost(read, write) <= most)

    def _kept(self) -> int:
        """Chars of the beginning of the view that stay in the cache at a move."""
        first = min(self.waiting, default=None)
        if self.facts.policy.cache.rule != "breakpoints":
            message = self.before if first is None else self.facts.outline.results[first].message
            return self.shown(min(self.before, message))
        is_after = first is not None and self._last_gone() < first
        return self.marked or 0 if is_after and self._is_pinned() else 0

    def _is_pinned(self) -> bool:
        """Whether this request is marked at the boundary: not if the client's marks are too far apart."""
        new = self.facts.outline.messages[self.before : self.end]
        policy = self.facts.policy
        return bool(policy.pins_boundary) and sum(one.block_count for one in new) < policy.cache.lookback_blocks

    def _boundary_chars(self) -> int:
        """Chars of the view up to the last masked observation."""
        if self._last_gone() < 0:
            return 0
        last = self.facts.outline.results[self._last_gone()]
        later = self.facts.outline.messages[last.message].results
        texts = restored(self.facts, self.masked)
        chars = sum(
            texts[one.index].chars if one.index in texts else self.facts.observation_chars[one.index]
            for one in later
            if one.index > last.index
        )
        return self.shown(last.message + 1) - chars

    def _last_gone(self) -> int:
        """The last observation before the boundary whose text is gone; -1 if there is none."""
        return max([*self.masked, *(place for place in self.cleared if place < self.boundary)], default=-1)

    def move(self) -> bool:
        """Mask what is older than the window, if that removes enough."""
        facts, removed = self.facts, self.facts.removed_chars(self.waiting)
        if not self.waiting or facts.removed_chars(self.masked) + removed < facts.policy.min_masked_chars:
            return False
        written_again = self.shown(self.before, self.waiting) - self._kept()
        self.moves.append((self.requests, len(self.waiting), removed, written_again))
        self.masked.update(self.waiting)
        self.waiting = {}
        self.boundary = self.older_end
        self.waste = 0
        return True
