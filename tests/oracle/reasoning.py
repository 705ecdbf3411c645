"""Signed reasoning: which messages have some, and what is left of them without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from oracle.reading import read
from oracle.shape.words import THINKING_TYPES, block_type, items, string

if TYPE_CHECKING:
    from oracle.outline import Message

NO_REASONING = "[reasoning not sent again]"
"""The text of a message that has nothing else."""

FIELDS = ("thinking_blocks", "reasoning_details")
"""Fields of a chat message that have it beside the content."""

_OTHERS = ("type", "text", "toolUse", "toolResult", "image", "document", "video", "audio")
_CALLS_AND_MEDIA = (
    *("functionCall", "function_call", "functionResponse", "function_response"),
    *("inlineData", "inline_data", "fileData", "file_data"),
)
_SPACE = b" \t\n\r"


def is_signed(message: Message, source: dict[str, Any]) -> bool:
    """Whether the agent made a message with reasoning that a provider may verify."""
    if message.is_reasoning:
        return True
    if message.role not in ("assistant", "model"):
        return False
    name = message.shape and message.shape.name
    if name == "gemini" and any(map(is_thought, items(source.get("parts")))):
        return True
    is_read = name not in ("gemini", "responses")
    if is_read and not message.is_reasoning and any(map(is_thinking, items(source.get("content")))):
        return True
    details = [one.get("format") for one in items(source.get("reasoning_details")) if isinstance(one, dict)]
    is_of_claude = any((string(one) or "").startswith("anthropic-") for one in details)
    return message.role == "assistant" and (bool(items(source.get("thinking_blocks"))) or is_of_claude)


def is_item(message: dict[str, Any]) -> bool:
    """Whether a message is an item of reasoning of Responses."""
    return message.get("type") == "reasoning"


def is_thinking(block: Any) -> bool:
    """Whether a block of a content is thinking: Anthropic's, or Converse's."""
    if not isinstance(block, dict):
        return False
    is_of_converse = "reasoningContent" in block and not any(key in block for key in _OTHERS)
    return block_type(block) in THINKING_TYPES or is_of_converse


def is_thought(part: Any) -> bool:
    """Whether a part of Gemini's contents is thinking with a signature, as Google's kit has that of Claude."""
    if not isinstance(part, dict) or part.get("thought") is not True:
        return False
    is_other = any(part.get(key) is not None for key in _CALLS_AND_MEDIA)
    return not is_other and any(part.get(key) is not None for key in ("thoughtSignature", "thought_signature"))


def _blocks(message: dict[str, Any]) -> tuple[str, Callable[[Any], bool]]:
    """The field whose blocks may be reasoning, and which of them are."""
    return ("content", is_thinking) if "content" in message else ("parts", is_thought)


def unsigned(message: dict[str, Any]) -> dict[str, Any]:
    """A message without its signed reasoning. One that has nothing else keeps its place with a short text.

    An item of Responses stays, and the provider drops it.
    """
    if is_item(message):
        return message
    left = {key: value for key, value in message.items() if key not in FIELDS}
    field, is_reasoning = _blocks(message)
    if field in left:
        if isinstance(left[field], list):
            left[field] = [block for block in left[field] if not is_reasoning(block)]
        left[field] = _instead(message, field, left[field])
    return left


def _instead(message: dict[str, Any], field: str, content: Any) -> Any:
    """The content that is left; a text if that is nothing."""
    if content or items(message.get("tool_calls")):
        return content
    if not isinstance(content, list):
        return NO_REASONING
    has_types = all("type" in block for block in message[field])
    return [{"type": "text", "text": NO_REASONING} if has_types else {"text": NO_REASONING}]


def unsigned_json(data: bytes) -> bytes:
    """The same for the bytes of a message, of which all that stays is copied."""
    message, _ = read(data, surrogates=True)
    if is_item(message):
        return data
    cuts = []
    field, is_reasoning = _blocks(message)
    content = message.get(field)
    if isinstance(content, list):
        spans = zip(content, content.spans, strict=True)
        cuts += _cuts(data, [(*span, is_reasoning(block)) for block, span in spans])
    fields = [(_key_start(data, start), end, key in FIELDS) for key, (start, end) in message.spans.items()]
    cuts += _cuts(data, sorted(fields))
    for start, end in sorted(cuts, reverse=True):
        data = data[:start] + data[end:]
    left, _ = read(data, surrogates=True)
    before, after = left.get(field), unsigned(message).get(field)
    if field in left and before != after:
        start, end = left.spans[field]
        data = data[:start] + _text(after) + data[end:]
    return data


def _cuts(data: bytes, items: list[tuple[int, int, bool]]) -> Iterator[tuple[int, int]]:
    """What goes with items of a list: each with the comma after it; the last ones with the comma before them."""
    last, start = None, None
    for begin, end, is_gone in items:
        if is_gone:
            start = begin if start is None else start
            continue
        if start is not None:
            comma = data.rindex(b",", start, begin) + 1
            yield start, comma + len(data[comma:begin]) - len(data[comma:begin].lstrip(_SPACE))
        last, start = end, None
    if start is not None:
        yield start if last is None else last, items[-1][1]


def _key_start(data: bytes, value: int) -> int:
    return data.rindex(b'"', 0, data.rindex(b'"', 0, value))


def _text(content: Any) -> bytes:
    if isinstance(content, str):
        return b'"' + content.encode() + b'"'
    kind = b'"type":"text",' if "type" in content[0] else b""
    return b"[{" + kind + b'"text":"' + NO_REASONING.encode() + b'"}]'
