"""What sessions and replays mean, written to be read: everything is planned again each time.

With the oracle of the reducer these are an engine of their own, which tests hold the core against.
"""

from __future__ import annotations

from typing import Any

from definitions.messages import Messages, numbered_texts
from definitions.replays import quoted, replay, replay_json
from oracle import *  # noqa: F403
from oracle import Policy

__all__ = ["Session", "common_prefix", "quoted", "replay", "replay_json", "texts"]

texts = numbered_texts


def common_prefix(old: list[Any], new: list[Any], same: Any = None) -> tuple[int, list[int]]:
    """How many of the first messages are the same but for cache marks, and which of them differ in these."""
    pairs = list(zip(old, new, strict=False))
    compare = same or (lambda one, other: unmarked(one) == unmarked(other))
    count = next((index for index, (one, other) in enumerate(pairs) if not compare(one, other)), len(pairs))
    return count, [index for index, (one, other) in enumerate(pairs[:count]) if same is None and one != other]


def unmarked(value: Any) -> Any:
    """A message, a block or a part without its cache mark."""
    if not isinstance(value, dict):
        return value
    lists = {name: field for name, field in value.items() if name in ("content", "output") and isinstance(field, list)}
    without = {name: [unmarked(part) for part in parts] for name, parts in lists.items()}
    return {name: without.get(name, field) for name, field in value.items() if name != "cache_control"}


def Session(  # noqa: N802
    policy: Policy, *, raw_cost_at_most: int = 0, calibrates: bool = False, store: Any = None
) -> Messages:
    """A session of messages; it has no store."""
    assert store is None, "a definition has no store"
    return Messages(policy, raw_cost_at_most, calibrates)
