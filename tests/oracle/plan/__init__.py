"""Outline, Policy, Summary -> Plan: the stages, and their order."""

from __future__ import annotations

from dataclasses import replace

from oracle.plan.agents import with_agent_texts
from oracle.plan.boundary import Fold, fold_boundary, make_requests, remembers
from oracle.plan.facts import Costs, Facts, Plan, Uncounted
from oracle.plan.fill import mask_newer, share_out
from oracle.plan.keep import Keeping, published
from oracle.plan.limit import exhausted
from oracle.plan.mask import boundaries, clip_results, mask_observations
from oracle.plan.pins import pins
from oracle.plan.summarize import Given, summarize
from recede.reduction._exchange import CountRequest, SummaryRequest

__all__ = ["Costs", "Facts", "Given", "OverLimit", "Plan", "make_plan", "pins"]


def make_plan(facts: Facts, summary: Given) -> Plan | SummaryRequest | CountRequest:
    """The plan of the view, or what it needs first: a summary, or the costs of new texts."""
    try:
        return _planned(facts, summary)
    except Uncounted as text:
        return CountRequest([str(text)])


def _planned(facts: Facts, summary: Given) -> Plan | SummaryRequest:
    goal, policy = facts.policy.goal, facts.policy
    if policy.enabled and policy.remembers and (goal == "mask" or (goal == "reduce" and policy.is_limit)):
        return _keep_limit(facts, summary)
    if goal == "mask":
        rounded, *whole = _maskings(facts)
        return with_agent_texts(facts, whole[0] if whole and not facts.fits(rounded) else rounded)
    if goal == "summarize":
        return summarize(facts, facts.raw, published(facts), summary) or facts.raw
    if goal == "truncate":
        return _truncate(facts.raw, published(facts))
    return _reduce(facts, summary)


class OverLimit(Exception):
    """Masks and cuts are not enough at some request: the view is that of a session."""


def _keep_limit(facts: Facts, summary: Given) -> Plan | SummaryRequest:
    """The view after all requests; in a session over its limit, that of a later stage."""
    fold, policy = Fold(facts), facts.policy
    was_over = make_requests(fold)
    if policy.goal == "mask" or not (fold.is_over or (was_over and not policy.is_session)):
        return with_agent_texts(facts, fold.plan())
    if not policy.is_session:
        raise OverLimit
    fold.take(*exhausted(fold), is_forced=True)
    view = fold.plan()
    keeping = share_out(facts, view)
    summarized = summarize(facts, view, keeping, summary)
    if isinstance(summarized, SummaryRequest):
        return summarized
    if summarized is not None and facts.fits(summarized):
        return summarized
    return _truncate(view, keeping)


def _reduce(facts: Facts, summary: Given) -> Plan | SummaryRequest:
    """The first stage whose view fits the budget and keeps pairs whole; or the last stage."""
    policy, raw, raw_fits = facts.policy, facts.raw, facts.fits(facts.raw)
    # A boundary that depends on earlier requests pays off within the budget too.
    masks_anyway = policy.observation_masking and remembers(facts)
    if not policy.enabled or (raw_fits and not masks_anyway):
        return raw
    view = raw
    for view in _maskings(facts) if policy.observation_masking else ():
        if facts.fits(view) and facts.keeps_pairs(view):
            return with_agent_texts(facts, view)
    if raw_fits:
        return raw
    if policy.fill_millionths is not None and policy.observation_masking:
        view = mask_newer(facts, view)
    if policy.clip_results is not None:
        view = clip_results(facts, view)
    if facts.fits(view) and facts.keeps_pairs(view):
        return view
    keeping = published(facts) if policy.fill_millionths is None else share_out(facts, view)
    summarized = summarize(facts, view, keeping, summary)
    if isinstance(summarized, SummaryRequest):
        return summarized
    if summarized is not None and facts.fits(summarized):
        return summarized
    return _truncate(view, keeping)


def _truncate(before: Plan, keeping: Keeping) -> Plan:
    """The kept messages as stage 1 left them, without a summary."""
    return replace(before, stage="fallback", kept=keeping.kept_alone, cut=keeping.cut)


def _maskings(facts: Facts) -> list[Plan]:
    """The attempts of stage 1, in order."""
    if remembers(facts):
        return [fold_boundary(facts)]
    return [mask_observations(facts, boundary) for boundary in boundaries(facts)]
