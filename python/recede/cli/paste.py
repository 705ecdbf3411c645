"""The line of Python that does what a policy of a replay does."""

from __future__ import annotations

from recede.costs import Prices

__all__ = ["line_for"]


def line_for(policy: str, prices: Prices) -> str | None:
    """A line to paste before each request, where `messages` is the history; None where no single line does it.

    Args:
        policy: as a replay names it.
        prices: those of the replay, by which break-even is reckoned.

    Example:
        >>> from recede.cli.paste import line_for
        >>> from recede.costs import Prices
        >>> line_for("break_even:window=10", Prices())
        'view = recede.mask_observations(messages, keep_results=10, boundary="break_even").messages'
    """
    kind, _, rest = policy.partition(":")
    values = dict(part.split("=") for part in filter(None, rest.split(",")))
    if kind == "keep_last":
        window = f"preserve_recent_raw_turns={values['messages']}"
        return f"view = recede.reduction.truncate_history(messages, {window}).messages"
    if kind == "hybrid" and values["at"] != "never":
        at = '"break_even"' if values["at"] == "break_even" else values["at"]
        options = ", ".join([values["window"], at, values["tail"], *_boundary(values)])
        return f"manager = recede.HybridContextManager(recede.summarizers.builtin(), {options})"
    if kind in ("sliding", "stepped", "break_even", "hybrid"):
        window = f"keep_turns={values['window']}" if kind == "hybrid" else f"keep_results={values['window']}"
        boundary = _boundary(values if kind == "hybrid" else {**values, "boundary": kind})
        options = ", ".join(["messages", window, *boundary, *_cache(boundary, prices)])
        return f"view = recede.mask_observations({options}).messages"
    return None


def _boundary(values: dict[str, str]) -> list[str]:
    if values.get("boundary") == "break_even":
        return ['boundary="break_even"']
    return [f"mask_chunk={values['chunk']}"] if "chunk" in values else []


def _cache(boundary: list[str], prices: Prices) -> list[str]:
    """What reading and writing cost compared with an uncached token, where that is not the default."""
    if boundary != ['boundary="break_even"'] or not prices.input:
        return []
    shares = {"cache_read": prices.cached / prices.input, "cache_write": prices.write / prices.input}
    usual = {"cache_read": 0.1, "cache_write": 1.25}
    return [f"{name}={share:.4g}" for name, share in shares.items() if abs(share - usual[name]) > 1e-9]
