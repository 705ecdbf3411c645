"""Which fields make a call, a result, an observation, in each shape of message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from recede._pure.outline import Shape
from recede._pure.reading import MAX_DEPTH, JsonObject

TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
IMAGE_TYPES = frozenset({"image", "image_url", "input_image", "document", "file", "input_file"})

# Keys that must not stand twice in an object that is read for them.
MESSAGE_KEYS = frozenset(
    "role content type tool_calls tool_call_id pairRole pairId call_id name arguments input action output tags".split()
)
BLOCK_KEYS = frozenset("type text id name input tool_use_id content is_error".split())
PART_KEYS = frozenset({"type", "text"})
TOOL_CALL_KEYS = frozenset({"id", "function", "custom"})
FUNCTION_KEYS = frozenset({"name", "arguments"})
CUSTOM_KEYS = frozenset({"name", "input"})
BODY_KEYS = ("messages", "input")

# A JSON value that is neither string, object nor list counts this, and so does what is no JSON at all.
_SCALAR_CHARS = 4


class Row(NamedTuple):
    """A row of the table of shapes, and what the message holds by it."""

    shape: Shape
    holds: Literal["calls", "result", "blocks"]


def row_of(message: dict[str, Any]) -> Row | None:
    """The first row that fits the message; None where it holds neither calls nor results."""
    role, kind, pair_role = (string(message.get(key)) for key in ("role", "type", "pairRole"))
    if pair_role == "call":
        return Row("chat_message", "calls")
    if pair_role == "result" and role not in ("system", "user", "assistant"):
        return Row("chat_message", "result")
    if role == "assistant" and any(isinstance(call, dict) for call in items(message.get("tool_calls"))):
        return Row("openai", "calls")
    if role == "tool":
        return Row("openai", "result")
    if any(block_type(block) in ("tool_use", "tool_result") for block in items(message.get("content"))):
        return Row("anthropic", "blocks")
    if kind is not None and kind.endswith("_call") and message.get("call_id") is not None:
        return Row("responses", "calls")
    if kind is not None and kind.endswith("_call_output"):
        return Row("responses", "result")
    return None


def string(value: Any) -> str | None:
    """A string, or nothing: ids, names, roles and types count only as strings."""
    return value if isinstance(value, str) else None


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def block_type(block: Any) -> str | None:
    return string(block.get("type")) if isinstance(block, dict) else None


def first_present(message: dict[str, Any], keys: Iterable[str]) -> Any:
    return next((message[key] for key in keys if message.get(key) is not None), None)


class TooDeep(Exception):
    """A value is nested over 1,024 levels."""


def compact_chars(value: Any, depth: int) -> int:
    """About the length of a value's compact JSON. `depth` is the number of levels that it lies in."""
    chars = 0
    waiting = [(value, depth)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            chars += len(value) + 2
        elif value is False:
            chars += len("false")
        elif isinstance(value, (dict, list, tuple)):
            if depth == MAX_DEPTH:
                raise TooDeep
            if isinstance(value, dict):
                keys, members = _members(value)
                chars += sum(len(key) + 2 if isinstance(key, str) else _SCALAR_CHARS for key in keys)
                chars += len(keys)  # colons
            else:
                members = list(value)
            chars += len("[]") + max(0, len(members) - 1)  # brackets and commas
            waiting += [(member, depth + 1) for member in members]
        else:
            chars += _SCALAR_CHARS
    return chars


def _members(value: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The keys and values of all members, of those too that a later member of the same key replaced."""
    keys, values = list(value), list(value.values())
    if isinstance(value, JsonObject):
        keys += [key for key, _, _ in value.repeated]
        values += [replaced for _, _, replaced in value.repeated]
    return keys, values
