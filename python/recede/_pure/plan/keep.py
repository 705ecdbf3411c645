"""What is kept or dropped together, and the keep set: what the stages that drop messages never drop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from recede._pure.placeholder import Masked
from recede._pure.plan.facts import Facts

_Bonds = Mapping[int, list[int]]


@dataclass(frozen=True, slots=True)
class Keeping:
    """What stages 2 and 3 do with messages."""

    kept: list[int]  # beside a summary
    kept_alone: list[int]  # where there is no summary
    dropped: list[int]  # what a summary is made of, beside earlier ones
    summary_room: int  # chars that it may have
    cut: dict[int, Masked] = field(default_factory=dict)  # of the task
    task_stays: bool = False


def published(facts: Facts) -> Keeping:
    """The keep set; without a summary the first user message and earlier summaries too."""
    earlier = facts.earlier_summaries
    start = facts.window_start
    kept, alone = keep_set(facts, start, without=earlier), keep_set(facts, start).union(earlier)
    if facts.task is not None:
        alone.add(facts.task.index)
    dropped = set(range(len(facts.outline.messages))).difference(kept, earlier)
    return Keeping(sorted(kept), sorted(alone), sorted(dropped), facts.policy.summary_max_chars)


def keep_set(facts: Facts, start: int, without: Iterable[int] = ()) -> set[int]:
    """System messages, those from `start` on, and what belongs to them, again and again; but none of `without`."""
    messages = facts.outline.messages
    seeds = [message.index for message in messages if message.is_system or message.index >= start]
    return _joined(_bonds(facts), seeds, set(without))


def units(facts: Facts, without: Iterable[int]) -> list[set[int]]:
    """All other messages, those together that belong together, by their last messages, the newest first."""
    bonds, seen, found = _bonds(facts), set(without), []
    for message in reversed(facts.outline.messages):
        unit = _joined(bonds, [message.index], seen)
        if unit:
            found.append(unit)
            seen |= unit
    return found


def _bonds(facts: Facts) -> _Bonds:
    """To a message belong its whole run, and the other halves of its pairs: providers refuse a part of one answer."""
    messages, bonds = facts.outline.messages, defaultdict(list)
    pairs = zip(facts.outline.results, facts.pairs.call_of, strict=True)
    together = [(result.message, call.message) for result, call in pairs if call is not None]
    for one, other in pairwise(messages):
        if one.is_agent_made and other.is_agent_made:
            together.append((one.index, other.index))
    for this, that in together:
        bonds[this].append(that)
        bonds[that].append(this)
    return bonds


def _joined(bonds: _Bonds, seeds: Iterable[int], refused: Collection[int]) -> set[int]:
    """These messages, and what belongs to them, again and again."""
    found: set[int] = set()
    waiting = list(seeds)
    while waiting:
        index = waiting.pop()
        if index not in found and index not in refused:
            found.add(index)
            waiting += bonds.get(index, ())
    return found
