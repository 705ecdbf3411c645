"""Prices of models: known ones, and those of a user's own file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import cache, lru_cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from time import time as seconds_now
from typing import Any, NamedTuple

from recede._errors import one_of
from recede._model_names import model_names, model_provider, served_as
from recede._models import MODEL_ROWS, USUAL_MODELS, Model, model_row
from recede._serving import described, serving
from recede.costs._prices import Cache, Prices
from recede.providers import PROVIDERS, Provider

_NUMBERS = (*Prices._fields, "write_1h", "ttl_seconds")
_TEXTS = ("provider", "date", "source")
_FREE = ":free"  # how the names of OpenRouter's models without a price end
_MOST_QUOTED, _MOST_CHARS = 512, 200  # names of models whose prices are remembered, and characters of one


class ModelPrices(NamedTuple):
    """The prices of a model.

    Attributes:
        prices: per million tokens in US dollars; writes are those to the cache of five minutes.
        write_1h: input written to the cache of one hour; the price of other writes if there is no such cache.
        provider: a name that `recede.Provider.of` takes.
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
    host: str | None = None,
) -> ModelPrices | None:
    """Find the prices of a model by the name that a log has.

    Args:
        model: its name, with or without a date, a provider or a region.
        own: prices by model that come before those of `MODELS`.
        time: when the request was made, in Unix seconds: its price may have been another one; None: today.
        sent_tokens: how long its prompt was: long ones may cost more.
        tier: how it was served, such as ``"fast"``, or ``"us"`` for one region alone; None: as is usual.
        host: whose host served it, such as ``"deepseek"`` (docs/providers.md): a name may mean another model there.

    Returns:
        Its prices. If it is not in the table, those of the package ``genai-prices``, if that is installed
        (``recede[prices]``) and knows the name; else None: names are not guessed. OpenRouter's ``:free`` costs 0.

    Example:
        >>> from recede.costs import model_prices
        >>> model_prices("global.anthropic.claude-opus-4-5-20251101-v1:0").prices.output
        25.0
        >>> model_prices("us.anthropic.claude-opus-4-5-20251101-v1:0").prices.output  # in one region alone
        27.5
        >>> model_prices("some-model") is None
        True
        >>> model_prices("gpt-5.6-sol", time=1_783_641_600).prices.input, model_prices("gpt-5.6-sol").prices.input
        (5.0, 4.0)
    """
    usual, _ = served_as(model, tier)
    found = next((own[name] for name in model_names(model, usual) if name in own), None)
    row = None if found is not None else model_row(model, time, sent_tokens, tier, host)
    if row is None and found is None and model.strip().lower().endswith(_FREE):
        provider = model_provider(model.strip()[: -len(_FREE)]) or "openai"
        least = PROVIDERS[provider].min_tokens or 0
        return ModelPrices(Prices(0.0, 0.0, 0.0, 0.0, least), 0.0, provider, "", "OpenRouter's variants that are free")
    if row is None and found is None and tier is None:
        return quoted_prices(model, host, time, sent_tokens)
    return found if row is None else _of_row(row)


class AssumedModel(NamedTuple):
    """What is assumed of a model at a host, and why.

    Attributes:
        provider: the prompt cache, and its prices where an uncached token costs 1.
        why: whose cache it is, in one line.
        is_assumed: whether neither host nor model is known.
        prices: in US dollars; None if they are not known.
        window_tokens: longer requests are refused; 0 if that is not known.
        kept_reasoning: the reasoning of earlier turns that a request still has: ``"all"``, ``"last"`` or ``"none"``;
            None if that is not known.
        small: a small model of the same maker; None if there is none.

    Example:
        >>> import recede
        >>> recede.costs.assumed_model("kimi-k2.7-code", "api.moonshot.ai").why
        "'kimi-k2.7-code' at api.moonshot.ai (Kimi): a cached token costs 0.2, prefix cache, 5 minutes (by the host)"
    """

    provider: Provider
    why: str
    is_assumed: bool
    prices: ModelPrices | None
    window_tokens: int = 0
    kept_reasoning: str | None = None
    small: str | None = None


def assumed_model(model: str, host: str = "", form: str = "openai") -> AssumedModel:
    """Tell what recede assumes of a model at a host.

    Args:
        model: its name, with or without a date, a provider or a region.
        host: the name or the URL of the host; "": not known.
        form: the provider of the form of requests: ``"openai"``, ``"anthropic"``, ``"gemini"`` or ``"bedrock"``. It
            decides where nothing else is known.

    Raises:
        ValueError: there is no such form.

    Example:
        >>> import recede
        >>> found = recede.costs.assumed_model("claude-opus-4-8", "https://api.deepseek.com/anthropic")
        >>> found.provider.name, round(found.provider.read, 3), found.prices.prices.input
        ('deepseek', 0.033, 0.66)
    """
    if form not in USUAL_MODELS:
        raise ValueError(f"there is no form {form!r}{one_of(USUAL_MODELS)}")
    found = serving(model, host if "://" in host or not host else f"https://{host}", form)
    row = model_row(model, host=found.provider.name)
    why = described(found, model)
    if row is None:
        return AssumedModel(found.provider, why, found.is_assumed, None)
    facts = row.window_tokens, row.reasoning.kept, row.small or None
    return AssumedModel(found.provider, why, found.is_assumed, _of_row(row), *facts)


def quoted_prices(model: str, host: str | None, time: float | None, sent_tokens: int) -> ModelPrices | None:
    """Find the prices that the package genai-prices has of a model at a host; None without it, or if it has none.

    Example:
        >>> from recede.costs._models import quoted_prices
        >>> quoted_prices("no-such-model", None, None, 0) is None
        True
    """
    prices = _quoted(model[-_MOST_CHARS:], host, int((seconds_now() if time is None else time) // 3_600))

    def price(name: str, otherwise: float = 0.0) -> float:
        found = getattr(prices, name, None)
        tiers = [one.price for one in getattr(found, "tiers", ()) if sent_tokens > one.start]
        return otherwise if found is None else float(tiers[-1] if tiers else getattr(found, "base", found))

    if not (plain := price("input_mtok")):
        return None
    provider = model_provider(model) or "openai"
    least, write = PROVIDERS[provider].min_tokens or 0, price("cache_write_mtok", plain)
    every = Prices(plain, price("cache_read_mtok", plain), write, price("output_mtok"), least)
    return ModelPrices(every, price("cache_write_1h_mtok", write), provider, "", "the package genai-prices")


@lru_cache(maxsize=_MOST_QUOTED)
def _quoted(model: str, host: str | None, hour: int) -> Any:
    """The prices of a model in an hour, as genai-prices has them; it fetches nothing."""
    try:
        from genai_prices.data_snapshot import get_snapshot

        _, found = get_snapshot().find_provider_model(model, None, host, None)
        return found.get_prices(datetime.fromtimestamp(hour * 3_600, timezone.utc))
    except (ImportError, LookupError, ValueError, OverflowError, OSError):
        return None


def read_prices(path: str | PathLike[str]) -> dict[str, ModelPrices]:
    """Read prices of models from a JSON or TOML file: an object for each model.

    `input` and `output` are required, per million tokens in US dollars. `cached` and `write` are the price of input
    unless given, and `write_1h` is that of other writes. `min_cached_tokens` is 1,024. `provider` is a name that
    `recede.Provider.of` takes, by default ``"openai"``: a cache that needs no breakpoints. `ttl_seconds` is how long
    its entries live, 0 as with the provider. `date` and `source` are for the reader.

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
    if provider not in PROVIDERS:
        raise ValueError(f"{where}: provider must be one of {', '.join(PROVIDERS)}, not {provider!r}")
    given: dict[str, Any] = {name: row.get(name, row["input"]) for name in ("input", "cached", "write", "output")}
    given["min_cached_tokens"] = row.get("min_cached_tokens", PROVIDERS["openai"].min_tokens or 0)
    write_1h: Any = row.get("write_1h", given["write"])
    ttl_seconds: Any = row.get("ttl_seconds", 0)
    try:
        prices = Prices(**given).checked()
        Prices(write=write_1h).checked()
        Cache(ttl_seconds=ttl_seconds).checked()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None
    return ModelPrices(prices, write_1h, provider, str(row.get("date", "")), str(row.get("source", "")), ttl_seconds)
