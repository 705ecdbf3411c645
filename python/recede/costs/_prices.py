"""Prices, the usage of requests as a provider with a prompt cache bills it, and the rule of that cache.

The accounting is the same for every policy: four characters are a token. A request reads from the cache the messages
that it shares with the beginning of the previous request, and writes the rest; the first one writes everything. A
request that is too short for the cache does neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from recede._errors import meant, one_of
from recede._models import MODEL_ROWS, USUAL_MODELS
from recede.providers import OF_FORMATS, PROVIDERS, Provider, cache_rule, lifetime
from recede.reduction._kinds import CHARS_PER_TOKEN

_PER_TOKENS = 1_000_000
_USUAL = MODEL_ROWS[USUAL_MODELS["anthropic"]]


class Prices(NamedTuple):
    """Prices per million tokens in US dollars. The defaults are the preset ``anthropic``.

    Attributes:
        input: input that is neither written to the cache nor read from it.
        cached: input read from the cache.
        write: input written to the cache; the same as `input` for a provider that caches automatically and does not
            charge for writes.
        output: output; the same for every policy, so 0 excludes answers from a comparison.
        min_cached_tokens: requests shorter than this are not cached.

    Example:
        >>> import recede
        >>> recede.costs.Prices(output=0)
        Prices(input=3.0, cached=0.3, write=3.75, output=0, min_cached_tokens=2048)
    """

    input: float = _USUAL.input
    cached: float = _USUAL.cached
    write: float = _USUAL.write
    output: float = _USUAL.output
    min_cached_tokens: int = PROVIDERS["anthropic"].min_tokens or 0

    @classmethod
    def parse(cls, text: str) -> Prices:
        """Parse ``input=3,cached=0.3,write=3.75,output=15``, or a preset name, optionally with changes.

        Omitted prices keep the default, or the value of the preset.

        Raises:
            ValueError: a name is unknown or a value is not a price; says which.

        Example:
            >>> import recede
            >>> recede.costs.Prices.parse("openai,output=0")
            Prices(input=2.5, cached=0.25, write=2.5, output=0.0, min_cached_tokens=1024)
        """
        prices: dict[str, Any] = cls()._asdict()
        for place, part in enumerate(filter(None, (part.strip() for part in text.split(",")))):
            name, is_price, price = (piece.strip() for piece in part.partition("="))
            if not is_price and place == 0 and name in PRESETS:
                prices = PRESETS[name]._asdict()
                continue
            if not is_price and name in PRESETS:
                raise ValueError(f"the name {name!r} must come first, as in {name},output=0, and there is one at most")
            if name not in cls._fields:
                known = [*cls._fields, *PRESETS]
                raise ValueError(
                    f"there is no price {name!r}{meant(name, known if is_price else PRESETS) or one_of(known)}"
                )
            try:
                prices[name] = int(price) if name == "min_cached_tokens" else float(price)
            except ValueError:
                raise ValueError(f"the price {name!r} must be a number, not {price!r}") from None
        return cls(**prices).checked()

    def cost(self, input: float, cached: float, written: float, output: float) -> float:
        """Compute the cost of this many tokens of each kind, in dollars.

        Example:
            >>> import recede
            >>> recede.costs.Prices().cost(1_000, 20_000, 4_000, 500)
            0.0315
        """
        tokens = input, cached, written, output
        return float(sum(count * price for count, price in zip(tokens, self, strict=False))) / _PER_TOKENS

    def checked(self) -> Prices:
        """Return these prices if each is a number from 0; raise an error that names the first that is not."""
        for name, price in zip(self._fields, self, strict=True):
            if isinstance(price, bool) or not isinstance(price, (int, float)):
                raise TypeError(f"the price {name!r} must be a number, not {type(price).__name__}")
            if not 0 <= price < float("inf"):
                raise ValueError(f"the price {name!r} must be a number from 0, not {price}")
        return self


def _usual(provider: Provider) -> Prices:
    row = MODEL_ROWS[USUAL_MODELS[provider.name]]
    write = row.write_1h if provider.name == "anthropic_1h" else row.write
    return Prices(row.input, row.cached, write, row.output, provider.min_tokens or 0)


PRESETS = {name: _usual(PROVIDERS[name]) for name in USUAL_MODELS}
"""Prices by provider: those of its usual model."""


class Usage(NamedTuple):
    """The summed usage of requests, in characters.

    Attributes:
        requests: the number of requests.
        sent_chars: characters of all views, each including the system prompt.
        cached_chars: the part read from the cache.
        written_chars: the part written to the cache.
        answer_chars: characters of the answers.
        summary_calls: the number of model calls for summaries.
        summary_input_chars: characters sent for summaries.
        summary_output_chars: characters of the summaries.

    Example:
        >>> from recede.costs import Prices, Usage
        >>> usage = Usage(2, sent_chars=48_000, cached_chars=20_000, written_chars=28_000, answer_chars=4_000)
        >>> round(usage.cost(Prices()), 5), round(usage.cost_uncached(Prices()), 5)
        (0.04275, 0.051)
    """

    requests: int
    sent_chars: int
    cached_chars: int
    written_chars: int
    answer_chars: int
    summary_calls: int = 0
    summary_input_chars: int = 0
    summary_output_chars: int = 0

    def cost(self, prices: Prices, summary_prices: Prices | None = None) -> float:
        """The cost with a prompt cache; `summary_prices` are the prices of the summarizing model, if different."""
        plain = self.sent_chars - self.cached_chars - self.written_chars
        sent = self.cached_chars * prices.cached + self.written_chars * prices.write + plain * prices.input
        answers = self.answer_chars * prices.output
        return (sent + answers) / CHARS_PER_TOKEN / _PER_TOKENS + self.summary_cost(summary_prices or prices)

    def cost_uncached(self, prices: Prices, summary_prices: Prices | None = None) -> float:
        """The cost without a prompt cache."""
        sent = self.sent_chars * prices.input + self.answer_chars * prices.output
        return sent / CHARS_PER_TOKEN / _PER_TOKENS + self.summary_cost(summary_prices or prices)

    def summary_cost(self, prices: Prices) -> float:
        """The cost of summary calls: each prompt is new to the cache and read only once."""
        called = self.summary_input_chars * prices.input + self.summary_output_chars * prices.output
        return called / CHARS_PER_TOKEN / _PER_TOKENS

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        """Add up several usages."""
        every = [cls(*[0] * len(cls._fields)), *usages]
        return cls(*map(sum, zip(*every, strict=True)))


_RULES = ("breakpoints", "prefix", "entries", "ideal")
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
            - ``"entries"``: at the end of each request, and only whole; if it `shares_prefixes`, also after each answer
              and where two requests part.
            - ``"ideal"``: as ``"prefix"``, without steps; entries live forever.
        ttl_seconds: how long an entry lives after its last use.
        step_tokens: with ``"prefix"``, the steps in which prefixes are served; 0: any length.
        lookback_blocks: with ``"breakpoints"``, how many content blocks before a breakpoint are searched for an entry,
            the marked one included; with ``"entries"``, how many earlier requests.

    Example:
        >>> import recede
        >>> recede.costs.Cache()
        Cache(rule='breakpoints', ttl_seconds=300.0, step_tokens=0, lookback_blocks=20, shares_prefixes=False)
        >>> recede.costs.CACHES["openai"][:3]
        ('prefix', 300.0, 128)
    """

    rule: str = cache_rule(_ANTHROPIC)
    ttl_seconds: float = float(lifetime(_ANTHROPIC))
    step_tokens: int = _ANTHROPIC.step_tokens or 0
    lookback_blocks: int = _ANTHROPIC.lookback_blocks
    shares_prefixes: bool = False

    def checked(self) -> Cache:
        """Return this cache if its rule exists and each number is from 0; raise an error that names what is wrong."""
        if self.rule not in _RULES:
            raise ValueError(f"the rule of a cache must be one of {', '.join(_RULES)}, not {self.rule!r}")
        for name, number in zip(self._fields[1:4], self[1:4], strict=True):
            kinds = (int, float) if name == "ttl_seconds" else (int,)
            if isinstance(number, bool) or not isinstance(number, kinds):
                raise TypeError(f"{name} of a cache must be a number, not {type(number).__name__}")
            if not number >= 0:
                raise ValueError(f"{name} of a cache must be a number from 0, not {number}")
        return self


def cache_of(provider: Provider) -> Cache:
    step, lookback = provider.step_tokens or 0, provider.lookback_blocks
    return Cache(cache_rule(provider), float(lifetime(provider)), step, lookback, provider.shares_prefixes)


CACHES = {name: cache_of(one) for name, one in PROVIDERS.items() if one.cache != "none"}
"""Prompt caches by provider; ``"ideal"`` serves whatever prefix a request shares."""


def cache_of_format(format: str) -> Cache:
    """Guess the prompt cache that served sessions of a format.

    Args:
        format: a name in `recede.transcripts.FORMATS`.

    Returns:
        OpenAI's for Codex, Gemini's for the Gemini CLI, Anthropic's for all others.

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
    shares_prefixes: bool
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
    rule, ttl_seconds, step_tokens, lookback_blocks, shares_prefixes = cache
    return CacheFacts(
        rule="prefix" if rule == "ideal" else rule,
        min_tokens=int(min(prices.min_cached_tokens, _CEILING)),
        step_tokens=0 if rule == "ideal" else min(step_tokens, _CEILING),
        lookback_blocks=min(lookback_blocks, _CEILING),
        shares_prefixes=bool(shares_prefixes),
        ttl_seconds=float(ttl_seconds),
        chars_per_token=chars_per_token,
        system_chars=min(system_chars, _CEILING),
        input_price=float(prices.input),
        times=[(messages, float(seconds)) for messages, seconds in found],
    )
