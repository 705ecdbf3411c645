"""Stage 2: the messages outside the keep set are replaced by one summary."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, Literal

from recede._pure.clip import shorter
from recede._pure.plan.facts import Facts, Plan, Summary
from recede._pure.plan.keep import Keeping
from recede._pure.summary import (
    LEAST_CHARS,
    built_in_summary,
    leading_system_messages,
    previous_summary,
    with_first_line,
)

Given = tuple[str, "int | None"] | Literal[False] | None
"""A summary and its cost (None: its chars); None: not asked for yet; False: it could not be had."""


@dataclass(frozen=True, slots=True)
class Request:
    """Asks for a summary of the messages to be dropped."""

    dropped: list[int]
    previous: str | None
    built_in: str


def summarize(facts: Facts, before: Plan, keeping: Keeping, given: Given) -> Plan | Request | None:
    """What stage 1 left of what is kept, with a summary of the rest; None where there is nothing to gain."""
    outline, policy, earlier = facts.outline, facts.policy, facts.earlier_summaries
    dropped, room = keeping.dropped, keeping.summary_room
    without = replace(before, kept=keeping.kept, cut=keeping.cut)
    if given is False or not dropped or room < LEAST_CHARS or not facts.keeps_pairs(without):
        return None
    if policy.goal == "reduce" and not facts.fits(without):
        return None  # with any summary it would not fit either, so nobody is asked for one
    if given is None:
        previous = previous_summary(outline, earlier)
        names_task = not keeping.task_stays
        built_in = built_in_summary(outline, facts.tools, facts.task, dropped, previous, names_task=names_task)
        built_in = built_in[: policy.summary_max_chars]
        if policy.ask_summary:
            return Request(dropped, previous, built_in)
        given = built_in, None
    text, cost = with_first_line(given[0])[:room], given[1]
    if policy.fill_millionths is not None:
        while (cost := facts.text_cost(text)) > room:
            room_chars = shorter(len(text), room, cost)
            if room_chars < LEAST_CHARS:
                return None
            text = text[:room_chars]
    if len(text) >= facts.chars(before) - facts.chars(without):
        return None
    summary = Summary(
        text=text,
        message=_message(facts, policy.summary_role or _role(facts), text),
        cost=len(text) if cost is None else cost,
        place=bisect_left(keeping.kept, leading_system_messages(outline)),
    )
    return replace(without, stage="summarization", summary=summary)


def _role(facts: Facts) -> str:
    """The role of a summary: "user" where an API takes no system messages among the others."""
    for message in facts.outline.messages:
        is_item = message.is_reasoning or (message.type or "").endswith(("_call", "_call_output"))
        if is_item or (message.shape is not None and not message.shape.takes_system_messages):
            return "user"
    return "system"


def _message(facts: Facts, role: str, text: str) -> dict[str, Any]:
    """The summary as a message, in the way of the first shape that has a way of its own."""
    usual = {"role": role, "content": text}
    shapes = (message.shape for message in facts.outline.messages if message.shape is not None)
    messages = (shape.summary(role, text) for shape in shapes)
    return next((message for message in messages if message != usual), usual)
