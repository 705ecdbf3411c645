"""What requests cost: prices, and characters added up as a provider with a prompt cache bills them.

The accounting, for every policy alike: four characters are a token; a request writes to the cache what does not stand
at the beginning of the request before, message by message; the first one writes everything.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Prices", "Usage"]

_CHARS_PER_TOKEN = 4
_PER_TOKENS = 1_000_000


class Prices(NamedTuple):
    """Prices for a million tokens, in US dollars. The defaults: list prices of Claude Sonnet 4.6 as of June 2026.

    Attributes:
        input: a token of input where there is no cache.
        cached: a token of input that the cache serves.
        write: a token of input that is written to the cache (of Anthropic's for five minutes, 1.25 times the price of
            fresh input); the same as `input` where a provider caches by itself and takes nothing for it.
        output: a token of an answer; the same for every policy, so 0 leaves the answers out of a comparison.

    Example:
        >>> import recede
        >>> recede.Prices(output=0)
        Prices(input=3.0, cached=0.3, write=3.75, output=0)
    """

    input: float = 3.0
    cached: float = 0.3
    write: float = 3.75
    output: float = 15.0

    @classmethod
    def parse(cls, text: str) -> Prices:
        """Read ``input=3,cached=0.3,write=3.75,output=15``; what is left out keeps its default.

        Raises:
            ValueError: an unknown name, or no price; says which.

        Example:
            >>> import recede
            >>> recede.Prices.parse("input=1.25,cached=0.125,write=1.25,output=10")
            Prices(input=1.25, cached=0.125, write=1.25, output=10.0)
        """
        prices: dict[str, float] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, price = (piece.strip() for piece in part.partition("="))
            if name not in cls._fields:
                close = difflib.get_close_matches(name, cls._fields, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(cls._fields)}"
                raise ValueError(f"there is no price {name!r}{hint}")
            try:
                prices[name] = float(price)
            except ValueError:
                raise ValueError(f"the price {name!r} must be a number, not {price!r}") from None
        return cls(**prices).checked()

    def checked(self) -> Prices:
        """These prices, if each is a number from 0; else a ValueError that names the first that is not."""
        for name, price in zip(self._fields, self, strict=True):
            if isinstance(price, bool) or not isinstance(price, (int, float)):
                raise TypeError(f"the price {name!r} must be a number, not {type(price).__name__}")
            if not 0 <= price < float("inf"):
                raise ValueError(f"the price {name!r} must be a number from 0, not {price}")
        return self


class Usage(NamedTuple):
    """What requests sent and got, added up, in characters.

    Attributes:
        requests: how many there were.
        sent_chars: characters of all views, the system prompt in each.
        cached_chars: of these, what stood at the beginning of the request before as well.
        answer_chars: characters of the answers.

    Example:
        >>> import recede
        >>> usage = recede.Usage(requests=2, sent_chars=48_000, cached_chars=20_000, answer_chars=4_000)
        >>> usage.written_chars, round(usage.cost(recede.Prices()), 5), round(usage.cost_uncached(recede.Prices()), 5)
        (28000, 0.04275, 0.051)
    """

    requests: int
    sent_chars: int
    cached_chars: int
    answer_chars: int

    @property
    def written_chars(self) -> int:
        """Characters that were written to the cache."""
        return self.sent_chars - self.cached_chars

    def cost(self, prices: Prices) -> float:
        """What it costs with a prompt cache."""
        read = self.cached_chars * prices.cached + self.written_chars * prices.write
        return (read + self.answer_chars * prices.output) / _CHARS_PER_TOKEN / _PER_TOKENS

    def cost_uncached(self, prices: Prices) -> float:
        """What it costs without one."""
        sent = self.sent_chars * prices.input + self.answer_chars * prices.output
        return sent / _CHARS_PER_TOKEN / _PER_TOKENS

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        """Several added up.

        Example:
            >>> import recede
            >>> recede.Usage.total([recede.Usage(1, 10, 0, 2), recede.Usage(2, 30, 20, 5)])
            Usage(requests=3, sent_chars=40, cached_chars=20, answer_chars=7)
        """
        every = [cls(0, 0, 0, 0), *usages]
        return cls(*map(sum, zip(*every, strict=True)))
