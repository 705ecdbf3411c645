"""The rule by which a provider's prompt cache serves requests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from recede._errors import meant, one_of
from recede.costs._prices import Prices
from recede.providers import OF_FORMATS, PROVIDERS, cache_rule
from recede.reduction._kinds import CHARS_PER_TOKEN

_RULES = ("breakpoints", "prefix", "ideal")
_CEILING = 1 << 60
_ANTHROPIC = PROVIDERS["anthropic"]


class Cache(NamedTuple):
    """A provider's prompt cache. The default is Anthropic's cache of five minutes.

    The shortest prompt that is cached depends on the model, so it is with the prices: `Prices.min_cached_tokens`.

    Attributes:
        rule: where the cache has entries.

            - ``"breakpoints"``: only where an earlier request had a cache breakpoint (`cache_control`). Clients mark
              the system prompt, the newest message and the newest message of the request before. A request reads the
              longest entry that ends at one of its own breakpoints or few blocks before it.
            - ``"prefix"``: everywhere; a request reads what it shares with the beginning of the request before, in
              steps of `step_tokens`.
            - ``"ideal"``: the same without steps; entries live forever.
        ttl_seconds: how long an entry lives after its last use.
        step_tokens: with ``"prefix"``, the steps in which prefixes are served; 0: any length.
        lookback_blocks: with ``"breakpoints"``, how many content blocks before a breakpoint are searched for an entry,
            the marked one included.

    Example:
        >>> import recede
        >>> recede.costs.Cache()
        Cache(rule='breakpoints', ttl_seconds=300.0, step_tokens=0, lookback_blocks=20)
        >>> recede.costs.CACHES["openai"]
        Cache(rule='prefix', ttl_seconds=300.0, step_tokens=128, lookback_blocks=20)
    """

    rule: str = cache_rule(_ANTHROPIC)
    ttl_seconds: float = float(_ANTHROPIC.ttl_seconds)
    step_tokens: int = _ANTHROPIC.step_tokens
    lookback_blocks: int = _ANTHROPIC.lookback_blocks

    def checked(self) -> Cache:
        """Return this cache if its rule exists and each number is from 0; raise an error that names what is wrong."""
        if self.rule not in _RULES:
            raise ValueError(f"the rule of a cache must be one of {', '.join(_RULES)}, not {self.rule!r}")
        for name, number in zip(self._fields[1:], self[1:], strict=True):
            kinds = (int, float) if name == "ttl_seconds" else (int,)
            if isinstance(number, bool) or not isinstance(number, kinds):
                raise TypeError(f"{name} of a cache must be a number, not {type(number).__name__}")
            if not number >= 0:
                raise ValueError(f"{name} of a cache must be a number from 0, not {number}")
        return self


CACHES = {
    name: Cache(cache_rule(one), float(one.ttl_seconds), one.step_tokens, one.lookback_blocks)
    for name, one in PROVIDERS.items()
    if one.cache != "none"
}
"""Prompt caches by provider; ``"ideal"`` serves whatever prefix a request shares."""


def cache_of_format(format: str) -> Cache:
    """Guess the prompt cache that served sessions of a format.

    Args:
        format: a name in `recede.transcripts.FORMATS`.

    Returns:
        OpenAI's for Codex, Gemini's for the Gemini CLI, Anthropic's for all others.

    Raises:
        Nothing: an unknown format has Anthropic's.

    Example:
        >>> from recede.costs import cache_of_format
        >>> cache_of_format("codex").rule, cache_of_format("claude_code").rule
        ('prefix', 'breakpoints')
    """
    return CACHES[OF_FORMATS.get(format, "anthropic")]


class CacheFacts(NamedTuple):
    rule: str
    min_tokens: int
    step_tokens: int
    lookback_blocks: int
    ttl_seconds: float
    chars_per_token: float
    system_chars: int
    input_price: float
    times: list[tuple[int, float]]

    def cold_requests(self) -> list[int]:
        """Find requests after a pause longer than a cache entry lives, as numbers of earlier messages."""
        pairs = pairwise(self.times)
        return [messages for (_, before), (messages, now) in pairs if now - before > self.ttl_seconds]


def named_cache(cache: Cache | str) -> Cache:
    if isinstance(cache, str):
        if cache not in CACHES:
            raise ValueError(f"there is no cache {cache!r}{meant(cache, CACHES) or one_of(CACHES)}")
        return CACHES[cache]
    if not isinstance(cache, Cache):
        raise TypeError(f"cache must be recede.costs.Cache or its name, not {type(cache).__name__}")
    return cache.checked()


def cache_facts(
    cache: Cache,
    prices: Prices,
    times: Mapping[int, float] | None,
    system_chars: int,
    chars_per_token: float = CHARS_PER_TOKEN,
) -> CacheFacts:
    found = sorted((times or {}).items())
    for messages, seconds in found:
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not math.isfinite(seconds):
            raise TypeError(f"times must be finite numbers of seconds, not {seconds!r} after {messages} messages")
    rule, ttl_seconds, step_tokens, lookback_blocks = cache
    return CacheFacts(
        rule="breakpoints" if rule == "breakpoints" else "prefix",
        min_tokens=int(min(prices.min_cached_tokens, _CEILING)),
        step_tokens=0 if rule == "ideal" else min(step_tokens, _CEILING),
        lookback_blocks=min(lookback_blocks, _CEILING),
        ttl_seconds=float(ttl_seconds),
        chars_per_token=chars_per_token,
        system_chars=min(system_chars, _CEILING),
        input_price=float(prices.input),
        times=[(messages, float(seconds)) for messages, seconds in found],
    )
