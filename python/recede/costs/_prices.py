"""Prices, and the usage of requests as a provider with a prompt cache bills it.

The accounting is the same for every policy: four characters are a token. A request reads from the cache the messages
that it shares with the beginning of the previous request, and writes the rest; the first one writes everything. A
request that is too short for the cache does neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from recede._errors import meant, one_of
from recede._models import MODEL_ROWS, USUAL_MODELS
from recede.providers import PROVIDERS, Provider
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
    min_cached_tokens: int = PROVIDERS["anthropic"].min_tokens

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
    return Prices(row.input, row.cached, write, row.output, provider.min_tokens)


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
        """Add up several usages.

        Example:
            >>> from recede.costs import Usage
            >>> tuple(Usage.total([Usage(1, 10, 0, 10, 2), Usage(2, 30, 20, 10, 5, 1, 90, 8)]))
            (3, 40, 20, 20, 7, 1, 90, 8)
        """
        every = [cls(*[0] * len(cls._fields)), *usages]
        return cls(*map(sum, zip(*every, strict=True)))
