"""Keeps the history of a long-running LLM agent small: old tool outputs recede behind a one-line placeholder."""

from recede._api import (
    HistoryReducer,
    approx_tokens,
    check_pairs,
    count_chars,
    mask_observation,
    mask_observations,
    mask_observations_json,
    mask_old_observations,
    mask_old_observations_json,
    reduce,
    reduce_json,
    repair_pairs,
    summarize_history,
    truncate_history,
)
from recede._cost import PRESETS, Prices, Usage
from recede._engine import ENGINE
from recede._errors import TranscriptError
from recede._history import History, HistoryStats
from recede._replay import (
    PolicyCost,
    PolicyReplay,
    Replay,
    ReplayedTurn,
    compare_costs,
    replay,
    replay_json,
)
from recede._report import BoundaryMove, Finding, JsonReduction, PairReport, Reduction, ToolReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from recede._types import AnthropicMessage, ChatMessage, Message, OpenAIMessage, ResponsesItem
del TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "ENGINE",
    "PRESETS",
    "AnthropicMessage",
    "BoundaryMove",
    "ChatMessage",
    "Finding",
    "History",
    "HistoryReducer",
    "HistoryStats",
    "JsonReduction",
    "Message",
    "OpenAIMessage",
    "PairReport",
    "PolicyCost",
    "PolicyReplay",
    "Prices",
    "Reduction",
    "Replay",
    "ReplayedTurn",
    "ResponsesItem",
    "ToolReport",
    "TranscriptError",
    "Usage",
    "__version__",
    "approx_tokens",
    "check_pairs",
    "compare_costs",
    "count_chars",
    "mask_observation",
    "mask_observations",
    "mask_observations_json",
    "mask_old_observations",
    "mask_old_observations_json",
    "reduce",
    "reduce_json",
    "repair_pairs",
    "replay",
    "replay_json",
    "summarize_history",
    "truncate_history",
]


def __getattr__(name: str) -> object:
    """The types of messages are made when a program asks for them: most only write them down for a type checker."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recede import _types

    value = globals()[name] = getattr(_types, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
