"""A finished session played again: what each of its requests would have sent under a policy.

A request stands before each run of agent messages, which is its answer. Here its view is planned anew each time,
which is the definition; the core makes none twice.
"""

from __future__ import annotations

from typing import Any

from definitions.cache import Sent, seen, served
from definitions.folds import HighWater
from definitions.hybrid import replay_summarized
from definitions.misses import quotations
from oracle.outline import Outline
from oracle.plan import make_plan
from oracle.plan.boundary import planned
from oracle.plan.facts import Facts, Plan
from oracle.policy import Policy
from oracle.scan import scan
from oracle.turns import Turns
from oracle.walk import walk
from recede.reduction._exchange import Quoted

Request = tuple[int, int]
"""How many messages came before a request, and the chars of its answer."""


def requests(outline: Outline, image_chars: int) -> list[Request]:
    """The requests of a session."""
    runs = Turns(outline)
    answers = [outline.messages[start : runs.ends[start] + 1] for start in runs.starts]
    return [(answer[0].index, sum(message.chars(image_chars) for message in answer)) for answer in answers]


Row = tuple[int, ...]
"""A request: chars sent, read from the cache and written to it; masked observations, summarized turns, and the chars
that a model was given for a summary and wrote."""


def replay(
    messages: list[Any], policies: list[Policy], image_chars: int, cache: Any
) -> tuple[list[Request], list[list[Row]]]:
    """The requests of a session, and what they would have sent under each policy."""
    return _replayed(walk(messages), policies, image_chars, cache)


def replay_json(
    data: bytes, surrogates: bool, policies: list[Policy], image_chars: int, cache: Any
) -> tuple[list[Request], list[list[Row]]]:
    """The same for bytes."""
    return _replayed(walk(scan(data, surrogates=surrogates)[0]), policies, image_chars, cache)


def _replayed(
    outline: Outline, policies: list[Policy], image_chars: int, cache: Any
) -> tuple[list[Request], list[list[Row]]]:
    return requests(outline, image_chars), [_rows(outline, policy, cache) for policy in policies]


def quoted(
    data: bytes,
    surrogates: bool,
    all: Policy,
    policies: list[Policy],
    shown: int,
    most_grams: int | None = None,
) -> Quoted:
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
    for policy in policies:
        is_known = getattr(policy, "summaries", None) is None
        missed = {
            one.request - first
            for one in found
            if is_known and one.is_hidden(_hidden(outline.beginning(starts[one.request]), policy))
        }
        by_policy.append(sorted(missed))
    made = len(starts) - first
    return Quoted(made, len(outline.results) - first_result, made, rows, by_policy)


def _hidden(outline: Outline, policy: Policy) -> set[int]:
    """The results that the view of a request with this history does not have raw."""
    facts = Facts(outline, policy, None)
    plan = _plan(facts)
    kept = set(plan.kept)
    return {*facts.shown(plan), *(result.index for result in outline.results if result.message not in kept)}


def _rows(outline: Outline, policy: Policy, cache: Any) -> list[Row]:
    sent = _sent(outline, policy)
    return [
        (*figures, one.masked, one.summarized, one.summary_input_chars, one.summary_output_chars, "")
        for one, figures in zip(sent, served(cache, sent, policy.pins_boundary), strict=True)
    ]


def _sent(outline: Outline, policy: Policy) -> list[Sent]:
    """What each request of a session would have sent."""
    ends = [messages for messages, _ in requests(outline, policy.image_chars)]
    if getattr(policy, "summaries", None) is not None:
        return replay_summarized(outline, policy, ends)
    beginnings = [outline.beginning(end) for end in ends]
    return [_planned(Facts(first, policy, None), len(first.messages)) for first in beginnings]


def _plan(facts: Facts) -> Plan:
    is_high_water = facts.policy.boundary[0] == "high_water"
    plan = planned(HighWater(facts)) if is_high_water else make_plan(facts, None)
    assert isinstance(plan, Plan), "no policy that is played again asks for a summary"
    return plan


def _planned(facts: Facts, end: int) -> Sent:
    plan = _plan(facts)
    messages = [facts.outline.messages[index] for index in plan.kept]
    return Sent([seen(message, plan.masked, facts.policy.image_chars) for message in messages], end, len(plan.masked))
