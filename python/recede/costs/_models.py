"""Prices of models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from recede._models import MODEL_ROWS, Model, model_names, model_row
from recede.costs._prices import Prices


class ModelPrices(NamedTuple):
    """The prices of a model.

    Attributes:
        prices: per million tokens in US dollars; writes are those to the cache of five minutes.
        write_1h: input written to the cache of one hour; the price of other writes if there is no such cache.
        provider: a name of `PRESETS`.
        date: when the prices were valid, as year and month.
        source: the provider's page; "as others quote it" where the page itself was not read.
        ttl_seconds: how long an entry of the cache lives after its last use; 0: as the provider's cache has it.

    Example:
        >>> import recede
        >>> opus = recede.costs.MODELS["claude-opus-4-5"]
        >>> opus.prices.input, opus.prices.cached, opus.prices.write, opus.write_1h, opus.prices.output
        (5.0, 0.5, 6.25, 10.0, 25.0)
    """

    prices: Prices
    write_1h: float
    provider: str
    date: str
    source: str
    ttl_seconds: float = 0


@cache
def _of_row(row: Model) -> ModelPrices:
    prices = Prices(row.input, row.cached, row.write, row.output, row.min_tokens)
    return ModelPrices(prices, row.write_1h, row.provider, row.date, row.source, row.ttl_seconds)


MODELS: Mapping[str, ModelPrices] = {name: _of_row(row) for name, row in MODEL_ROWS.items()}
"""Prices by model, for standard requests; batch, priority and regional prices differ."""


def model_prices(
    model: str,
    own: Mapping[str, ModelPrices] = {},
    *,
    time: float | None = None,
    sent_tokens: int = 0,
    tier: str | None = None,
) -> ModelPrices | None:
    """Find the prices of a model by the name that a log has.

    Args:
        model: its name, with or without a date, a provider or a region.
        own: prices by model that come before those of `MODELS`.
        time: when the request was made, in Unix seconds: its price may have been another one; None: today.
        sent_tokens: how long its prompt was: long ones may cost more.
        tier: how it was served, such as ``"fast"``; None: as is usual.

    Returns:
        Its prices; None if it is not in the table: names are not guessed.

    Raises:
        Nothing: any name may be asked for.

    Example:
        >>> from recede.costs import model_prices
        >>> model_prices("us.anthropic.claude-opus-4-5-20251101-v1:0").prices.output
        25.0
        >>> model_prices("some-model") is None
        True
        >>> model_prices("gpt-5.6-sol", time=1_783_641_600).prices.input, model_prices("gpt-5.6-sol").prices.input
        (5.0, 4.0)
    """
    found = next((own[name] for name in model_names(model, tier) if name in own), None)
    row = None if found is not None else model_row(model, time, sent_tokens, tier)
    return found if row is None else _of_row(row)
