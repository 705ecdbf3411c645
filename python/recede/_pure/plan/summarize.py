"""Stage 2: the messages outside the keep set are replaced by one summary."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, Literal

from recede._pure.plan.facts import Facts, Plan, Summary
from recede._pure.plan.keep import keep_set
from recede._pure.summary import built_in_summary, leading_system_messages, previous_summary, with_first_line

Given = tuple[str, "int | None"] | Literal[False] | None
"""A summary and its cost (None: its chars); None: not asked for yet; False: it could not be had."""


@dataclass(frozen=True, slots=True)
class Request:
    """Asks for a summary of the messages to be dropped."""

    dropped: list[int]
    previous: str | None
    built_in: str


def summarize(facts: Facts, before: Plan, given: Given) -> Plan | Request | None:
    """What stage 1 left of the keep set, with a summary of the rest; None where there is nothing to gain."""
    if given is False:
        return None
    outline, policy, earlier = facts.outline, facts.policy, facts.earlier_summaries
    kept = keep_set(facts, without=earlier)
    dropped = sorted(set(range(len(outline.messages))) - kept - set(earlier))
    without = replace(before, kept=sorted(kept))
    if not dropped or not facts.keeps_pairs(without):
        return None
    if policy.goal == "reduce" and not facts.fits(without):
        return None  # with any summary it would not fit either, so nobody is asked for one
    if given is None:
        previous = previous_summary(outline, earlier)
        built_in = built_in_summary(outline, facts.tools, facts.task, dropped, previous)[: policy.summary_max_chars]
        if policy.ask_summary:
            return Request(dropped, previous, built_in)
        given = built_in, None
    text, cost = given
    text = with_first_line(text)[: policy.summary_max_chars]
    replaced = replace(before, kept=sorted([*dropped, *earlier]))
    if len(text) >= facts.chars(replaced):
        return None
    in_order = sorted(kept)
    summary = Summary(
        text=text,
        message=_message(facts, policy.summary_role or _role(facts), text),
        cost=len(text) if cost is None else cost,
        place=bisect_left(in_order, leading_system_messages(outline)),
    )
    return replace(before, stage="summarization", kept=in_order, summary=summary)


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
