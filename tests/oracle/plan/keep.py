"""The keep set, which stages 2 and 3 never drop; and units, which are kept or dropped as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from oracle.placeholder import Masked
from oracle.plan.facts import Facts
from oracle.plan.window import window_start
from oracle.summary import earlier_summaries, user_messages

_Bonds = Mapping[int, list[int]]


class Keeping(NamedTuple):
    """The messages that stages 2 and 3 keep and drop."""

    kept: list[int]  # with a summary
    kept_alone: list[int]  # without a summary
    dropped: list[int]  # to be summarized, without earlier summaries
    summary_room: int  # its maximum chars
    cut: Mapping[int, Masked] = {}  # of the task
    task_stays: bool = False


def published(facts: Facts) -> Keeping:
    """The keep set; without a summary the first user message and earlier summaries too."""
    earlier, start, task = earlier_summaries(facts.outline), window_start(facts), user_messages(facts.outline)[:1]
    kept = keep_set(facts, start, without=earlier)
    alone = keep_set(facts, start).union(earlier, [message.index for message in task])
    dropped = set(range(len(facts.outline.messages))).difference(kept, earlier)
    return Keeping(sorted(kept), sorted(alone), sorted(dropped), facts.policy.summary_max_chars)


def keep_set(facts: Facts, start: int, without: Iterable[int] = ()) -> set[int]:
    """The closure of system messages, the newest compaction and those from `start` on, in a session of open calls."""
    messages = facts.outline.messages
    seeds = [message.index for message in messages if message.is_system or message.index >= start]
    seeds += [message.index for message in messages if message.is_compaction][-1:]
    if facts.policy.is_session:
        seeds += [call.message for call in facts.outline.calls if facts.pairs.is_open[call.index]]
    return _joined(_bonds(facts), seeds, set(without))


def units(facts: Facts, without: Iterable[int]) -> list[set[int]]:
    """All other messages in units, by their last messages, newest first."""
    bonds, seen, found = _bonds(facts), set(without), []
    for message in reversed(facts.outline.messages):
        unit = _joined(bonds, [message.index], seen)
        if unit:
            found.append(unit)
            seen |= unit
    return found


def _bonds(facts: Facts) -> _Bonds:
    """A message is tied to its whole run, and to the other halves of its pairs: providers refuse partial answers."""
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
    """The closure of these messages."""
    found: set[int] = set()
    waiting = list(seeds)
    while waiting:
        index = waiting.pop()
        if index not in found and index not in refused:
            found.add(index)
            waiting += bonds.get(index, ())
    return found
