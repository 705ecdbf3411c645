"""The reducer: takes a history, returns a smaller one."""

from recede._engine import ENGINE
from recede.reduction._api import (
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
from recede.reduction._report import BoundaryMove, Finding, JsonReduction, PairReport, Reduction, ToolReport

__all__ = [
    "ENGINE",
    "BoundaryMove",
    "Finding",
    "HistoryReducer",
    "JsonReduction",
    "PairReport",
    "Reduction",
    "ToolReport",
    "approx_tokens",
    "check_pairs",
    "count_chars",
    "mask_observation",
    "mask_observations",
    "mask_observations_json",
    "mask_old_observations",
    "mask_old_observations_json",
    "reduce",
    "reduce_json",
    "repair_pairs",
    "summarize_history",
    "truncate_history",
]
