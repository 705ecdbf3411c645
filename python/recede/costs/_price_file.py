"""Prices of models from a user's own file."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from recede.costs._cache import Cache
from recede.costs._models import ModelPrices
from recede.costs._prices import PRESETS, Prices
from recede.providers import PROVIDERS

_NUMBERS = (*Prices._fields, "write_1h", "ttl_seconds")
_TEXTS = ("provider", "date", "source")


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
