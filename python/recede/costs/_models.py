"""Prices of models: known ones, and those of a user's own file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from recede._model_names import model_names
from recede._models import MODEL_ROWS, Model, model_row
from recede.costs._prices import PRESETS, Cache, Prices
from recede.providers import PROVIDERS

_NUMBERS = (*Prices._fields, "write_1h", "ttl_seconds")
_TEXTS = ("provider", "date", "source")


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


MODELS: Mapping[str, ModelPrices] = {name: _of_row(model_row(name) or row) for name, row in MODEL_ROWS.items()}
"""Prices of today by model, for standard requests; batch, priority and regional prices differ."""


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


def read_prices(path: str | PathLike[str]) -> dict[str, ModelPrices]:
    """Read prices of models from a JSON or TOML file: an object for each model.

    `input` and `output` are required, per million tokens in US dollars. `cached` and `write` are the price of input
    unless given, and `write_1h` is that of other writes. `min_cached_tokens` is 1,024. `provider` is a name of
    `PRESETS`, by default ``"openai"``: a cache that needs no breakpoints. `ttl_seconds` is how long its entries live, 0
    as with the provider. `date` and `source` are for the reader.

    Args:
        path: the file; TOML if its name ends in ``.toml`` (from Python 3.11 on).

    Returns:
        The prices by model, as `model_prices` takes them.

    Raises:
        ValueError: the file is malformed, or a price is missing, unknown or not a number; says which.
        OSError: the file cannot be read.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from recede.costs import read_prices
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "prices.json")
        ...     _ = path.write_text('{"our-model": {"input": 1, "cached": 0.1, "output": 4}}')
        ...     read_prices(path)["our-model"].prices
        Prices(input=1, cached=0.1, write=1, output=4, min_cached_tokens=1024)
    """
    data = Path(path).read_bytes()
    try:
        if not str(path).endswith(".toml"):
            rows = json.loads(data)
        elif sys.version_info < (3, 11):
            raise ValueError("TOML needs Python 3.11; write JSON")
        else:
            rows = import_module("tomllib").loads(data.decode())
    except ValueError as error:
        raise ValueError(f"{path}: prices cannot be read: {error}") from None
    if not isinstance(rows, dict):
        raise ValueError(f"{path}: prices must be an object with an object for each model")
    return {model: _row(f"{path}: {model}", row) for model, row in rows.items()}


def _row(where: str, row: Any) -> ModelPrices:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: prices must be an object, not {type(row).__name__}")
    for name in row:
        if name not in (*_NUMBERS, *_TEXTS):
            raise ValueError(f"{where}: there is no price {name!r}; there are {', '.join((*_NUMBERS, *_TEXTS))}")
    for name in ("input", "output"):
        if name not in row:
            raise ValueError(f"{where}: {name!r} is missing")
    provider = row.get("provider", "openai")
    if provider not in PRESETS:
        raise ValueError(f"{where}: provider must be one of {', '.join(PRESETS)}, not {provider!r}")
    given: dict[str, Any] = {name: row.get(name, row["input"]) for name in ("input", "cached", "write", "output")}
    given["min_cached_tokens"] = row.get("min_cached_tokens", PROVIDERS["openai"].min_tokens)
    write_1h: Any = row.get("write_1h", given["write"])
    ttl_seconds: Any = row.get("ttl_seconds", 0)
    try:
        prices = Prices(**given).checked()
        Prices(write=write_1h).checked()
        Cache(ttl_seconds=ttl_seconds).checked()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None
    return ModelPrices(prices, write_1h, provider, str(row.get("date", "")), str(row.get("source", "")), ttl_seconds)
