"""The requests that a history implies, and what identifies each: the rules of `src/points` in plain Python."""

from __future__ import annotations

import json
from typing import Any

from oracle.outline import Message, Outline

Point = tuple[int, bytes]

_BASIS = 0x6C62272E07BB014262B821756295C58D
_PRIME = 0x0000000001000000000000000000013B


def points_of(outline: Outline) -> list[Point]:
    """A request before each run of agent-made messages, and one now unless the history ends with a run."""
    messages = outline.messages
    found = []
    for end in range(len(messages) + 1):
        before = end > 0 and messages[end - 1].is_agent_made
        here = messages[end].is_agent_made if end < len(messages) else end > 0
        if here and not before:
            found.append((end, _key(b"".join(map(_written, messages[:end])))))
    return found


def _key(data: bytes) -> bytes:
    """FNV-1a, of 128 bits."""
    key = _BASIS
    for byte in data:
        key = (key ^ byte) * _PRIME % (1 << 128)
    return key.to_bytes(16, "little")


def _written(message: Message) -> bytes:
    roles = {"system": b"s", "developer": b"s", "user": b"u", "assistant": b"a", "model": b"a"}
    written = roles.get(message.role or "", b"o")
    for result in message.results:
        if result.id is not None:
            id = result.id.encode("utf-8", "surrogatepass")
            written += b"i" + len(id).to_bytes(8, "little") + id
        else:
            name = (result.name or "").encode("utf-8", "surrogatepass")
            chars = result.text.chars(0)
            written += b"n" + len(name).to_bytes(8, "little") + name + b"c" + chars.to_bytes(8, "little")
    return written


_TEXTS = ("text", "input_text", "output_text")
_NONCE = "x-anthropic-billing-header:"


def said_before(body: dict[str, Any], messages: list[Any], end: int) -> str:
    """What a body says before a request, as canonical JSON: the same for all that a provider takes as the same."""
    system = body.get("system")
    if isinstance(system, list):
        system = [block for block in system if not str(_said(block)).startswith(_NONCE)]
    tools = [tool for tool in body.get("tools") or () if tool.get("defer_loading") is not True]
    return json.dumps([_said(system), sorted(map(_canonical, tools)), [_said(one) for one in messages[:end]]])


def _canonical(value: Any) -> str:
    return json.dumps(_said(value), sort_keys=True)


def _said(value: Any) -> Any:
    """A value without cache marks, its keys in order; a list of one text is that text."""
    if isinstance(value, list):
        elements = [_said(one) for one in value]
        is_text = len(elements) == 1 and isinstance(value[0], dict) and isinstance(elements[0], str)
        return elements[0] if is_text else elements
    if not isinstance(value, dict):
        return value
    left = {key: _said(one) for key, one in sorted(value.items()) if key != "cache_control"}
    is_text = left.keys() == {"type", "text"} and left["type"] in _TEXTS and isinstance(left["text"], str)
    return left["text"] if is_text else left
