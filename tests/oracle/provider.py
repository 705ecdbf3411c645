"""What a policy knows of a provider's prompt cache."""

from __future__ import annotations

from typing import NamedTuple


class ProviderCache(NamedTuple):
    """What the rule of the boundary assumes of a provider's prompt cache."""

    rule: str
    min_tokens: int
    step_tokens: int
    lookback_blocks: int  # a mark finds an entry at one of this many blocks, its own the last of them
    most_marks: int  # in a request
    system_chars: int  # of system prompt and tools at most, where they have no entry of their own; else 0
    shares_prefixes: bool  # with entries: what two requests share is an entry as well

    @property
    def min_chars(self) -> int:
        """The least chars of an entry."""
        return 4 * self.min_tokens

    @property
    def step_rest_chars(self) -> int:
        """What whole steps may leave of a prefix."""
        return max(0, 4 * self.step_tokens - 1)
