"""Cache marks: where they are, and how those of a view change."""

from __future__ import annotations

from typing import Any

from oracle.plan.pins import Block, Marked, Marks, Pins
from oracle.shape.words import MARK, block_type, items, marks_on
from oracle.value import GONE, Changed, Member


def marks_of(messages: list[Any], body: dict[str, Any] | None, elsewhere: int) -> Marks:
    """The marks of a history; a list of messages alone is assumed to have `elsewhere` marks around it."""
    blocks = [
        Marked((index, place), count)
        for index, message in enumerate(messages)
        for place, block in enumerate(items(message.get("content")))
        if (count := len(marks_in(block)))
    ]
    if body is None:
        return Marks(blocks, elsewhere)
    on_tools, on_system = (len(marks_on(body.get(key))) for key in ("tools", "system"))
    return Marks(blocks, on_tools + on_system + (body.get(MARK) is not None), on_tools if on_system else 0)


def marks_in(block: Any) -> list[Member]:
    """The marks of a block, the newest last: those of its parts, then its own."""
    return marks_on(_parts(block)) + marks_on([block])


def mark(changes: dict[int | str, Changed], messages: list[Any], body: dict[str, Any] | None, pins: Pins) -> None:
    """Give blocks marks, and take those of others and of tools away."""

    def at(block: Block) -> Changed:
        index, place = block
        return changes.setdefault(index, Changed(Member(messages, index))).at("content").at(place)

    for block, (index, place) in pins.added:
        changed, (oldest, *_) = at(block), marks_in(messages[index]["content"][place])
        changed.new = {MARK: oldest, **changed.new}
    if pins.removed is not None:
        changed = at(pins.removed)
        source = changed.source.value
        changed.new.pop(MARK, None)
        if MARK in source:
            changed.new[MARK] = GONE
        if _parts(source) and "content" not in changed.new:
            _unmark(changed.at("content"))
    if pins.clears_tools:
        _unmark(changes.setdefault("tools", Changed(Member(body, "tools"))))


def _parts(block: Any) -> list[Any]:
    return items(block.get("content")) if block_type(block) == "tool_result" else []


def _unmark(parts: Changed) -> None:
    """Take the marks on the elements of a list away."""
    for place, part in enumerate(parts.source.value):
        if marks_on([part]):
            parts.at(place).new[MARK] = GONE
