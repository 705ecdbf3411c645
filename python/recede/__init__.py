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
from recede._engine import ENGINE
from recede._errors import RecedeError, StoreError, TranscriptError
from recede._report import (
    BoundaryMove,
    ContextReport,
    Finding,
    JsonReduction,
    PairReport,
    Reduction,
    ToolReport,
    TurnTokens,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from recede._auto_continue import Continuation, auto_continue, auto_continue_async
    from recede._budget import Budget
    from recede._compare import PolicyCost, cheapest_policy
    from recede._conversation import Answer, Conversation
    from recede._cost import PRESETS, SUMMARY_CHARS, Prices, Usage
    from recede._history import History, HistoryStats
    from recede._hybrid import HybridContextManager
    from recede._production import AgentRun, EfficiencyReport, ProductionHybridContextManager
    from recede._replay import (
        SYSTEM_CHARS,
        PolicyReplay,
        Replay,
        ReplayedTurn,
        compare_costs,
        replay,
        replay_json,
    )
    from recede._replay_policies import replay_policies
    from recede._store import StoredTurn, StoreFault, StoreReport, StoreStats, TurnStore
    from recede._suggest import Choice, Suggestion, suggest_window
    from recede._turn_log import Summary, Turn
    from recede._turns import ObservationMaskingContextManager, TokenSavings, apply_observation_masking
    from recede._types import AnthropicMessage, ChatMessage, Message, OpenAIMessage, ResponsesItem
del TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "ENGINE",
    "PRESETS",
    "SUMMARY_CHARS",
    "SYSTEM_CHARS",
    "AgentRun",
    "Answer",
    "AnthropicMessage",
    "BoundaryMove",
    "Budget",
    "ChatMessage",
    "Choice",
    "ContextReport",
    "Continuation",
    "Conversation",
    "EfficiencyReport",
    "Finding",
    "History",
    "HistoryReducer",
    "HistoryStats",
    "HybridContextManager",
    "JsonReduction",
    "Message",
    "ObservationMaskingContextManager",
    "OpenAIMessage",
    "PairReport",
    "PolicyCost",
    "PolicyReplay",
    "Prices",
    "ProductionHybridContextManager",
    "RecedeError",
    "Reduction",
    "Replay",
    "ReplayedTurn",
    "ResponsesItem",
    "StoreError",
    "StoreFault",
    "StoreReport",
    "StoreStats",
    "StoredTurn",
    "Suggestion",
    "Summary",
    "TokenSavings",
    "ToolReport",
    "TranscriptError",
    "Turn",
    "TurnStore",
    "TurnTokens",
    "Usage",
    "__version__",
    "apply_observation_masking",
    "approx_tokens",
    "auto_continue",
    "auto_continue_async",
    "cheapest_policy",
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
    "replay_policies",
    "suggest_window",
    "summarize_history",
    "truncate_history",
]


# What is imported when a program asks for it, so that a reducer in an agent loop starts at once.
_LATER = {
    "_compare": ("PolicyCost", "cheapest_policy"),
    "_cost": ("PRESETS", "SUMMARY_CHARS", "Prices", "Usage"),
    "_auto_continue": ("Continuation", "auto_continue", "auto_continue_async"),
    "_budget": ("Budget",),
    "_conversation": ("Answer", "Conversation"),
    "_history": ("History", "HistoryStats"),
    "_hybrid": ("HybridContextManager",),
    "_production": ("AgentRun", "EfficiencyReport", "ProductionHybridContextManager"),
    "_replay": (
        "SYSTEM_CHARS",
        "PolicyReplay",
        "Replay",
        "ReplayedTurn",
        "compare_costs",
        "replay",
        "replay_json",
    ),
    "_replay_policies": ("replay_policies",),
    "_store": ("StoreFault", "StoreReport", "StoreStats", "StoredTurn", "TurnStore"),
    "_suggest": ("Choice", "Suggestion", "suggest_window"),
    "_turn_log": ("Summary", "Turn"),
    "_turns": ("ObservationMaskingContextManager", "TokenSavings", "apply_observation_masking"),
    "_types": ("AnthropicMessage", "ChatMessage", "Message", "OpenAIMessage", "ResponsesItem"),
}

_MODULES = ("summarizers", "transcripts")


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"recede.{name}")
    for module, names in _LATER.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"recede.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
