"""The keep set: what the stages that drop messages never drop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from recede._pure.plan.facts import Facts


def keep_set(facts: Facts, without: Iterable[int] = ()) -> set[int]:
    """System messages, the window, and what belongs to them, again and again; but none of `without`.

    To a message belong the other halves of its pairs, and the reasoning of its run.
    """
    messages, run_of = facts.outline.messages, facts.runs.begun
    mates = defaultdict(list)
    for result, call in zip(facts.outline.results, facts.pairs.call_of, strict=True):
        if call is not None:
            mates[result.message].append(call.message)
            mates[call.message].append(result.message)
    reasoning = defaultdict(list)
    for message in messages:
        if message.is_reasoning:
            reasoning[run_of[message.index]].append(message.index)

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
            waiting += reasoning.pop(run_of[index], ())
    return kept
