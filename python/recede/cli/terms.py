"""What a replay takes for prices, for the cache, and for what logs leave out: `--price`, `--prices` and `--set`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import click

from recede.cli.options import Whole
from recede.costs import CACHES, SUMMARY_CHARS, SYSTEM_CHARS, Prices, read_prices


class Price(NamedTuple):
    """The value of `--price`; None is what the logs say."""

    prices: Prices | None = None
    cache: str | None = None  # its name: given, or that of the provider whose prices are taken
    summary_prices: Prices | None = None  # of the model that writes summaries; None: the same model

    @classmethod
    def parse(cls, text: str) -> Price:
        """Read prices, in which `cache` is one key, and `summary` and `summary_output` are those of summaries."""
        own: list[str] = []
        of_summaries: list[str] = []
        cache = None
        for part in filter(None, map(str.strip, text.split(","))):
            key, _, value = map(str.strip, part.partition("="))
            if key == "cache":
                cache = value
            elif key.startswith("summary"):
                of_summaries.append(part.removeprefix("summary").lstrip("_= "))
                if not of_summaries[-1]:
                    raise ValueError(f"{part!r} has no value, such as summary=openai or summary_output=2")
            else:
                own.append(part)
        if cache is None and own and own[0] in CACHES:
            cache = own[0]
        if cache is not None and cache not in CACHES:
            raise ValueError(f"there is no cache {cache!r}; there are {', '.join(CACHES)}")
        prices, summary_prices = (Prices.parse(",".join(some)) if some else None for some in (own, of_summaries))
        return cls(prices, cache, summary_prices)


class Settings(NamedTuple):
    """The value of `--set`; a context window of 0 is the smallest usual one that all requests fit into."""

    system_chars: int = SYSTEM_CHARS
    summary_chars: int = SUMMARY_CHARS
    elongation: float = 0.0
    context_window: int = 0
    min_results: int = 0
    pauses: str = "logged"


_COUNT = Whole(min=0)
_TYPES: dict[str, click.ParamType[Any]] = {
    "elongation": click.FloatRange(0, 1),
    "pauses": click.Choice(("logged", "timed", "none")),
}


def _read_by(parse: Callable[[str], Any], default: Any) -> Callable[[click.Context, click.Parameter, str | None], Any]:

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        try:
            return default if value is None else parse(value)
        except (OSError, ValueError) as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return read


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Settings:
    found = {}
    for part in filter(None, ",".join(values).split(",")):
        name, _, value = map(str.strip, part.partition("="))
        if name not in Settings._fields:
            raise click.BadParameter(
                f"there is no setting {name!r}; there are {', '.join(Settings._fields)}", ctx, param
            )
        try:
            found[name] = _TYPES.get(name, _COUNT).convert(value, param, ctx)
            if found[name] != found[name]:
                raise click.BadParameter("nan is no share")
        except click.BadParameter as error:
            raise click.BadParameter(f"{name}: {error.message}", ctx, param) from None
    return Settings(**found)


price_option = click.option(
    "--price",
    callback=_read_by(Price.parse, Price()),
    metavar="NAME,...",
    help="Prices for a million tokens, and the cache: anthropic, anthropic_1h, openai, gemini, bedrock, or one of "
    "these with changes, such as openai,output=0. With cache=ideal the cache serves whatever prefix two requests "
    "share; summary=NAME or summary_output=N prices the model of summaries.  [default: of the models that a log "
    "names; else by its format]",
)

prices_option = click.option(
    "--prices",
    "own_prices",
    callback=_read_by(read_prices, {}),
    metavar="FILE",
    help="Prices of models that come before the known ones: JSON or TOML, an object for each model with input, cached, "
    "write, write_1h and output.",
)

settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_settings,
    metavar="NAME=VALUE,...",
    help="What logs do not say: system_chars=12000 of system prompt and tools (as logged tokens say, if there are "
    "any), summary_chars=4000 (0: the built-in summary, which needs no model), elongation=0.15 more turns of agents "
    "with summaries, context_window=N tokens, pauses=none (the cache never grows cold) or timed; and min_results=N, "
    "to leave out sessions with fewer.",
)
