"""Arrival: the one place where a result's text becomes another; every rule after that sees what arrived.

What is exempt stays. The text by which an agent says that it has cleared a result is the placeholder, wherever it is.
A longer text than `max_result_chars` is cut.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from oracle.clip import clip
from oracle.placeholder import Masked, fill, names_handle, stays_whole
from oracle.plan.references import is_text
from oracle.value import Member, Text

if TYPE_CHECKING:
    from oracle.outline import Outline
    from oracle.plan.facts import Facts


def arrivals(facts: Facts) -> dict[int, Masked]:
    """The results that arrive as another text, by place."""
    from oracle.plan.stay import exempt

    policy, arrived = facts.policy, {}
    for result, is_exempt in zip(facts.outline.results, exempt(facts), strict=True):
        text, joined = result.text, result.text.joined
        if is_exempt or text.images or text.json:
            continue
        if any(is_text(result, marker) for marker in policy.markers):
            placeholder = fill(facts.observation(result), policy)
            if len(placeholder) <= len(joined):
                arrived[result.index] = Masked((placeholder,), placeholder)
            continue
        longest = policy.max_result_chars
        if (
            longest is not None
            and len(joined) > longest
            and not any(is_text(result, text) for _, text in policy.stubs)
            and not stays_whole(joined, policy)
        ):
            recall = facts.observation(result).handle if names_handle(policy) else None
            arrived[result.index] = clip(joined, longest, recall=recall)
    return arrived


def with_arrivals(outline: Outline, arrived: dict[int, Masked]) -> Outline:
    """A history whose results have arrived."""

    def texts(one: Masked) -> Text:
        return Text([Member([one.text], 0)])

    new = {
        one.index: replace(one, text=texts(arrived[one.index])) if one.index in arrived else one
        for one in outline.results
    }
    messages = [replace(one, results=[new[result.index] for result in one.results]) for one in outline.messages]
    return replace(outline, messages=messages, results=list(new.values()))
