"""Stage 1: masks every observation older than the window, up to the boundary."""

from __future__ import annotations

from dataclasses import replace

from oracle.clip import clip
from oracle.placeholder import names_handle, stays_whole
from oracle.plan.facts import Facts, Plan
from oracle.plan.stay import exempt
from oracle.plan.window import older_than_window


def boundaries(facts: Facts) -> list[int]:
    """The boundaries to try: rounded down to a whole chunk, then unrounded."""
    boundary = max((place for place, is_older in enumerate(older_than_window(facts), 1) if is_older), default=0)
    rule, chunk, _ = facts.policy.boundary
    rounded = boundary // int(chunk) * int(chunk) if rule == "stepped" else boundary
    return [rounded] if rounded == boundary else [rounded, boundary]


def mask_observations(facts: Facts, boundary: int) -> Plan:
    """Mask the older observations before the boundary."""
    older, is_exempt = older_than_window(facts), exempt(facts)
    masked = {}
    for result in facts.outline.results[:boundary]:
        replacement = facts.mask(result) if older[result.index] and not is_exempt[result.index] else None
        if replacement is not None:
            masked[result.index] = replacement
    if facts.removed_chars(masked) < facts.policy.min_masked_chars:
        return facts.raw
    return replace(facts.raw, stage="masking" if masked else None, boundary=boundary, masked=masked)


def clip_results(facts: Facts, before: Plan) -> Plan:
    """Cut raw results in the window, largest first, then oldest first, until the view fits."""
    policy, masked, cost = facts.policy, dict(before.masked), facts.cost(before)
    older, is_exempt = older_than_window(facts), exempt(facts)
    for result in sorted(facts.outline.results, key=lambda result: -facts.observation_chars[result.index]):
        if cost <= policy.max_cost:
            break
        place, text = result.index, result.text.joined
        stays = (
            older[place]
            or is_exempt[place]
            or place in masked
            or place in facts.cuts
            or result.text.images
            or result.text.json
        )
        if not stays and len(text) > policy.clip_results and not stays_whole(text, policy):
            recall = facts.observation(result).handle if names_handle(policy) else None
            masked[place] = clip(text, policy.clip_results, recall=recall)
            cost -= facts.saved_cost(place, masked[place])
    return replace(before, masked=dict(sorted(masked.items())))
