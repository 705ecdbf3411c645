"""Results that an agent has changed before it sends them: cleared ones, and those that refer to an earlier result."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from oracle.patterns import fits
from oracle.placeholder import Masked, fill

if TYPE_CHECKING:
    from oracle.outline import Result
    from oracle.plan.facts import Facts, Plan


class Reference(NamedTuple):
    """A result that refers to the result of an earlier call."""

    source: int  # the result that has the text
    previous: int  # the last one before it that is this source, or refers to it


def is_text(result: Result, text: str) -> bool:
    """Whether the whole text of a result is this one, in which `*` matches any text."""
    found = result.text
    is_it = fits(text, found.joined) if "*" in text else found.joined == text
    return is_it and not (found.images or found.json or found.has_references)


def references(facts: Facts) -> dict[int, Reference]:
    """The results that refer to that of an earlier call of the same tool with the same arguments, by place."""
    found: dict[int, Reference] = {}
    last: dict[tuple[str, str], Reference] = {}
    for result, call in zip(facts.outline.results, facts.pairs.call_of, strict=True):
        if call is None or call.read is None or call.shape.name != "anthropic":
            continue
        key, text = (call.name or "", json.dumps(call.read)), result.text
        if text.images or text.json:
            last.pop(key, None)
        elif any(call.name == tool and is_text(result, stub) for tool, stub in facts.policy.stubs):
            if key in last:
                found[result.index] = last[key]
                last[key] = last[key]._replace(previous=result.index)
        elif facts.is_cleared(result):
            last.pop(key, None)
        else:
            last[key] = Reference(result.index, result.index)
    return found


def restored(facts: Facts, masked: Collection[int]) -> dict[int, Masked]:
    """The references that show the text of their source, since that and all between are masked."""
    found: dict[int, Masked] = {}
    for place, reference in facts.references.items():
        is_first = reference.previous == reference.source
        if reference.previous in masked and (is_first or reference.previous in found):
            text = facts.outline.results[reference.source].text.joined
            cut = facts.cuts.get(reference.source)
            found[place] = Masked((slice(None),) if cut is None else cut.pieces, text, source=reference.source)
    return {place: one for place, one in found.items() if place not in masked}


def with_agent_texts(facts: Facts, plan: Plan) -> Plan:
    """With cleared results as placeholders, wherever they are, and references with the text of their source."""
    masked, stays = {**plan.masked, **restored(facts, plan.masked)}, []
    for result in facts.outline.results:
        if facts.is_cleared(result):
            text = fill(facts.observation(result), facts.policy)
            if len(text) <= len(result.text.joined):
                masked[result.index] = Masked((text,), text)
            else:
                stays.append(result.index)
    has_masked = any(one.is_masked for one in masked.values())
    stage = plan.stage or ("masking" if has_masked else None)
    return replace(plan, stage=stage, masked=dict(sorted(masked.items())), stays=tuple(stays))
