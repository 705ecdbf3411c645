"""Results of an agent's loop: an answer, and how it was assembled. The loop itself is in `recede.designs`."""

from recede.agent._auto_continue import Continuation, Cut
from recede.agent._conversation import Answer

__all__ = ["Answer", "Continuation", "Cut"]
