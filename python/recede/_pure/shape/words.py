"""The words of messages: the keys that some shape reads, and what types say."""

from __future__ import annotations

from typing import Any

TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
IMAGE_TYPES = frozenset({"image", "image_url", "input_image", "document", "file", "input_file"})

# Keys that must not stand twice in a message, and in a part of a content or of an observation.
MESSAGE_KEYS = frozenset(
    {
        *("role", "content", "parts", "type", "tags"),
        *("tool_calls", "tool_call_id", "pairRole", "pairId"),
        *("call_id", "name", "arguments", "input", "action", "output"),
    }
)
BLOCK_KEYS = frozenset("type text id name input tool_use_id content is_error".split())
PART_KEYS = frozenset({"type", "text"})

NO_RESULT = "[no result recorded]"
"""The observation of a result that mends an orphan."""


def string(value: Any) -> str | None:
    """A string, or nothing: ids, names, roles and types count only as strings."""
    return value if isinstance(value, str) else None


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def block_type(block: Any) -> str | None:
    return string(block.get("type")) if isinstance(block, dict) else None
