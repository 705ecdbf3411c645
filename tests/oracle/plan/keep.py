"""The keep set, which stages 2 and 3 never drop; and units, which are kept or dropped as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from oracle.plan.facts import Facts
from oracle.plan.window import window_start
from oracle.summary import alternates, earlier_summaries, leading_system_messages, user_messages

_Bonds = Mapping[int, list[int]]
Ties = Collection[set[int]]
"""Messages that are kept together besides those of a pair."""


class Keeping(NamedTuple):
    """The messages that stages 2 and 3 keep and drop."""

    kept: list[int]  # with a summary
    kept_alone: list[int]  # without a summary
    dropped: list[int]  # to be summarized, without earlier summaries
    summary_room: int  # its maximum chars


def published(facts: Facts) -> Keeping:
    """The keep set; without a summary the first user message and earlier summaries too."""
    earlier, start, task = earlier_summaries(facts.outline), window_start(facts), user_messages(facts.outline)[:1]
    kept = keep_set(facts, start, without=earlier)
    alone = keep_set(facts, start).union(earlier, [message.index for message in task])
    dropped = set(range(len(facts.outline.messages))).difference(kept, earlier)
    return Keeping(sorted(kept), sorted(alone), sorted(dropped), facts.policy.summary_max_chars)


def keep_set(
    facts: Facts, start: int, without: Iterable[int] = (), end: int | None = None, ties: Ties = ()
) -> set[int]:
    """The closure of system messages, the newest compaction, those from `start` on, and with a limit of open calls.

    Definitions of tools are kept too, and what is of no known shape.
    """
    messages = facts.outline.messages[:end]
    refused = set(without)
    seeds = [message.index for message in messages if message.is_system or message.index >= start]
    seeds += [message.index for message in messages if message.is_compaction][-1:]
    seeds += [message.index for message in messages if message.is_never_hidden]
    if facts.policy.is_limit:
        is_open = open_calls(facts, len(messages))
        seeds += [call.message for call in facts.outline.calls if is_open[call.index]]
        seeds += open_halves(facts, len(messages))
    return joined(facts, [seed for seed in seeds if seed not in refused], refused, end, ties)


def open_calls(facts: Facts, end: int) -> list[bool]:
    """Whether each call of the first messages is open, as `Pairs` has it for them alone."""
    from oracle.pairs import Pairs
    from oracle.turns import Turns

    first = facts.outline.beginning(end)
    pairs = Pairs(first, Turns(first))
    answered = {call.index for call in pairs.call_of if call is not None}
    count = len(first.calls)
    of_first = [pairs.is_open[index] and index not in answered for index in range(count)]
    return of_first + [False] * (len(facts.outline.calls) - count)


def open_halves(facts: Facts, end: int) -> list[int]:
    """The messages with the use of a tool of the provider whose result may still come."""
    from oracle.pairs import Pairs, _tail
    from oracle.turns import Turns

    first = facts.outline.beginning(end)
    turns, tail = Turns(first), _tail([message.results for message in first.messages])
    alone = [half.message for half in Pairs(first, turns).alone if not half.is_result]
    return [message for message in alone if turns.ends[message] + 1 >= tail]


def units(facts: Facts, without: Iterable[int], end: int | None = None, ties: Ties = ()) -> list[set[int]]:
    """All other messages in units, by their last messages, newest first."""
    seen, found = set(without), []
    for message in reversed(facts.outline.messages[:end]):
        unit = joined(facts, [message.index], seen, end, ties) if message.index not in seen else set()
        if unit:
            found.append(unit)
            seen |= unit
    return found


def joined(
    facts: Facts, seeds: Iterable[int], refused: Collection[int], end: int | None = None, ties: Ties = ()
) -> set[int]:
    """The closure of these messages, of the first ones."""
    last = len(facts.outline.messages) if end is None else end
    return set(_joined(_bonds(facts, ties, last), seeds, refused))


def _bonds(facts: Facts, ties: Ties, end: int) -> _Bonds:
    """A message is tied to its whole run, and to the other halves of its pairs: providers refuse partial answers.

    What refers to a result is tied to it, and where roles must alternate a message of the user to the one before it.
    """
    messages, bonds = facts.outline.messages[:end], defaultdict(list)
    is_strict = facts.policy.is_limit and alternates(facts.outline)
    pairs = zip(facts.outline.results, facts.pairs.call_of, strict=True)
    together = [(result.message, call.message) for result, call in pairs if call is not None]
    together += facts.pairs.links
    for one, other in pairwise(messages):
        if one.is_agent_made and other.is_agent_made:
            together.append((one.index, other.index))
        if is_strict and one.is_agent_made and other.role == "user":
            together.append((one.index, other.index))
    together += [(one, other) for tied in ties for one in tied for other in tied if one < other]
    systems = [one.index for one in messages[leading_system_messages(facts.outline) :] if one.is_system]
    inside = min(systems, default=end) if facts.policy.is_limit else end
    for one, other in pairwise(messages):
        if other.is_said and other.index > inside and not one.is_agent_made and not one.is_system:
            bonds[other.index].append(one.index)
    for this, that in together:
        if this >= end or that >= end:
            continue
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
