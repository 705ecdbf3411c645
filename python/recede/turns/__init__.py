"""Results of managers of turns: turns, reports and figures. The managers are in `recede.designs`."""

from recede.turns._records import AgentRun, ContextReport, EfficiencyReport, Summary, TokenSavings, Turn, TurnStats

__all__ = ["AgentRun", "ContextReport", "EfficiencyReport", "Summary", "TokenSavings", "Turn", "TurnStats"]
