"""The trigger, and the limit of each request: from when on results are masked, and what a limit forces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from oracle.clip import clip
from oracle.placeholder import Masked, names_handle, stays_whole
from oracle.plan.window import shown_at
from oracle.summary import earlier_summaries

if TYPE_CHECKING:
    from oracle.outline import Result
    from oracle.plan.boundary import Fold

Masks = dict[int, Masked]


def has_begun(fold: Fold) -> bool:
    """Whether masking begins at this request, if it did not before."""
    policy, facts = fold.facts.policy, fold.facts
    arrived = replace(facts.raw, masked=fold.references.restored)
    raw = sum(facts.message_cost(arrived, index) for index in range(fold.end))
    limit = policy.limit_at(fold.end)
    is_above = raw > policy.trigger_at(fold.end) or (limit is not None and raw > limit)
    return policy.trigger == 0 or is_above or bool(earlier_summaries(facts.outline))


def cost_with(fold: Fold, changes: Mapping[int, Masked]) -> int:
    """The cost of the view with these changes besides."""
    facts, hidden = fold.facts, fold.hidden
    masked = {**fold.masked, **{place: one for place, one in changes.items() if not one.is_clipped}}
    cuts = {**fold.cuts, **{place: one for place, one in changes.items() if one.is_clipped}}
    shown = {**fold.references.restored, **cuts, **masked}
    view = replace(facts.raw, masked=shown, unsigned=fold.voided(changes))
    costs = [
        hidden.cut_costs[index] if index in hidden.cut else facts.message_cost(view, index)
        for index in range(fold.end)
        if index not in hidden.messages
    ]
    return sum(costs) + hidden.share


def force(fold: Fold, limit: int, own: Masks) -> tuple[Masks, Masks, bool]:
    """What a request over the limit masks and cuts; and whether a door that drops messages must do so besides."""
    moves = _moves(fold)
    fitting = next((move for move in moves if cost_with(fold, move) <= limit - limit // 4), None)
    furthest = moves[-1] if moves else {}
    if fitting is None and cost_with(fold, furthest) <= limit:
        fitting = furthest
    if fitting is not None:
        return fitting, {}, False
    cuts = _cuts(fold, limit, own)
    if cost_with(fold, {**cuts, **own}) <= limit:
        return own, cuts, False
    all_cuts = _cuts(fold, limit, furthest)
    if cost_with(fold, {**all_cuts, **furthest}) <= limit:
        return furthest, all_cuts, False
    return furthest, all_cuts, True


def _moves(fold: Fold) -> list[Masks]:
    """To the window, then past it, one result more each time."""
    facts = fold.facts
    moves = [dict(fold.waiting)] if fold.waiting else []
    newest_turn = sum(start < fold.end for start in facts.runs.starts)
    seen = [at <= fold.end for at in shown_at(facts)]
    for result in facts.outline.results:
        place = result.index
        is_masked = place in fold.masked or place in fold.waiting
        if result.message >= fold.end or is_masked or not seen[place] or facts.turns[place] == newest_turn:
            continue
        before = moves[-1] if moves else {}
        if not _is_recent(fold, place) or fold.hides(place) or place in before:
            continue
        group = fold.references.group_of(place)
        if any(facts.turns[other] == newest_turn for other in group):
            continue
        masks = {
            other: fold.mask(other) for other in sorted(group) if other not in fold.masked and not fold.hides(other)
        }
        found = {other: one for other, one in masks.items() if one is not None}
        if found:
            moves.append({**before, **found})
    return moves


def _is_recent(fold: Fold, place: int) -> bool:
    """Whether an observation has not left its window."""
    return fold.ages[place] > fold.end


def _cuts(fold: Fold, limit: int, masked: Masks) -> Masks:
    """Cuts of long results, the longest first, until the view fits: of the whole text that each is, or refers to."""
    facts, cuts = fold.facts, {}
    policy, restored = facts.policy, fold.references.restored
    sources = {one.index: restored[one.index].source if one.index in restored else one.index for one in _here(fold)}
    for result in sorted(_here(fold), key=lambda result: -facts.observation_chars[sources[result.index]]):
        if cost_with(fold, {**cuts, **masked}) <= limit:
            break
        place, source = result.index, facts.given.results[sources[result.index]]
        text, arrived = source.text.joined, facts.outline.results[source.index].text.joined
        is_changed = place in fold.masked or place in fold.cuts or place in masked
        stays = fold.exempt[place] or source.text.images or source.text.json or fold.hides(place)
        if is_changed or stays or len(arrived) <= policy.clip_results or stays_whole(text, policy):
            continue
        recall = facts.observation(source).handle if names_handle(policy) else None
        cut = clip(text, policy.clip_results, recall=recall)
        cuts[place] = cut if source is facts.given.results[place] else cut._replace(source=source.index)
    return cuts


def _here(fold: Fold) -> list[Result]:
    """The results that have come."""
    return [one for one in fold.facts.outline.results if one.message < fold.end]
