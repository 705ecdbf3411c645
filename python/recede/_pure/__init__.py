"""The engine in plain Python: the same answers as the Rust core, written to be read.

bytes --scan--> Outline --.                        .--> splice --> bytes
dicts --walk--> Outline --+--> pairs, turns, plan -+--> apply ---> dicts
                                                   `--> report

Sessions, managers of turns, replays and stores are the core's alone.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

from recede._pure.apply import apply
from recede._pure.marks import MarkEdits, history_of, mark_edits, marks_of, with_marks
from recede._pure.pairs import findings
from recede._pure.pairs import repairs as _repairs
from recede._pure.placeholder import Observation, mask
from recede._pure.plan import Costs, Facts, Given, Plan, Request, Uncounted, make_plan, pins
from recede._pure.policy import Policy
from recede._pure.report import report
from recede._pure.scan import scan
from recede._pure.splice import splice
from recede._pure.walk import walk
from recede.reduction._exchange import CountRequest, MessageTexts, ObservationTexts, Repair, SummaryRequest
from recede.reduction._report import Finding, JsonReduction, Reduction

__all__ = [
    "Policy",
    "check_pairs",
    "count_chars",
    "mask_observation",
    "reduce",
    "reduce_json",
    "repairs",
    "texts",
]

__version__ = version("recede")


def reduce(
    messages: list[Any], policy: Policy, costs: Costs | None = None, summary: Given = None
) -> Reduction | SummaryRequest | CountRequest:
    outline = walk(messages)
    if costs is not None and (len(costs[0]), len(costs[1])) != (len(outline.messages), len(outline.results)):
        raise RuntimeError(
            "the messages were changed while their tokens were counted: a token_counter and other threads must leave "
            "them as they are until the call returns"
        )
    facts = Facts(outline, policy, costs)
    plan = _planned(facts, summary)
    if isinstance(plan, CountRequest):
        return plan
    if isinstance(plan, Request):
        return SummaryRequest(plan.dropped, plan.previous, plan.built_in)
    view = apply(messages, facts.outline, plan)
    if policy.pins_boundary and view is not messages:
        pinned = pins(facts, plan, marks_of(messages, policy.marks_elsewhere))
        view = view if pinned is None else with_marks(view, messages, pinned)
    return Reduction(messages=view, **report(facts, plan))


def reduce_json(
    data: bytes, surrogates: bool, policy: Policy, costs: Costs | None = None, summary: Given = None
) -> JsonReduction | SummaryRequest | CountRequest:
    """The same for bytes; dropped messages are given by their spans."""
    facts = Facts(scan(data, surrogates=surrogates), policy, costs)
    plan = _planned(facts, summary)
    if isinstance(plan, CountRequest):
        return plan
    if isinstance(plan, Request):
        spans = [facts.outline.messages[index].span for index in plan.dropped]
        return SummaryRequest(spans, plan.previous, plan.built_in)
    marks = MarkEdits()
    if policy.pins_boundary:
        history, found = history_of(data, surrogates, policy.marks_elsewhere)
        pinned = pins(facts, plan, found)
        results = [facts.outline.results[place] for place in plan.masked]
        masked = {(result.message, result.block) for result in results}
        marks = marks if pinned is None else mark_edits(data, surrogates, history, pinned, masked)
    return JsonReduction(json=splice(data, facts.outline, plan, marks), **report(facts, plan))


def _planned(facts: Facts, summary: Given) -> Plan | Request | CountRequest:
    try:
        return make_plan(facts, summary)
    except Uncounted as text:
        return CountRequest([str(text)])


def texts(messages: list[Any], policy: Policy, numbers: list[int] | None = None) -> list[MessageTexts]:
    """What a token counter counts of each message."""
    facts = Facts(walk(messages), policy, None)
    facts.numbers = numbers or ()
    found = []
    for message in facts.outline.messages:
        own_text = message.own.joined + "".join(call.text for call in message.calls)
        constant_chars = sum(call.constant_chars for call in message.calls)
        observations = []
        for result in message.results:
            masked = facts.mask(result)
            text = result.observation if result.json is None else _compact(result.json)
            observations.append(ObservationTexts(text, result.images, masked and masked.text))
        found.append(MessageTexts(own_text, constant_chars, message.own.images, observations))
    return found


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_pairs(messages: list[Any]) -> list[Finding]:
    """The faults of the pairs."""
    return findings(walk(messages))


def repairs(messages: list[Any]) -> list[Repair]:
    """The repairs of orphans, by place in the input."""
    return _repairs(walk(messages))


def count_chars(messages: list[Any], image_chars: int) -> int:
    return walk(messages).chars(image_chars)


def mask_observation(text: str, policy: Policy) -> str:
    masked = mask(Observation(text), policy)
    return text if masked is None else masked.text
