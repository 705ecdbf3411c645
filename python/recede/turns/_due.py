"""When a manager makes summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recede.costs._prices import SUMMARY_CHARS, SUMMARY_PROMPT_CHARS

if TYPE_CHECKING:
    from recede.costs._prices import Prices

__all__ = ["due_summaries"]


def due_summaries(at: Any, tail: Any, prices: Prices) -> tuple[Any, ...]:
    """When summaries are made and what they cost, as an argument for the engine."""
    numbers = {"a whole number": ("tail_window_m", tail)}
    if at != "break_even":
        numbers["a whole number or 'break_even'"] = ("summarize_at_n", at)
    for wanted, (name, turns) in numbers.items():
        if not isinstance(turns, int) or isinstance(turns, bool):
            raise TypeError(f"{name} must be {wanted}, not {type(turns).__name__}")
    if tail < 0:
        raise ValueError(f"tail_window_m must be at least 0, not {tail}")
    paid = float(prices.cached), float(prices.write), float(prices.input), float(prices.output)
    model = SUMMARY_CHARS, SUMMARY_PROMPT_CHARS
    if at == "break_even":
        return None, paid, tail, model
    if at <= tail:
        raise ValueError(f"summarize_at_n ({at}) must be more than tail_window_m ({tail})")
    return (at, at), paid, tail, model
