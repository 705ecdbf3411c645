"""The official clients of Anthropic and OpenAI, sending views."""

from recede.clients._wrap import wrap

__all__ = ["wrap"]
