"""What a log says of the requests of a session: their tokens, model and time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, NamedTuple

__all__ = ["Compaction", "LoggedRequest", "LoggedUsage", "time_of", "usage_of"]

_MOST_TOKENS = 1 << 53


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
        """All input tokens."""
        return sum(self[:4])


class LoggedRequest(NamedTuple):
    """One request to a model, as the log of its session has it.

    Attributes:
        messages: the number of messages before its answer.
        model: the model, as the log names it.
        time: when the first record of its answer was written, in Unix seconds; UTC if the log names no time zone.
        usage: its tokens; None if the log omits them.

    Example:
        >>> from recede import transcripts
        >>> session = b'{"sessionId": "1", "messages": [{"type": "gemini", "model": "g", "tokens": {"input": 9}}]}'
        >>> [request] = transcripts.read(session).requests
        >>> request.model, request.usage.sent_tokens
        ('g', 9)
    """

    messages: int
    model: str | None
    time: float | None
    usage: LoggedUsage | None


class Compaction(NamedTuple):
    """A place where the agent replaced the history by something shorter.

    Attributes:
        messages: the number of messages before it, which the model no longer saw.
        shown: what it saw in their place, unless that follows as messages of the history.

    Example:
        >>> from recede.transcripts import Compaction
        >>> Compaction(40, [{"role": "user", "content": "So far: ..."}]).messages
        40
    """

    messages: int
    shown: list[dict[str, Any]]


def usage_of(value: Any, note: Callable[[str], None]) -> LoggedUsage | None:
    """The usage in an object of Anthropic, Chat Completions or Responses; None for any other value, and for zeros."""
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


def time_of(value: Any) -> float | None:
    """Unix seconds of an ISO time or a number of seconds; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if 0 <= value < 1e11 else None
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value.replace("Z", "+00:00"))
        return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()
    except (OverflowError, ValueError):
        return None
