"""Texts of agents: those by which they clear results, and references to the result of an earlier call.

A reference whose source is masked at the last request arrives with the text of that. Else it stays while it is in the
window, and is then masked with its source at one move.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

from oracle.patterns import fits
from oracle.placeholder import Masked

if TYPE_CHECKING:
    from oracle.outline import Result
    from oracle.plan.facts import Facts


def is_text(result: Result, text: str) -> bool:
    """Whether the whole text of a result is this one, in which `*` matches any text."""
    found = result.text
    is_it = fits(text, found.joined) if "*" in text else found.joined == text
    return is_it and not (found.images or found.json or found.has_references)


def is_reference(facts: Facts, result: Result) -> bool:
    """Whether a result refers to that of an earlier call."""
    tool = facts.tools[result.index]
    return any(tool == of and is_text(result, text) for of, text in facts.policy.stubs)


class References:
    """The references of a history so far."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.restored: dict[int, Masked] = {}  # references with the text of another result, which they name
        self.groups: list[set[int]] = []  # a result and the references to it: they are masked together
        self._last: dict[tuple[str, str], int] = {}  # by call: the last result that has the text

    def arrive(self, result: Result, masked: Collection[int]) -> int | None:
        """Add a result. Returns the one that it refers to, if that is still shown."""
        facts, place = self.facts, result.index
        call = facts.pairs.call_of[place]
        if not facts.policy.stubs or call is None or call.read is None or call.shape.name != "anthropic":
            return None
        key = (call.name or "", json.dumps(call.read))
        if not is_reference(facts, result):
            if result.text.images or result.text.json or place in facts.cleared:
                self._last.pop(key, None)
            else:
                self._last[key] = place
            return None
        source = self._last.get(key)
        if source is None:
            return None
        if source in masked:
            first = self.restored[source].source if source in self.restored else source
            assert first is not None
            cut = facts.cuts.get(first)
            text = facts.outline.results[first].text.joined
            self.restored[place] = Masked((slice(None),) if cut is None else cut.pieces, text, source=first)
            self._last[key] = place
            return None
        group = next((group for group in self.groups if source in group), None)
        if group is None:
            self.groups.append(group := {source})
        group.add(place)
        return source

    def group_of(self, place: int) -> set[int]:
        """The results that are masked with this one."""
        return next((group for group in self.groups if place in group), {place})

    def forget(self, place: int) -> None:
        """The results of a group are masked, or may be."""
        self.groups = [group for group in self.groups if place not in group]
