"""Where a field is in the bytes of a JSON object, so that its value can be replaced and no other byte changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from recede import TranscriptError
from recede.cli.files import WRONG_SHAPES, fault_of

Span = tuple[int, int]

_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(rb"[^ \t\r\n,\]}]+")


def find(data: bytes, paths: Iterable[tuple[str, ...]]) -> Span | None:
    """The value at the first of the paths that leads to one; the whole, if it is an array itself.

    Raises:
        TranscriptError: the object is malformed, or has a field of a path twice.

    Example:
        >>> from recede.cli.batch.spans import find
        >>> find(b'{"id": 7, "body": {"messages": []}}', [("messages",), ("body", "messages")])
        (31, 33)
    """
    start = _skip(data, 0)
    if data[start : start + 1] == b"[":
        return start, _end_of(data, start)
    held = {start: _fields(data, start)}
    if (end := _skip(data, held[start][1])) < len(data):
        raise TranscriptError("trailing", offset=end)
    for path in paths:
        span: Span | None = (start, end)
        for name in path:
            if span is None or data[span[0] : span[0] + 1] != b"{":
                span = None
                break
            if span[0] not in held:
                held[span[0]] = _fields(data, span[0])
            span = held[span[0]][0].get(name.encode())
        if span is not None and data[slice(*span)] != b"null":
            return span
    return None


def _fields(data: bytes, at: int) -> tuple[dict[bytes, Span], int]:
    """The values of an object by name, and where it ends."""
    found: dict[bytes, Span] = {}
    at = _expect(data, at, b"{")
    while data[at : at + 1] != b"}" or found:
        key = _STRING.match(data, at)
        if key is None:
            raise _fault(data, at)
        name = _name(key[0])
        if name in found:
            raise TranscriptError("duplicate_key", offset=at)
        start = _expect(data, _skip(data, key.end()), b":")
        end = _end_of(data, start)
        found[name] = start, end
        at = _skip(data, end)
        if data[at : at + 1] == b"}":
            break
        at = _expect(data, at, b",")
    return found, at + 1


def _name(key: bytes) -> bytes:
    if b"\\" not in key:
        return key[1:-1]
    try:
        return str(json.loads(key)).encode("utf-8", "surrogatepass")
    except ValueError:
        return key[1:-1]


def _end_of(data: bytes, at: int) -> int:
    """Where a value ends; what is in an array or an object is read by the core."""
    first = data[at : at + 1]
    if first in (b"[", b"{"):
        fault = fault_of(data[at:])
        if fault is None or fault.kind in WRONG_SHAPES:
            return _before_space(data, len(data))
        end = len(data) if fault.offset is None else at + fault.offset
        if fault.kind != "trailing":
            raise TranscriptError(fault.kind, **{**fault.places, "offset": end})
        return _before_space(data, end)
    found = (_STRING if first == b'"' else _SCALAR).match(data, at)
    if found is None:
        raise _fault(data, at)
    return found.end()


def _before_space(data: bytes, end: int) -> int:
    while data[end - 1 : end] in (b" ", b"\t", b"\r", b"\n"):
        end -= 1
    return end


def _skip(data: bytes, at: int) -> int:
    found = _SPACE.match(data, at)
    return at if found is None else found.end()


def _expect(data: bytes, at: int, byte: bytes) -> int:
    if data[at : at + 1] != byte:
        raise _fault(data, at)
    return _skip(data, at + 1)


def _fault(data: bytes, at: int) -> TranscriptError:
    return TranscriptError("eof" if at >= len(data) else "syntax", offset=min(at, len(data)))
