"""`fill`: shares of the budget for the task, a summary and the newest units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from oracle.clip import LEAST_CHARS, clip, shorter
from oracle.placeholder import Masked
from oracle.plan.facts import Facts, Plan
from oracle.plan.keep import Keeping, keep_set, units
from oracle.plan.window import exempt, unseen, window_start
from oracle.summary import earlier_summaries, user_messages

_LEAST_TASK = 220
"""Minimum characters of the newest message of the task: a view must not begin with an answer of the model."""

_PARTS = 4_000_000
"""Parts of a budget unit, in which shares are exact; the sum of rounded shares could grow faster than the budget."""


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


def share_out(facts: Facts, before: Plan) -> Keeping:
    """Keep the keep set, the task, and the newest units that fit, with room for a summary."""
    policy, task, earlier = facts.policy, task_of(facts), earlier_summaries(facts.outline)
    budget, fill = policy.max_cost, policy.fill_millionths
    apart = {*earlier, *task}
    kept = keep_set(facts, window_start(facts), without=apart)

    def cost(messages: Iterable[int]) -> int:
        return sum(facts.message_cost(before, index) for index in messages)

    if policy.is_session and _PARTS * cost(kept) > 4 * budget * fill:
        newest = max((message.index for message in facts.outline.messages if message.index not in apart), default=0)
        kept = keep_set(facts, newest, without=apart)

    window_cost, task_cost = cost(kept), cost(task)
    least = min(_LEAST_TASK, cost(task[-1:]))
    share = min(2 * budget * min(fill, 500_000), _PARTS * (budget - window_cost))
    share = min(_PARTS * task_cost, max(_PARTS * least, share))
    reserved = min(_PARTS * policy.summary_max_chars, budget * fill)
    room = (4 * budget * fill - share - reserved) // _PARTS - window_cost
    for unit in units(facts, without=kept | apart):
        room -= cost(unit)
        if room < 0:
            break
        kept |= unit
    dropped = set(range(len(facts.outline.messages))) - kept - apart
    cut = _cut_task(facts, before, task, share // _PARTS)
    kept |= cut.keys()
    view = replace(before, kept=sorted(kept), cut={index: text for index, text in cut.items() if text is not None})
    left = budget - facts.cost(view)
    is_all = len(earlier) == len(facts.outline.messages)
    alone = kept.union(earlier if is_all or cost(earlier) <= left else ())
    return Keeping(view.kept, sorted(alone), sorted(dropped), min(reserved // _PARTS, left), view.cut, bool(task))


def task_of(facts: Facts) -> list[int]:
    """The user messages before the first run; if there are none, the first one after it."""
    said = [message.index for message in user_messages(facts.outline)]
    return [index for index in said if index < facts.task_end] or said[:1]


def _cut_task(facts: Facts, before: Plan, task: list[int], share: int) -> dict[int, Masked | None]:
    """The kept messages of the task, newest first: whole (None), or cut to the rest of the share, then no more."""
    shown: dict[int, Masked | None] = {}
    for index in reversed(task):
        cost = facts.message_cost(before, index)
        text = _cut(facts, index, cost, share, _LEAST_TASK if index == task[-1] else 0) if cost > share else None
        if cost <= share or text is not None or index == task[-1]:
            shown[index] = text
        if cost > share:
            break
        share -= cost
    return shown


def _cut(facts: Facts, index: int, cost: int, share: int, least: int) -> Masked | None:
    """Cut a message of the task to a share; None if that is too short, or no shorter."""
    own, chars = facts.outline.messages[index].own, facts.own_chars[index]
    if not own.joined and not facts.outline.messages[index].blocks:
        return None  # it has no content
    max_chars = max(least, chars * share // cost)  # each character costs the same, until the caller has counted
    while LEAST_CHARS <= max_chars < chars:
        text = clip(own.joined, max_chars, own.chars(facts.policy.image_chars) - len(own.joined))
        cut_cost = facts.text_cost(text.text)
        if cut_cost <= share or max_chars == least:
            return text
        max_chars = max(least, shorter(max_chars, share, cut_cost))
    return None
