"""What does in Python what a policy of a replay does: the options of a mask, and a line to paste."""

from __future__ import annotations

from typing import Any

from recede import Provider
from recede.costs import CACHES, Cache, Prices, parse_policy

_PROVIDERS = {"prefix": "openai", "breakpoints": "anthropic"}


def line_for(policy: str, prices: Prices, cache: Cache = CACHES["ideal"]) -> str | None:
    """A line to paste before each request, where `messages` is the history; None where no single line does it.

    Args:
        policy: as a replay names it.
        prices: those of the replay, at which the boundary breaks even.
        cache: that of the replay, which decides what a move writes again.

    Example:
        >>> from recede.cli.paste import line_for
        >>> from recede.costs import Prices
        >>> line_for("break_even:window=10", Prices())
        'view = recede.reduce(messages, keep=10, provider="ideal").messages'
    """
    kind, values = parse_policy(policy)
    mask = mask_options(policy, prices, cache)
    if mask is not None and "keep_turns" in mask:
        return f"view = recede.designs.mask_observations(messages, {_written(mask)}).messages"
    if mask is not None:
        own = {"keep": mask.pop("keep_results"), "boundary": mask.pop("mask_chunk", mask.pop("boundary", None))}
        own = {name: value for name, value in own.items() if value != "break_even"}
        return f"view = recede.reduce(messages, {_written({**own, **mask})}).messages"
    if kind == "keep_last":
        window = f"preserve_recent_raw_turns={values['messages']}"
        return f"view = recede.designs.truncate_history(messages, {window}).messages"
    if kind == "hybrid":
        at = '"break_even"' if values["at"] == "break_even" else values["at"]
        rule = {**_boundary(values), **_assumed(values, prices, cache)}
        if rule.get("provider") == Provider.of("ideal"):
            del rule["provider"]
        options = ", ".join(filter(None, [f"{values['window']}, {at}, {values['tail']}", _written(rule)]))
        return f"manager = recede.designs.HybridContextManager(recede.summarizers.builtin(), {options})"
    return None


def mask_options(policy: str, prices: Prices, cache: Cache) -> dict[str, Any] | None:
    """The options of `recede.designs.mask_observations` for a policy; None if it does anything else than mask."""
    kind, values = parse_policy(policy)
    if kind == "hybrid" and values["at"] == "never":
        return {"keep_turns": values["window"], **_boundary(values), **_assumed(values, prices, cache)}
    if kind in ("sliding", "stepped", "break_even"):
        values = {**values, "boundary": kind}
        return {"keep_results": values["window"], **_boundary(values), **_assumed(values, prices, cache)}
    return None


def _written(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_literal(value)}" for name, value in options.items())


def _literal(value: Any) -> str:
    """A value as one writes it; a provider by its name, and the prices that differ from its usual ones."""
    if isinstance(value, Provider):
        usual = Provider.of(value.name)
        prices = ((name, getattr(value, name)) for name in ("read", "write"))
        differs = ", ".join(f"{name}={price}" for name, price in prices if price != getattr(usual, name))
        return f'recede.Provider.of("{value.name}")._replace({differs})' if differs else f'"{value.name}"'
    return f'"{value}"' if isinstance(value, str) else str(value)


def _boundary(values: dict[str, Any]) -> dict[str, Any]:
    return {"mask_chunk": values["chunk"]} if values.get("chunk") else {"boundary": values.get("boundary", "sliding")}


def _assumed(values: dict[str, Any], prices: Prices, cache: Cache) -> dict[str, Any]:
    """Options of break-even in the line to paste: cache and prices of the replay, and the bound on cost."""
    if values.get("boundary") != "break_even":
        return {}
    is_ideal = cache.rule == "ideal" or (cache.rule == "prefix" and not cache.step_tokens)
    usual = Provider.of("ideal" if is_ideal else _PROVIDERS[cache.rule])
    provider = usual
    if prices.input:
        read, write = (float(f"{price / prices.input:.4g}") for price in (prices.cached, prices.write))
        provider = usual._replace(read=read, write=write)
    part = values.get("max_overcost", "0.1")
    max_overcost = {} if part == "0.1" else {"max_overcost": None if part == "none" else float(part)}
    return {"provider": provider, **max_overcost}
