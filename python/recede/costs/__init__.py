"""Costs of sessions: prices, replay of every request under several policies, and the best window."""

from recede.costs._cache import CACHES, Cache, cache_of_format
from recede.costs._compare import PolicyCost, cheapest_policy
from recede.costs._policies import replay_policies
from recede.costs._prices import PRESETS, SUMMARY_CHARS, Prices, Usage
from recede.costs._replay import SYSTEM_CHARS, PolicyReplay, Replay, ReplayedTurn, compare_costs, replay, replay_json
from recede.costs._suggest import Choice, Suggestion, suggest_window

__all__ = [
    "CACHES",
    "PRESETS",
    "SUMMARY_CHARS",
    "SYSTEM_CHARS",
    "Cache",
    "Choice",
    "PolicyCost",
    "PolicyReplay",
    "Prices",
    "Replay",
    "ReplayedTurn",
    "Suggestion",
    "Usage",
    "cache_of_format",
    "cheapest_policy",
    "compare_costs",
    "replay",
    "replay_json",
    "replay_policies",
    "suggest_window",
]
