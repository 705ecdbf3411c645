"""The boundary at each request of a history: a fold over the requests.

Characters that could have been masked add to the waste of each request that sends them. Once reading the waste from
the cache has cost a given part of what writing the cache again costs, the boundary moves, if the warranty permits it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from recede._pure.placeholder import Masked
from recede._pure.plan.facts import Facts, Move, Plan
from recede._pure.plan.mask import exempt, own_windows
from recede._pure.plan.warranty import Charged, again, call_cost, charged, raw_request, served, stays_cached
from recede._pure.policy import LOOKBACK_BLOCKS, NOW


def remembers(facts: Facts) -> bool:
    """Whether the boundary depends on earlier requests."""
    return facts.policy.boundary[0] not in ("sliding", "stepped")


def fold_boundary(facts: Facts) -> Plan:
    """Masking by requests: one before each run, and one now unless the history ends with a run."""
    messages = facts.outline.messages
    fold, boundary_before = Fold(facts), 0
    for start in facts.runs.starts:
        boundary_before = fold.boundary
        fold.request(start)
    if messages and not messages[-1].is_agent_made:
        boundary_before = fold.boundary
        fold.request(len(messages), is_now=True)
    return Plan(
        kept=list(range(len(messages))),
        stage="masking" if fold.masked else None,
        boundary=fold.boundary,
        boundary_before=boundary_before,
        masked=dict(sorted(fold.masked.items())),
        moves=tuple(fold.moves),
    )


class Fold:
    """The state between two requests.

    A replay starts a new one with each summary, given the messages that it replaces, its chars (counted at the first of
    these), and the number of messages at the previous request.
    """

    def __init__(
        self, facts: Facts, hidden: frozenset[int] = frozenset(), summary_chars: int = 0, before: int | None = None
    ) -> None:
        self.facts = facts
        self.hidden = hidden
        self.summary_chars = summary_chars
        self.is_rewritten = before is not None  # the next request writes the whole view again
        self.exempt = exempt(facts)
        # Observations in the order in which they leave the window.
        ages = ages_of(facts)
        self.to_come = sorted((age, place) for place, age in enumerate(ages) if age < math.inf)[::-1]
        self.view: list[int] = []  # chars of each message in the view
        self.raw: list[int] = []  # and in the raw history
        self.replaced = (0, 0)  # of a session of turns: chars of those that a summary replaces, and of the summary
        self.chars = self.cost = 0  # of the whole view
        self.older_end = 0
        self.waiting: dict[int, Masked] = {}  # maskable, but still raw
        self.masked: dict[int, Masked] = {}
        self.boundary = 0
        self.waste = 0
        self.requests = 0
        self.before = before or 0  # messages at the previous request; later ones are written to the cache in any case
        self.paid = self.paid_raw = Charged()  # by all requests, and with the raw history
        self.calls = (0, 0)  # chars given to models for summaries, and written by them
        self.again = 0  # chars of the system prompt that a move may write again
        self.marked: int | None = None  # chars up to the boundary, if the request before was marked there
        self.moves: list[Move] = []

    def request(self, end: int, is_now: bool = False) -> None:
        """Make a request after so many messages."""
        self.grow(end)
        rule, first_number, second_number = self.facts.policy.boundary
        policy = self.facts.policy
        gain = self._removed(self.waiting)
        raw, stay, go = self._bill(end, is_now)
        pays = False
        rule, first_number, second_number = policy.boundary
        if rule == "break_even":
            self.waste += gain
            pays = self._breaks_even(raw, stay, go, first_number, second_number)
        elif rule == "high_water":
            pays = self.chars > first_number and gain >= second_number
        is_over = policy.max_cost is not None and self.cost > policy.max_cost
        pinned = self._is_pinned()
        is_moved = bool((pays or is_over) and gain and self._advance())
        self.paid = self.paid.and_(go.and_written(self.again) if is_moved else stay)
        self.paid_raw = self.paid_raw.and_(raw)
        self.marked = self._boundary_chars() if pinned and not is_moved else None
        self.requests += 1
        self.before = end
        self.is_rewritten = False

    def _bill(self, end: int, is_now: bool) -> tuple[Charged, Charged, Charged]:
        """What a request is charged: with the raw history, with the boundary where it is, and after a move."""
        cache, cold = self.facts.policy.cache, self.facts.policy.cache_cold
        is_cold = end in cold or (is_now and NOW in cold)
        raw = raw_request(cache, sum(self.raw[: self.before]), sum(self.raw), is_cold)
        chars, is_written = self._shown(len(self.view)), is_cold or self.is_rewritten
        sent, kept = (0, 0) if is_written else (self._shown(self.before), self._kept())
        self.again = again(cache, kept, is_cold)
        stay = charged(chars, served(cache, sent)).and_written(again(cache, sent, is_cold))
        go = charged(chars - self._removed(self.waiting), served(cache, kept))
        return raw, raw if chars == raw.chars and not self.is_rewritten else stay, go

    def _shown(self, messages: int) -> int:
        """Chars of the view before a message."""
        return sum(self.view[:messages]) + self.replaced[1] - self.replaced[0]

    def _is_within(self, view: Charged, raw: Charged, read: float, write: float) -> bool:
        """Whether all requests, with one more, are within the warranty."""
        policy = self.facts.policy
        calls = 0.0 if policy.summaries is None else call_cost(policy.summaries[1], self.calls)
        most = (1.0 + policy.warranty) * self.paid_raw.and_(raw).cost(read, write)
        return bool(self.paid.and_(view).cost(read, write) + calls <= most)

    def permits_summary(self, end: int, chars: int, call: tuple[int, int]) -> bool:
        """Whether a summary keeps the warranty that leaves so many chars of the view, all written again."""
        policy = self.facts.policy
        rule, read, write = policy.boundary
        if rule != "break_even" or policy.warranty is None:
            return True
        raw, view = self._bill(end, False)[0], charged(chars, 0)
        before, self.calls = self.calls, (self.calls[0] + call[0], self.calls[1] + call[1])
        is_within = self._is_within(view.and_written(again(policy.cache, 0, False)), raw, read, write)
        self.calls = before
        return is_within and stays_cached(policy.cache, raw, view, policy.warranty, read, write)

    def _breaks_even(self, raw: Charged, stay: Charged, go: Charged, read: float, write: float) -> bool:
        policy = self.facts.policy
        extra = go.cost(read, write) - stay.cost(read, write)
        if not self.waste * read >= policy.break_even_at * max(0.0, extra):
            return False
        if policy.warranty is None:
            return True
        is_within = extra + self.again * write <= 0 or self._is_within(go.and_written(self.again), raw, read, write)
        return is_within and stays_cached(policy.cache, raw, go, policy.warranty, read, write)

    def _kept(self) -> int:
        """Chars of the beginning of the view that stay in the cache at a move."""
        if self.facts.policy.cache != "breakpoints":
            return self._shown(min(self._first_waiting(), self.before))
        is_behind = bool(self.waiting) and max(self.masked, default=-1) < min(self.waiting)
        return self.marked or 0 if is_behind and self._is_pinned() else 0

    def _is_pinned(self) -> bool:
        """Whether this request is marked at the boundary: not if the client's marks are too far apart."""
        new = self.facts.outline.messages[self.before : len(self.view)]
        return bool(self.facts.policy.pins_boundary) and sum(one.block_count for one in new) < LOOKBACK_BLOCKS

    def _boundary_chars(self) -> int:
        """Chars of the view up to the last masked observation."""
        if not self.masked:
            return 0
        last = self.facts.outline.results[max(self.masked)]
        later = self.facts.outline.messages[last.message].results
        chars = sum(self.facts.observation_chars[one.index] for one in later if one.index > last.index)
        return sum(self.view[: last.message + 1]) - chars

    def advance(self, end: int) -> None:
        """Move the boundary after so many messages, whether that pays or not."""
        self.grow(end)
        if self.waiting:
            self._advance()

    def grow(self, end: int) -> None:
        """Add the messages up to this one."""
        facts = self.facts
        for message in facts.outline.messages[len(self.view) : end]:
            places = [result.index for result in message.results]
            chars = facts.own_chars[message.index] + sum(facts.observation_chars[place] for place in places)
            self.raw.append(chars)
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

    def _advance(self) -> bool:
        """Mask what is older than the window, if that removes enough."""
        facts = self.facts
        removed = self._removed(self.waiting)
        if self._removed(self.masked) + removed < facts.policy.min_masked_chars:
            return False
        known = {place: one for place, one in self.waiting.items() if self._message(place) < self.before}
        written_again = self._shown(self.before) - self._removed(known) - self._kept()
        self.moves.append((self.requests, len(self.waiting), removed, written_again))
        self._mask(self.waiting)
        self.boundary = self.older_end
        self.waste = 0
        self.marked = None
        return True

    def mask_before(self, message: int) -> None:
        """Mask what waits before a message, which the view does not show."""
        self._mask({place: one for place, one in self.waiting.items() if self._message(place) < message})

    def _mask(self, now: dict[int, Masked]) -> None:
        for place, masked in now.items():
            self.view[self._message(place)] -= self.facts.observation_chars[place] - masked.chars
            self.cost += self.facts.observation_cost(place, masked) - self.facts.observation_cost(place, None)
        self.chars -= self._removed(now)
        self.masked.update(now)
        self.waiting = {place: one for place, one in self.waiting.items() if place not in now}

    def _removed(self, masked: dict[int, Masked]) -> int:
        return sum(self.facts.observation_chars[place] - one.chars for place, one in masked.items())

    def _first_waiting(self) -> int:
        """The first message that masking would change."""
        return min(map(self._message, self.waiting), default=len(self.view))

    def _message(self, place: int) -> int:
        return self.facts.outline.results[place].message


def ages_of(facts: Facts) -> list[float]:
    """For each observation, the number of messages at which it leaves the window."""
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
            # With at most N turns, all of them are in the window.
            of_all = _after(starts, 0, policy.keep_turns + 1, message)
            newer = bisect_left(starts, message + 1)
            age = max(age, of_all, _after(starts, newer, policy.keep_turns, message))
        if policy.keep_results is not None:
            age = max(age, _after(holders, place + 1, policy.keep_results, message))
        ages.append(age)
    return ages


def _after(places: Sequence[int], first: int, count: int, message: int) -> float:
    """The number of messages up to the `count`-th of these from `first` on."""
    if count == 0:
        return message + 1
    last = first + count - 1
    return places[last] + 1 if last < len(places) else math.inf
