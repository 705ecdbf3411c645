"""What a loop gives back: the answer of a model, and how it was put together. The loop is in `recede.designs`."""

from recede.agent._auto_continue import Continuation, Cut
from recede.agent._conversation import Answer

__all__ = ["Answer", "Continuation", "Cut"]
