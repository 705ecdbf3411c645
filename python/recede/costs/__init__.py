"""Costs of sessions: prices, replay of every request under several policies, and the best window."""

from recede.costs._bill import Bill, SessionPrices, logged_bill, session_prices
from recede.costs._cache import CACHES, Cache, cache_of_format
from recede.costs._calibrate import calibrate
from recede.costs._calibration import Calibration
from recede.costs._check import BillCheck, check_bill, replay_transcript
from recede.costs._compare import PolicyCost, ReplayUsage, cheapest_policy
from recede.costs._misses import (
    CURVE_WINDOWS,
    WindowChoice,
    WindowCurve,
    curve_policies,
    misses,
    quoted_share,
    window_curve,
)
from recede.costs._models import MODELS, ModelPrices, model_prices
from recede.costs._policies import parse_policy, reads_texts, replay_policies
from recede.costs._price_file import read_prices
from recede.costs._prices import PRESETS, SUMMARY_CHARS, Prices, Usage
from recede.costs._quotations import Misses, Quotation
from recede.costs._replay import SYSTEM_CHARS, PolicyReplay, Replay, compare_costs, replay, replay_json
from recede.costs._turn import ReplayedTurn

__all__ = [
    "CACHES",
    "CURVE_WINDOWS",
    "MODELS",
    "PRESETS",
    "SUMMARY_CHARS",
    "SYSTEM_CHARS",
    "Bill",
    "BillCheck",
    "Cache",
    "Calibration",
    "Misses",
    "ModelPrices",
    "PolicyCost",
    "PolicyReplay",
    "Prices",
    "Quotation",
    "Replay",
    "ReplayUsage",
    "ReplayedTurn",
    "SessionPrices",
    "Usage",
    "WindowChoice",
    "WindowCurve",
    "cache_of_format",
    "calibrate",
    "cheapest_policy",
    "check_bill",
    "compare_costs",
    "curve_policies",
    "logged_bill",
    "misses",
    "model_prices",
    "parse_policy",
    "quoted_share",
    "read_prices",
    "reads_texts",
    "replay",
    "replay_json",
    "replay_policies",
    "replay_transcript",
    "session_prices",
    "window_curve",
]
