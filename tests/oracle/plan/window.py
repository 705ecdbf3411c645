"""The window: which messages and observations stay raw."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence

from oracle.patterns import matches
from oracle.plan.facts import Facts


def window_start(facts: Facts, messages: int | None = None) -> int:
    """The first message of the window of the first messages, the union of all measures."""
    policy, end = facts.policy, len(facts.outline.messages) if messages is None else messages
    measures = (
        (policy.keep_messages, _spoken(facts)),
        (policy.keep_turns, facts.runs.starts),
        (policy.keep_results, [result.message for result in facts.outline.results]),
    )
    starts = []
    for count, places in measures:
        here = [place for place in places if place < end]
        if count:
            starts.append(here[-count] if count < len(here) else 0)
    return min([*starts, *(facts.outline.results[place].message for place in unseen(facts, end))], default=end)


def unseen(facts: Facts, messages: int | None = None) -> list[int]:
    """The observations of the first messages that no request has shown, which stay raw: those after the last answer."""
    end = len(facts.outline.messages) if messages is None else messages
    ages = zip(shown_at(facts), facts.outline.results, strict=True)
    return [place for place, (age, result) in enumerate(ages) if age > end > result.message]


def shown_at(facts: Facts) -> list[float]:
    """For each observation, the number of messages at which the model has answered it; 0 if that does not count."""
    holders = [result.message for result in facts.outline.results]
    if facts.policy.masks_unseen:
        return [0] * len(holders)
    answers = [message.index for message in facts.outline.messages if message.is_agent_made]
    return [_after(answers, bisect_left(answers, message), 1, message) for message in holders]


def _spoken(facts: Facts) -> list[int]:
    return [message.index for message in facts.outline.messages if not message.is_system]


def ages_of(facts: Facts) -> list[float]:
    """For each observation, the number of messages at which it leaves the window."""
    return list(map(max, _ages_in_window(facts), shown_at(facts)))


def _ages_in_window(facts: Facts) -> list[float]:
    policy, starts, spoken = facts.policy, facts.runs.starts, _spoken(facts)
    holders = [result.message for result in facts.outline.results]
    pattern_of, windows = matches(facts.tools, tuple(dict(policy.keep_by_tool))), dict(policy.keep_by_tool)
    of_tool: dict[str | None, list[int]] = defaultdict(list)
    for tool, message in zip(facts.tools, holders, strict=True):
        of_tool[tool].append(message)
    seen: Counter[str | None] = Counter()
    ages: list[float] = []
    for place, (tool, message) in enumerate(zip(facts.tools, holders, strict=True)):
        seen[tool] += 1
        if tool in pattern_of:
            ages.append(_after(of_tool[tool], seen[tool], windows[pattern_of[tool]], message))
            continue
        age: float = message + 1
        if policy.keep_messages is not None:
            age = max(age, _after(spoken, bisect_left(spoken, message + 1), policy.keep_messages, message))
        if policy.keep_turns:
            # With at most N turns, all of them are in the window.
            of_all = _after(starts, 0, policy.keep_turns + 1, message)
            age = max(age, of_all, _after(starts, bisect_left(starts, message + 1), policy.keep_turns, message))
        if policy.keep_results is not None:
            age = max(age, _after(holders, place + 1, policy.keep_results, message))
        ages.append(age)
    return ages


def _after(places: Sequence[int], first: int, count: int | None, message: int) -> float:
    """The number of messages up to the `count`-th of these places from `first` on; None is never reached."""
    if count == 0:
        return message + 1
    last = len(places) if count is None else first + count - 1
    return places[last] + 1 if last < len(places) else math.inf


def older_than_window(facts: Facts) -> list[bool]:
    """Whether no measure keeps an observation, for each."""
    return [age <= len(facts.outline.messages) for age in ages_of(facts)]
