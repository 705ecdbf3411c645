"""Stage 2: a summary of the messages outside the keep set; and the text of one that stands in a view."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from oracle.clip import shorter
from oracle.plan.facts import Facts, Plan, Summary
from oracle.plan.keep import Keeping
from oracle.shape import PLAIN
from oracle.summary import (
    alternates,
    built_in_summary,
    earlier_summaries,
    end_of_sentence,
    leading_system_messages,
    previous_summary,
    user_messages,
    with_first_line,
)
from recede.reduction._exchange import SummaryRequest

if TYPE_CHECKING:
    from oracle.plan.boundary import Fold

Given = tuple[str, "int | None"] | Literal[False] | None
"""A summary and its cost (None: its chars); None: not requested yet; False: it failed."""


def summarize(facts: Facts, before: Plan, keeping: Keeping, given: Given) -> Plan | SummaryRequest | None:
    """The kept messages as stage 1 left them, with a summary of the rest; None if there is nothing to gain."""
    outline, policy = facts.outline, facts.policy
    dropped, room = keeping.dropped, keeping.summary_room
    without = replace(before, kept=keeping.kept)
    if given is False or not dropped or not facts.keeps_pairs(without):
        return None
    if policy.goal == "reduce" and not facts.fits(without):
        return None  # it would not fit with any summary
    if given is None:
        built_in = built_in_summary(facts, dropped, previous_summary(outline), user_messages(outline)[:1])
        if policy.ask_summary:
            return SummaryRequest(dropped, previous_summary(outline), built_in)
        given = built_in, None
    text, cost = with_first_line(given[0])[:room], given[1]
    if len(text) >= facts.chars(before) - facts.chars(without):
        return None
    made = Summary(
        text=text,
        cost=len(text) if cost is None else cost,
        place=bisect_left(keeping.kept, leading_system_messages(outline)),
        message=_message(facts, policy.summary_role or _role(facts), text),
    )
    return replace(without, stage="summarization", summary=made)


def standing(fold: Fold, plan: Plan, given: Given) -> Plan | SummaryRequest:
    """The view of a state, with the text of its summary, of its share: what was hidden when it was made is told."""
    facts, hidden = fold.facts, fold.hidden
    outline, policy, summary = facts.outline, facts.policy, hidden.summary
    if summary is None:
        return replace(plan, stage="fallback") if hidden.is_cut_off else plan
    earlier = [index for index in earlier_summaries(outline) if index in summary.told]
    dropped = sorted(index for index in summary.told.difference(earlier) if index >= summary.compacted)
    previous = previous_summary(outline) if earlier else None
    task = user_messages(outline.beginning(summary.request))[:1]
    names_task = not task or task[0].index in summary.told
    if not given:
        built_in = built_in_summary(facts, dropped, previous, task, names_task=names_task)
        if policy.ask_summary and given is None:
            return SummaryRequest(dropped, previous, built_in)
        given = built_in, None
    text = with_first_line(given[0])
    text = text[: end_of_sentence(text, summary.share)] if facts.costs is None else text
    while (cost := facts.text_cost(text)) > summary.share and text:
        text = text[: end_of_sentence(text, shorter(len(text), summary.share, cost))]
    made = Summary(
        text=text,
        cost=cost,
        place=bisect_left(plan.kept, summary.place),
        message=_message(facts, policy.summary_role or _role(facts), text),
    )
    return replace(plan, stage="summarization", summary=made._replace(joins=_joined(facts, plan, made)))


def _joined(facts: Facts, plan: Plan, summary: Summary) -> int | None:
    """The place of the user's message right before the summary, or else after it, where roles have to alternate."""
    if not alternates(facts.outline) or summary.message.get("role") != "user":
        return None
    for place in (summary.place - 1, summary.place):
        if 0 <= place < len(plan.kept):
            message = facts.outline.messages[plan.kept[place]]
            if message.role == "user" and message.shape is not None and message.shape.name == "converse":
                return place
    return None


def _role(facts: Facts) -> str:
    """The role of a summary: "user" if an API does not accept system messages among the others.

    The first message whose shape names an API decides.
    """
    for message in facts.outline.messages:
        known = (
            "reasoning",
            "tool_search_output",
            "mcp_approval_request",
            "mcp_approval_response",
            "compaction",
            "compaction_summary",
        )
        is_item = message.type in known or (message.type or "").endswith(("_call", "_call_output"))
        if is_item or (message.shape is not None and not message.shape.takes_system_messages):
            return "user"
        if message.shape is not None:
            return "system"
    return "system"


def _message(facts: Facts, role: str, text: str) -> dict[str, Any]:
    """The summary as a message, in the form of the first shape that has its own."""
    shapes = (message.shape for message in facts.outline.messages if message.shape is not None)
    shape = next((shape for shape in shapes if shape.part_type is None or shape.name == "interactions"), PLAIN)
    return {**shape.head(role), shape.field: shape.content(text)}
