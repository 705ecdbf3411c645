"""The shapes of messages, one module each. No code outside of this folder depends on the shape of a message."""

from __future__ import annotations

from typing import Any

from oracle.shape.anthropic import Anthropic
from oracle.shape.base import Shape
from oracle.shape.chat_message import ChatMessage
from oracle.shape.converse import Converse
from oracle.shape.gemini import Gemini
from oracle.shape.interactions import Interactions, InteractionsInput
from oracle.shape.openai import OpenAI
from oracle.shape.responses import Responses
from oracle.shape.words import COMMON_KEYS

__all__ = ["MESSAGE_KEYS", "PLAIN", "Shape", "shape_of"]

PLAIN: Shape = OpenAI()
"""How a message without calls and results is written."""

_STEPS = (Interactions(), InteractionsInput())

_SHAPES: tuple[Shape, ...] = (ChatMessage(), OpenAI(), *_STEPS, Anthropic(), Responses(), Converse(), Gemini())

MESSAGE_KEYS = COMMON_KEYS.union(*(shape.message_keys for shape in _SHAPES))
"""Keys that must not be repeated in a message."""


def shape_of(message: dict[str, Any]) -> Shape | None:
    """The first shape that fits the message; None if it has neither calls nor results."""
    return next((shape for shape in _SHAPES if shape.fits(message)), None)
