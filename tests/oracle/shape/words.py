"""The vocabulary of messages: the keys that some shape reads, and the meanings of types."""

from __future__ import annotations

from typing import Any

from oracle.value import GONE, Changed, Member

TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
IMAGE_TYPES = frozenset(
    {
        *("image", "image_url", "input_image", "file", "input_file"),
        *("input_audio", "audio", "video", "video_url", "computer_screenshot"),
        *("media", "image-data", "image-url", "file-data", "file-url"),
    }
)
THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})
OF_AGENT_TYPES = frozenset(
    {
        *TEXT_TYPES,
        *THINKING_TYPES,
        *("tool_use", "tool_result", "refusal", "reasoning", "function_call", "tool_call", "tool-call"),
    }
)
"""Text, reasoning and calls of the agent."""
KNOWN_TYPES = frozenset(
    {
        *IMAGE_TYPES,
        *("document", "compaction", "function_result", "fallback", "search_result", "container_upload"),
    }
)
"""Other types of parts."""
LOADED_TOOLS = "tool_search_tool_result"
"""What a search of the provider has found: tools that the model may then call."""

# Keys that must not be repeated in a message of any shape, in a block, and in a part of an observation.
COMMON_KEYS = frozenset(
    {
        *("role", "content", "type", "tags"),
        *("tool_calls", "tool_call_id", "pairRole", "pairId"),
        *("call_id", "name", "arguments", "input", "action", "output"),
        *("is_error", "status"),
        *("function_call", "operation", "actions"),
        *("thinking_blocks", "reasoning_details"),
    }
)
BLOCK_KEYS = frozenset("type text id name input tool_use_id content is_error".split())
PART_KEYS = frozenset({"type", "text"})

NO_RESULT = "[no result recorded]"
"""The observation of a result that repairs an orphan."""

REFERENCE = "tool_reference"
"""The type of a part that names a tool, and stays where its observation is replaced."""

_BASE64 = ("blob", "data")
_MEDIA_TYPES = ("mimeType", "mime_type", "mediaType", "media_type")

STREAMS = ("stdout", "stderr")
"""The texts of what a shell has written, in the order in which they are one text."""

MARK = "cache_control"
"""The field of a cache mark: a provider writes an entry of its prompt cache after the block that has one."""

MARKS = ("prompt_cache_breakpoint", MARK)
"""All names of this field: first OpenAI's."""


def string(value: Any) -> str | None:
    """A string, or nothing: ids, names, roles and types count only as strings."""
    return value if isinstance(value, str) else None


def id_of(value: Any) -> str | None:
    """An id: a string that is not blank."""
    return value if isinstance(value, str) and value.strip(" \t\n\r\f") else None


def is_flagged(message: dict[str, Any]) -> bool:
    """Whether a message that is a result is flagged as an error."""
    return message.get("is_error") is True or string(message.get("status")) in ("error", "failed")


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def is_repeated(value: dict[str, Any], *keys: str) -> bool:
    """Whether one of these keys is repeated in an object of JSON."""
    return any(key in keys for key, _, _ in getattr(value, "repeated", ()))


def holds_base64(part: dict[str, Any]) -> bool:
    """Whether a part of an unknown type is binary data: base64 beside its media type."""
    keys = ("resource", "source", *_BASE64, *_MEDIA_TYPES)
    holders = [part, part.get("resource"), part.get("source")]
    if is_repeated(part, *keys):
        return False
    return any(
        isinstance(one, dict)
        and not is_repeated(one, *keys)
        and any(isinstance(one.get(key), str) for key in _BASE64)
        and any(isinstance(one.get(key), str) for key in _MEDIA_TYPES)
        for one in holders
    )


def references(value: Any) -> list[Any]:
    """The parts of a list that name tools, each without its newest mark: one in a replaced observation has moved."""
    return [
        Changed(Member(value, place), dict.fromkeys(_names_on(part)[-1:], GONE))
        for place, part in enumerate(items(value))
        if block_type(part) == REFERENCE
    ]


def _names_on(part: Any) -> list[str]:
    """The names of the marks of a part."""
    return [name for name in MARKS if isinstance(part, dict) and part.get(name) is not None]


def moving_mark(value: Any) -> Member | None:
    """The newest mark in an observation, of any name: it moves when that is replaced."""
    return next(reversed(marks_on(value, names=MARKS)), None)


def marks_on(value: Any, levels: int = 1, names: tuple[str, ...] = (MARK,)) -> list[Member]:
    """The marks on the elements of a list, if it is one, and on their parts for so many levels, the newest last."""
    found: list[Member] = []
    for one in items(value):
        parts = parts_of(one) if levels else None
        found += marks_on(parts.value, levels - 1, names) if parts else []
        found += [Member(one, name) for name in _names_on(one) if name in names]
    return found


def parts_of(block: Any) -> Member | None:
    """The parts of a block that may have marks: the content of a result or a document."""
    kind = block_type(block)
    if kind == "document" and isinstance(block.get("source"), dict):
        return Member(block["source"], "content")
    return Member(block, "content") if kind in ("tool_result", "mcp_tool_result", "search_result") else None


def block_type(block: Any) -> str | None:
    return string(block.get("type")) if isinstance(block, dict) else None
