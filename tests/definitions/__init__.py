"""What sessions, managers of turns and replays mean, written to be read: everything is planned again each time.

With the mirror of the reducer these are an engine of their own, which tests hold the core against.
"""

from __future__ import annotations

from typing import Any

from definitions.messages import Messages
from definitions.replays import replay, replay_json
from definitions.turns import Turns
from recede._pure import *  # noqa: F403
from recede._pure import Policy

__all__ = ["Session", "replay", "replay_json"]


def Session(  # noqa: N802
    policy: Policy, *, raw_cost_at_most: int = 0, turns: bool = False, calibrates: bool = False, store: Any = None
) -> Messages | Turns:
    """A session of messages, or of turns; it has no store."""
    assert store is None, "a definition has no store"
    return Turns(policy) if turns else Messages(policy, raw_cost_at_most, calibrates)
