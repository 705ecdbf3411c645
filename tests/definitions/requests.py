"""The requests that a history implies, and what identifies each: the rule of `src/points.rs` in plain Python."""

from __future__ import annotations

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
