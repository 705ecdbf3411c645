"""The counters of a reduction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oracle.outline import Result
from oracle.plan import Facts, Plan
from oracle.plan.boundary import remembers
from oracle.plan.stay import exempt
from oracle.plan.window import older_than_window
from recede._report import BoundaryMove, ToolReport, Unmasked
from recede.reduction._exchange import MessageTexts, ObservationTexts


def report(facts: Facts, plan: Plan) -> dict[str, Any]:
    """The fields of recede._report.Reduction, except the view."""
    tools = _tools(facts, plan)
    clipped = {place: one for place, one in facts.shown(plan).items() if one.is_clipped}
    first_changed = _first_changed(facts, plan)
    return {
        "reduced": first_changed is not None,
        "dropped_count": len(facts.outline.messages) - len(plan.kept),
        "dropped": tuple(index for index in range(len(facts.outline.messages)) if index not in set(plan.kept)),
        "mask_places": places_of(facts, [place for place, one in facts.shown(plan).items() if one.is_masked]),
        "cut_places": places_of(facts, list(clipped)),
        "unmasked": unmasked_of(facts, plan),
        "invariant_status": "fallback" if plan.stage == "fallback" else "ok",
        "reduction_stage": plan.stage,
        "masked_count": sum(tool.masked for tool in tools.values()),
        "masked_chars": sum(tool.removed_chars for tool in tools.values()),
        "clipped_count": len(clipped) + bool(plan.cut),
        "clipped_chars": sum(_raw_chars(facts, place) - one.chars for place, one in clipped.items())
        + sum(facts.own_chars[place] - one.chars for place, one in plan.cut.items()),
        "tools": tools,
        "chars_before": facts.given.chars(facts.policy.image_chars),
        "chars_after": facts.chars(plan),
        "within_limit": None if facts.policy.max_cost is None else facts.fits(plan),
        "orphans": tuple(facts.pairs.orphans),
        "first_changed": first_changed,
        "boundary": plan.boundary,
        "summarizer_error": None,  # set by the caller of the summarizer
        "boundary_message": _boundary_message(facts, plan),
        "turns": len(facts.runs.starts),
        "provider": facts.policy.provider,
        "boundary_moves": tuple(BoundaryMove(*move) for move in plan.moves),
        "reasoning_dropped": len(plan.unsigned.intersection(plan.kept)),
    }


def places_of(facts: Facts, results: Iterable[int]) -> bytes:
    """Results by their message and their place there."""
    packed = b""
    for place in sorted(results):
        message = facts.outline.results[place].message
        first = facts.outline.messages[message].results[0].index
        packed += message.to_bytes(4, "little") + (place - first).to_bytes(4, "little")
    return packed


def unmasked_of(facts: Facts, plan: Plan) -> Unmasked:
    masks = not (facts.policy.is_off or facts.policy.skips_masks)
    if not masks or any(one.is_masked for one in facts.shown(plan).values()):
        return Unmasked(0, 0, False, False)
    policy = facts.policy
    if policy.goal == "reduce" and not policy.is_limit and not remembers(facts) and facts.fits(facts.raw):
        return Unmasked(0, 0, True, False)
    older, is_exempt = older_than_window(facts), exempt(facts)
    outside = max((place for place, is_older in enumerate(older, 1) if is_older), default=0)
    kept = set(plan.kept)
    maskable = [
        result
        for result in facts.outline.results[:outside]
        if result.message in kept
        and older[result.index]
        and not is_exempt[result.index]
        and facts.mask(result) is not None
    ]
    is_below_trigger = outside > 0 and plan.is_below_trigger
    rule = policy.boundary[0]
    is_stepped = rule == "stepped" or (rule == "sliding" and policy.verifies_reasoning)
    is_below_step = is_stepped and bool(maskable) and not is_below_trigger
    return Unmasked(outside, len(maskable), is_below_trigger, is_below_step)


def _raw_chars(facts: Facts, place: int) -> int:
    """The chars of an observation before a cut."""
    return facts.given.results[place].text.chars(facts.policy.image_chars)


def _tools(facts: Facts, plan: Plan) -> dict[str, ToolReport]:
    tools: dict[str, ToolReport] = {}
    for result in facts.outline.results:
        name = facts.tools[result.index] or ""
        observations, masked, chars, removed = tools.get(name, (0, 0, 0, 0))
        before = _raw_chars(facts, result.index)
        replacement = facts.shown(plan).get(result.index)
        if replacement is not None and replacement.is_masked:
            masked += 1
            removed += before - replacement.chars
        tools[name] = ToolReport(observations + 1, masked, chars + before, removed)
    return tools


def _boundary_message(facts: Facts, plan: Plan) -> int | None:
    """The message of the view that has the last masked result."""
    masked = {facts.outline.results[place].message for place, one in facts.shown(plan).items() if one.is_masked}
    places = [place for place, index in enumerate(plan.kept) if index in masked]
    if not places:
        return None
    summary = plan.summary
    return places[-1] + (summary is not None and summary.joins is None and summary.place <= places[-1])


def _first_changed(facts: Facts, plan: Plan) -> int | None:
    """The first message of the view that differs from the input."""
    shown = facts.shown(plan)
    for place, index in enumerate(plan.kept):
        summary = plan.summary
        if summary is not None and place == (summary.place if summary.joins is None else summary.joins):
            return place
        results = facts.outline.messages[index].results
        if (
            index != place
            or index in plan.cut
            or (index in plan.unsigned and not facts.outline.messages[index].is_reasoning)
            or any(result.index in shown for result in results)
        ):
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
            reasoning="".join(message.reasoning * facts.policy.counts_reasoning),
            sealed_chars=message.sealed_chars * facts.policy.counts_reasoning,
        )
        for message in facts.outline.messages
    ]


def _observation_texts(facts: Facts, result: Result) -> ObservationTexts:
    masked, text = facts.mask(result), result.text.joined
    if result.text.json is not None:
        text = result.text.json.compact_json
    return ObservationTexts(text, result.text.images, masked and masked.text)
