"""Tools for an agent loop: a budget, continuation of truncated answers, and the loop itself."""

from recede.agent._auto_continue import Continuation, Cut, auto_continue, auto_continue_async
from recede.agent._budget import Budget
from recede.agent._conversation import Answer, Conversation

__all__ = [
    "Answer",
    "Budget",
    "Continuation",
    "Conversation",
    "Cut",
    "auto_continue",
    "auto_continue_async",
]
