"""What managers of turns give back: turns, reports and figures. The managers are in `recede.designs`."""

from recede.turns._manager import TurnStats
from recede.turns._masking import TokenSavings
from recede.turns._production import AgentRun
from recede.turns._report import ContextReport, EfficiencyReport, TurnTokens
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
