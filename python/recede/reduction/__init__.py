"""The reducer: takes a history, returns a smaller one. Time is linear in the text of the history."""

from recede._engine import scanner
from recede._report import BoundaryMove, Finding, JsonReduction, PairReport, Reduction, ToolReport
from recede.reduction._counting import approx_tokens, count_chars
from recede.reduction._pairs import check_pairs, repair_pairs
from recede.reduction._reduce import reduce
from recede.reduction._reducer import (
    HistoryReducer,
    mask_observation,
    mask_observations,
    mask_observations_json,
    mask_old_observations,
    mask_old_observations_json,
    summarize_history,
    truncate_history,
)

__all__ = [
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
    "repair_pairs",
    "scanner",
    "summarize_history",
    "truncate_history",
]
