"""Where a field is in the bytes of a JSON object, so that its value can be replaced and no other byte changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from recede import TranscriptError
from recede.cli.files import WRONG_SHAPES, fault_of

Span = tuple[int, int]

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]', re.DOTALL)


def find(data: bytes, paths: Iterable[tuple[str, ...]]) -> Span | None:
    """The value at the first of the paths that leads to one; the whole, if it is an array itself.

    Raises:
        TranscriptError: the object is malformed, or has a field of a path twice.

    Example:
        >>> from recede.cli.batch.spans import find
        >>> find(b'{"id": 7, "body": {"messages": []}}', [("messages",), ("body", "messages")])
        (31, 33)
    """
    fault = fault_of(data)
    if fault is not None and fault.kind not in WRONG_SHAPES:
        raise fault
    whole = _trimmed(data, 0, len(data))
    if data.startswith(b"[", whole[0]):
        return whole
    held: dict[Span, dict[str, Span]] = {}
    for path in paths:
        span: Span | None = whole
        for name in path:
            if span is not None:
                if span not in held:
                    held[span] = _fields(data, *span)
                span = held[span].get(name)
        if span is not None and data[slice(*span)] != b"null":
            return span
    return None


def _fields(data: bytes, start: int, end: int) -> dict[str, Span]:
    """The values of a well-formed object by name; none of another value."""
    found: dict[str, Span] = {}
    depth = begin = 0
    name = None
    for token in _TOKEN.finditer(data, start, end) if data.startswith(b"{", start) else ():
        mark = token[0][:1]
        if depth == 1 and name is None and mark == b'"':
            name, begin = str(json.loads(token[0])), token.end()
            if name in found:
                raise TranscriptError("duplicate_key", offset=token.start())
        elif depth == 1 and name is not None and mark in b",}":
            found[name] = _trimmed(data, data.index(b":", begin) + 1, token.start())
            name = None
        depth += (mark in b"{[") - (mark in b"}]")
    return found


def _trimmed(data: bytes, start: int, end: int) -> Span:
    """Without the space around it."""
    text = data[start:end]
    return start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
