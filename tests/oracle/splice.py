"""(bytes, Plan, what changes) -> bytes. Whatever is not replaced is copied unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from oracle.apply import Changes
from oracle.plan import Plan
from oracle.reading import JsonList, Span
from oracle.reasoning import unsigned_json
from oracle.value import GONE, Changed, Member, NewText

# The raw text of one code point in a JSON string: a pair of escapes, an escape, or the character itself.
_RAW_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_WHITE_SPACE = b" \t\n\r"

Edit = tuple[Span, bytes]
"""A span of the input, and its replacement."""


def splice(data: bytes, messages: JsonList, plan: Plan, changes: Changes) -> bytes:
    """The view; the input object if nothing changed."""
    edits = [*_drops(messages.spans, plan.kept), *_insertion(data, messages.spans, plan)]
    for place, change in changes.items():
        edits += [] if place in plan.unsigned else _edits(data, change)
    for index in plan.unsigned.intersection(plan.kept):
        span, change = messages.spans[index], changes.get(index)
        shown = _edited(data, span, [] if change is None else [*_edits(data, change)])
        edits.append((span, unsigned_json(shown)))
    return _edited(data, (0, len(data)), edits) if edits else data


def edited(data: bytes, spans: list[Span], kept: list[int], insertion: list[Edit], edits: list[Edit]) -> bytes:
    """Bytes without the messages that are not kept, with these edits."""
    edits = [*_drops(spans, kept), *insertion, *edits]
    return _edited(data, (0, len(data)), edits) if edits else data


def _edited(data: bytes, span: Span, edits: list[Edit]) -> bytes:
    (at, end), written = span, []
    for (start, stop), replacement in sorted(edits):
        written += [data[at:start], replacement]
        at = stop
    return b"".join([*written, data[at:end]])


def _drops(spans: list[Span], kept: list[int]) -> Iterator[Edit]:
    """Dropped messages are removed with the comma after them; the last ones with the comma before them."""
    last = -1
    for index in [*kept, len(spans)]:
        if index > last + 1:
            if index < len(spans):
                yield (spans[last + 1][0], spans[index][0]), b""
            else:
                yield (spans[last][1] if last >= 0 else spans[0][0], spans[-1][1]), b""
        last = index


def _insertion(data: bytes, spans: list[Span], plan: Plan) -> Iterator[Edit]:
    """The summary is inserted before the kept message at its place, with a comma and the white space of that one."""
    if plan.summary is None or plan.summary.joins is not None:
        return
    message = _written(data, plan.summary.message)
    yield from insertion_of(data, spans, plan.kept, (plan.summary.place, message))


def insertion_of(data: bytes, spans: list[Span], kept: list[int], summary: tuple[int, bytes] | None) -> list[Edit]:
    """A summary at this place of the view."""
    if summary is None:
        return []
    place, message = summary
    if not kept:
        return [((spans[0][0], spans[0][0]), message)]
    if place < len(kept):
        start, _ = spans[kept[place]]
        return [((start, start), message + b"," + _space_before(data, start))]
    start, end = spans[kept[-1]]
    return [((end, end), b"," + _space_before(data, start) + message)]


def _space_before(data: bytes, end: int) -> bytes:
    start = end
    while data[start - 1] in _WHITE_SPACE:
        start -= 1
    return data[start:end]


def _edits(data: bytes, change: Changed) -> Iterator[Edit]:
    at = end = span_of(change.source)[1] - 1  # before the closing bracket
    source = change.source.value
    for key, value in change.new.items():
        if isinstance(source, list) and key == len(source):  # a new last element
            yield (end, end), b"," + _written(data, value)
            continue
        span = Member(source, key).span
        if span is None:
            yield (at, at), b"," + _written(data, key) + b":" + _written(data, value)
            continue
        if isinstance(value, Changed):
            yield from _edits(data, value)
        elif value is GONE:
            yield field_around(data, span), b""
        else:
            yield span, _written(data, value)
        at = span[1]


def span_of(member: Member) -> Span:
    span = member.span
    assert span is not None  # the input was bytes
    return span


def field_around(data: bytes, value: Span) -> Span:
    """The field with this value, and a comma beside it."""
    start, end = data.rindex(b'"', 0, data.rindex(b'"', 0, value[0])), value[1]
    while data[end] in _WHITE_SPACE:
        end += 1
    if data[end] == ord(","):
        return start, end + 1
    before = start - 1
    while data[before] in _WHITE_SPACE:
        before -= 1
    return (before if data[before] == ord(",") else start), value[1]


def _written(data: bytes, value: Any) -> bytes:
    """A new value: what the input has of it is copied."""
    if isinstance(value, NewText):
        return _text(data, value)
    if isinstance(value, Member):
        return data[slice(*span_of(value))]
    if isinstance(value, Changed):
        return _edited(data, span_of(value.source), list(_edits(data, value)))
    if isinstance(value, list):
        return b"[" + b",".join(_written(data, one) for one in value) + b"]"
    if isinstance(value, dict):
        return b"{" + b",".join(_written(data, key) + b":" + _written(data, one) for key, one in value.items()) + b"}"
    return f'"{_escaped(value)}"'.encode()


def _text(data: bytes, new: NewText) -> bytes:
    """A JSON string: new text is escaped, kept text is copied raw."""
    characters: list[str] = []
    if any(isinstance(piece, slice) for piece in new.masked.pieces):
        for start, end in map(span_of, new.pieces):
            characters += _RAW_CHARACTER.findall(data[start + 1 : end - 1].decode("utf-8", "surrogatepass"))
    pieces = ["".join(characters[one]) if isinstance(one, slice) else _escaped(one) for one in new.masked.pieces]
    return f'"{"".join(pieces)}"'.encode("utf-8", "surrogatepass")


def _escaped(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    return _SURROGATE.sub(lambda surrogate: f"\\u{ord(surrogate[0]):04x}", escaped)
