"""Token counts of a request, under the names of every provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["LoggedUsage", "reports_cache", "usage_of"]

_MOST_TOKENS = 1 << 53
_DETAILS = ("prompt_tokens_details", "input_tokens_details")


class LoggedUsage(NamedTuple):
    """The tokens of one request, as the provider counted them.

    Attributes:
        input_tokens: input neither read from the cache nor written to it.
        cached_tokens: input read from the cache.
        written_tokens: input written to the cache of five minutes, or whose time to live the log omits.
        written_1h_tokens: input written to the cache of one hour.
        output_tokens: the answer, with its reasoning.

    Example:
        >>> from recede.transcripts import LoggedUsage
        >>> LoggedUsage(3, 20_000, 400, 0, 95).sent_tokens
        20403
    """

    input_tokens: int
    cached_tokens: int
    written_tokens: int
    written_1h_tokens: int
    output_tokens: int

    @property
    def sent_tokens(self) -> int:
        """The sum of the input tokens."""
        return sum(self[:4])


def usage_of(value: Any, note: Callable[[str], None]) -> LoggedUsage | None:
    """Read the usage of Anthropic, Chat Completions or Responses; None for any other value, and for zeros."""
    if value is None:
        return None
    if not isinstance(value, dict):
        note("usage of wrong type ignored")
        return None

    def tokens(*names: str) -> int:
        for name in names:
            outer, _, inner = name.rpartition(".")
            holder = value.get(outer) if outer else value
            found = holder.get(inner) if isinstance(holder, dict) else None
            if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= _MOST_TOKENS:
                return found
            if found is not None:
                note("token count of wrong type ignored")
        return 0

    cached = tokens(
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "cached_input_tokens",
        "input_tokens_cache_read",
    ) or tokens("cache_read_input_tokens")
    written = tokens("cache_creation_input_tokens", "input_tokens_cache_write")
    written_1h = min(tokens("cache_creation.ephemeral_1h_input_tokens"), written)
    plain = tokens("prompt_tokens", "input_tokens")
    # Anthropic counts tokens of the cache apart from the input; all others count them in.
    if "prompt_tokens" in value or not ("cache_read_input_tokens" in value or "cache_creation_input_tokens" in value):
        plain = max(0, plain - cached - written)
    usage = LoggedUsage(plain, cached, written - written_1h, written_1h, tokens("completion_tokens", "output_tokens"))
    return usage if any(usage) else None


def reports_cache(value: dict[str, Any]) -> bool:
    """Whether a usage says how much was read from the cache, even if that is zero."""
    details = [value.get(name) for name in _DETAILS]
    counts = [detail.get("cached_tokens") for detail in details if isinstance(detail, dict)]
    return any(count is not None for count in (*counts, value.get("cache_read_input_tokens")))
