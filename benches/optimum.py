"""The lower bound of the cost of any boundary with the same window, which knows the future.

A dynamic program over the requests of a session, whose states are the numbers of masked results. A move goes to the
window, since one that goes less far sends more and finds no more in the cache, which is `ideal`: it serves any prefix
that a request shares with the one before. The system prompt alone is long enough to be cached.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

from recede.costs import Prices, replay

SYSTEM_CHARS = 12_000


def least_cost(messages: list[Any], window: int, prices: Prices) -> float:
    """What the requests of a session cost under the cheapest boundary with this window; answers are left out."""
    policies = replay(messages, [f"sliding:window={window}"], cache="ideal", system_chars=SYSTEM_CHARS).policies
    raw, sliding = (one.turns for one in policies)
    # By number of masked results: the characters that are removed, and those of a view that the next move keeps.
    removed = {view.masked_count: whole.view_chars - view.view_chars for whole, view in zip(raw, sliding, strict=True)}
    kept = {before.masked_count: now.cached_chars for before, now in pairwise(sliding)}
    costs, before = {0: 0.0}, None
    for whole, view in zip(raw, sliding, strict=True):
        saved = prices.write - prices.cached  # for each character that the cache serves
        stay = {count: cost - (before - removed[count]) * saved for count, cost in costs.items()} if before else costs
        moves = [cost - kept[count] * saved for count, cost in costs.items() if count < view.masked_count]
        least = min([*moves, stay.get(view.masked_count, inf)])
        costs = {
            count: cost + (whole.view_chars - removed[count]) * prices.write
            for count, cost in {**stay, view.masked_count: least}.items()
        }
        before = whole.view_chars
    return min(costs.values()) / 4e6
