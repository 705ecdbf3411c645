"""Agents that are known by name: which of their tool results carry the user's own words.

Each row was read from the version that it names.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["AGENTS", "USER_TOOLS", "Agent"]


class Agent(NamedTuple):
    """Facts about a coding agent.

    Attributes:
        title: its name, as people write it.
        version: where the row was read.
        user_tools: tools whose results carry the user's own words: answers to questions, approved or changed plans.
    """

    title: str
    version: str
    user_tools: tuple[str, ...] = ()


AGENTS = {
    "claude": Agent("Claude Code", "2.1.197", user_tools=("AskUserQuestion", "ExitPlanMode")),
    "codex": Agent("Codex", "0.169.0", user_tools=("request_user_input",)),
    "gemini": Agent("Gemini CLI", "0.61.0", user_tools=("ask_user", "exit_plan_mode")),
    "opencode": Agent("OpenCode", "1.18.33", user_tools=("question", "plan_exit")),
    "cline": Agent("Cline", "3.0", user_tools=("ask_followup_question",)),
}
"""The known agents, by command."""

USER_TOOLS = frozenset(tool for agent in AGENTS.values() for tool in agent.user_tools)
"""Tools whose results carry the user's own words."""
