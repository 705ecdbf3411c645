"""What a reduction did: the counters, before and after."""

from __future__ import annotations

from typing import Any

from recede._pure.plan import Facts, Plan

ToolFigures = tuple[int, int, int, int]
"""Observations, how many were masked, their chars before, the chars removed."""


def report(view: Any, facts: Facts, plan: Plan) -> tuple[Any, ...]:
    """The fields of recede.reduction._report.Reduction, in their order."""
    tools = _tools(facts, plan)
    first_changed = _first_changed(facts, plan)
    dropped = len(facts.outline.messages) - len(plan.kept)
    return (
        view,
        first_changed is not None,
        dropped,
        "fallback" if plan.stage == "fallback" else "ok",
        plan.stage,
        len(plan.masked),
        sum(removed for _, _, _, removed in tools.values()),
        tools,
        sum(facts.own_chars) + sum(facts.observation_chars),
        facts.chars(plan),
        facts.fits(plan),
        tuple(facts.pairs.orphans),
        first_changed,
        plan.boundary,
        None,  # summarizer_error: only the caller of the summarizer knows
        len(facts.runs.starts),
        plan.moves,
    )


def _tools(facts: Facts, plan: Plan) -> dict[str, ToolFigures]:
    tools: dict[str, ToolFigures] = {}
    for result in facts.outline.results:
        name = facts.tools[result.index] or ""
        observations, masked, chars, removed = tools.get(name, (0, 0, 0, 0))
        before = facts.observation_chars[result.index]
        replacement = plan.masked.get(result.index)
        if replacement is not None:
            masked += 1
            removed += before - replacement.chars
        tools[name] = (observations + 1, masked, chars + before, removed)
    return tools


def _first_changed(facts: Facts, plan: Plan) -> int | None:
    """The first message of the view that differs from the input's at its place; None where nothing does."""
    for place, index in enumerate(plan.kept):
        if plan.summary is not None and plan.summary.place == place:
            return place
        results = facts.outline.messages[index].results
        if index != place or any(result.index in plan.masked for result in results):
            return place
    is_whole = len(plan.kept) == len(facts.outline.messages) and plan.summary is None
    return None if is_whole else len(plan.kept)
