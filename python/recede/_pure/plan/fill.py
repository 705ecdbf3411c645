"""`fill`: a budget is shared out between the task, a summary and the newest units, so that a view degrades evenly."""

from __future__ import annotations

from dataclasses import replace

from recede._pure.clip import LEAST_CHARS, clip
from recede._pure.placeholder import Masked
from recede._pure.plan.facts import Facts, Plan
from recede._pure.plan.keep import Keeping, keep_set, units
from recede._pure.plan.mask import exempt

_LEAST_TASK = 220
"""What the task gets in any case: a view that began with an answer of the model would be refused."""

_PARTS = 4_000_000
"""A unit of the budget in parts, in which shares are added up: rounded one by one, they could grow by more than it."""


def mask_newer(facts: Facts, before: Plan) -> Plan:
    """Masks results in the window too, oldest first, but none of the newest turn, until the view fits."""
    is_exempt, newest_turn, budget = exempt(facts), len(facts.runs.starts), facts.policy.max_cost
    masked, boundary, cost = dict(before.masked), before.boundary, facts.cost(before)
    for result in facts.outline.results:
        if cost <= budget:
            break
        place = result.index
        stays = place in masked or is_exempt[place] or facts.turns[place] == newest_turn
        replacement = None if stays else facts.mask(result)
        if replacement is not None:
            masked[place] = replacement
            cost += facts.observation_cost(place, replacement) - facts.observation_cost(place, None)
            boundary = max(boundary, place + 1)
    removed = sum(facts.observation_chars[place] - one.chars for place, one in masked.items())
    if removed < facts.policy.min_masked_chars:
        return before
    masked = dict(sorted(masked.items()))
    return replace(before, stage="masking" if masked else None, boundary=boundary, masked=masked)


def share_out(facts: Facts, before: Plan) -> Keeping:
    """What is kept: the window, the task, as many of the newest units as fit, beside the room for a summary."""
    policy, task = facts.policy, task_of(facts)
    budget, fill = policy.max_cost, policy.fill_millionths
    apart = {*facts.earlier_summaries, *task}
    kept = keep_set(facts, without=apart)

    def cost(messages: set[int]) -> int:
        return sum(facts.message_cost(before, index) for index in messages)

    window_cost = cost(kept)
    most = min(2 * budget * min(fill, 500_000), _PARTS * (budget - window_cost))
    task_parts = min(_PARTS * cost(set(task)), max(_PARTS * _LEAST_TASK, most))
    summary_parts = min(_PARTS * policy.summary_max_chars, budget * fill)
    room = (4 * budget * fill - task_parts - summary_parts) // _PARTS - window_cost
    for unit in units(facts, without=kept | apart):
        room -= cost(unit)
        if room < 0:
            break
        kept |= unit
    share = task_parts // _PARTS
    left = budget - cost(kept) - share
    dropped = set(range(len(facts.outline.messages))) - kept - apart
    shown, cut = _shown_task(facts, before, task, share)
    kept |= shown
    earlier = facts.earlier_summaries if cost(set(facts.earlier_summaries)) <= left else []
    room = min(summary_parts // _PARTS, left)
    return Keeping(sorted(kept), sorted(kept.union(earlier)), sorted(dropped), room, cut, bool(task))


def task_of(facts: Facts) -> list[int]:
    """What the user said before the first run."""
    messages, starts = facts.outline.messages, facts.runs.starts
    said = [one.index for one in messages[: starts[0] if starts else None] if one.role == "user" and not one.exchanges]
    return [index for index in said if index not in facts.earlier_summaries]


def _shown_task(facts: Facts, before: Plan, task: list[int], share: int) -> tuple[set[int], dict[int, Masked]]:
    """The newest message of the task first: as it is, cut to what is left of the share, or not at all."""
    shown, cut = set(), {}
    for index in reversed(task):
        cost = facts.message_cost(before, index)
        if cost > share:
            if share < LEAST_CHARS:
                break
            cut[index] = clip(facts.outline.messages[index].own.joined, share)
            cost = cut[index].chars
        shown.add(index)
        share -= cost
    return shown, cut
