"""The keep set: what the stages that drop messages never drop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from recede._pure.plan.facts import Facts


def keep_set(facts: Facts, without: Iterable[int] = ()) -> set[int]:
    """System messages, the window, and what belongs to them, again and again; but none of `without`.

    To a message belong its whole run, and the other halves of its pairs: providers refuse a part of one answer.
    """
    messages, run_of = facts.outline.messages, facts.runs.begun
    mates = defaultdict(list)
    for result, call in zip(facts.outline.results, facts.pairs.call_of, strict=True):
        if call is not None:
            mates[result.message].append(call.message)
            mates[call.message].append(result.message)
    runs = defaultdict(list)
    for message in messages:
        if message.is_agent_made:
            runs[run_of[message.index]].append(message.index)

    refused = set(without)
    kept: set[int] = set()
    waiting = [message.index for message in messages if message.is_system or message.index >= facts.window_start]
    while waiting:
        index = waiting.pop()
        if index in kept or index in refused:
            continue
        kept.add(index)
        waiting += mates.pop(index, ())
        if messages[index].is_agent_made:
            waiting += runs.pop(run_of[index], ())
    return kept
