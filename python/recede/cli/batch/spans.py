"""Spans of fields in the bytes of a JSON object, so that a value can be replaced and no other byte changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from recede import TranscriptError
from recede.cli.files import WRONG_SHAPES, fault_of

Span = tuple[int, int]

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(rb"[^ \t\r\n,\]}]+")
_COLON = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*")


def find(data: bytes, paths: Iterable[tuple[str, ...]]) -> Span | None:
    """Find the value at the first path that leads to one; an array is found itself.

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
    """Find the values of a well-formed object by name; none if the value is no object."""
    found: dict[str, Span] = {}
    at = start
    while data.startswith(b"{", start) and (key := _STRING.search(data, at, end)):
        name, colon = str(json.loads(key[0])), _COLON.match(data, key.end())
        if name in found or colon is None:
            raise TranscriptError("duplicate_key", offset=key.start())
        at = _end_of(data, colon.end())
        found[name] = colon.end(), at
    return found


def _end_of(data: bytes, at: int) -> int:
    """Find the end of a value in a well-formed object; the core reads arrays and objects."""
    first = data[at : at + 1]
    if first in (b"[", b"{"):
        fault = fault_of(data[at:])  # that there is more after it
        end = len(data) if fault is None or fault.offset is None else at + fault.offset
        return _trimmed(data, at, end)[1]
    found = (_STRING if first == b'"' else _SCALAR).match(data, at)
    return len(data) if found is None else found.end()


def _trimmed(data: bytes, start: int, end: int) -> Span:
    """Shrink a span by the white space around its value."""
    text = data[start:end]
    return start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
