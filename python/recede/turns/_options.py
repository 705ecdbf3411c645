"""Options of the managers of turns, and when they make summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from recede.costs._prices import SUMMARY_CHARS, SUMMARY_PROMPT_CHARS, Prices
from recede.reduction._kinds import FLAG, Kind, optional_function
from recede.reduction._options import DESIGN_OPTIONS, Option

if TYPE_CHECKING:
    from recede._report import BoundaryMove
    from recede.providers import Provider
    from recede.store._turn_store import TurnStore
    from recede.types import TokenCounter

__all__ = ["OPTIONS", "PRESETS", "PRICED_OPTIONS", "HybridOptions", "ManagerOptions", "due_summaries", "preset"]

# The best published values for each agent (docs/managers.md has the source): window, summary at, tail.
PRESETS = {"swe-agent": (10, 43, 10), "openhands": (58, 80, 58)}


class ManagerOptions(TypedDict, total=False):
    """The options of every manager of turns."""

    mask_chunk: int | None
    boundary: Literal["sliding", "stepped", "break_even"]
    provider: str | Provider
    max_overcost: float | None
    token_counter: TokenCounter | None
    store: TurnStore | None
    on_move: Callable[[BoundaryMove], Any] | None
    recall: bool


class HybridOptions(ManagerOptions, total=False):
    """The options of managers that make summaries."""

    prices: Prices | None


def _as_given(name: str, value: Any) -> Any:
    return value


_STORE = Option("store", Kind("TurnStore | None", _as_given), None, "a TurnStore that keeps the turns")
_ON_MOVE = Option(
    "on_move",
    Kind("Callable[[BoundaryMove], Any] | None", optional_function),
    None,
    "called with each move of the boundary",
)
_PRICES = Option("prices", Kind("Prices | None", _as_given), None, "the prices for break-even")
OPTIONS = {
    **{name: DESIGN_OPTIONS[name] for name in ("mask_chunk", "boundary", "provider", "max_overcost", "token_counter")},
    "store": _STORE,
    "on_move": _ON_MOVE,
    "recall": Option("recall", FLAG, False, "placeholders name the turn, for an agent that may ask for it"),
}
PRICED_OPTIONS = {**OPTIONS, "prices": _PRICES}


def preset(name: str) -> tuple[int, int, int]:
    """The preset of this name: window, summary at, tail."""
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; give one of {', '.join(map(repr, PRESETS))}")
    return PRESETS[name]


def due_summaries(given: Mapping[str, Any], prices: Prices) -> tuple[Any, ...]:
    """When summaries are made and what they cost, as an argument for the engine."""
    for name, turns in given.items():
        is_price = name == "summarize_at_n" and turns == "break_even"
        if not is_price and (not isinstance(turns, int) or isinstance(turns, bool)):
            wanted = "a whole number" if name == "tail_window_m" else "a whole number or 'break_even'"
            raise TypeError(f"{name} must be {wanted}, not {type(turns).__name__}")
    at, tail = given["summarize_at_n"], given["tail_window_m"]
    if tail < 0:
        raise ValueError(f"tail_window_m must be at least 0, not {tail}")
    if at != "break_even" and at <= tail:
        raise ValueError(f"summarize_at_n ({at}) must be more than tail_window_m ({tail})")
    paid = float(prices.cached), float(prices.write), float(prices.input), float(prices.output)
    return None if at == "break_even" else (at, at), paid, tail, (SUMMARY_CHARS, SUMMARY_PROMPT_CHARS)
