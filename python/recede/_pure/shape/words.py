"""The vocabulary of messages: the keys that some shape reads, and the meanings of types."""

from __future__ import annotations

from typing import Any

TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
IMAGE_TYPES = frozenset({"image", "image_url", "input_image", "document", "file", "input_file"})

# Keys that must not be repeated in a message of any shape, in a block, and in a part of an observation.
COMMON_KEYS = frozenset(
    {
        *("role", "content", "type", "tags"),
        *("tool_calls", "tool_call_id", "pairRole", "pairId"),
        *("call_id", "name", "arguments", "input", "action", "output"),
        *("is_error", "status"),
    }
)
BLOCK_KEYS = frozenset("type text id name input tool_use_id content is_error".split())
PART_KEYS = frozenset({"type", "text"})

NO_RESULT = "[no result recorded]"
"""The observation of a result that repairs an orphan."""

MARK = "cache_control"
"""The field of a cache mark: a provider writes an entry of its prompt cache after the block that has one."""


def string(value: Any) -> str | None:
    """A string, or nothing: ids, names, roles and types count only as strings."""
    return value if isinstance(value, str) else None


def is_flagged(message: dict[str, Any]) -> bool:
    """Whether a message that is a result is flagged as an error."""
    return message.get("is_error") is True or string(message.get("status")) in ("error", "failed")


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def mark_in(value: Any) -> Any:
    """The mark of the last part that has one, of a value that may be a list of parts."""
    return next((part[MARK] for part in reversed(items(value)) if part.get(MARK) is not None), None)


def marked(text: str, value: Any, part_type: str) -> Any:
    """The text that replaces a value; if that has a mark, in a part with it."""
    mark = mark_in(value)
    return text if mark is None else [{"type": part_type, "text": text, MARK: mark}]


def block_type(block: Any) -> str | None:
    return string(block.get("type")) if isinstance(block, dict) else None
