"""Token counts of a request, under the names of every provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

_MOST_TOKENS = 1 << 53
_MOST_NAME_CHARS = 60
_LEAST_CHARS_PER_TOKEN = 2  # of a prompt and tools: more tokens than that they do not have
_USUAL_TIERS = frozenset(["auto", "default", "standard"])
IN_ONE_REGION = "us"
"""What the tier of a request ends with that was served in one region alone."""


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


def shows_cache(usage: LoggedUsage, around_chars: int) -> bool:
    """Whether more was read from the cache than a system prompt and tools of `around_chars` can have."""
    return usage.cached_tokens > around_chars / _LEAST_CHARS_PER_TOKEN


class Beside(NamedTuple):
    """Tokens that a request was billed beside those of its answer.

    Example:
        >>> from recede.transcripts import Beside, LoggedUsage
        >>> Beside("advisor_message", "claude-opus-4-7", LoggedUsage(100_000, 0, 0, 0, 4_000)).usage.sent_tokens
        100000
    """

    kind: str  # what for, such as "advisor_message" or "compaction"
    model: str | None  # None: that of the answer
    usage: LoggedUsage


# The names of each count, with the object that holds it before a dot. OpenAI: Chat Completions, Responses, Codex,
# Realtime; what routers add to them; traces; Converse; DeepSeek, Kimi, Mistral, Qwen, Cohere, the SDK of xAI; Vercel's
# AI SDK, LangChain, Pydantic AI; what Amp and the totals of Claude Code call Anthropic's.
_CACHED = (
    "prompt_tokens_details.cached_tokens",
    "input_tokens_details.cached_tokens",
    "cached_input_tokens",
    "input_tokens_cache_read",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "num_cached_tokens",
    "cached_prompt_text_tokens",
    "cachedInputTokens",
    "inputTokenDetails.cacheReadTokens",
    "input_token_details.cache_read",
    "input_token_details.cached_tokens",
    "cache_read_tokens",
)
_CACHED_APART = ("cache_read_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount")
_WRITTEN = (
    "prompt_tokens_details.cache_write_tokens",
    "input_tokens_details.cache_write_tokens",
    "cache_write_input_tokens",
    "prompt_tokens_details.cache_creation_tokens",
    "prompt_tokens_details.cache_creation_input_tokens",
    "input_tokens_cache_write",
    "inputTokenDetails.cacheWriteTokens",
    "input_token_details.cache_creation",
    "cache_write_tokens",
)
_WRITTEN_APART = (
    "cache_creation_input_tokens",
    "cacheWriteInputTokens",
    "cacheCreationInputTokens",
    "cacheWriteInputTokenCount",
)
# Writes by their time to live: five minutes, one hour. Qwen has them in the details of the input, or names the time.
_OF_QWEN = tuple(f"{details}_tokens_details.cache_creation" for details in ("prompt", "input"))
_HOUR_OF_QWEN = tuple(f"{details}_tokens_details.cache_type" for details in ("prompt", "input"))
_WRITTEN_FOR = tuple(
    tuple(f"{holder}.ephemeral_{time}_input_tokens" for holder in ("cache_creation", "input_token_details", *_OF_QWEN))
    for time in ("5m", "1h")
)
# What Gemini's own library calls its counts, and its other APIs: Live, Interactions.
_GEMINI = {
    "prompt_token_count": "promptTokenCount",
    "total_input_tokens": "promptTokenCount",
    "tool_use_prompt_token_count": "toolUsePromptTokenCount",
    "total_tool_use_tokens": "toolUsePromptTokenCount",
    "cached_content_token_count": "cachedContentTokenCount",
    "total_cached_tokens": "cachedContentTokenCount",
    "candidates_token_count": "candidatesTokenCount",
    "responseTokenCount": "candidatesTokenCount",
    "response_token_count": "candidatesTokenCount",
    "total_output_tokens": "candidatesTokenCount",
    "thoughts_token_count": "thoughtsTokenCount",
    "total_thought_tokens": "thoughtsTokenCount",
}
_CACHED_OF_GEMINI = ("cachedContentTokenCount", "cached_content_token_count", "total_cached_tokens")
_INPUT = ("prompt_tokens", "input_tokens", "inputTokens", "tokens.input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens", "outputTokens", "tokens.output_tokens")
_REASONING = (
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
    "reasoning_tokens",
)
# Sums of others, and parts of them.
_NOT_ADDED = frozenset(
    """audio_tokens inputTokenDetails.noCacheTokens prompt_cache_miss_tokens prompt_image_tokens prompt_text_tokens
    reasoningTokens reasoning_output_tokens reasoning_tokens totalInputTokens totalTokenCount totalTokens
    total_token_count total_tokens""".split()
)
_APART = frozenset([*_CACHED_APART, *_WRITTEN_APART, "cache_creation"])
_OF_GEMINI = frozenset([*_GEMINI, *_GEMINI.values()])
_OF_CACHE = (*_CACHED, *_CACHED_APART, *_WRITTEN, *_WRITTEN_APART, *_WRITTEN_FOR[0], *_WRITTEN_FOR[1])
_ADDED = frozenset([*_OF_CACHE, *_INPUT, *_OUTPUT, *_OF_GEMINI])
_OF_OUTPUT = tuple(name.partition(".")[0] + "." for name in _REASONING)
_OF_INPUT = frozenset(name.partition(".")[0] for name in _ADDED if "." in name)
_HOLDERS = _OF_INPUT | {name.rstrip(".") for name in _OF_OUTPUT}
_MEDIA = ("audio_tokens", "image_tokens", "text_tokens", "video_tokens")
_KNOWN = _ADDED | _NOT_ADDED | _OF_INPUT | {f"{holder}.{kind}" for holder in _OF_INPUT for kind in _MEDIA}


def usage_of(value: Any, note: Callable[[str], None]) -> LoggedUsage | None:
    """Read the usage of any provider; None for any other value, and for zeros."""
    if value is None:
        return None
    if not isinstance(value, dict):
        note("usage of wrong type ignored")
        return None
    tools = value.get("server_tool_use")
    if isinstance(tools, dict) and tools.get("web_search_requests"):
        note("web searches are not counted: they are billed apart from tokens")
    counts = _flat(value)
    for name, held in counts.items():
        is_of_output = name.startswith(_OF_OUTPUT)  # a part of it
        if name not in _KNOWN and type(held) is int and held > 0 and "token" in name.lower() and not is_of_output:
            note(f"tokens of the unknown kind {name[:_MOST_NAME_CHARS]!r} are not counted")
    if not _OF_GEMINI.isdisjoint(value):
        value = counts = _of_gemini(value)
    if isinstance(details := value.get("cacheDetails"), list):  # of Converse
        rows = [one for one in details if isinstance(one, dict)]
        by_time = {f"ephemeral_{row.get('ttl')}_input_tokens": row.get("inputTokens") for row in rows}
        value = {**value, "cache_creation": by_time}
        counts = _flat(value)

    def tokens(*names: str) -> int:
        """The first count above zero."""
        for name in names:
            if (held := counts.get(name)) is None:
                continue
            count = _whole(held)
            if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _MOST_TOKENS:
                note("token count of wrong type ignored")
            elif count:
                return count
        return 0

    cached, written = tokens(*_CACHED, *_CACHED_APART), tokens(*_WRITTEN, *_WRITTEN_APART)
    written_5m, written_1h = (tokens(*names) for names in _WRITTEN_FOR)
    written = written or written_5m + written_1h
    is_for_an_hour = not written_5m + written_1h and any("1h" in str(counts.get(name)) for name in _HOUR_OF_QWEN)
    written_1h = written if is_for_an_hour else min(written_1h, written)
    plain, output = tokens(*_INPUT), tokens(*_OUTPUT)
    if (reasoning := tokens(*_REASONING)) and value.get("total_tokens") == plain + output + reasoning:
        output += reasoning  # xAI counts it apart
    # Anthropic and Converse count tokens of the cache apart from the input; all others count them in.
    if value.get("prompt_tokens") or _APART.isdisjoint(value):
        plain = max(0, plain - cached - written)
    usage = LoggedUsage(plain, cached, written - written_1h, written_1h, output)
    if usage.output_tokens and all(counts.get(name) is None for name in _INPUT):
        note("usage without input tokens")
    if usage.sent_tokens and all(counts.get(name) is None for name in _OUTPUT):
        note("usage without output tokens")
    return usage if any(usage) else None


def _flat(value: dict[str, Any]) -> dict[str, Any]:
    """What a usage has, by name; what an object in it has, by the names of both."""
    flat: dict[str, Any] = {}
    for name, held in value.items():
        if name not in _HOLDERS or not isinstance(held, dict):
            flat[name] = held
            continue
        for inner, count in held.items():
            within = count.items() if inner == "cache_creation" and isinstance(count, dict) else ()
            flat |= {f"{name}.{inner}.{kind}": number for kind, number in within}
            if not within:
                flat[f"{name}.{inner}"] = count
    return flat


def _whole(count: Any) -> Any:
    """A count that a table of numbers made a float as an integer again."""
    return int(count) if isinstance(count, float) and count.is_integer() else count


def _of_gemini(value: dict[str, Any]) -> dict[str, Any]:
    """Gemini's counts under the names of Responses: what its tools read is input, and what it thought is output."""

    def total(*names: str) -> Any:
        counts = [_whole(value[name]) for name in names if value.get(name) is not None]
        return sum(counts) if all(type(count) is int and count >= 0 for count in counts) else counts[-1]

    value = {_GEMINI.get(name, name): count for name, count in value.items()}
    return {
        "input_tokens": total("promptTokenCount", "toolUsePromptTokenCount") or None,
        "cached_input_tokens": value.get("cachedContentTokenCount"),
        "output_tokens": total("candidatesTokenCount", "thoughtsTokenCount"),
    }


def beside_of(value: Any, note: Callable[[str], None]) -> list[Beside]:
    """The tokens outside of a usage's sums: Anthropic lists the iterations of a request, and adds up its messages."""
    listed = value.get("iterations") if isinstance(value, dict) else None
    found = []
    for one in listed if isinstance(listed, list) else []:
        kind = one.get("type") if isinstance(one, dict) else None
        if isinstance(kind, str) and kind != "message" and (usage := usage_of(one, note)) is not None:
            model = one.get("model")
            found.append(Beside(kind, model if isinstance(model, str) else None, usage))
    return found


def tier_of(value: Any) -> str | None:
    """How a request was served, if that has a price of its own, such as ``"fast"``, ``"priority"`` or ``"fast us"``."""
    if not isinstance(value, dict):
        return None
    found = [value.get(name) for name in ("speed", "service_tier")]
    tier = next((tier for tier in found if isinstance(tier, str) and tier and tier not in _USUAL_TIERS), None)
    where = IN_ONE_REGION if value.get("inference_geo") == IN_ONE_REGION else None
    return " ".join(filter(None, (tier, where))) or None


def reports_cache(value: dict[str, Any]) -> bool:
    """Whether a usage says how much was read from the cache, even if that is zero."""
    counts = _flat(value)
    return any(counts.get(name) is not None for name in (*_CACHED, *_CACHED_APART, *_CACHED_OF_GEMINI))
