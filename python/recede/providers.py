"""Providers: the one table of what their prompt caches serve, at which price, and for how long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from recede._errors import meant, one_of

if TYPE_CHECKING:
    from recede._model_names import Tokenizer as Tokenizer

    Tokenizers = tuple[Tokenizer, Mapping[str, Tokenizer]]
    """That of messages that name none, and by shape."""

__all__ = ["Provider"]

# Larger numbers mean the same; sums in the core do not overflow.
_LARGEST_PRICE, _LARGEST_COUNT = 1e300, 1 << 40
_FIRST_FIELDS = 10  # that the first version stored
_MOST_NAMES, _MOST_CHARS = 256, 100  # of models, whose facts are remembered, and of one
# How a policy names the rule of a cache. Without a cache reading costs what writing does, so any prefix may be served.
_RULES = {"marks": "breakpoints", "prefix": "prefix", "entries": "entries", "ideal": "ideal", "none": "ideal"}
# The most characters of system prompt and tools for which the bound on cost holds where they have no entry of their
# own: 10,000 tokens. More would delay the first move of all others.
_MOST_SYSTEM_CHARS = 40_000
_UNKNOWN = ("min_tokens", "step_tokens", "ttl_seconds")  # that may be None: not published


class Provider(NamedTuple):
    """A provider's prompt cache: what it serves, and what that costs where an uncached token costs 1.

    Attributes:
        name: that of `Provider.of`, or your own.
        cache: where the cache has entries.

            - ``"marks"``: only where an earlier request was marked (``cache_control``).
            - ``"prefix"``: everywhere; a request reads what it shares with the beginning of the request before, in
              steps of `step_tokens`.
            - ``"entries"``: at the end of each request, and only whole; a request finds those of the last
              `lookback_blocks` requests.
            - ``"ideal"``: the same without steps and minimum; entries live forever.
            - ``"none"``: nowhere.
        read: the price of a token that is read from the cache.
        write: the price of a token that is written to it.
        min_tokens: the shortest prompt that is cached; None: not published, any length.
        step_tokens: the steps in which prefixes are served; 0 or None: any length.
        ttl_seconds: how long an entry lives after its last use; None: not published, forever.
        lookback_blocks: how many content blocks before a mark are searched for an entry, the marked one included; with
            ``"entries"``, how many earlier requests.
        most_marks: how many marks a request may have.
        output: the price of a token that the model writes, such as those of a summary.
        shares_prefixes: with ``"entries"``, whether an entry also ends after each answer, and where two requests part.
        tokenizer: how its models count what is not counted by a function of yours: ``"claude"``, ``"claude-4.7"`` (and
            newer), ``"openai"``, ``"qwen"``, ``"deepseek"``, ``"gemini"``, ``"llama"``; ``""``: by the shape of the
            messages.
        verifies_reasoning: whether the provider refuses or drops the model's reasoning after an edit before it.

    Example:
        >>> import recede
        >>> recede.Provider("ours", cache="prefix", write=1).read
        0.1
    """

    name: str
    cache: Literal["marks", "prefix", "entries", "ideal", "none"] = "marks"
    read: float = 0.1
    write: float = 1.25
    min_tokens: int | None = 1_024
    step_tokens: int | None = 0
    ttl_seconds: float | None = 300
    lookback_blocks: int = 20
    most_marks: int = 4
    output: float = 5.0
    verifies_reasoning: bool = False
    shares_prefixes: bool = False
    tokenizer: str = ""

    @classmethod
    def of(cls, name: str, model: str | None = None) -> Provider:
        """A known provider, with the facts of a model as far as they are known.

        Args:
            name: ``"anthropic"``, ``"anthropic_1h"`` (its cache of one hour), ``"openai"``, ``"gemini"``,
                ``"bedrock"``, ``"ideal"`` or ``"none"``.
            model: its name, with or without a date, a provider or a region.

        Returns:
            The provider, with the model's prices and its shortest cached prompt; the usual ones if the model is not in
            `recede.costs.MODELS`: names are not guessed. Whether it verifies reasoning follows from the version.

        Raises:
            ValueError: there is no such provider; says which there are.
            TypeError: a name is no str.

        Example:
            >>> import recede
            >>> opus = recede.Provider.of("anthropic", "claude-opus-5-5")
            >>> recede.Provider.of("anthropic").read, opus.read, opus.verifies_reasoning
            (0.1, 0.05, True)
            >>> recede.Provider.of("openai")[:6]
            ('openai', 'prefix', 0.1, 1.0, 1024, 128)
        """
        for given in (name, model or ""):
            if not isinstance(given, str):
                raise TypeError(f"the name of a provider or model must be a str, not {type(given).__name__}")
        if name not in PROVIDERS:
            raise ValueError(f"there is no provider {name!r}{_instead(name)}")
        if not model:
            return PROVIDERS[name]
        from recede._model_names import tokenizer_of, verifies_reasoning
        from recede._models import model_row, new_cache  # it takes as long to import as the rest

        provider = PROVIDERS[name]._replace(
            verifies_reasoning=verifies_reasoning(model), tokenizer=tokenizer_of(model) or PROVIDERS[name].tokenizer
        )
        if provider.cache == "none":
            return provider
        newer = new_cache(model) if name == "openai" else None
        if newer is not None:
            provider = provider._replace(cache="entries", write=newer[0], step_tokens=0, ttl_seconds=newer[1])
        row = model_row(model, host=name)
        if row is None or (row.provider != name and name in _MAKERS):  # its maker's price is not that of this host
            return provider
        write = row.write_1h if name.endswith("_1h") else row.write
        ttl_seconds = row.ttl_seconds or provider.ttl_seconds
        read, write, output = (price / row.input for price in (row.cached, write, row.output))
        least = row.min_tokens or provider.min_tokens
        return provider._replace(read=read, write=write, min_tokens=least, ttl_seconds=ttl_seconds, output=output)

    @classmethod
    def of_model(cls, model: str) -> Provider | None:
        """The provider whose cache a model has, by the model's name, at its prices.

        Args:
            model: its name, with or without a date, a provider or a region.

        Returns:
            The provider; None if the name belongs to no known family.

        Raises:
            TypeError: the name is no str.

        Example:
            >>> import recede
            >>> recede.Provider.of_model("openrouter/anthropic/claude-opus-5-5").name
            'anthropic'
            >>> recede.Provider.of_model("llama-4") is None
            True
        """
        if not isinstance(model, str):
            raise TypeError(f"the name of a model must be a str, not {type(model).__name__}")
        return _of_model(model)


def _unpublished(name: str, cache: Any, read: float, output: float, **known: Any) -> Provider:
    """A provider without a surcharge for writing; None is what its pages do not say, but for what is `known`."""
    not_said = {"min_tokens": None, "step_tokens": None, "ttl_seconds": None}
    return Provider(name, cache, read, write=1.0, output=output, **{**not_said, **known})


PROVIDERS = {
    provider.name: provider
    for provider in (
        # At most 4 marks, 20 blocks are searched before each; five minutes or an hour, renewed by each use; writing
        # costs 1.25 times the input or twice, reading a tenth. The minimum is 512 to 4,096 by model: 2,048 is assumed
        # where the model is not known (platform.claude.com/docs, prompt caching).
        Provider("anthropic", min_tokens=2_048, tokenizer="claude-4.7"),
        Provider("anthropic_1h", write=2.0, min_tokens=2_048, ttl_seconds=3_600, tokenizer="claude-4.7"),
        # From 1,024 tokens on in steps of 128; cleared after 5 to 10 minutes without use, of which the least is
        # assumed; writing is free. With models from GPT-5.6 on, 30 minutes after its last use, and writing costs 1.25
        # times the input; an entry is read only whole. It ends at the newest message of a user or tool of a request,
        # and a request finds those of up to 20 earlier such messages (developers.openai.com/api/docs, prompt caching,
        # November 2026).
        Provider("openai", cache="prefix", write=1.0, step_tokens=128, output=8.0, tokenizer="openai"),
        # Implicit caching, from 4,096 tokens on with Gemini 3.1 and newer; writing is free. How long an entry lives is
        # not documented: that of the others is assumed (ai.google.dev/gemini-api/docs, caching, October 2026).
        Provider("gemini", cache="prefix", write=1.0, min_tokens=4_096, output=8.0, tokenizer="gemini"),
        # Claude with the minimum, the marks and the prices of Anthropic (docs.aws.amazon.com/bedrock, prompt caching).
        Provider("bedrock", min_tokens=2_048),
        # Automatic caches of other makers and hosts, by their pages in November 2026 (docs/providers.md). A model
        # without a row has the smallest price of a cached token that one of its maker has. DeepSeek's entries live for
        # hours to days: they are never cold.
        _unpublished(
            "deepseek",
            "entries",
            0.02,
            4.0,
            min_tokens=64,
            shares_prefixes=True,
            lookback_blocks=1 << 30,
            tokenizer="deepseek",
        ),
        Provider("moonshot", cache="prefix", read=0.05, write=1.0, min_tokens=256, step_tokens=256),
        Provider("moonshot_1h", "prefix", read=0.05, write=2.0, min_tokens=256, step_tokens=256, ttl_seconds=3_600),
        _unpublished("zai", "prefix", 0.18, 3.0),
        _unpublished("alibaba", "prefix", 0.05, 3.0, min_tokens=1_024, tokenizer="qwen"),
        _unpublished("minimax", "prefix", 0.1, 4.0, min_tokens=512),
        _unpublished("xai", "prefix", 0.25, 3.0, step_tokens=128),
        _unpublished("mistral", "prefix", 0.1, 3.0),
        _unpublished("groq", "prefix", 0.5, 4.0, ttl_seconds=7_200),
        Provider("cerebras", cache="none", read=1.0, write=1.0, min_tokens=0, ttl_seconds=0, output=2.0),
        _unpublished("fireworks", "prefix", 0.1, 4.0),
        Provider("ideal", cache="ideal", min_tokens=0, ttl_seconds=math.inf),
        Provider("none", cache="none", read=1.0, write=1.0, min_tokens=0, ttl_seconds=0),
    )
}

UNKNOWN = _unpublished("unknown", "prefix", 0.1, 5.0)
"""What is assumed where neither the host nor the model is known."""

MARKED = {
    name: (start, Provider(name))
    for name, start in (("alibaba", "qwen"), ("minimax", "minimax-m2"))  # with a tenth and 1.25, for five minutes
}
"""Providers with an automatic cache whose marks count, and how the names of those models begin (docs/providers.md)."""

_MAKERS = frozenset(PROVIDERS) - {"anthropic", "anthropic_1h", "bedrock", "openai", "gemini", "ideal", "none"}

OF_FORMATS = {"codex": "openai", "gemini": "gemini"}
"""The providers of sessions by format, where no model is logged or known; Anthropic for all others."""


def cache_rule(provider: Provider) -> str:
    """Return the name of a provider's cache rule in policies and replays."""
    return _RULES[provider.cache]


def takes_marks(provider: Provider | str) -> bool:
    """Whether the cache of this `provider` option may need marks; for ``"auto"`` the messages decide."""
    return provider == "auto" or checked_provider("provider", provider).cache == "marks"


def with_rule(provider: Provider, model: Provider) -> Provider | None:
    """Add the rule for reasoning of a `model` that is named late; prices stay. None if nothing changes."""
    is_new = model.verifies_reasoning and not provider.verifies_reasoning
    return provider._replace(verifies_reasoning=True) if is_new else None


def model_verifies(model: object) -> bool:
    """Whether a model of this name verifies its reasoning; False where nothing is named."""
    from recede._model_names import verifies_reasoning  # it takes as long to import as the rest

    return isinstance(model, str) and verifies_reasoning(model[:_MOST_CHARS])


def verifies(provider: Any) -> bool:
    """Whether this `provider` option says that reasoning is verified."""
    return provider != "auto" and checked_provider("provider", provider).verifies_reasoning


def model_keeps_reasoning(model: str | None) -> bool:
    """Whether a model reads earlier reasoning that a request sends back; True where nothing is known."""
    from recede._models import model_row  # it takes as long to import as the rest

    row = None if model is None else model_row(model[:_MOST_CHARS])
    return row is None or row.reasoning.kept != "none"


def tokenizers(provider: Any, model: Any = None) -> Tokenizers:
    """The tokenizer of a `provider` option, or of a `model`: of messages that name none, and by shape.

    Where neither tells, the shape of the messages does.
    """
    from recede._model_names import TOKENIZERS, TOKENIZERS_BY_SHAPE, tokenizer_of

    name = tokenizer_of(model[:_MOST_CHARS]) if isinstance(model, str) else ""
    if not name and provider != "auto":
        name = checked_provider("provider", provider).tokenizer
    by_shape = {shape: TOKENIZERS[name or own] for shape, own in TOKENIZERS_BY_SHAPE.items()}
    return TOKENIZERS[name], by_shape


def _instead(name: str) -> str:
    """The end of the error for a provider that does not exist: a model has its own place."""
    from recede._model_names import model_provider  # it takes as long to import as the rest

    provider = model_provider(name)
    if provider in PROVIDERS and "-" in name:
        return f": for a model give Provider.of({provider!r}, {name!r})"
    return meant(name, PROVIDERS) or one_of(PROVIDERS)


@lru_cache(maxsize=_MOST_NAMES)
def _of_model(model: str, served_as: str | None = None) -> Provider | None:
    """The provider of a model; in a shape of Bedrock, Claude is served by that."""
    from recede._model_names import model_provider  # it takes as long to import as the rest
    from recede._models import model_row

    row = model_row(model)
    name = row.provider if row is not None else model_provider(model)
    if name is None:
        return None
    return Provider.of("bedrock" if (name, served_as) == ("anthropic", "bedrock") else name, model)


@lru_cache(maxsize=_MOST_NAMES)
def named_provider(name: str) -> Provider:
    """Find a provider by its name, by a model's, or by both, as in ``"anthropic_1h:claude-opus-5-5"``."""
    if name in PROVIDERS:
        return PROVIDERS[name]
    before, _, rest = name.partition(":")
    provider, model = (before, rest) if before in PROVIDERS and rest else (None, name)
    if (found := _of_model(model)) is not None:
        return found if provider is None else Provider.of(provider, model)
    if provider is not None:
        raise ValueError(f"the model {model!r} is not known: give a recede.Provider with its facts")
    near = meant(name, PROVIDERS)
    more = "" if near else ", or a known model; for any other give a recede.Provider with its facts"
    raise ValueError(f"there is no provider {name!r}{near or one_of(PROVIDERS)}{more}")


def checked_provider(name: str, value: Any) -> Provider:
    """Check the option `name`: a provider, its name, that of a model, or its JSON form."""
    if isinstance(value, str):
        return named_provider(value)
    if isinstance(value, list) and _FIRST_FIELDS <= len(value) <= len(Provider._fields):
        value = Provider(*value)  # as stored, also by a version that had fewer fields
    if not isinstance(value, Provider):
        raise TypeError(f"{name} must be a name or a Provider, not {type(value).__name__}")
    if value.cache not in _RULES:
        raise ValueError(f"{name}.cache must be one of {', '.join(map(repr, _RULES))}, not {value.cache!r}")
    for field in ("read", "write", "output", "ttl_seconds"):
        number, most = getattr(value, field), math.inf if field == "ttl_seconds" else _LARGEST_PRICE
        if number is None and field in _UNKNOWN:
            continue
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise TypeError(f"{name}.{field} must be a number, not {type(number).__name__}")
        if not 0 <= number <= most:
            raise ValueError(f"{name}.{field} must be a number from 0{'' if most == math.inf else f' to {most:g}'}")
    for field in ("min_tokens", "step_tokens", "lookback_blocks", "most_marks"):
        count = getattr(value, field)
        if count is None and field in _UNKNOWN:
            continue
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"{name}.{field} must be a whole number, not {type(count).__name__}")
        if not 0 <= count <= _LARGEST_COUNT:
            raise ValueError(f"{name}.{field} must be a number from 0 to {_LARGEST_COUNT:,}")
    from recede._model_names import TOKENIZERS  # it takes as long to import as the rest

    if value.tokenizer not in TOKENIZERS:
        known = ", ".join(map(repr, TOKENIZERS))
        raise ValueError(f"{name}.tokenizer must be one of {known}, not {value.tokenizer!r}")
    for field in ("verifies_reasoning", "shares_prefixes"):
        if not isinstance(getattr(value, field), bool):
            kind = type(getattr(value, field)).__name__
            raise TypeError(f"{name}.{field} must be True or False, not {kind}")
    return value


def saved_provider(value: Any) -> Any:
    """Convert a provider to JSON: its name if known, else its fields except the lifetime of entries."""
    if not isinstance(value, Provider):
        return value
    ttl_seconds = None if value.ttl_seconds is None else 0
    return value.name if PROVIDERS.get(value.name) == value else list(value._replace(ttl_seconds=ttl_seconds))


def provider_of_model(model: Any, served_as: str | None = None) -> Provider | None:
    """The provider of a model that a request or response names, in a shape of the provider `served_as`; else None."""
    return _of_model(model[:_MOST_CHARS], served_as) if isinstance(model, str) and model else None


def window_tokens(provider: Any, model: Any = None) -> int | None:
    """The window of the model that a `provider` option names, or of this one; None if it is not known."""
    from recede._models import model_row  # it takes as long to import as the rest

    host = provider.name if isinstance(provider, Provider) else None
    named = (name[:_MOST_CHARS] for name in (provider, model) if isinstance(name, str) and name)
    rows = (model_row(name, host=host) for name in named)
    return next((row.window_tokens for row in rows if row is not None), None)


def settled(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options in which the facts of a model stand for its name, so that what is stored keeps them."""
    provider = options.get("provider", "auto")
    if not isinstance(provider, str) or provider == "auto" or provider in PROVIDERS:
        return dict(options)
    return {**options, "provider": named_provider(provider)}


def has_entries(provider: Any, model: Any = None) -> bool:
    """Whether this `provider` option, with ``"auto"`` that of the model, has a cache that is read only whole."""
    given = provider_of_model(model) if provider == "auto" else provider
    return given is not None and checked_provider("provider", given).cache == "entries"


def lifetime(provider: Provider) -> float:
    """Seconds that an entry lives after its last use, as far as is known."""
    return math.inf if provider.ttl_seconds is None else provider.ttl_seconds


def rounded_static(static: int) -> int:
    """Round characters of system prompt and tools up to a power of two, so that another tool seldom changes them."""
    return 1 << (static - 1).bit_length() if static > 1 else static


def policy_cache(provider: Provider, static: int = 0) -> tuple[str, int, int, int, int, int, bool]:
    """Return what an engine's Policy knows about a provider's cache.

    `static` is what system prompt and tools take, in characters; 0: unknown. It is rounded, so that another tool seldom
    changes earlier decisions.
    """
    lookback, most_marks = provider.lookback_blocks, provider.most_marks
    if provider.cache != "entries":
        return cache_rule(provider), provider.min_tokens or 0, provider.step_tokens or 0, lookback, most_marks, 0, False
    system_chars = rounded_static(static) or _MOST_SYSTEM_CHARS
    # What requests share is used at moves alone, and would be gone.
    shares = provider.shares_prefixes and provider.ttl_seconds is None
    return cache_rule(provider), provider.min_tokens or 0, 0, lookback, most_marks, system_chars, shares
