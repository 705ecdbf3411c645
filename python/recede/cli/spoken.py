"""Messages of any shape as text for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def harmless(text: str) -> str:
    """The text with control characters escaped, so that a terminal does not interpret them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def text_of(content: Any) -> str:
    """The text of a content: a string, or the texts of its parts, others named."""
    if isinstance(content, list):
        return "".join(str(part.get("text", f"[{part.get('type')}]")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)


def spoken(message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The contents of a message, in order: the role, "call" or "result", and the text."""
    content, kind = message.get("content"), str(message.get("type") or "")
    if kind.endswith("_call_output"):
        yield "result", text_of(message.get("output"))
        return
    if kind.endswith("_call"):
        value = next((message[name] for name in ("arguments", "input", "action") if message.get(name)), "")
        yield "call", f"{message.get('name', kind)} {text_of(value)}"
        return
    role = str(message.get("role") or kind)
    if role == "tool" or message.get("pairRole") == "result":
        yield "result", text_of(content)
        return
    blocks = content if isinstance(content, list) else [{"type": "text", "text": text_of(content)}]
    for block in blocks:
        match block.get("type"):
            case "tool_use":
                yield "call", f"{block.get('name')} {text_of(block.get('input'))}"
            case "tool_result":
                yield "result", text_of(block.get("content"))
            case "thinking":
                yield f"{role}, thinking", text_of(block.get("thinking"))
            case _:
                text = text_of([block])
                if text.strip():
                    yield role, text
    for call in message.get("tool_calls") or ():
        made = call.get("function") or call.get("custom") or {}
        yield "call", f"{made.get('name')} {made.get('arguments') or made.get('input') or ''}"


def clipped(text: str, most: int = 100) -> str:
    """A text on one line of at most this many characters."""
    line = " ".join(harmless(text).split())
    return line if len(line) <= most else f"{line[: most - 2]} …"
