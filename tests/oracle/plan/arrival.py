"""Results that are cut when they arrive: every rule after that sees the cut text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from oracle.clip import clip, is_clipped
from oracle.placeholder import Masked, names_handle, stays_whole
from oracle.plan.agents import is_text
from oracle.value import Member, Text

if TYPE_CHECKING:
    from oracle.outline import Outline
    from oracle.plan.facts import Facts


def arrivals(facts: Facts) -> dict[int, Masked]:
    """The results that are cut, by place."""
    from oracle.plan.window import exempt

    policy, cuts = facts.policy, {}
    if policy.max_result_chars is None:
        return {}
    for result, is_exempt in zip(facts.outline.results, exempt(facts), strict=True):
        text, joined = result.text, result.text.joined
        is_stub = any(is_text(result, stub) for _, stub in policy.stubs)
        stays = is_exempt or text.images or text.json or is_stub or facts.is_cleared(result)
        if (
            not stays
            and len(joined) > policy.max_result_chars
            and not is_clipped(joined)
            and not stays_whole(joined, policy)
        ):
            recall = facts.observation(result).handle if names_handle(policy) else None
            cuts[result.index] = clip(joined, policy.max_result_chars, recall=recall)
    return cuts


def with_cuts(outline: Outline, cuts: dict[int, Masked]) -> Outline:
    """A history with its results cut."""

    def texts(cut: Masked) -> Text:
        return Text([Member([cut.text], 0)])

    new = {
        one.index: replace(one, text=texts(cuts[one.index])) if one.index in cuts else one for one in outline.results
    }
    messages = [replace(one, results=[new[result.index] for result in one.results]) for one in outline.messages]
    return replace(outline, messages=messages, results=list(new.values()))
