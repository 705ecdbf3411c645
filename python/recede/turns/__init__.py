"""Results of managers of turns: turns, reports and figures. The managers are in `recede.designs`."""

from recede.turns._report import AgentRun, ContextReport, EfficiencyReport, TokenSavings, TurnStats, TurnTokens
from recede.turns._turn import Summary, Turn

__all__ = [
    "AgentRun",
    "ContextReport",
    "EfficiencyReport",
    "Summary",
    "TokenSavings",
    "Turn",
    "TurnStats",
    "TurnTokens",
]
