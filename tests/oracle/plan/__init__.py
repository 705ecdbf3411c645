"""Outline, Policy, Summary -> Plan: the stages, and their order."""

from __future__ import annotations

from dataclasses import replace

from oracle.plan.boundary import Fold, fold_boundary, make_requests, remembers
from oracle.plan.facts import Costs, Facts, Plan, Uncounted
from oracle.plan.fill import mask_newer
from oracle.plan.hide import hide
from oracle.plan.keep import Keeping, published
from oracle.plan.mask import boundaries, clip_results, mask_observations
from oracle.plan.pins import pins
from oracle.plan.references import is_reference
from oracle.plan.summarize import Given, standing, summarize
from oracle.policy import Policy
from recede.reduction._exchange import CountRequest, SummaryRequest

__all__ = ["Costs", "Facts", "Given", "Plan", "make_plan", "pins"]


def make_plan(facts: Facts, summary: Given) -> Plan | SummaryRequest | CountRequest:
    """The plan of the view, or what it needs first: a summary, or the costs of new texts."""
    try:
        plan = _planned(facts, summary)
        if isinstance(plan, Plan):
            facts.cost(plan)  # a cut text may still be uncounted
        return plan
    except Uncounted as text:
        return CountRequest([str(text)])


def _planned(facts: Facts, summary: Given) -> Plan | SummaryRequest:
    goal, policy = facts.policy.goal, facts.policy
    refers = any(is_reference(facts, result) for result in facts.outline.results)
    keeps_limit = goal == "mask" or (goal == "reduce" and policy.is_limit)
    if keeps_limit and not policy.is_off and (policy.remembers or refers):
        return _of_requests(facts, summary)
    if goal == "mask":
        rounded, *whole = _maskings(facts)
        return _said(facts, whole[0] if whole and not facts.fits(rounded) else rounded)
    if goal == "summarize":
        return summarize(facts, facts.raw, published(facts), summary) or facts.raw
    if goal == "truncate":
        return _truncate(facts.raw, published(facts))
    return _reduce(facts, summary)


def _of_requests(facts: Facts, summary: Given) -> Plan | SummaryRequest:
    """The view after all requests."""
    if summary is False and facts.policy.ask_summary and (facts.policy.is_limit or facts.policy.summaries):
        # The view of the same history without a summarizer.
        without = {"ask_summary": False, "summary_max_chars": 1_400, "summaries": None}
        policy = Policy({**vars(facts.policy), **without})
        return _of_requests(Facts(facts.given, policy, facts.given_costs), None)
    fold = Fold(facts)
    make_requests(fold)
    return standing(fold, fold.plan(), summary)


def _said(facts: Facts, plan: Plan) -> Plan:
    """With the stage, where results arrived as placeholders."""
    is_masked = any(one.is_masked for one in facts.shown(plan).values())
    return replace(plan, stage=plan.stage or ("masking" if is_masked else None))


def _reduce(facts: Facts, summary: Given) -> Plan | SummaryRequest:
    """The first stage whose view fits the budget and keeps pairs whole; or the last stage."""
    policy, raw, raw_fits = facts.policy, facts.raw, facts.fits(facts.raw)
    # A boundary that depends on earlier requests pays off within the budget too.
    masks_anyway = not policy.skips_masks and remembers(facts)
    if policy.is_off or (raw_fits and not masks_anyway):
        return raw
    view = raw
    for view in () if policy.skips_masks else _maskings(facts):
        if facts.fits(view) and facts.keeps_pairs(view):
            return _said(facts, view)
    if raw_fits:
        return raw
    if policy.fill_millionths is not None and not policy.skips_masks:
        view = mask_newer(facts, view)
    if policy.clip_results is not None:
        view = clip_results(facts, view)
    if facts.fits(view) and facts.keeps_pairs(view):
        return view
    keeping = published(facts)
    if policy.fill_millionths is not None:
        facts.failed = (len(facts.outline.messages),) if summary is False else ()
        fold = Fold.of_plan(facts, view)
        hiding = hide(fold, {}, policy.max_cost)
        if hiding is not None and policy.strict_pairs and not hiding.hidden.messages.issuperset(facts.pairs.orphans):
            facts.failed = (len(facts.outline.messages),)
            hiding = hide(fold, {}, policy.max_cost)
        if hiding is None:
            return _truncate(view, keeping)
        fold.hidden = hiding.hidden
        return standing(fold, fold.plan(), summary)
    summarized = summarize(facts, view, keeping, summary)
    if isinstance(summarized, SummaryRequest):
        return summarized
    if summarized is not None and facts.fits(summarized):
        return summarized
    return _truncate(view, keeping)


def _truncate(before: Plan, keeping: Keeping) -> Plan:
    """The kept messages as stage 1 left them, without a summary."""
    return replace(before, stage="fallback", kept=keeping.kept_alone)


def _maskings(facts: Facts) -> list[Plan]:
    """The attempts of stage 1, in order."""
    if remembers(facts):
        return [fold_boundary(facts)]
    return [mask_observations(facts, boundary) for boundary in boundaries(facts)]
