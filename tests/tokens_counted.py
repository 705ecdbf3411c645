"""What a door counts of messages, by the oracle."""

from __future__ import annotations

from typing import Any

import oracle
from oracle.plan import Facts
from oracle.walk import walk
from recede.reduction._policy import own_policy


def tokens_of(messages: list[Any], like: list[Any] | None = None, **options: Any) -> float:
    """The tokens of messages, as a door with a limit and these options counts them.

    They are of a history that is `like` another one, which decides what is assumed of the model.
    """
    facts = _facts(messages, options, like)
    return facts.cost(facts.raw) / 4


def reasoning_of(messages: list[Any], **options: Any) -> int:
    """The quarter tokens of the reasoning in them."""
    facts = _facts(messages, options)
    return sum(map(facts.reasoning_cost, facts.raw.kept))


def _facts(messages: list[Any], options: dict[str, Any], like: list[Any] | None = None) -> Facts:
    policy = own_policy(oracle, {"max_input_tokens": 1 << 40, **options}, reduces=True)
    shapes = (message.shape.name for message in walk(like or []).messages if message.shape is not None)
    return Facts(walk(messages), policy.of(shapes), None)
