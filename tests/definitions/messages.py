"""A session of messages: each view is planned again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from definitions.attempts import Attempts
from oracle.apply import changes_of
from oracle.handle import handle_of
from oracle.marks import marks_in
from oracle.outline import Result
from oracle.plan import Costs, Facts, Given, Plan, make_plan
from oracle.plan.fill import task_of
from oracle.policy import NOW, Policy
from oracle.reading import JsonList, read
from oracle.report import texts_of, unmasked_of
from oracle.scan import scan
from oracle.shape.words import items
from oracle.splice import field_around, span_of, splice
from oracle.summary import built_in_summary
from oracle.walk import walk
from recede._errors import TranscriptError
from recede._report import BoundaryMove, OverLimit, Unmasked
from recede.reduction._exchange import (
    Changes,
    Chunks,
    CountRequest,
    MessageTexts,
    RecountRequest,
    SummaryRequest,
)
from recede.reduction._masks import Mask, Masks
from recede.session._stats import SessionStats


class SessionFacts(Facts):
    """The facts of a session, some of whose messages may be those of a view."""

    numbers: Sequence[int] = ()  # of its observations among all that came

    def number_of(self, result: Result) -> int:
        return self.numbers[result.index] if self.numbers else super().number_of(result)


def facts_of(messages: list[bytes], policy: Policy, costs: Costs | None = None) -> SessionFacts:
    return SessionFacts(walk(listed(messages)), policy, costs)


def written(messages: list[bytes]) -> bytes:
    return b"[" + b",".join(messages) + b"]"


def listed(messages: list[bytes], surrogates: bool = True) -> JsonList:
    return scan(written(messages), surrogates=surrogates)[0]


def numbered_texts(
    messages: list[Any], policy: Policy, numbers: list[int] | None = None, *, whole: bool = True
) -> list[MessageTexts]:
    """What a token counter counts of each message, whose observations may have these numbers."""
    facts = SessionFacts(walk(messages), policy, None)
    facts.numbers = numbers or ()
    return texts_of(facts)


Counted = list[tuple[str, int]]
"""Texts, and what each costs."""


class Messages:
    """Everything that was appended, and the session, which is planned: after a compaction it is the view of that."""

    def __init__(self, policy: Policy, raw_cost_at_most: int, calibrates: bool) -> None:
        self.calibrates = calibrates
        self.calibrations: tuple[tuple[int, int], ...] = ()  # messages from which on, characters of a thousand tokens
        self.past = self.kept = 0  # messages before the compaction, and those of its view
        self.policy = Policy(
            {**vars(policy), "ask_summary": True, "is_session": True}
        )  # the caller has the built-in one, too
        self.raw_cost_at_most = raw_cost_at_most
        self.costs: tuple[list[int], list[tuple[int, int]], dict[str, int]] | None = None  # of the session
        self.next: tuple[list[bytes], list[int]] | None = None  # what it will be, with its numbers
        self.messages: list[bytes] = []
        self.session: list[bytes] = []
        self.numbers: list[int] = []  # of the observations of the session
        self.retries = Attempts()
        self.masked: set[int] = set()  # observations that the session has as placeholders, by their numbers
        self.is_summarized = False
        self.sources: list[bytes] = []  # the messages of the session as they were appended
        self.places: list[int | None] = []  # and their places among all; None for a summary
        self.dropped: list[int] = []  # of the session, in the last request for a summary
        self.task_end = 0
        self.seen = 0  # observations ever
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
        self.masks_seen: list[tuple[bytes, list[tuple[int, int, str]]]] = []

    def __len__(self) -> int:
        return len(self.messages)

    def texts_to_count(self, message: bytes, surrogates: bool) -> list[tuple[str | None, str | None]]:
        """What a cut and a mask would put in the place of each observation of a message, if that were appended now."""
        before, facts = self.session, self.facts
        results = len(facts.outline.results)
        self._push(message, surrogates)
        new = self.facts.outline.results[results:]
        texts = [(self.facts.cuts.get(result.index), self.facts.mask(result)) for result in new]
        self.session, self.facts = before, facts
        return [(cut and cut.text, masked and masked.text) for cut, masked in texts]

    def append(
        self,
        message: bytes,
        surrogates: bool,
        costs: tuple[int, list[tuple[int, int]]] | None = None,
        texts: Counted | None = None,
    ) -> tuple[int, list[BoundaryMove]]:
        """Malformed JSON, or a shape that is no message, is an error that names the byte of the message."""
        state = {**vars(self), "messages": [*self.messages]}
        is_after_run = bool(self.facts.outline.messages) and self.facts.outline.messages[-1].is_agent_made
        self._push(message, surrogates)
        self.states.append(state)
        if self.facts.outline.messages[-1].is_agent_made and not is_after_run and self._next_is_cold():
            self.cold = *self.cold[:-1], (self.cold[-1][0], len(self.messages))
        self.messages.append(self.session[-1])
        self.sources = [*self.sources, self.session[-1]]
        self.places = [*self.places, len(self.messages) - 1]
        self.seen += len(self.facts.outline.results) - len(self.numbers)
        self.numbers = list(self.facts.numbers)
        if costs is not None:
            messages, observations, known = self.costs or ([], [], {})
            self.costs = [*messages, costs[0]], [*observations, *costs[1]], {**known, **dict(texts or ())}
            self.facts.costs = self.costs
        self.is_current = False
        return 0, self._new_moves()

    def rewind(self, messages: int) -> bool:
        """It is as it was before the next message came."""
        if messages < len(self.messages):
            kept = {name: getattr(self, name) for name in ("sums", "needed", "asked_at", "known_moves")}
            vars(self).update(self.states[messages], states=self.states[:messages], **kept)
            self.known_moves = min(self.known_moves, len(self.plan.moves))
        return True

    def report(self, sums: list[int] | None = None, calibrated_chars: int | None = None, is_cold: bool = False) -> None:
        """New sums; characters of a thousand tokens; and that the cache is cold at the next request."""
        self.sums = self.sums if sums is None else sums
        if calibrated_chars is not None:
            self._calibrate(calibrated_chars)
        if is_cold and not self._next_is_cold():
            self.cold = *self.cold, (len(self.messages), None)
            self.is_current = False

    def _next_is_cold(self) -> bool:
        return bool(self.cold) and self.cold[-1][1] is None

    def _calibrate(self, chars: int) -> None:
        """From the next request on a thousand tokens have so many characters, if that is a change by 2 percent."""
        before = self.calibrations[-1][1] if self.calibrations else 4_000
        if self.calibrates and abs(chars - before) * 50 >= before:
            since = len(self.messages) + 1
            self.calibrations = *(one for one in self.calibrations if one[0] < since), (since, chars)

    def _budgets(self) -> list[tuple[int, int]]:
        """From which message of the session on which budget counts."""
        given = self.policy.max_cost
        if given is None or not self.calibrations:
            return []
        here = [
            (max(0, since - self.past + self.kept if since >= self.past else 0), chars)
            for since, chars in self.calibrations
        ]
        return [(0, given), *((since, given * chars // 4_000) for since, chars in here)]

    def _cold_requests(self) -> list[int]:
        """The requests with a cold cache, by how many messages came before."""
        told = [len(self.messages) if request is None else request for _, request in self.cold]
        return sorted({*self.given_cold, *told})

    def _push(self, message: bytes, surrogates: bool) -> None:
        message, leading = message.strip(b" \t\n\r"), len(message) - len(message.lstrip(b" \t\n\r"))
        try:
            read(message, surrogates=surrogates)
            before, self.session = self.session, [*self.session, message]
            try:
                self.facts = self._facts()
            except TranscriptError:
                self.session = before
                raise
        except TranscriptError as error:
            raise self._in_message(error, message, leading, surrogates) from None
        new = len(self.facts.outline.results) - len(self.numbers)
        self.facts.numbers = [*self.numbers, *range(self.seen + 1, self.seen + 1 + new)]

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
        self, summary: Given = None, texts: Counted | None = None, costs: Costs | None = None, mark: None = None
    ) -> list[BoundaryMove] | SummaryRequest | CountRequest | RecountRequest:
        """Makes the view current; the new moves, or what must be answered first: a summary, texts or messages."""
        asked = self._updated(summary, texts, costs)
        messages = self.facts.outline.messages
        if asked is None and len(self.messages) != self.asked_at and not (messages and messages[-1].is_agent_made):
            self.asked_at = len(self.messages)
            self.needed = [*self.needed, self._need()]
        return self._new_moves() if asked is None else asked

    def _new_moves(self) -> list[BoundaryMove]:
        known, self.known_moves = self.known_moves, len(self.plan.moves)
        return self.moves(known)

    def _need(self) -> str:
        """The need of a request; "" below the trigger, or below the limit without one."""
        if self.past:
            if None in self.places:
                return "summary"
            return "truncation" if len(self.places) < len(self.messages) else "cuts"
        policy = self.facts.policy
        most = policy.trigger or policy.max_cost
        if most is None or self.facts.cost(self._raw()) <= most:
            return ""
        return "cuts" if any(one.is_clipped for one in self.plan.masked.values()) else "masks"

    def _updated(
        self, summary: Given, texts: Counted | None, costs: Costs | None
    ) -> SummaryRequest | CountRequest | RecountRequest | None:
        if texts is not None and self.costs is not None:
            self.costs[2].update(texts)
        if costs is not None:
            return self._restart((*costs, {}))
        if self.next is not None:
            return RecountRequest(*self.next)
        if self.is_current:
            return None
        self.facts = self._facts()  # a request may have become cold
        if self.policy.goal == "mask" and self.facts.cost(self._raw()) <= self.raw_cost_at_most:
            plan: Plan | SummaryRequest | CountRequest = self._raw()
        else:
            plan = self._plan(summary)
        if isinstance(plan, CountRequest):
            return plan
        if isinstance(plan, SummaryRequest):
            self.dropped = plan.dropped
            return SummaryRequest([self.sources[index] for index in plan.dropped], plan.previous, self._built_in(plan))
        before = _elements(self.plain)
        self.plan = plan
        self.plain = self._spliced(self.session, pins=False)
        self.view = self._marked()
        after = _elements(self.plain)
        same = next((place for place, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), None)
        if same is not None or len(after) < len(before):
            place = len(after) if same is None else same
            self.changed_at = place, sum(len(one) + 1 for one in after[:place]) + 1
        self.counted = self._counts()
        self.is_current = True
        is_clipped = any(one.is_clipped for one in plan.masked.values())
        if self.policy.is_limit and plan.stage in (None, "masking"):
            is_clipped = False  # a cut that the limit forces is kept like a mask
        if plan.summary is None and not plan.cut and not is_clipped and len(plan.kept) == len(self.session):
            return None
        self.next = self._compacted(plan, after)
        return self._restart(None) if self.costs is None else RecountRequest(*self.next)

    def _marked(self) -> bytes:
        """The view, of whose marks only the newest is sent, and those at the boundary."""
        pins = self.facts.policy.pins_boundary or self._is_undecided()
        return self._spliced(_with_newest_mark(self.session) if pins else self.session, pins)

    def _is_undecided(self) -> bool:
        """Whether no call or result says yet whose cache is assumed, and marks may be ours."""
        may_pin = any(terms[3] for _, terms in self.policy.terms_by_shape)
        return may_pin and all(message.shape is None for message in walk(listed(self.messages)).messages)

    def _spliced(self, session: list[bytes], pins: bool) -> bytes:
        """The view of these messages, which have the plan of the session."""
        messages, policy = listed(session), Policy({**vars(self.facts.policy), "pins_boundary": pins})
        facts = self._with_state(facts_of(session, policy, self.costs))
        return splice(written(session), messages, self.plan, changes_of(facts, self.plan, messages))

    def _compacted(self, plan: Plan, view: list[bytes]) -> tuple[list[bytes], list[int]]:
        """The session will be this view."""
        kept = set(plan.kept)
        results = [result for result in self.facts.outline.results if result.message in kept]
        numbers = [self.numbers[result.index] for result in results]
        placeholders = {place for place, one in plan.masked.items() if not one.is_clipped}
        masked = {self.numbers[result.index] for result in results if result.index in placeholders}
        self.masked = {number for number in numbers if number in masked | self.masked}
        sources: list[tuple[int, bytes]] = [(index, self.sources[index]) for index in plan.kept]
        places = [self.places[index] for index in plan.kept]
        if plan.summary is not None:
            sources.insert(plan.summary.place, (len(self.session), view[plan.summary.place]))
            places.insert(plan.summary.place, None)
        self.places = places
        if self.policy.fill_millionths is not None:
            task = task_of(self.facts)
            places = [place for place, (index, _) in enumerate(sources, 1) if task and index <= task[-1]]
            self.task_end = max(places, default=0)
        self.sources = [source for _, source in sources]
        self.is_summarized = plan.summary is not None
        return view, numbers

    def _built_in(self, asked: SummaryRequest) -> str:
        """The built-in summary, of the messages as they were appended."""
        names_task = self.policy.fill_millionths is None
        facts = facts_of(self.sources, self.policy)
        return built_in_summary(facts, asked.dropped, asked.previous, names_task=names_task)

    def _plan(self, summary: Given) -> Plan | SummaryRequest | CountRequest:
        """With a summary where one may be asked for."""
        plan = make_plan(self.facts, None)
        if not isinstance(plan, SummaryRequest):
            return plan  # none would help
        turns, cost = self._totals()[1], self.facts.cost(self._raw())
        if not self.retries.may_ask(turns, cost, self.facts.policy.max_cost or 0):
            return make_plan(self.facts, False)
        plan = make_plan(self.facts, summary)
        if isinstance(plan, Plan) and plan.summary is None:
            self.retries = self.retries.failed(turns, cost)
        return plan

    def _restart(self, costs: Costs | None) -> None:
        """The session continues after a compaction, with the costs of its messages if they are not characters."""
        if self.next is not None:
            before = self.facts.cost(self._raw())
            self.session, self.numbers = self.next
            self.past, self.kept = len(self.messages), len(self.session)
            self.next = None
            texts = self.costs[2] if self.costs else {}
            self.costs = None if costs is None else (*costs[:2], texts)
            self.facts = self._facts()
            self.plan = self._raw()
            self.view = self._marked()
            after = self.facts.cost(self.plan)
            self.retries = Attempts() if self.is_summarized else self.retries.rebased(before, after)
            self.counted = self._counts()

    def asked(self) -> list[int | None]:
        """The places among all messages of those that a summary is asked for."""
        return [self.places[index] for index in self.dropped]

    def elements(self) -> list[bytes]:
        """The messages of the view, with the marks that were appended."""
        return _elements(self.plain)

    def chunks(self, known: int) -> Chunks:
        return Chunks(0, [], self.view, True)

    def changes(self, known: int) -> Changes:
        return Changes(0, [*_elements(self.view)], True)

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
            (data, [one for one in found if one.message_index == index]) for index, data in enumerate(self.messages)
        ]
        pairs = enumerate(zip(before, self.masks_seen, strict=False))
        same = min(len(before), len(self.masks_seen))
        first = next((index for index, (old, new) in pairs if old != new), same)
        return Masks(first, [one for one in found if one.message_index >= min(first, since)])

    def _totals(self) -> tuple[int, int, int]:
        whole = facts_of(self.messages, self.policy)
        orphans = sum(
            self.facts.pairs.is_orphan(one) for one in (*self.facts.outline.calls, *self.facts.outline.results)
        )
        return whole.given.chars(self.policy.image_chars), len(whole.runs.starts), orphans

    def _unmasked(self) -> Unmasked:
        is_small = 0 < self.facts.cost(self._raw()) <= self.raw_cost_at_most
        return Unmasked(0, 0, True, False) if is_small else unmasked_of(self.facts, self.plan)

    def stats(self) -> SessionStats:
        """What the core's session says of itself."""
        moves = len(self.plan.moves)
        return SessionStats(
            0,
            *self._totals(),
            *self.counted,
            len(self._observations()),
            self._unmasked(),
            self.changed_at,
            0,
            moves,
            self._cold_requests(),
            self.facts.policy.provider,
            self.sums,
            tuple(map(self.needed.count, OverLimit._fields)),
        )

    def moves(self, start: int, end: int | None = None) -> list[BoundaryMove]:
        """The moves of the boundary from one on, up to another."""
        return [BoundaryMove(*move) for move in self.plan.moves[start:end]]

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

    def _facts(self) -> SessionFacts:
        policy = Policy({**vars(self.policy), "cold": self._cold_in_session()})
        if self.past:
            policy.trigger = 0  # masking has begun
        policy.max_cost_since = self._budgets()
        policy.max_cost = policy.max_cost_at(len(self.session))
        return self._with_state(facts_of(self.session, policy, self.costs))

    def _with_state(self, facts: SessionFacts) -> SessionFacts:
        facts.numbers = self.numbers
        facts.task_end = self.task_end or facts.task_end
        return facts

    def _cold_in_session(self) -> tuple[int, ...]:
        """The requests with a cold cache, whose messages are those of the session."""
        here = (request for request in self._cold_requests() if request >= self.past)
        return tuple(request if request == NOW else request - self.past + self.kept for request in here)

    def _raw(self) -> Plan:
        return Plan(kept=list(range(len(self.session))))

    def _counts(self) -> tuple[int, int, int]:
        kept = set(self.plan.kept)
        masked = (place for place, one in self.plan.masked.items() if not one.is_clipped)
        shown = [place for place in masked if self.facts.outline.results[place].message in kept]
        return len(json.loads(self.view)), self.facts.chars(self.plan), len(shown) + len(self.masked)


def _with_newest_mark(messages: list[bytes]) -> list[bytes]:
    """The messages without their marks but for the newest."""
    sent, is_kept = [], False
    for message in reversed(messages):
        parsed, _ = read(message, surrogates=True)
        marks = [span_of(mark) for block in items(parsed.get("content")) for mark in marks_in(block)]
        older, is_kept = marks if is_kept else marks[:-1], is_kept or bool(marks)
        for start, end in sorted((field_around(message, mark) for mark in older), reverse=True):
            message = message[:start] + message[end:]
        sent.append(message)
    return sent[::-1]


def _elements(view: bytes) -> list[bytes]:
    """The messages of a view, as they are written."""
    return [view[slice(*span)] for span in scan(view, surrogates=True)[0].spans]
