"""Cache marks: where they are, and a view with others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from recede._pure.outline import Span
from recede._pure.plan.pins import Block, Marked, Marks, Pins
from recede._pure.reading import JsonObject, read
from recede._pure.shape.words import MARK, block_type, items
from recede._pure.walk import span_of
from recede.reduction._options import BODY_KEYS

_SPACE = b" \t\n\r"


@dataclass(slots=True)
class MarkEdits:
    """Changes of the input that write marks, and the blocks that lose theirs."""

    edits: list[tuple[Span, bytes]] = field(default_factory=list)
    cleared: set[Block] = field(default_factory=set)


def marks_of(messages: list[Any], elsewhere: int) -> Marks:
    """The marks of a list of messages that is reckoned to have `elsewhere` marks around it."""
    marks = Marks(elsewhere=elsewhere)
    for index, message in enumerate(messages):
        for place, block in enumerate(items(message.get("content"))):
            if count := len(_marks_in(block)):
                marks.blocks.append(Marked((index, place), count))
    return marks


def history_of(data: bytes, surrogates: bool, elsewhere: int) -> tuple[list[Any], Marks]:
    """The messages of serialized input, and its marks."""
    body, _ = read(data, surrogates=surrogates)
    if not isinstance(body, JsonObject):
        return body, marks_of(body, elsewhere)
    messages = next(body[key] for key in BODY_KEYS if isinstance(body.get(key), list))
    on_tools, on_system = (len(_marked_in(body.get(key))) for key in ("tools", "system"))
    marks = marks_of(messages, on_tools + on_system + (body.get(MARK) is not None))
    marks.on_tools = on_tools if on_system else 0
    return messages, marks


def with_marks(view: list[Any], messages: list[Any], pins: Pins) -> list[Any]:
    """The view with the marks of its pins."""
    view = list(view)
    for block, source in pins.added:
        _change(view, block, {MARK: _marks_in(_block(messages, source.block))[0]})
    for one in pins.removed:
        block = _block(view, one.block)
        kept = {name: value for name, value in block.items() if name != MARK}
        if block_type(block) == "tool_result" and isinstance(block.get("content"), list):
            kept["content"] = [_unmarked(part) for part in block["content"]]
        _change(view, one.block, kept, whole=True)
    return view


def mark_edits(data: bytes, surrogates: bool, messages: list[Any], pins: Pins, masked: Collection[Block]) -> MarkEdits:
    """The changes of serialized input that these pins are; `masked` are the blocks of replaced observations."""
    edits = []
    for place, source in pins.added:
        block, holder = _block(messages, place), _block(messages, source.block)
        start, end = _span(_marked_in_block(holder)[0], MARK)
        own = span_of(block, MARK)
        if own is not None:
            edits.append((own, data[start:end]))
        else:
            at = _span(items(messages[place[0]]["content"]), place[1])[1] - 1
            edits.append(((at, at), b',"%s":%s' % (MARK.encode(), data[start:end])))
    removed = []
    for one in pins.removed:
        block = _block(messages, one.block)
        removed += _marked_in_block(block) if one.block not in masked else []
        if (MARK in block and block.get(MARK) is None) or (one.block in masked and MARK in block):
            removed.append(block)
    if pins.clears_tools:
        removed += _marked_in(read(data, surrogates=surrogates)[0]["tools"])
    edits += [(_field_around(data, _span(holder, MARK)), b"") for holder in removed]
    return MarkEdits(edits, {one.block for one in pins.removed})


def _block(messages: list[Any], block: Block) -> Any:
    return messages[block[0]]["content"][block[1]]


def _marked_in(value: Any) -> list[Any]:
    """The elements of a list that have a mark, if it is one."""
    return [one for one in items(value) if isinstance(one, dict) and one.get(MARK) is not None]


def _marked_in_block(block: Any) -> list[Any]:
    """What has a mark in a block, the newest last: its parts, then itself."""
    parts = block.get("content") if block_type(block) == "tool_result" else None
    return _marked_in(parts) + _marked_in([block])


def _marks_in(block: Any) -> list[Any]:
    return [one[MARK] for one in _marked_in_block(block)] if isinstance(block, dict) else []


def _unmarked(part: Any) -> Any:
    is_marked = isinstance(part, dict) and part.get(MARK) is not None
    return {name: value for name, value in part.items() if name != MARK} if is_marked else part


def _change(view: list[Any], block: Block, fields: dict[str, Any], whole: bool = False) -> None:
    """Replace a block by a copy with these fields: besides its own, or alone."""
    index, place = block
    blocks = list(view[index]["content"])
    blocks[place] = fields if whole else {**blocks[place], **fields}
    view[index] = {**view[index], "content": blocks}


def _span(container: Any, key: Any) -> Span:
    span = span_of(container, key)
    assert span is not None  # the input was bytes
    return span


def _field_around(data: bytes, value: Span) -> Span:
    """The field with this value, and a comma beside it."""
    start, end = data.rindex(b'"', 0, data.rindex(b'"', 0, value[0])), value[1]
    while data[end] in _SPACE:
        end += 1
    if data[end] == ord(","):
        return start, end + 1
    before = start - 1
    while data[before] in _SPACE:
        before -= 1
    return (before if data[before] == ord(",") else start), value[1]
