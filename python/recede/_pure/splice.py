"""(bytes, Outline, Plan) -> bytes. Whatever is not replaced is copied unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from recede._pure.apply import parts_of
from recede._pure.clip import cut_parts
from recede._pure.marks import MarkEdits
from recede._pure.outline import Mark, Message, Outline, Result, Span
from recede._pure.placeholder import Masked
from recede._pure.plan import Plan, Summary
from recede._pure.reading import JsonList, read
from recede._pure.shape import PLAIN
from recede._pure.shape.words import MARK

# The raw text of one code point in a JSON string: a pair of escapes, an escape, or the character itself.
_RAW_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_WHITE_SPACE = b" \t\n\r"

Edit = tuple[Span, bytes]
"""A span of the input, and its replacement."""


def splice(data: bytes, outline: Outline, plan: Plan, marks: MarkEdits | None = None) -> bytes:
    """The view; the input object if nothing changed."""
    marks = marks or MarkEdits()
    edits = sorted(
        [*_drops(outline, plan), *_insertion(data, outline, plan), *_texts(data, outline, plan, marks), *marks.edits]
    )
    if not edits:
        return data
    view = []
    at = 0
    for (start, end), replacement in edits:
        view += [data[at:start], replacement]
        at = end
    view.append(data[at:])
    return b"".join(view)


def _spans(outline: Outline) -> list[Span]:
    return [message.span for message in outline.messages if message.span is not None]


def _drops(outline: Outline, plan: Plan) -> Iterator[Edit]:
    """Dropped messages are removed with the comma after them; the last ones with the comma before them."""
    spans = _spans(outline)
    last = -1
    for kept in [*plan.kept, len(spans)]:
        if kept > last + 1:
            if kept < len(spans):
                yield (spans[last + 1][0], spans[kept][0]), b""
            else:
                start = spans[last][1] if last >= 0 else spans[0][0]
                yield (start, spans[-1][1]), b""
        last = kept


def _insertion(data: bytes, outline: Outline, plan: Plan) -> Iterator[Edit]:
    """The summary is inserted before the kept message at its place, with a comma and the white space of that one."""
    if plan.summary is None:
        return
    message = summary_message(plan.summary)
    spans = _spans(outline)
    kept = [spans[index] for index in plan.kept]
    if not kept:
        yield (spans[0][0], spans[0][0]), message
    elif plan.summary.place < len(kept):
        start = kept[plan.summary.place][0]
        yield (start, start), message + b"," + _space_before(data, start)
    else:
        start, end = kept[-1]
        yield (end, end), b"," + _space_before(data, start) + message


def summary_message(summary: Summary) -> bytes:
    """The message of a summary."""
    text = json.dumps(summary.message, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda surrogate: f"\\u{ord(surrogate[0]):04x}", text).encode()


def _space_before(data: bytes, end: int) -> bytes:
    start = end
    while data[start - 1] in _WHITE_SPACE:
        start -= 1
    return data[start:end]


def _texts(data: bytes, outline: Outline, plan: Plan, marks: MarkEdits) -> Iterator[Edit]:
    """The replacements of observations, and of messages of the task."""
    for index in plan.kept if plan.masked or plan.cut else ():
        message = outline.messages[index]
        if index in plan.cut and message.own.span is not None:
            yield message.own.span, _cut(data, message, message.own.span, plan.cut[index])
        for result in message.results:
            if result.index in plan.masked and result.span is not None:
                frame = _frame(data, result.frame, result.mark)
                yield result.span, _value(data, result.piece_spans, frame, plan.masked[result.index])
                if (result.message, result.block) not in marks.cleared:
                    yield from _moved_mark(data, result)


def _frame(data: bytes, frame: tuple[str, str], mark: Mark | None) -> tuple[str, str]:
    """The JSON around a new text: with its mark, a list of one part."""
    if mark is None or mark.part_type is None:
        return frame
    return f'[{{"type":"{mark.part_type}","text":', f',"{MARK}":{_raw(data, mark.span)}}}]'


def _moved_mark(data: bytes, result: Result) -> Iterator[Edit]:
    """The mark inside of an observation becomes that of its block."""
    if result.mark is None or result.mark.part_type is not None or result.span is None:
        return
    mark = _raw(data, result.mark.span)
    if result.mark.over is not None:
        yield result.mark.over, mark.encode("utf-8", "surrogatepass")
    else:
        end = result.span[1]
        yield (end, end), f',"{MARK}":{mark}'.encode("utf-8", "surrogatepass")


def _raw(data: bytes, span: Span | None) -> str:
    assert span is not None  # the input was bytes
    return data[span[0] : span[1]].decode("utf-8", "surrogatepass")


def _cut(data: bytes, message: Message, span: Span, masked: Masked) -> bytes:
    """The content of a message of the task with its text cut, and without images."""
    shape, start = message.shape or PLAIN, span[0]
    content, _ = read(data[slice(*span)], surrogates=True)
    cut = cut_parts(parts_of(content, shape)) if isinstance(content, JsonList) else None
    if cut is None:
        return _value(data, message.own.piece_spans, shape.text_frame, masked)
    text = _value(data, message.own.piece_spans, ("", ""), masked)
    parts = []
    for place in cut.kept:
        part = _moved(content.spans[place], start)
        written = data[slice(*part)]
        if place == cut.text:
            at, end = _moved(content[place].spans["text"], start)
            written = data[part[0] : at] + text + data[end : part[1]]
        if place == cut.text and cut.mark_of is not None:
            mark = data[slice(*_moved(content[cut.mark_of].spans[MARK], start))]
            written = written[:-1] + f',"{MARK}":'.encode() + mark + b"}"
        parts.append(written)
    return b"[" + b",".join(parts) + b"]"


def _moved(span: Span, start: int) -> Span:
    return span[0] + start, span[1] + start


def _value(data: bytes, spans: list[Span], frame: tuple[str, str], masked: Masked) -> bytes:
    """A JSON string in its frame: new text is escaped, kept text is copied raw."""
    characters: list[str] = []
    if any(isinstance(piece, slice) for piece in masked.pieces):
        for start, end in spans:
            raw = data[start + 1 : end - 1].decode("utf-8", "surrogatepass")
            characters += _RAW_CHARACTER.findall(raw)
    pieces = ["".join(characters[piece]) if isinstance(piece, slice) else _escape(piece) for piece in masked.pieces]
    before, after = frame
    return f'{before}"{"".join(pieces)}"{after}'.encode("utf-8", "surrogatepass")


def _escape(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    return _SURROGATE.sub(lambda surrogate: f"\\u{ord(surrogate[0]):04x}", escaped)
