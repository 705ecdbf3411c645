"""The names of the published designs, each with its design's words, defaults and placeholder.

docs/coming-from.md has every statement of the designs beside what these do.
"""

from recede.agent._auto_continue import auto_continue, auto_continue_async
from recede.agent._budget import Budget
from recede.agent._conversation import Conversation
from recede.reduction import (
    HistoryReducer,
    approx_tokens,
    mask_observation,
    mask_observations,
    mask_observations_json,
    mask_old_observations,
    mask_old_observations_json,
    summarize_history,
    truncate_history,
)
from recede.turns._hybrid import HybridContextManager
from recede.turns._masking import ObservationMaskingContextManager, apply_observation_masking
from recede.turns._production import ProductionHybridContextManager

__all__ = [
    "Budget",
    "Conversation",
    "HistoryReducer",
    "HybridContextManager",
    "ObservationMaskingContextManager",
    "ProductionHybridContextManager",
    "apply_observation_masking",
    "approx_tokens",
    "auto_continue",
    "auto_continue_async",
    "mask_observation",
    "mask_observations",
    "mask_observations_json",
    "mask_old_observations",
    "mask_old_observations_json",
    "summarize_history",
    "truncate_history",
]
