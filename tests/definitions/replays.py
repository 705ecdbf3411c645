"""A finished session played again: what each of its requests would have sent under a policy.

A request stands before each run of agent messages, which is its answer. Here its view is planned anew each time,
which is the definition; the core makes none twice.
"""

from __future__ import annotations

from typing import Any

from definitions.hybrid import replay_summarized
from definitions.optimum import replay_optimum
from recede._pure.outline import Outline
from recede._pure.plan import make_plan
from recede._pure.plan.facts import Facts, Plan
from recede._pure.policy import Policy
from recede._pure.scan import scan
from recede._pure.turns import Turns
from recede._pure.walk import walk
from recede.reduction._report import ReplayedRequest, SentView

Replayed = tuple[list[ReplayedRequest], list[list[SentView]]]


def requests(outline: Outline, image_chars: int) -> list[ReplayedRequest]:
    """The requests of a session."""
    runs = Turns(outline)
    answers = [outline.messages[start : runs.ends[start] + 1] for start in runs.starts]
    return [
        ReplayedRequest(answer[0].index, sum(message.chars(image_chars) for message in answer)) for answer in answers
    ]


def replay(messages: list[Any], policies: list[Policy], image_chars: int) -> Replayed:
    """The requests of a session, and what they would have sent under each policy."""
    return _replayed(walk(messages), policies, image_chars)


def replay_json(data: bytes, surrogates: bool, policies: list[Policy], image_chars: int) -> Replayed:
    """The same for bytes."""
    return _replayed(scan(data, surrogates=surrogates), policies, image_chars)


def _replayed(outline: Outline, policies: list[Policy], image_chars: int) -> Replayed:
    return requests(outline, image_chars), [_replay(outline, policy) for policy in policies]


def _replay(outline: Outline, policy: Policy) -> list[SentView]:
    """What each request of a session would have sent."""
    made = requests(outline, policy.image_chars)
    if policy.summaries is not None:
        return replay_summarized(outline, policy, [messages for messages, _ in made])
    if policy.boundary[0] == "optimum":
        return replay_optimum(Facts(outline, policy, None), [messages for messages, _ in made], *policy.boundary[1:])
    sent = []
    before: list[tuple[int, list[str | None], int]] = []
    for messages, _ in made:
        facts = Facts(outline.beginning(messages), policy, None)
        plan = make_plan(facts, None)
        assert isinstance(plan, Plan), "no policy that is played again asks for a summary"
        view = [_seen(facts, plan, index) for index in plan.kept]
        same = 0
        while same < min(len(before), len(view)) and before[same] == view[same]:
            same += 1
        sent.append(SentView(facts.chars(plan), sum(chars for *_, chars in view[:same]), len(plan.masked), 0, 0, 0))
        before = view
    return sent


def _seen(facts: Facts, plan: Plan, index: int) -> tuple[int, list[str | None], int]:
    """A message as a view shows it: which one, what its observations became, and its chars."""
    masked = [plan.masked.get(result.index) for result in facts.outline.messages[index].results]
    texts = [None if one is None else one.text for one in masked]
    return index, texts, facts.message_chars(plan, index)
