"""What recorded sessions cost with LangChain's `ClearToolUsesEdit`, by the rule of Anthropic's cache.

`python benches/langchain_cost.py` prints the table of docs/measured.md. Each request starts from the raw history: once
that has more tokens than the trigger, all results but the newest three become `[cleared]`. Tokens are counted as
LangChain's `count_tokens_approximately` does. Sessions and requests are those of benches/headroom_cost.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headroom_cost import Messages, table

from oracle.walk import walk
from recede.designs import mask_observations

TRIGGERS = (100_000, 30_000)


def tokens(message: Any) -> int:
    """The tokens of a message as LangChain approximates them; each result is a message there."""
    [one] = walk([message]).messages
    sizes = [result.text.chars(0) + len(result.id or "") + len("tool") for result in one.results]
    own = one.own_chars(0)
    if own or not sizes:
        role = "assistant" if one.is_agent_made else "user"
        sizes.append(own + sum(len(call.id or "") for call in one.calls) + len(role))
    return sum(math.ceil(size / 4) + 3 for size in sizes)


def cleared(trigger: int) -> Callable[[Messages], Messages]:
    """What a request sends, with this trigger."""
    counted: dict[int, tuple[Any, int]] = {}  # by identity, with the message, which must live

    def view(messages: Messages) -> Messages:
        for message in messages:
            if id(message) not in counted:
                counted[id(message)] = message, tokens(message)
        if sum(counted[id(message)][1] for message in messages) <= trigger:
            return messages
        masked = mask_observations(messages, keep_results=3, boundary="sliding", placeholder="[cleared]")
        return masked.messages  # type: ignore[no-any-return]

    return view


if __name__ == "__main__":
    print(table({f"LangChain, above {trigger:,} tokens": cleared(trigger) for trigger in TRIGGERS}))
