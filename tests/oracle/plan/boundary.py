"""The boundary at each request of a history: a fold over the requests.

Characters that could have been masked add to the waste of each request that sends them. Once reading the waste from
the cache has cost a given part of what writing the cache again costs, the boundary moves, if the bound on cost permits
it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from types import MappingProxyType

from oracle.outline import Message
from oracle.placeholder import Masked, fill
from oracle.plan.cost_bound import Bill, Charged, again, charged, raw_request, served, stays_cached, system_excess
from oracle.plan.facts import Facts, Move, Plan
from oracle.plan.hide import Hidden, Hiding, compacted, fixed_cost, hide
from oracle.plan.limit import cost_with, force, has_begun
from oracle.plan.old_turns import call_cost, reached, summary_step
from oracle.plan.references import References
from oracle.plan.stay import exempt, for_good
from oracle.plan.window import ages_of
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
    make_requests(fold)
    return fold.plan()


def make_requests(fold: Fold) -> None:
    """Make all requests of the history."""
    messages = fold.facts.outline.messages
    for start in fold.facts.runs.starts:
        fold.request(start)
    if messages and not messages[-1].is_agent_made:
        fold.request(len(messages), is_now=True)
    elif fold.facts.policy.remembers:
        fold.answer(len(messages))


class Fold:
    """The state between two requests."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.exempt, self.for_good = exempt(facts), for_good(facts)
        # Observations in the order in which they leave the window, the next one last.
        self.ages = ages_of(facts)
        ages = enumerate(self.ages)
        self.to_come = sorted(((age, place) for place, age in ages if age < math.inf), reverse=True)
        self.end = self.older_end = 0
        self.waiting: dict[int, Masked] = {}  # maskable, but still raw
        self.masked: dict[int, Masked] = {}
        self.references = References(facts)
        self.hidden = Hidden()
        self.told: list[frozenset[int]] = []  # what each summary so far tells of
        self.hides_for_limit = False
        self.cuts: dict[int, Masked] = {}
        self.boundary = self.boundary_before = 0
        self.is_own = True  # the masks of the last step are those of the rule of the boundary
        self.is_begun = self.is_over = self.is_rewritten = False
        self.view_cost: int | None = None  # of a view that is over the limit although all that may be hidden is
        self.least = 0  # that of the newest such view; 0 after one that is not over the limit
        self.waste = 0
        self.requests = 0
        self.before = 0  # messages at the previous request; later ones are written to the cache in any case
        self.paid = self.paid_raw = Charged()  # by all requests, and with the raw history
        self.shared = 0  # messages before the first change at the last move
        self.system_rewrites = 0  # requests that wrote the system prompt again, which raw read
        self.marked: int | None = None  # chars up to the boundary, if the request before was marked there
        self.moves: list[Move] = []
        self.signed: dict[int, int] = {}  # messages with signed reasoning, and messages before the request of each
        self.unsigned: frozenset[int] = frozenset()  # those that are sent without it
        # Of summaries of old turns: turns that are told of or stay, what requests sent without need, and what models
        # were given and wrote.
        self.reached = self.summary_waste = 0
        self.calls = (0, 0)
        self.call = (0, 0)  # of the last request

    def request(self, end: int, is_now: bool = False) -> None:
        """Make a request after this many messages."""
        self.grow(end)
        self.is_begun = self.is_begun or has_begun(self)
        if self.is_begun:
            self.waste += self.gain()
        bill, is_pinned = self.bill(end, is_now), self._is_pinned()
        self.call = (0, 0)
        masked, cuts, is_forced, hiding = self.step(bill, is_request=True)
        is_moved = bool(masked) or any(self._is_sent(place) for place in cuts)
        if is_forced and (masked or cuts):
            bill = self._forced_bill(bill, masked | cuts, is_moved, self.is_cold(end, is_now))
        self.boundary_before = self.boundary
        self.take(masked, cuts, is_forced, hiding)
        if hiding is not None:
            cache, view = self.facts.policy.cache, charged(self.shown(end), 0)
            more = again(cache, 0, False)
            bill = Bill(bill.raw, view.and_written(more), view, more, rewrites_system=cache.system_chars > 0)
        self.paid = self.paid.and_(
            bill.move.and_written(bill.again) if is_moved or (is_forced and (masked or cuts)) else bill.stay
        )
        self.paid_raw = self.paid_raw.and_(bill.raw)
        if self.is_cold(end, is_now):
            self.shared = 0
        if bill.rewrites_system and (is_moved or self.is_rewritten or hiding is not None):
            self.system_rewrites += 1
        self.calls = self.calls[0] + self.call[0], self.calls[1] + self.call[1]
        self.marked = self._boundary_chars() if is_pinned and not is_moved and hiding is None else None
        self.requests += 1
        self.before, self.is_rewritten = end, False

    @classmethod
    def of_plan(cls, facts: Facts, before: Plan) -> Fold:
        """The state of a view that masks and cuts as a plan does, by a rule that has no memory."""
        fold = cls(facts)
        fold.grow(len(facts.outline.messages))
        fold.cuts = {place: one for place, one in before.masked.items() if one.is_clipped}
        fold.masked = {place: one for place, one in before.masked.items() if not one.is_clipped}
        fold.boundary = before.boundary
        fold.is_begun = not before.is_below_trigger
        return fold

    def cost_with(self, changes: Masks) -> int:
        """The cost of the view with these changes besides."""
        return cost_with(self, changes)

    def cost_hiding(self, hidden: Hidden, masked: Masks) -> int:
        """The cost of the view that hides these messages, and masks these results besides."""
        after = copy(self)
        after.hidden, after.unsigned = hidden, self.voided(masked, hides=True)
        return cost_with(after, masked)

    def answer(self, end: int) -> None:
        """Add the answer to the last request, after which the view may be over the limit."""
        self.grow(end)
        self.is_begun = self.is_begun or has_begun(self)
        masked, cuts, is_forced, hiding = self.step(None, is_request=False)
        self.boundary_before = self.boundary if masked else self.boundary_before
        self.take(masked, cuts, is_forced, hiding)

    def step(
        self, bill: Bill | None, is_request: bool
    ) -> tuple[dict[int, Masked], dict[int, Masked], bool, Hiding | None]:
        """What a request masks and cuts, whether the limit forces that, and what it hides."""
        policy = self.facts.policy
        rule = policy.boundary[0]
        moves = self.is_begun and (is_request or rule in ("sliding", "stepped"))
        masked = self.movable() if moves and (self.pays(bill) or self._is_over()) else {}
        self.is_own = True
        limit = policy.limit_at(self.end)
        self.is_over, self.view_cost = False, None
        summary = summary_step(self, bill) if is_request and self.is_begun else 0
        if isinstance(summary, int):
            self.summary_waste += summary
        elif limit is None or summary.hiding.cost <= limit:
            self.call = summary.call
            return summary.masked, {}, False, summary.hiding
        if limit is None or cost_with(self, masked) <= limit:
            return masked, {}, False, None
        without = compacted(self)
        if without is not None:
            return self._compacted_step(without, bill, is_request)
        changes, cuts, is_last = force(self, limit, masked)
        self.is_own = changes is masked
        self.is_over = cost_with(self, {**cuts, **changes}) > limit
        if is_last and policy.goal == "reduce":
            cost = cost_with(self, {**cuts, **changes})
            if fixed_cost(self) > limit and cost <= self.least + self.least // 4:
                return changes, cuts, True, None
            hiding = hide(self, {**cuts, **changes}, limit)
            self.is_over = hiding is None or hiding.cost > limit
            if self.is_over:
                self.view_cost = cost if hiding is None else hiding.cost
            return changes, cuts, True, hiding
        needed = summary_step(self, bill, is_needed=True) if is_last and is_request else 0
        if not isinstance(needed, int) and needed.hiding.cost <= limit:
            self.is_over, self.call = False, needed.call
            return needed.masked, {}, False, needed.hiding
        return changes, cuts, True, None

    def _compacted_step(
        self, without: Hidden, bill: Bill | None, is_request: bool
    ) -> tuple[dict[int, Masked], dict[int, Masked], bool, Hiding | None]:
        """The step of the view from which what a compaction of the provider stands for has gone."""
        after = copy(self)
        after.hidden, after.unsigned = without, self.voided({}, hides=True)
        after.waiting = {place: one for place, one in self.waiting.items() if not after.hides(place)}
        after.summary_waste, after.reached = 0, reached(after)
        masked, cuts, is_forced, hiding = after.step(bill, is_request)
        self.is_over, self.is_own, self.call = after.is_over, after.is_own, after.call
        self.view_cost = after.view_cost
        gone = hiding or Hiding(without, cost_with(after, {**cuts, **masked}))
        return masked, cuts, is_forced, gone._replace(is_forced=True)

    def take(
        self, masked: dict[int, Masked], cuts: dict[int, Masked], is_forced: bool, hiding: Hiding | None = None
    ) -> None:
        """Mask, cut and hide these."""
        changes = {**cuts, **masked}
        if not self.is_over or self.view_cost is not None:
            self.least = self.view_cost or 0
        if self.facts.policy.remembers and (masked or any(self._is_sent(place) for place in cuts)):
            before = self.before_message(changes, self.before)
            written_again = self.shown(self.before, before) - self._kept(min(changes))
            removed = self.shown(self.end) - self.shown(self.end, changes)
            lost = len(self.voided(changes, hiding is not None)) - len(self.unsigned)
            self.moves.append((self.requests, len(masked), removed, written_again, lost))
            first = self.facts.outline.results[min(changes)].message
            self.shared = first if first < self.before else self.shared
        self.unsigned = self.voided(changes, hiding is not None)
        self.cuts.update(cuts)
        self.masked.update(masked)
        for place in masked:
            self.references.forget(place)
        if hiding is not None:
            self.hidden, self.shared = hiding.hidden, 0
            self.hides_for_limit |= hiding.is_forced
            self.waste = self.summary_waste = 0
            self.reached = reached(self)
            summary = hiding.hidden.summary
            if summary is not None and summary.told not in self.told:
                self.told.append(summary.told)
        if masked:
            rounded = self.rounded(self.older_end)
            self.boundary = max(self.boundary, *[rounded] if self.is_own else [self.older_end, max(masked) + 1])
            self.waste = 0
        self.waiting = {
            place: one
            for place, one in self.waiting.items()
            if place not in masked
            and (place not in self.cuts or one.chars < self.cuts[place].chars)
            and not self.hides(place)
        }

    def voided(self, changes: Masks, hides: bool = False) -> frozenset[int]:
        """The messages whose reasoning is void after these changes.

        If the newest was made by a request that had sent what changes now, all that was made so far is.
        """
        edited = [self.facts.outline.results[place].message for place in changes] + [0] * hides
        newest = max(self.signed, default=None)
        if newest is not None and edited and min(edited) < self.signed[newest]:
            return frozenset(self.signed)
        return self.unsigned

    def rounded(self, boundary: int) -> int:
        rule, chunk, _ = self.facts.policy.boundary
        return boundary // int(chunk) * int(chunk) if rule == "stepped" else boundary

    def _is_sent(self, place: int) -> bool:
        return self.facts.outline.results[place].message < self.before

    def _forced_bill(self, bill: Bill, changes: dict[int, Masked], is_moved: bool, is_cold: bool) -> Bill:
        cache = self.facts.policy.cache
        kept = 0 if is_cold else self._kept(min(changes)) if is_moved else self.shown(self._cached_end())
        move = charged(self.shown(self.end, changes), served(cache, kept))
        rewrites = self._rewrites_system(kept, is_cold)
        return bill._replace(move=move, again=again(cache, kept, is_cold), rewrites_system=rewrites)

    def plan(self) -> Plan:
        """What is masked and cut."""
        shown = {**self.references.restored, **self.cuts, **self.masked}
        masked = {place: one for place, one in sorted(shown.items()) if not self.hides(place)}
        share = self.hidden.share
        return replace(
            self.facts.raw,
            kept=[index for index in range(len(self.facts.outline.messages)) if index not in self.hidden.messages],
            stage="masking" if any(one.is_masked for one in {**self.facts.arrived, **masked}.values()) else None,
            boundary=self.boundary,
            boundary_before=self.boundary_before,
            masked=masked,
            moves=tuple(self.moves),
            unsigned=self.unsigned,
            is_below_trigger=not self.is_begun,
            cut=self.hidden.cut,
            is_forced=self.hides_for_limit,
            own_chars=self.shown(len(self.facts.outline.messages)) - share if self.references.restored else None,
        )

    def hides(self, place: int) -> bool:
        """Whether a result is in a hidden message."""
        return self.facts.outline.results[place].message in self.hidden.messages

    def grow(self, end: int) -> None:
        """Add the messages up to this one."""
        for message in self.facts.outline.messages[self.end : end]:
            self._arrive(message)
        self.end = end
        while self.to_come and self.to_come[-1][0] <= end:
            _, place = self.to_come.pop()
            self.older_end = max(self.older_end, place + 1)
            if place in self.masked:
                continue
            group = self.references.group_of(place)
            if any(self.ages[other] > end for other in group):
                continue  # it is still referred to
            self.references.forget(place)
            for other in group:
                masked = None if self.hides(other) else self.mask(other)
                if masked is not None:
                    self.waiting[other] = masked

    def _arrive(self, message: Message) -> None:
        """Add a message. What it has of hidden calls, no request has shown, so these are shown again."""
        calls = [self.facts.pairs.call_of[result.index] for result in message.results]
        hidden = [call is not None and call.message in self.hidden.messages for call in calls]
        hidden += [other in self.hidden.messages for other in self.facts.pairs.linked_before(message.index)]
        if any(hidden):
            for place, one in self.late_masks().items():
                self.waiting.setdefault(place, one)
            self.hidden, self.told, self.is_rewritten, self.shared = Hidden(), [], True, 0
            self.hides_for_limit = False
            self.reached = self.summary_waste = 0
            newest = max(self.signed, default=None)
            self.unsigned = frozenset(self.signed) if newest is not None and self.signed[newest] else self.unsigned
        if self.facts.policy.verifies_reasoning and message.is_signed:
            self.signed[message.index] = self.before
        for result in message.results:
            held = self.references.arrive(result, self.masked)
            if held is not None:
                self.waiting.pop(held, None)

    def late_masks(self) -> dict[int, Masked]:
        """The results of hidden messages that are outside of the window, and not masked."""
        old = [place for place, age in enumerate(self.ages) if age <= self.end and self.hides(place)]
        masks = {place: self.mask(place) for place in old if place not in self.masked}
        return {place: one for place, one in masks.items() if one is not None}

    def mask(self, place: int) -> Masked | None:
        """The mask of an observation; None if it stays as it is, or as it is cut."""
        masked = None if self.exempt[place] else self.facts.mask(self.facts.outline.results[place])
        restored = self.references.restored.get(place)
        if restored is not None and not self.exempt[place]:
            text = fill(self.facts.observation(self.facts.outline.results[place]), self.facts.policy)
            least = 1 if self.facts.policy.least_removed is None else self.facts.policy.least_removed
            masked = Masked((text,), text) if restored.chars - len(text) >= least else None
        is_longer = masked is not None and place in self.cuts and masked.chars >= self.cuts[place].chars
        return None if is_longer else masked

    def gain(self) -> int:
        """The chars that masking all old observations would remove, without those that references then show."""
        return max(0, self.shown(self.end) - self.shown(self.end, self.waiting))

    def before_message(self, masked: dict[int, Masked], message: int) -> dict[int, Masked]:
        """Those of these observations that are before a message."""
        return {place: one for place, one in masked.items() if self.facts.outline.results[place].message < message}

    def shown(self, messages: int, waiting: Masks = NOTHING) -> int:
        """The chars of the view before a message, in which these are masked too."""
        masked = {place: one for place, one in self.masked.items() if not self.hides(place)}
        shown = {**self.references.restored, **self.cuts, **masked, **waiting}
        shown = {place: one for place, one in shown.items() if not self.hides(place)}
        removed = self.facts.removed_chars(self.before_message(shown, messages))
        own = [
            self.hidden.cut[index].chars if index in self.hidden.cut else chars
            for index, chars in enumerate(self.facts.raw_chars[:messages])
            if index not in self.hidden.messages
        ]
        return sum(own) - removed + self.hidden.share_before(messages, self.end)

    def raw(self, messages: int) -> int:
        """The chars of the raw history before a message, as it arrived."""
        restored = self.before_message(self.references.restored, messages)
        return sum(self.facts.raw_chars[:messages]) - self.facts.removed_chars(restored)

    def _is_over(self) -> bool:
        """Whether the view is over the budget."""
        policy, view = self.facts.policy, list(range(self.end))
        budget = None if policy.is_limit or not remembers(self.facts) else policy.max_cost_at(self.end)
        return budget is not None and self.facts.cost(replace(self.facts.raw, kept=view, masked=self.masked)) > budget

    def is_cold(self, end: int, is_now: bool) -> bool:
        """Whether the cache has nothing for a request after this many messages."""
        return end in self.facts.policy.cold or (is_now and NOW in self.facts.policy.cold)

    def bill(self, end: int, is_now: bool) -> Bill:
        """What a request is charged."""
        cache, is_cold = self.facts.policy.cache, self.is_cold(end, is_now)
        chars = self.shown(end)
        raw = raw_request(cache, self.raw(self._cached_end()), self.raw(end), is_cold)
        sent, kept = (0, 0) if is_cold or self.is_rewritten else (self.shown(self._cached_end()), self._kept())
        stay = charged(chars, served(cache, sent)).and_written(again(cache, sent, is_cold))
        stay = raw if chars == raw.chars and not self.is_rewritten else stay
        move = charged(self.shown(end, self.waiting), served(cache, kept))
        return Bill(raw, stay, move, again(cache, kept, is_cold), self._rewrites_system(kept, is_cold), is_cold)

    def pays(self, bill: Bill | None) -> bool:
        """Whether a move breaks even, and keeps the bound on cost; others move at each request."""
        policy = self.facts.policy
        rule, read, write = policy.boundary
        if rule == "high_water":
            return self.shown(self.end) > read and self.gain() >= write
        if rule != "break_even" or bill is None:
            return rule in ("sliding", "stepped") and not self._awaits_results()
        extra = bill.move.cost(read, write) - bill.stay.cost(read, write)
        part = 1.0 if self._is_amid_round() else 0.5
        if not self.gain() or not self.waste * read >= part * extra:
            return False
        if bill.is_cold and self.before in policy.cold and self._awaits_results():
            return False
        if policy.max_overcost is None:
            return True
        system_chars = policy.cache.system_chars if bill.rewrites_system else 0
        is_cheaper = extra + bill.again * write + system_chars * (write - read) <= 0
        is_within = is_cheaper or self.is_within(bill.move.and_written(bill.again), bill.raw, read, write)
        return is_within and stays_cached(policy.cache, bill.raw, bill.move, policy.max_overcost, read, write)

    def _is_amid_round(self) -> bool:
        """Whether a move would cost reasoning while the agent works: the request has results of the last answer."""
        messages = self.facts.outline.messages[self.before : self.end]
        return any(message.results for message in messages) and self._costs_reasoning()

    def _awaits_results(self) -> bool:
        """Whether a move would cost reasoning for too few results, where no request finds a cache."""
        return len(self.movable()) < 10 and self._costs_reasoning()

    def _costs_reasoning(self) -> bool:
        """Whether masking what waits would leave out signed reasoning that is still sent."""
        return self.voided(self.waiting, hides=False) > self.unsigned

    def is_within(self, view: Charged, raw: Charged, read: float, write: float, call: tuple[int, int] = (0, 0)) -> bool:
        """Whether all requests, with one more and a call for its summary, are within the bound on cost."""
        policy = self.facts.policy
        calls = self.calls[0] + call[0], self.calls[1] + call[1]
        of_models = 0.0 if policy.summaries is None else call_cost(policy.summaries, calls)
        most = (1.0 + policy.max_overcost) * self.paid_raw.and_(raw).cost(read, write)
        of_system = system_excess(
            policy.cache, self.requests + 1, self.system_rewrites + 1, policy.max_overcost, read, write
        )
        return bool(self.paid.and_(view).cost(read, write) + of_models + of_system <= most)

    def _kept(self, first: int | None = None) -> int:
        """Chars of the beginning of the view that stay in the cache at a move that begins there, or with what waits."""
        first = min(self.waiting, default=None) if first is None else first
        rule = self.facts.policy.cache.rule
        if rule != "breakpoints":
            message = self.before if first is None else self.facts.outline.results[first].message
            if rule == "entries":
                if message >= self.before:
                    return self.shown(self._cached_end())
                shares = self.facts.policy.cache.shares_prefixes and self.shared <= message
                return self.shown(self.shared) if shares else 0
            return self.shown(min(self.before, message))
        is_after = first is not None and self._last_gone() < first
        return self.marked or 0 if is_after and self._is_pinned() else 0

    def _cached_end(self) -> int:
        """The messages of the newest entry: of the request before; where answers are in entries, with its answer."""
        if self.facts.policy.cache.rule != "entries" or not self.requests:
            return self.before
        made = [message.is_agent_made for message in self.facts.outline.messages[self.before : self.end]]
        return self.before + [*made, False].index(False)

    def _rewrites_system(self, kept: int, is_cold: bool) -> bool:
        """Whether this request writes a system prompt again that raw reads."""
        return self.facts.policy.cache.system_chars > 0 and self.requests > 0 and not kept and not is_cold

    def _is_pinned(self) -> bool:
        """Whether this request is marked at the boundary: not if the client's marks are too far apart."""
        new = self.facts.outline.messages[self.before : self.end]
        policy = self.facts.policy
        return bool(policy.pins_boundary) and sum(one.position_count for one in new) < policy.cache.lookback_blocks

    def _boundary_chars(self) -> int:
        """Chars of the view up to the last masked observation."""
        if self._last_gone() < 0:
            return 0
        last = self.facts.outline.results[self._last_gone()]
        later = self.facts.outline.messages[last.message].results
        texts = {**self.references.restored, **self.cuts}
        chars = sum(
            texts[one.index].chars if one.index in texts else self.facts.observation_chars[one.index]
            for one in later
            if one.index > last.index
        )
        return self.shown(last.message + 1) - chars

    def _last_gone(self) -> int:
        """The last masked observation of the view; -1 if there is none."""
        return max((place for place in self.masked if not self.hides(place)), default=-1)

    def movable(self) -> dict[int, Masked]:
        """What a move masks by its rule, if that removes enough."""
        boundary = self.rounded(self.older_end)
        now = {place: one for place, one in self.waiting.items() if place < boundary}
        removed = self.facts.removed_chars(self.masked) + self.facts.removed_chars(now)
        return now if removed >= self.facts.policy.min_masked_chars else {}
