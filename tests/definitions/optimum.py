"""The least that any boundary with the same window could have cost, knowing the future.

A dynamic program over the requests; a state is how many of the observations that can be masked are masked.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from definitions.cache import Sent, is_alive, seconds, seen, stepped, takes
from oracle.placeholder import Masked
from oracle.plan.facts import Facts
from oracle.plan.window import ages_of, exempt


class Views:
    """What masking makes of a history, by how many observations are masked."""

    def __init__(self, facts: Facts) -> None:
        results, is_exempt, ages = facts.outline.results, exempt(facts), ages_of(facts)
        self.before = [0]
        for message in facts.outline.messages:
            self.before.append(self.before[-1] + message.chars(facts.policy.image_chars))
        self.removed, self.messages, self.ages = [0], [], []
        self.masked: list[tuple[int, Masked]] = []
        self.ends: list[int] = []  # the chars up to the end of each, where it is the last one that is masked
        for result in results:
            masked = None if is_exempt[result.index] else facts.mask(result)
            if masked is not None:
                self.messages.append(result.message)
                self.ages.append(ages[result.index])
                self.removed.append(self.removed[-1] + facts.observation_chars[result.index] - masked.chars)
                self.masked.append((result.index, masked))
                later = [one for one in facts.outline.messages[result.message].results if one.index > result.index]
                after = sum(facts.observation_chars[one.index] for one in later)
                self.ends.append(self.before[result.message + 1] - self.removed[-1] - after)

    def older(self, end: int) -> int:
        """How many may be masked at the request after so many messages."""
        return sum(age <= end for age in self.ages)

    def chars(self, end: int, masked: int) -> int:
        """The chars of the view of that request."""
        return self.before[end] - self.removed[masked]

    def same(self, end: int, masked: int) -> int:
        """How many of them stay the same when more is masked at the next request."""
        message = self.messages[masked]
        if message >= end:
            return self.chars(end, masked)
        return self.before[message] - self.removed[bisect_left(self.messages, message)]


class Optimum:
    """A session whose boundary is to be found."""

    def __init__(self, facts: Facts, ends: list[int], cache: Any) -> None:
        self.facts, self.ends, self.cache = facts, ends, cache
        self.views = Views(facts)
        self.blocks = [0]
        for message in facts.outline.messages:
            self.blocks.append(self.blocks[-1] + len(seen(message, {}, 0).blocks))

    def read(self, request: int, before: int, masked: int) -> int:
        """What the cache serves of a request, where so many were masked before it and are masked now."""
        if not request:
            return 0
        views, cache, end = self.views, self.cache, self.ends[request - 1]
        whole = cache.system_chars + views.chars(end, before)
        times = [seconds(cache, self.ends[place]) for place in (request - 1, request)]
        if not is_alive(cache, *times) or not takes(cache, whole):
            return 0
        if masked == before:
            return stepped(cache, whole)
        if cache.rule != "breakpoints":
            return stepped(cache, cache.system_chars + views.same(end, before))
        # Any entry that could exist: of the system prompt, at the boundary, of an earlier request that ended shortly
        # before this one and before the change.
        found = [cache.system_chars]
        if self.facts.policy.pins_boundary and before:
            found.append(cache.system_chars + views.ends[before - 1])
        for earlier in self.ends[:request]:
            is_near = self.blocks[end] - self.blocks[earlier] < cache.lookback_blocks
            if is_near and earlier <= views.messages[before]:
                found.append(cache.system_chars + views.same(earlier, before))
        return max((chars for chars in found if takes(cache, chars)), default=0)

    def cost(self, so_far: float, request: int, before: int, masked: int) -> float:
        """What the requests up to this one cost."""
        _, price_read, price_write = self.facts.policy.boundary
        view = self.cache.system_chars + self.views.chars(self.ends[request], masked)
        if not takes(self.cache, view):
            return so_far + view * self.cache.input_price
        return so_far - self.read(request, before, masked) * (price_write - price_read) + view * price_write

    def counts(self) -> list[int]:
        """How many observations are masked at each request; of equally cheap ones, those that move last."""
        paths: dict[int, tuple[float, list[int]]] = {}
        for request, end in enumerate(self.ends):
            now = {}
            for masked in range(self.views.older(end) + 1):
                origins = [masked, *range(masked)] if request else [0]
                known = [(self.cost(paths[one][0], request, one, masked), one) for one in origins if one in paths]
                if not request:
                    now[masked] = self.cost(0.0, 0, 0, masked), [masked]
                elif known:
                    cost, origin = min(known, key=lambda found: found[0])
                    now[masked] = cost, [*paths[origin][1], masked]
            paths = now
        return min(paths.values(), key=lambda path: path[0])[1] if paths else []


def replay_optimum(facts: Facts, ends: list[int], cache: Any) -> list[Sent]:
    """What each request sends under the boundary that costs least."""
    session = Optimum(facts, ends, cache)
    sent: list[Sent] = []
    before = 0
    for request, (end, masked) in enumerate(zip(ends, session.counts(), strict=True)):
        hidden = dict(session.views.masked[:masked])
        messages = facts.outline.messages[:end]
        view = [seen(message, hidden, facts.policy.image_chars) for message in messages]
        sent.append(Sent(view, end, masked, read=session.read(request, before, masked)))
        before = masked
    return sent
