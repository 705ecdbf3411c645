"""Where the boundary stands at each request of a history: a fold over the requests.

Each request that sends what could have been masked adds to the waste. When the waste, read from the cache, has cost
what it costs to write again what stands behind the change, the boundary moves.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from recede._pure.placeholder import Masked
from recede._pure.plan.facts import Facts, Move, Plan
from recede._pure.plan.mask import exempt, own_windows
from recede._pure.policy import NOW


def remembers(facts: Facts) -> bool:
    """Whether the boundary depends on the requests that were made before."""
    return facts.policy.boundary[0] not in ("sliding", "stepped")


def fold_boundary(facts: Facts) -> Plan:
    """Masking, by the requests that were made: before each run, and now, if the history does not end with one."""
    messages = facts.outline.messages
    fold = Fold(facts)
    for start in facts.runs.starts:
        fold.request(start)
    if messages and not messages[-1].is_agent_made:
        fold.request(len(messages), is_now=True)
    return Plan(
        kept=list(range(len(messages))),
        stage="masking" if fold.masked else None,
        boundary=fold.boundary,
        masked=dict(sorted(fold.masked.items())),
        moves=tuple(fold.moves),
    )


class Fold:
    """The state between two requests.

    In a replay with summaries it begins anew with each: what that hides is given, and the chars of the summary that
    stands in the place of the first hidden message, and how many messages there were at the request before.
    """

    def __init__(
        self, facts: Facts, hidden: frozenset[int] = frozenset(), summary_chars: int = 0, before: int | None = None
    ) -> None:
        self.facts = facts
        self.hidden = hidden
        self.summary_chars = summary_chars
        self.is_rewritten = before is not None  # the whole view is, at the next request
        self.exempt = exempt(facts)
        # Observations in the order in which they grow older than the window.
        ages = ages_of(facts)
        self.to_come = sorted((age, place) for place, age in enumerate(ages) if age < math.inf)[::-1]
        self.view: list[int] = []  # chars of each message so far, as the view shows it
        self.chars = self.cost = 0  # of the whole view
        self.older_end = 0
        self.waiting: dict[int, Masked] = {}  # older than the window, but not masked
        self.masked: dict[int, Masked] = {}
        self.boundary = 0
        self.waste = 0
        self.requests = 0
        self.before = before or 0  # messages at the request before: what came since is new, and is written in any case
        self.moves: list[Move] = []

    def request(self, end: int, is_now: bool = False) -> None:
        """A request is made after this many messages."""
        self._grow(end)
        rule, first_number, second_number = self.facts.policy.boundary
        gain = self._removed(self.waiting)
        pays = False
        if rule == "break_even":
            read, write = first_number, second_number
            self.waste += gain
            known = {place: one for place, one in self.waiting.items() if self._message(place) < self.before}
            again = sum(self.view[self._first_waiting() : self.before]) - self._removed(known)
            cold = self.facts.policy.cache_cold
            is_cold = self.is_rewritten or end in cold or (is_now and NOW in cold)
            pays = is_cold or self.waste * read >= again * (write - read)
        elif rule == "high_water":
            pays = self.chars > first_number
        budget = self.facts.policy.max_cost
        is_over = budget is not None and self.cost > budget
        if (pays or is_over) and gain:
            self._advance()
        self.requests += 1
        self.before = end
        self.is_rewritten = False

    def advance(self, end: int) -> None:
        """The boundary moves after this many messages, whether that pays or not."""
        self._grow(end)
        if self.waiting:
            self._advance()

    def _grow(self, end: int) -> None:
        facts = self.facts
        for message in facts.outline.messages[len(self.view) : end]:
            places = [result.index for result in message.results]
            chars = facts.own_chars[message.index] + sum(facts.observation_chars[place] for place in places)
            if message.index in self.hidden:
                chars = self.summary_chars if message.index == min(self.hidden) else 0
            self.view.append(chars)
            self.chars += self.view[-1]
            self.cost += facts.own_cost(message.index) + sum(facts.observation_cost(place, None) for place in places)
        while self.to_come and self.to_come[-1][0] <= end:
            _, place = self.to_come.pop()
            self.older_end = max(self.older_end, place + 1)
            stays = self.exempt[place] or self._message(place) in self.hidden
            masked = None if stays else facts.mask(facts.outline.results[place])
            if masked is not None:
                self.waiting[place] = masked

    def _advance(self) -> None:
        facts = self.facts
        removed = self._removed(self.waiting)
        if self._removed(self.masked) + removed < facts.policy.min_masked_chars:
            return
        for place, masked in self.waiting.items():
            self.view[self._message(place)] -= facts.observation_chars[place] - masked.chars
            self.cost += facts.observation_cost(place, masked) - facts.observation_cost(place, None)
        self.chars -= removed
        written_again = sum(self.view[self._first_waiting() : self.before])
        self.moves.append((self.requests, len(self.waiting), removed, written_again))
        self.masked.update(self.waiting)
        self.waiting = {}
        self.boundary = self.older_end
        self.waste = 0

    def _removed(self, masked: dict[int, Masked]) -> int:
        return sum(self.facts.observation_chars[place] - one.chars for place, one in masked.items())

    def _first_waiting(self) -> int:
        """The first message that masking would change."""
        return min(map(self._message, self.waiting), default=len(self.view))

    def _message(self, place: int) -> int:
        return self.facts.outline.results[place].message


def ages_of(facts: Facts) -> list[float]:
    """For each observation, how many messages there must be for it to be older than the window."""
    outline, policy = facts.outline, facts.policy
    spoken = [message.index for message in outline.messages if not message.is_system]
    starts = facts.runs.starts
    holders = [result.message for result in outline.results]
    windows = own_windows(facts)
    ages: list[float] = []
    for result in outline.results:
        place, message = result.index, result.message
        if place in windows:
            window, own, newer = windows[place]
            ages.append(math.inf if window is None else _after(own, newer, window, message))
            continue
        age: float = message + 1
        if policy.keep_messages is not None:
            age = max(age, _after(spoken, bisect_left(spoken, message + 1), policy.keep_messages, message))
        if policy.keep_turns:
            # The last N turns of no more than N are all there is.
            of_all = _after(starts, 0, policy.keep_turns + 1, message)
            newer = bisect_left(starts, message + 1)
            age = max(age, of_all, _after(starts, newer, policy.keep_turns, message))
        if policy.keep_results is not None:
            age = max(age, _after(holders, place + 1, policy.keep_results, message))
        ages.append(age)
    return ages


def _after(places: Sequence[int], first: int, count: int, message: int) -> float:
    """How many messages there are when so many of these, from the first one on, have come."""
    if count == 0:
        return message + 1
    last = first + count - 1
    return places[last] + 1 if last < len(places) else math.inf
