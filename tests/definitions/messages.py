"""A session of messages: each view is planned again, from all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from definitions.attempts import Attempts
from oracle.apply import changes_of
from oracle.handle import handle_of
from oracle.marks import marks_in
from oracle.plan import Costs, Facts, Given, Plan, make_plan
from oracle.plan.boundary import Fold, make_requests
from oracle.plan.facts import Uncounted
from oracle.plan.summarize import standing
from oracle.policy import Policy
from oracle.reading import JsonList, read
from oracle.report import texts_of, unmasked_of
from oracle.scan import scan
from oracle.shape.words import items
from oracle.splice import field_around, span_of, splice
from oracle.summary import earlier_summaries, previous_summary
from oracle.walk import walk
from recede._errors import TranscriptError
from recede._report import BoundaryMove, OverLimit, Unmasked
from recede.reduction._exchange import CountRequest, MessageTexts, SummaryRequest
from recede.reduction._masks import Mask, Masks
from recede.reduction._unrecognized import warn_of_roles
from recede.session._stats import HistoryStats, ReportedUsage


def facts_of(messages: list[bytes], policy: Policy, costs: Costs | None = None) -> Facts:
    return Facts(walk(listed(messages)), policy, costs)


def written(messages: list[bytes]) -> bytes:
    return b"[" + b",".join(messages) + b"]"


def listed(messages: list[bytes], surrogates: bool = True) -> JsonList:
    return scan(written(messages), surrogates=surrogates)[0]


def numbered_texts(messages: list[Any], policy: Policy, *, whole: bool = True) -> list[MessageTexts]:
    """What a token counter counts of each message."""
    return texts_of(Facts(walk(messages), policy, None))


Counted = list[tuple[str, int]]
"""Texts, and what each costs."""


class Messages:
    """Everything that was appended, and what happened besides: summaries that arrived or failed, pauses, reports."""

    def __init__(self, policy: Policy, raw_cost_at_most: int, calibrates: bool) -> None:
        self.calibrates = calibrates
        # Messages from which on, characters of a thousand tokens, and quarter tokens beside the view.
        self.calibrations: tuple[tuple[int, int, int], ...] = ()
        self.policy = policy
        self.raw_cost_at_most = raw_cost_at_most
        self.costs: tuple[list[int], list[tuple[int, int]], dict[str, int]] | None = None
        self.messages: list[bytes] = []
        self.texts: dict[frozenset[int], str] = {}  # of summaries, by what they tell of
        self.built_in: frozenset[frozenset[int]] = frozenset()  # those of them that the summarizer did not write
        self.failed: tuple[int, ...] = ()  # the requests at which none arrived
        self.retries: tuple[tuple[int, Attempts], ...] = ()  # by the messages before the request
        self.sent: dict[int, Any] = {}  # what each request showed, by its messages
        self.given_cold = tuple(policy.cold)
        self.cold: tuple[tuple[int, int | None], ...] = ()  # messages when it was told, and at the next request
        self.sums: list[int] = []
        self.needed: list[str] = []  # of each request over the trigger or limit; and the messages of the last one seen
        self.known_moves = 0
        self.asked_at = -1
        self.facts = self._facts()
        self.plan = self._raw()
        self.plain = self.view = b"[]"  # with the marks that were appended; as it is sent
        self.counted = (0, 0, 0)
        self.is_current = False
        self.changed_at: tuple[int, int] | None = None
        self.states: list[dict[str, Any]] = []  # before each message
        self.masks_seen: list[tuple[bytes, list[tuple[int, int, str]], bool]] = []

    def __len__(self) -> int:
        return len(self.messages)

    def texts_to_count(self, message: bytes, surrogates: bool) -> list[tuple[str | None, str | None]]:
        """What a cut and a mask would put in the place of each observation of a message, if that were appended now."""
        before, facts = self.messages, self.facts
        results = len(facts.outline.results)
        self._push(message, surrogates)
        new = self.facts.outline.results[results:]
        texts = [(self.facts.cuts.get(result.index), self.facts.mask(result)) for result in new]
        self.messages, self.facts = before, facts
        return [(cut and cut.text, masked and masked.text) for cut, masked in texts]

    def append(
        self,
        message: bytes,
        surrogates: bool,
        costs: tuple[int, list[tuple[int, int]]] | None = None,
        texts: Counted | None = None,
    ) -> list[BoundaryMove]:
        """Malformed JSON, or a shape that is no message, is an error that names the byte of the message."""
        state = {**vars(self), "messages": [*self.messages]}
        is_after_run = bool(self.facts.outline.messages) and self.facts.outline.messages[-1].is_agent_made
        self._push(message, surrogates)
        self.states.append(state)
        newest = self.facts.outline.messages[-1]
        if newest.is_of_unknown_role:
            warn_of_roles([newest.role])
        if newest.is_agent_made and not is_after_run:
            request = len(self.messages) - 1
            self.cold = tuple((told, request if at is None and told <= request else at) for told, at in self.cold)
        if costs is not None:
            messages, observations, known = self.costs or ([], [], {})
            self.costs = [*messages, costs[0]], [*observations, *costs[1]], {**known, **dict(texts or ())}
            self.facts.costs = self.costs
        self.is_current = False
        return self._new_moves(self._settled())

    def append_dict(self, message: object) -> None:
        """Nothing: here each message is text."""

    def has_results(self) -> bool:
        return bool(self._observations())

    def is_within_limit(self) -> bool:
        return not self.policy.is_limit or self.facts.fits(self.plan)

    def is_unrecognized(self) -> bool:
        return not self.policy.is_off and self.facts.outline.is_unrecognized

    def rewind(self, messages: int) -> None:
        """It is as it was before the next message came."""
        if messages < len(self.messages):
            kept = {name: getattr(self, name) for name in ("sums", "needed", "asked_at", "known_moves")}
            texts = {told: text for told, text in self.texts.items() if max(told, default=0) < messages}
            built_in, before = self.built_in.intersection(texts), self.states[messages]
            vars(self).update(before, states=self.states[:messages], **kept)
            self.texts, self.built_in = {**self.texts, **texts}, self.built_in | built_in
            fold = Fold(self.facts)
            for start in self.facts.runs.starts:
                fold.request(start)
            self.known_moves = min(self.known_moves, len(fold.moves))

    def report(
        self,
        sums: list[int] | None = None,
        counted: tuple[int, int, tuple[int, int]] | None = None,
        is_cold: bool = False,
    ) -> None:
        """New sums; what was counted for a request; and that the cache is cold at the next request."""
        self.sums = self.sums if sums is None else sums
        if counted is not None:
            self._calibrate(*counted)
        if is_cold and not self._next_is_cold():
            self.cold = *self.cold, (len(self.messages), None)
            self.is_current = False

    def _next_is_cold(self) -> bool:
        return bool(self.cold) and self.cold[-1][1] is None

    def _calibrate(self, tokens: int, view: int, growth: tuple[int, int]) -> None:
        """What was measured counts from the next request on, if that is a change by 2 percent.

        The growth of views, in characters and tokens, counts beside 15,000 tokens of four characters.
        """
        chars = max(1_000, min(8_000, (60_000 + growth[0]) * 1_000 // (15_000 + growth[1])))
        _, chars_before, beside_before = self.calibrations[-1] if self.calibrations else (0, 4_000, 0)
        limit = self.policy.trigger if self.policy.max_cost is None else self.policy.max_cost
        beside = max(0, 4 * tokens - view * 4_000 // chars)
        both = (chars_before, beside_before), (chars, beside)
        is_near = abs(chars - chars_before) * 50 < chars_before and abs(beside - beside_before) * 50 < max(1, limit)
        is_over = [view > max(0, limit - beside) * chars // 4_000 for chars, beside in both]
        if self.calibrates and not (is_near and is_over[0] == is_over[1]):
            since = len(self.messages) + 1
            self.calibrations = *(one for one in self.calibrations if one[0] < since), (since, chars, beside)

    def _budgets(self) -> list[tuple[int, int]]:
        """From which message on which budget counts."""
        given = self.policy.max_cost
        return [] if given is None else [(0, given), *self._calibrated(given)]

    def _calibrated(self, cost: int) -> list[tuple[int, int]]:
        """From which message on a cost of tokens is which."""
        return [(since, max(0, cost - beside) * chars // 4_000) for since, chars, beside in self.calibrations]

    def _cold_requests(self) -> list[int]:
        """The requests with a cold cache, by how many messages came before."""
        told = [len(self.messages) if request is None else request for _, request in self.cold]
        return sorted({*self.given_cold, *told})

    def _push(self, message: bytes, surrogates: bool) -> None:
        message, leading = message.strip(b" \t\n\r"), len(message) - len(message.lstrip(b" \t\n\r"))
        try:
            read(message, surrogates=surrogates)
            before, self.messages = self.messages, [*self.messages, message]
            try:
                self.facts = self._facts()
            except TranscriptError:
                self.messages = before
                raise
        except TranscriptError as error:
            raise self._in_message(error, message, leading, surrogates) from None

    def _in_message(self, error: TranscriptError, message: bytes, leading: int, surrogates: bool) -> TranscriptError:
        """The error of the message alone, at its place in the history."""
        try:
            read(message, surrogates=surrogates)
            walk(listed([message], surrogates))
        except TranscriptError as alone:
            inside = alone.message_index is not None
            offset = None if alone.offset is None else alone.offset + leading - inside
            index = len(self.messages)
            return TranscriptError(alone.kind, **{**alone.places, "offset": offset, "message_index": index})
        return error

    def update_view(
        self, summary: Given = None, texts: Counted | None = None, mark: None = None
    ) -> list[BoundaryMove] | SummaryRequest | CountRequest:
        """Makes the view current; the new moves, or what must be answered first: a summary, or texts."""
        asked = self._updated(summary, texts)
        messages = self.facts.outline.messages
        if asked is None and len(self.messages) != self.asked_at and not (messages and messages[-1].is_agent_made):
            self.asked_at = len(self.messages)
            self.needed = [*self.needed, self._need()]
        return self._new_moves(list(self.plan.moves)) if asked is None else asked

    def _new_moves(self, moves: list[Any]) -> list[BoundaryMove]:
        known, self.known_moves = self.known_moves, max(self.known_moves, len(moves))
        return [BoundaryMove(*move) for move in moves[known:]]

    def _settled(self) -> list[Any]:
        """The moves at requests that are made."""
        starts = self.facts.runs.starts
        if not self.facts.policy.remembers or (starts and starts[-1] != len(self.messages) - 1):
            return []  # none is made now
        fold = Fold(self.facts)
        for start in starts:
            fold.request(start)
        return fold.moves

    def _need(self) -> str:
        """The need of a request; "" below the trigger, or below the limit without one."""
        policy = self.facts.policy
        most = policy.trigger_at(len(self.messages)) if policy.trigger else policy.max_cost
        if most is None or self.facts.cost(self._raw()) <= most:
            return ""
        if self.plan.summary is not None and self.plan.is_forced:
            return "summary"
        is_cut_off = len(self.plan.kept) < len(self.messages) and self.plan.stage == "fallback"
        if self.plan.summary is None and is_cut_off:  # no compaction tells of them
            return "truncation"
        if self.plan.cut:
            return "cuts"
        return "cuts" if any(one.is_clipped for one in self.plan.masked.values()) else "masks"

    def _updated(self, summary: Given, texts: Counted | None) -> SummaryRequest | CountRequest | None:
        if texts is not None and self.costs is not None:
            self.costs[2].update(texts)
        if self.is_current:
            return None
        self.facts = self._facts()  # a request may have become cold
        if self.facts.cost(self._raw()) <= self.raw_cost_at_most and not self.policy.is_limit:
            plan: Plan | SummaryRequest | CountRequest = self._raw()
        else:
            try:
                plan = self._plan(summary)
            except Uncounted as text:
                plan = CountRequest([str(text)])
        if not isinstance(plan, Plan):
            return plan
        before = _elements(self.plain)
        self.plan = plan = replace(plan, unsigned=frozenset())
        shown = self._shown()
        self.plan = replace(plan, unsigned=self._void(shown))
        messages = self.facts.outline.messages
        if messages and not messages[-1].is_agent_made:
            earlier = {end: one for end, one in self.sent.items() if end < len(messages)}
            self.sent = {**earlier, len(messages): _before(shown, len(messages))}
        self.plain = self._spliced(self.messages, pins=False)
        self.view = self._marked()
        after = _elements(self.plain)
        same = next((place for place, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), None)
        if same is not None or len(after) < len(before):
            place = len(after) if same is None else same
            self.changed_at = place, sum(len(one) + 1 for one in after[:place]) + 1
        self.counted = self._counts()
        self.is_current = True
        return None

    def _plan(self, summary: Given) -> Plan | SummaryRequest | CountRequest:
        """With the text of the summary that stands in the view, where one arrived; else without one."""
        if self.policy.is_off or not self.policy.ask_summary:
            return make_plan(self.facts, None)
        while True:
            fold = Fold(self.facts)
            make_requests(fold)
            made, outline = fold.hidden.summary, self.facts.outline
            if made is None:
                return standing(fold, fold.plan(), None)
            if made.told in self.texts:
                return standing(fold, fold.plan(), (self.texts[made.told], None))
            turns, cost = self._totals()[1], self.facts.cost(self._raw())
            retries = self.retries[-1][1] if self.retries else Attempts()
            if retries.may_ask(turns, cost, self.facts.policy.max_cost or 0):
                if summary is None:
                    known = [told for told in fold.told if told in self.texts and told not in self.built_in]
                    previous = self.texts[known[-1]].partition("\n")[2] if known else None
                    earlier = [index for index in earlier_summaries(outline) if index in made.told]
                    if previous is None and earlier:
                        previous = previous_summary(outline)
                    dropped = made.told.difference(known[-1] if known else (), earlier, range(made.compacted))
                    return SummaryRequest([self.messages[index] for index in sorted(dropped)], previous, "")
                if not isinstance(summary, bool):
                    plan = standing(fold, fold.plan(), summary)
                    assert isinstance(plan, Plan)
                    assert plan.summary is not None
                    self.texts = {**self.texts, made.told: plan.summary.text}
                    self.built_in -= {made.told}
                    self.retries = *self.retries, (made.request, Attempts())
                    return plan
                retries = retries.failed(turns, cost, is_unfinished=summary)
            self.retries = *self.retries, (made.request, retries)
            summary = None
            if made.is_forced:  # the built-in text stands until the next summary is due
                asked = standing(fold, fold.plan(), None)
                assert isinstance(asked, SummaryRequest)
                self.texts = {**self.texts, made.told: asked.built_in}
                self.built_in |= {made.told}
                continue
            self.failed = *self.failed, made.request
            self.facts = self._facts()

    def _shown(self) -> dict[int | None, bytes]:
        """What the view shows of each message; of None its summary."""
        elements, kept, summary = _elements(self._spliced(self.messages, pins=False)), self.plan.kept, self.plan.summary
        if summary is None or summary.joins is not None:
            return dict(zip(kept, elements, strict=True))
        own = {None: elements.pop(summary.place)}
        return {**own, **dict(zip(kept, elements, strict=True))}

    def _void(self, shown: dict[int | None, bytes]) -> frozenset[int]:
        """The messages whose reasoning is not behind what its request has sent, and all before them."""
        if not self.facts.policy.verifies_reasoning:
            return frozenset()
        signed = [message.index for message in self.facts.outline.messages if message.is_signed]
        requests = [max((end for end in self.sent if end <= index), default=0) for index in signed]
        pairs = zip(signed, requests, strict=True)
        void = [index for index, end in pairs if not end or self.sent[end] != _before(shown, end)]
        return frozenset(index for index in signed if void and index <= void[-1])

    def _marked(self) -> bytes:
        """The view, of whose marks only the newest is sent, and those at the boundary."""
        pins = self.facts.policy.pins_boundary or self._is_undecided()
        shown = {*self.plan.kept}
        messages = _with_newest_mark(self.messages, shown) if pins else self.messages
        return self._spliced(messages, pins)

    def _is_undecided(self) -> bool:
        """Whether no call or result says yet whose cache is assumed, and marks may be ours."""
        may_pin = any(terms[3] for _, terms in self.policy.terms_by_shape)
        return may_pin and all(message.shape is None for message in walk(listed(self.messages)).messages)

    def _spliced(self, messages: list[bytes], pins: bool) -> bytes:
        """The view of these messages."""
        parsed, policy = listed(messages), Policy({**vars(self.facts.policy), "pins_boundary": pins})
        facts = facts_of(messages, policy, self.costs)
        return splice(written(messages), parsed, self.plan, changes_of(facts, self.plan, parsed))

    def chunks(self, known: int) -> tuple[int, list[bytes], bytes]:
        return 0, [], self.view

    def changes(self, known: int) -> tuple[int, list[bytes]]:
        return 0, _elements(self.view)

    def masks(self, since: int) -> Masks:
        """The first message that changed since this was called last, and the masks from there or from `since` on."""
        outline, shown = self.facts.outline, self.facts.shown(self.plan)
        found = [
            Mask(result.message, result.index - outline.messages[result.message].results[0].index, one.text)
            for result in outline.results
            if (one := shown.get(result.index)) is not None
        ]
        before = self.masks_seen
        self.masks_seen = [
            (data, [one for one in found if one.message_index == index], index in self.plan.unsigned)
            for index, data in enumerate(self.messages)
        ]
        pairs = enumerate(zip(before, self.masks_seen, strict=False))
        same = min(len(before), len(self.masks_seen))
        first = next((index for index, (old, new) in pairs if old != new), same)
        changed = [one for one in found if one.message_index >= min(first, since)]
        return Masks(first, changed, unsigned=tuple(sorted(self.plan.unsigned)))

    def _totals(self) -> tuple[int, int, int]:
        orphans = sum(
            self.facts.pairs.is_orphan(one) for one in (*self.facts.outline.calls, *self.facts.outline.results)
        )
        return self.facts.given.chars(self.policy.image_chars), len(self.facts.runs.starts), orphans

    def _unmasked(self) -> Unmasked:
        is_small = 0 < self.facts.cost(self._raw()) <= self.raw_cost_at_most
        return Unmasked(0, 0, True, False) if is_small else unmasked_of(self.facts, self.plan)

    def stats(self, summary_failures: int, reported: ReportedUsage) -> HistoryStats:
        """What the core's session says of itself."""
        raw_chars, turns, orphans = self._totals()
        message, byte = self.changed_at or (None, None)
        return HistoryStats(
            len(self),
            turns,
            raw_chars,
            *self.counted,
            orphans,
            message,
            byte,
            tuple(BoundaryMove(*move) for move in self.plan.moves),
            self.facts.policy.provider,
            summary_failures,
            len(self._observations()),
            self._unmasked(),
            reported,
            OverLimit(*map(self.needed.count, OverLimit._fields)),
            len(self.plan.unsigned.intersection(self.plan.kept)),
        )

    def reported(self) -> tuple[list[int], list[int]]:
        return self.sums, self._cold_requests()

    def view_identity(self) -> tuple[tuple[int, tuple[int, int] | None], int, int]:
        return (len(self.plan.moves), self.changed_at), self.facts.chars(self.plan), self.facts.cost(self.plan)

    def message(self, index: int) -> bytes:
        return self.messages[index]

    def recall(self, observation: int | str) -> tuple[str, int] | None:
        observations = self._observations()
        if isinstance(observation, str):
            by_handle = [
                number
                for number, (id, text, _) in enumerate(observations, 1)
                if handle_of(id or "", text) == observation
            ]
            by_id = [number for number, (id, *_) in enumerate(observations, 1) if id == observation]
            observation = (by_handle or by_id or [0])[-1]
        return observations[observation - 1][1:] if 0 < observation <= len(observations) else None

    def _observations(self) -> list[tuple[str | None, str, int]]:
        return [
            (one.id, one.text.joined if one.text.json is None else one.text.json.own_json, one.text.images)
            for one in walk(listed(self.messages)).results
        ]

    def _facts(self) -> Facts:
        policy = Policy({**vars(self.policy), "cold": tuple(self._cold_requests())})
        policy.max_cost_since = self._budgets()
        policy.trigger_since = self._calibrated(policy.trigger)
        policy.max_cost = policy.max_cost_at(len(self.messages))
        facts = facts_of(self.messages, policy, self.costs)
        facts.failed = self.failed
        return facts

    def _raw(self) -> Plan:
        return Plan(kept=list(range(len(self.messages))))

    def _counts(self) -> tuple[int, int, int]:
        kept = set(self.plan.kept)
        masked = (place for place, one in self.facts.shown(self.plan).items() if one.is_masked)
        shown = [place for place in masked if self.facts.outline.results[place].message in kept]
        return len(json.loads(self.view)), self.facts.chars(self.plan), len(shown)


def _with_newest_mark(messages: list[bytes], shown: set[int]) -> list[bytes]:
    """The messages without their marks but for the newest of the view."""
    sent, is_kept = [], False
    for index, message in reversed([*enumerate(messages)]):
        parsed, _ = read(message, surrogates=True)
        marks = [span_of(mark) for block in items(parsed.get("content")) for mark in marks_in(block)]
        is_older = is_kept or index not in shown
        older, is_kept = marks if is_older else marks[:-1], is_kept or (bool(marks) and index in shown)
        for start, end in sorted((field_around(message, mark) for mark in older), reverse=True):
            message = message[:start] + message[end:]
        sent.append(message)
    return sent[::-1]


def _before(shown: dict[int | None, bytes], end: int) -> dict[int | None, bytes]:
    """What a view shows before a message, and its summary."""
    return {index: one for index, one in shown.items() if index is None or index < end}


def _elements(view: bytes) -> list[bytes]:
    """The messages of a view, as they are written."""
    return [view[slice(*span)] for span in scan(view, surrogates=True)[0].spans]
