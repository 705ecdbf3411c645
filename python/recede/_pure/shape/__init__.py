"""The shapes of messages, one module each. No code outside of this folder depends on the shape of a message."""

from __future__ import annotations

from typing import Any

from recede._pure.shape.anthropic import Anthropic
from recede._pure.shape.base import Shape
from recede._pure.shape.chat_message import ChatMessage
from recede._pure.shape.converse import Converse
from recede._pure.shape.gemini import Gemini
from recede._pure.shape.openai import OpenAI
from recede._pure.shape.responses import Responses
from recede._pure.shape.words import COMMON_KEYS

__all__ = ["MESSAGE_KEYS", "PLAIN", "Shape", "shape_of"]

PLAIN: Shape = OpenAI()
"""How a message without calls and results is written."""

_SHAPES: tuple[Shape, ...] = (ChatMessage(), OpenAI(), Anthropic(), Responses(), Converse(), Gemini())

MESSAGE_KEYS = COMMON_KEYS.union(*(shape.message_keys for shape in _SHAPES))
"""Keys that must not be repeated in a message."""


def shape_of(message: dict[str, Any]) -> Shape | None:
    """The first shape that fits the message; None if it has neither calls nor results."""
    return next((shape for shape in _SHAPES if shape.fits(message)), None)
