"""Prices of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from recede._models import MODEL_ROWS, model_names
from recede.costs._prices import Prices

__all__ = ["MODELS", "ModelPrices", "model_prices"]


class ModelPrices(NamedTuple):
    """The prices of a model.

    Attributes:
        prices: per million tokens in US dollars; writes are those to the cache of five minutes.
        write_1h: input written to the cache of one hour; the price of other writes if there is no such cache.
        provider: a name of `PRESETS`.
        date: when the prices were valid, as year and month.
        source: the provider's page; "as others quote it" where the page itself was not read.

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


MODELS: Mapping[str, ModelPrices] = {
    name: ModelPrices(
        Prices(row.input, row.cached, row.write, row.output, row.min_tokens),
        row.write_1h,
        row.provider,
        row.date,
        row.source,
    )
    for name, row in MODEL_ROWS.items()
}
"""Prices by model, for standard requests; batch, priority and regional prices differ."""


def model_prices(model: str, own: Mapping[str, ModelPrices] = {}) -> ModelPrices | None:
    """Find the prices of a model by the name that a log has.

    Args:
        model: its name, with or without a date, a provider or a region.
        own: prices by model that come before those of `MODELS`.

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
    """
    names = model_names(model)
    return next((table[name] for table in (own, MODELS) for name in names if name in table), None)
