"""What requests cost: prices, and characters added up as a provider with a prompt cache bills them.

The accounting, for every policy alike: four characters are a token; a request writes to the cache what does not stand
at the beginning of the request before, message by message; the first one writes everything. A request that is too
short for the cache is neither written nor served.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = ["PRESETS", "SUMMARY_CHARS", "SUMMARY_PROMPT_CHARS", "Prices", "Usage"]

SUMMARY_CHARS = 4_000
"""What a summary is taken for where a model writes it: some 1,000 tokens."""

SUMMARY_PROMPT_CHARS = 1_200
"""What a model is given for a summary beside the turns: the instructions, about so many characters of them."""

_CHARS_PER_TOKEN = 4
_PER_TOKENS = 1_000_000


class Prices(NamedTuple):
    """Prices for a million tokens, in US dollars. The defaults are those of `PRESETS`' ``anthropic``.

    Attributes:
        input: a token of input that is neither written to the cache nor served from it.
        cached: a token of input that the cache serves.
        write: a token of input that is written to the cache; the same as `input` where a provider caches by itself
            and takes nothing for it.
        output: a token of an answer; the same for every policy, so 0 leaves the answers out of a comparison.
        min_cached_tokens: requests shorter than this are not cached.

    Example:
        >>> import recede
        >>> recede.costs.Prices(output=0)
        Prices(input=3.0, cached=0.3, write=3.75, output=0, min_cached_tokens=2048)
    """

    input: float = 3.0
    cached: float = 0.3
    write: float = 3.75
    output: float = 15.0
    min_cached_tokens: int = 2_048

    @classmethod
    def parse(cls, text: str) -> Prices:
        """Read ``input=3,cached=0.3,write=3.75,output=15``, or the name of a preset, or one with changes.

        What is left out keeps the default, or that of the preset.

        Raises:
            ValueError: an unknown name, or no price; says which.

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
            if name not in cls._fields:
                known = [*cls._fields, *PRESETS]
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
                raise ValueError(f"there is no price {name!r}{hint}")
            try:
                prices[name] = int(price) if name == "min_cached_tokens" else float(price)
            except ValueError:
                raise ValueError(f"the price {name!r} must be a number, not {price!r}") from None
        return cls(**prices).checked()

    def checked(self) -> Prices:
        """These prices, if each is a number from 0; else an error that names the first that is not."""
        for name, price in zip(self._fields, self, strict=True):
            if isinstance(price, bool) or not isinstance(price, (int, float)):
                raise TypeError(f"the price {name!r} must be a number, not {type(price).__name__}")
            if not 0 <= price < float("inf"):
                raise ValueError(f"the price {name!r} must be a number from 0, not {price}")
        return self


PRESETS = {
    # Claude Sonnet 4.6, June 2026; writing to the cache of five minutes costs 1.25 times the fresh token, to that of
    # an hour twice, reading a tenth (platform.claude.com/docs, pricing and prompt caching).
    "anthropic": Prices(),
    "anthropic_1h": Prices(write=6.0),
    # GPT-5.4, June 2026; caching is automatic from 1,024 tokens on, and writing is free (openai.com/api/pricing).
    "openai": Prices(input=2.5, cached=0.25, write=2.5, output=15.0, min_cached_tokens=1_024),
    # Gemini 3.1 Pro up to 200,000 tokens, March 2026; caching is implicit from 4,096 tokens on, and writing is free
    # (ai.google.dev/gemini-api/docs, pricing and caching).
    "gemini": Prices(input=2.0, cached=0.2, write=2.0, output=12.0, min_cached_tokens=4_096),
}
"""Prices by provider."""


class Usage(NamedTuple):
    """What requests sent and got, added up, in characters.

    Attributes:
        requests: how many there were.
        sent_chars: characters of all views, the system prompt in each.
        cached_chars: of these, what the cache served.
        written_chars: of these, what was written to it.
        answer_chars: characters of the answers.
        summary_calls: how often a model was asked for a summary.
        summary_input_chars: characters that it was given for them.
        summary_output_chars: characters that it wrote.

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
        """What it costs with a prompt cache; `summary_prices` are those of the model that summarizes, if others."""
        plain = self.sent_chars - self.cached_chars - self.written_chars
        sent = self.cached_chars * prices.cached + self.written_chars * prices.write + plain * prices.input
        answers = self.answer_chars * prices.output
        return (sent + answers) / _CHARS_PER_TOKEN / _PER_TOKENS + self.summary_cost(summary_prices or prices)

    def cost_uncached(self, prices: Prices, summary_prices: Prices | None = None) -> float:
        """What it costs without one."""
        sent = self.sent_chars * prices.input + self.answer_chars * prices.output
        return sent / _CHARS_PER_TOKEN / _PER_TOKENS + self.summary_cost(summary_prices or prices)

    def summary_cost(self, prices: Prices) -> float:
        """What the calls for summaries cost: each is new to the cache, and read but once."""
        called = self.summary_input_chars * prices.input + self.summary_output_chars * prices.output
        return called / _CHARS_PER_TOKEN / _PER_TOKENS

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        """Several added up.

        Example:
            >>> from recede.costs import Usage
            >>> tuple(Usage.total([Usage(1, 10, 0, 10, 2), Usage(2, 30, 20, 10, 5, 1, 90, 8)]))
            (3, 40, 20, 20, 7, 1, 90, 8)
        """
        every = [cls(*[0] * len(cls._fields)), *usages]
        return cls(*map(sum, zip(*every, strict=True)))
