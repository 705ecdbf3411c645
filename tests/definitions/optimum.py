"""The least that any boundary with the same window could have cost, knowing the future.

A dynamic program over the requests; a state is how many of the observations that can be masked are masked.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from recede._pure.plan.boundary import ages_of
from recede._pure.plan.facts import Facts
from recede._pure.plan.mask import exempt
from recede.reduction._report import SentView


class Views:
    """What masking makes of a history, by how many observations are masked."""

    def __init__(self, facts: Facts) -> None:
        results, is_exempt, ages = facts.outline.results, exempt(facts), ages_of(facts)
        self.before = [0]
        for message in facts.outline.messages:
            self.before.append(self.before[-1] + message.chars(facts.policy.image_chars))
        self.removed, self.messages, self.ages = [0], [], []
        for result in results:
            masked = None if is_exempt[result.index] else facts.mask(result)
            if masked is not None:
                self.messages.append(result.message)
                self.ages.append(ages[result.index])
                self.removed.append(self.removed[-1] + facts.observation_chars[result.index] - masked.chars)

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


def replay_optimum(facts: Facts, ends: list[int], read: float, write: float) -> list[SentView]:
    """What each request sends under the boundary that costs least."""
    views = Views(facts)
    sent: list[SentView] = []
    counts = _cheapest(views, ends, read, write)
    for request, (end, masked) in enumerate(zip(ends, counts, strict=True)):
        cached = 0
        if request:
            before, fewer = ends[request - 1], counts[request - 1]
            cached = views.chars(before, fewer) if fewer == masked else views.same(before, fewer)
        sent.append(SentView(views.chars(end, masked), cached, masked, 0, 0, 0))
    return sent


def _cheapest(views: Views, ends: list[int], read: float, write: float) -> list[int]:
    """How many observations are masked at each request."""
    costs: list[float] = []  # the least so far, by how many are masked
    came_from: list[list[int]] = []  # of each request, by how many are masked: how many were at the one before
    for request, end in enumerate(ends):
        now, origins = [], []
        best, origin = math.inf, 0  # of all that can be moved from to here
        for masked in range(views.older(end) + 1):
            written = write * views.chars(end, masked)
            if not request:
                now.append(written)
                origins.append(0)
                continue
            before = ends[request - 1]
            if 0 < masked <= len(costs):
                moved = costs[masked - 1] - (write - read) * views.same(before, masked - 1)
                if moved < best:
                    best, origin = moved, masked - 1
            stayed = math.inf
            if masked < len(costs):
                stayed = costs[masked] - (write - read) * views.chars(before, masked) + written
            now.append(min(stayed, best + written))
            origins.append(masked if stayed <= best + written else origin)
        costs = now
        came_from.append(origins)
    masked = costs.index(min(costs)) if costs else 0
    counts = []
    for origins in reversed(came_from):
        counts.append(masked)
        masked = origins[masked]
    return counts[::-1]
