"""Masks in the window, where a budget asks for them."""

from __future__ import annotations

from dataclasses import replace

from oracle.plan.facts import Facts, Plan
from oracle.plan.stay import exempt
from oracle.plan.window import unseen


def mask_newer(facts: Facts, before: Plan) -> Plan:
    """Mask results in the window too, until the view fits: oldest first, but not in the newest turn, nor unseen."""
    is_exempt, newest_turn, policy, new = exempt(facts), len(facts.runs.starts), facts.policy, {*unseen(facts)}
    masked, boundary, cost = dict(before.masked), before.boundary, facts.cost(before)
    removed = facts.removed_chars(masked)
    for place, result in enumerate(facts.outline.results):
        if cost <= policy.max_cost and removed >= policy.min_masked_chars:
            break
        stays = is_exempt[place] or place in masked or place in new or facts.turns[place] == newest_turn
        replacement = None if stays else facts.mask(result)
        if replacement is not None:
            masked[place] = replacement
            cost -= facts.saved_cost(place, replacement)
            removed += facts.observation_chars[place] - replacement.chars
            boundary = max(boundary, place + 1)
    if removed < policy.min_masked_chars:
        return before
    masked = dict(sorted(masked.items()))
    return replace(before, stage="masking" if masked else None, boundary=boundary, masked=masked)
