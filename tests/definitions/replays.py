"""A finished session played again: what each of its requests would have sent under a policy.

A request stands before each run of agent messages, which is its answer. Here the history before it is planned anew
each time, which is the definition; the core makes no request twice.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from definitions.cache import Seen, Sent, seen, served
from definitions.misses import quotations
from oracle.outline import Outline
from oracle.plan import make_plan
from oracle.plan.boundary import Fold
from oracle.plan.facts import Facts, Plan
from oracle.plan.summarize import standing
from oracle.policy import Policy
from oracle.scan import scan
from oracle.summary import earlier_summaries, previous_summary
from oracle.turns import Turns
from oracle.walk import walk
from recede.costs import ReplayedTurn

Request = tuple[int, int]
"""How many messages came before a request, and the chars of its answer."""

Door = Policy | list[tuple[Policy, list[int], int]]
"""A policy, or several: each with the requests that find a cold cache too, and the messages before its last one."""


def requests(outline: Outline, image_chars: int) -> list[Request]:
    """The requests of a session."""
    runs = Turns(outline)
    answers = [outline.messages[start : runs.ends[start] + 1] for start in runs.starts]
    return [(answer[0].index, sum(message.chars(image_chars) for message in answer)) for answer in answers]


def replay(messages: list[Any], doors: list[Door], image_chars: int, cache: Any) -> list[list[ReplayedTurn]]:
    """What the requests of a session would have sent at each door."""
    return _replayed(walk(messages), doors, image_chars, cache)


def replay_json(
    data: bytes, surrogates: bool, doors: list[Door], image_chars: int, cache: Any
) -> list[list[ReplayedTurn]]:
    """The same for bytes."""
    return _replayed(walk(scan(data, surrogates=surrogates)[0]), doors, image_chars, cache)


def _replayed(outline: Outline, doors: list[Door], image_chars: int, cache: Any) -> list[list[ReplayedTurn]]:
    made = requests(outline, image_chars)
    return [_turns(outline, made, door, cache) for door in doors]


def _policy_at(door: Door, end: int) -> Policy:
    """The policy of a door for the request after so many messages."""
    if isinstance(door, Policy):
        return door
    policy, cold = next((one, cold) for one, cold, last in door if end <= last)
    return Policy({**vars(policy), "cold": sorted({*policy.cold, *cold})})


def quoted(
    data: bytes,
    surrogates: bool,
    all: Policy,
    doors: list[Door],
    shown: int,
    most_grams: int | None = None,
) -> tuple[int, int, int, list[tuple[int, int, str | None, int, str]], list[list[int]]]:
    """What the requests of a context quote from results; under policies that summarize, nothing."""
    messages = scan(data, surrogates=surrogates)[0]
    outline = walk(messages)
    starts = Turns(outline).starts
    first, first_result = sum(start < shown for start in starts), len(outline.beginning(shown).results)
    found = quotations(messages, shown, {result.index for result in outline.results} - _hidden(outline, all))
    tools, rows, by_policy = Facts(outline, all, None).tools, [], []
    for one in found:
        before, earlier = starts[one.request], starts[one.request - 1] if one.request else 0
        if outline.results[one.result].message < earlier:
            distance = len(outline.beginning(before).results) - 1 - one.result
            numbers = one.request - first, one.result - first_result
            rows.append((*numbers, tools[one.result], distance, one.text))
    for door in doors:
        is_known = _policy_at(door, 0).summaries is None
        missed = {
            one.request - first
            for one in found
            if is_known
            and one.is_hidden(_hidden(outline.beginning(starts[one.request]), _policy_at(door, starts[one.request])))
        }
        by_policy.append(sorted(missed))
    made = len(starts) - first
    return made, len(outline.results) - first_result, made, rows, by_policy


def _hidden(outline: Outline, policy: Policy) -> set[int]:
    """The results that the view of a request with this history does not have raw."""
    facts = Facts(outline, policy, None)
    return _hidden_in(facts, _plan(facts))


def _hidden_in(facts: Facts, plan: Plan) -> set[int]:
    outline, kept = facts.given, set(plan.kept)
    return {*facts.shown(plan), *(result.index for result in outline.results if result.message not in kept)}


def _turns(outline: Outline, made: list[Request], door: Door, cache: Any) -> list[ReplayedTurn]:
    found = [_sent(outline, _policy_at(door, end), end) for end, _ in made]
    sent, hidden = [one for one, _ in found], [results for _, results in found]
    pins = bool(made) and Facts(outline, _policy_at(door, made[-1][0]), None).policy.pins_boundary
    changes = [(now - before, before - now) for before, now in pairwise([set(), *hidden])]
    return [
        ReplayedTurn(messages, *figures, answer_chars, one.masked, one.summarized, *one.call, one.needed)._replace(
            hidden=tuple(sorted(new)), shown=tuple(sorted(again))
        )
        for (messages, answer_chars), one, figures, (new, again) in zip(
            made, sent, served(cache, sent, pins), changes, strict=True
        )
    ]


def _has_memory(policy: Policy) -> bool:
    """Whether no plan of a history alone says what its last request sends."""
    return policy.boundary[0] == "high_water" or policy.summaries is not None or policy.is_limit


def _plan(facts: Facts) -> Plan:
    if _has_memory(facts.policy):
        return _fold(facts).plan()
    plan = make_plan(facts, None)
    assert isinstance(plan, Plan), "no policy that is played again asks for a summary"
    return plan


def _fold(facts: Facts) -> Fold:
    """The state after all requests, of which the last one is now."""
    fold = Fold(facts)
    for end in [*(start for start in facts.runs.starts if start), len(facts.outline.messages)]:
        fold.request(end)
    return fold


def _sent(outline: Outline, policy: Policy, end: int) -> tuple[Sent, set[int]]:
    """What the request after so many messages would have sent, and the results that it does not have raw."""
    facts = Facts(outline.beginning(end), policy, None)
    if not _has_memory(facts.policy):
        plan = _plan(facts)
        view = [seen(facts.outline.messages[index], plan.masked, policy.image_chars) for index in plan.kept]
        return Sent(view, end, len(plan.masked)), _hidden_in(facts, plan)
    fold = _fold(facts)
    plan, summary = fold.plan(), fold.hidden.summary
    view = [
        seen(facts.outline.messages[index], plan.masked, policy.image_chars, plan.cut.get(index)) for index in plan.kept
    ]
    if summary is not None:
        text = summary.request, summary.told
        first = min(fold.hidden.messages)
        block = Seen(first, ((text, _summary_chars(fold, plan)),))
        view.insert(sum(index < summary.place for index in plan.kept), block)
    shown = {facts.runs.begun[index] for index in plan.kept if facts.outline.messages[index].is_agent_made}
    sent = Sent(
        view,
        end,
        masked=sum(not fold.hides(place) for place in fold.masked),
        summarized=len(facts.runs.starts) - len(shown) if fold.hidden.messages else 0,
        call=_call(fold),
        needed=_needed(fold),
    )
    return sent, _hidden_in(facts, plan)


def _summary_chars(fold: Fold, plan: Plan) -> int:
    """The characters of the standing summary: those of a model's, or of the built-in text when it was made."""
    policy, summary = fold.facts.policy, fold.hidden.summary
    assert summary is not None
    model = policy.model if policy.summaries is None else policy.summaries[3]
    if model is not None:
        return min(summary.share, model[0])
    made = Facts(fold.facts.given.beginning(summary.request), policy, None)
    before = _fold(made)
    written = standing(before, before.plan(), None)
    assert isinstance(written, Plan) and written.summary is not None
    return len(written.summary.text)


def _call(fold: Fold) -> tuple[int, int]:
    """What a model was given for a summary of this request, and wrote."""
    policy, summary = fold.facts.policy, fold.hidden.summary
    if policy.model is None or summary is None or summary.request != fold.end:
        return fold.call
    first = Facts(fold.facts.given, policy, None)
    before = Fold(first)
    for end in [start for start in first.runs.starts if start]:
        before.request(end)
    before.grow(fold.end)
    outline = first.outline
    earlier = [index for index in earlier_summaries(outline) if index in fold.hidden.messages]
    told = before.told[-1] if before.told else frozenset()
    new = fold.hidden.messages - told - {*earlier} - {*range(fold.hidden.compacted)}
    previous = min(made.share, policy.model[0]) if (made := before.hidden.summary) else 0
    given = sum(outline.messages[index].chars(policy.image_chars) for index in new)
    given += (
        max(0, previous - len("Conversation summary:\n")) if told else len(previous_summary(outline) if earlier else "")
    )
    return given + policy.model[1], policy.model[0]


def _needed(fold: Fold) -> str:
    """What the view needed, over a limit."""
    facts, policy = fold.facts, fold.facts.policy
    most = policy.trigger or policy.max_cost_at(fold.end)
    if most is None:
        return ""
    if fold.hidden.summary is not None:
        return "summary"
    if fold.hidden.is_cut_off:
        return "truncation"
    if fold.hidden.cut:
        return "cuts"
    if facts.cost(facts.raw) <= most:
        return ""
    return "cuts" if fold.cuts.keys() - fold.masked.keys() else "masks"
