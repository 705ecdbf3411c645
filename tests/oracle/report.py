"""The counters of a reduction."""

from __future__ import annotations

from typing import Any

from oracle.outline import Result
from oracle.plan import Facts, Plan
from recede._report import BoundaryMove, ToolReport
from recede.reduction._exchange import MessageTexts, ObservationTexts


def report(facts: Facts, plan: Plan) -> dict[str, Any]:
    """The fields of recede._report.Reduction, except the view."""
    tools = _tools(facts, plan)
    clipped = {place: one for place, one in plan.masked.items() if one.is_clipped}
    first_changed = _first_changed(facts, plan)
    return {
        "reduced": first_changed is not None,
        "dropped_count": len(facts.outline.messages) - len(plan.kept),
        "invariant_status": "fallback" if plan.stage == "fallback" else "ok",
        "reduction_stage": plan.stage,
        "masked_count": sum(tool.masked for tool in tools.values()),
        "masked_chars": sum(tool.removed_chars for tool in tools.values()),
        "clipped_count": len(clipped) + len(plan.cut),
        "clipped_chars": facts.removed_chars(clipped)
        + sum(facts.own_chars[place] - one.chars for place, one in plan.cut.items()),
        "tools": tools,
        "chars_before": sum(facts.raw_chars),
        "chars_after": facts.chars(plan),
        "within_budget": facts.fits(plan),
        "orphans": tuple(facts.pairs.orphans),
        "first_changed": first_changed,
        "boundary": plan.boundary,
        "summarizer_error": None,  # set by the caller of the summarizer
        "boundary_message": _boundary_message(facts, plan),
        "turns": len(facts.runs.starts),
        "provider": facts.policy.provider,
        "boundary_moves": tuple(BoundaryMove(*move) for move in plan.moves),
    }


def _tools(facts: Facts, plan: Plan) -> dict[str, ToolReport]:
    tools: dict[str, ToolReport] = {}
    for result in facts.outline.results:
        name = facts.tools[result.index] or ""
        observations, masked, chars, removed = tools.get(name, (0, 0, 0, 0))
        before = facts.observation_chars[result.index]
        replacement = plan.masked.get(result.index)
        masked += result.index in plan.stays
        if replacement is not None and replacement.is_masked:
            masked += 1
            removed += before - replacement.chars
        tools[name] = ToolReport(observations + 1, masked, chars + before, removed)
    return tools


def _boundary_message(facts: Facts, plan: Plan) -> int | None:
    """The message of the view that has the last masked result."""
    masked = {facts.outline.results[place].message for place, one in plan.masked.items() if one.is_masked}
    places = [place for place, index in enumerate(plan.kept) if index in masked]
    if not places:
        return None
    return places[-1] + (plan.summary is not None and plan.summary.place <= places[-1])


def _first_changed(facts: Facts, plan: Plan) -> int | None:
    """The first message of the view that differs from the input."""
    for place, index in enumerate(plan.kept):
        if plan.summary is not None and plan.summary.place == place:
            return place
        results = facts.outline.messages[index].results
        if index != place or index in plan.cut or any(result.index in plan.masked for result in results):
            return place
    is_whole = len(plan.kept) == len(facts.outline.messages) and plan.summary is None
    return None if is_whole else len(plan.kept)


def texts_of(facts: Facts) -> list[MessageTexts]:
    """What a token counter counts of each message."""
    return [
        MessageTexts(
            text=message.own.joined + "".join(call.text for call in message.calls),
            constant_chars=message.own.json_chars + sum(call.constant_chars for call in message.calls),
            images=message.own.images,
            observations=[_observation_texts(facts, result) for result in message.results],
        )
        for message in facts.outline.messages
    ]


def _observation_texts(facts: Facts, result: Result) -> ObservationTexts:
    masked, text = facts.mask(result), result.text.joined
    if result.text.json is not None:
        text = result.text.json.compact_json
    return ObservationTexts(text, result.text.images, masked and masked.text)
