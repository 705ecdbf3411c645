"""Turn-based context managers after published designs: masking, the hybrid with summaries, and an agent loop."""

from recede.turns._apply import apply_observation_masking
from recede.turns._hybrid import HybridContextManager
from recede.turns._manager import TurnStats
from recede.turns._masking import ObservationMaskingContextManager, TokenSavings
from recede.turns._production import AgentRun, ProductionHybridContextManager
from recede.turns._report import ContextReport, EfficiencyReport, TurnTokens
from recede.turns._turn import Summary, Turn

__all__ = [
    "AgentRun",
    "ContextReport",
    "EfficiencyReport",
    "HybridContextManager",
    "ObservationMaskingContextManager",
    "ProductionHybridContextManager",
    "Summary",
    "TokenSavings",
    "Turn",
    "TurnStats",
    "TurnTokens",
    "apply_observation_masking",
]
