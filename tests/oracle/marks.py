"""Cache marks: where they are, and how those of a view change."""

from __future__ import annotations

import json
from typing import Any

from oracle.plan.pins import Block, Marked, Marks, Pins
from oracle.shape.words import MARK, items, marks_on, parts_of
from oracle.value import GONE, Changed, Member


def marks_of(messages: list[Any], body: dict[str, Any] | None, policy: Any) -> Marks:
    """The marks of a history; a list of messages alone is assumed to have some around it."""
    blocks = [
        Marked((index, place), count)
        for index, message in enumerate(messages)
        for place, block in enumerate(items(message.get("content")))
        if (count := len(marks_in(block)))
    ]
    automatic = policy.automatic_mark is not None if body is None else body.get(MARK) is not None
    last = (len(messages) - 1, max(0, len(items(messages[-1].get("content"))) - 1)) if messages else None
    if automatic and last is not None and last not in [one.block for one in blocks]:
        blocks.append(Marked(last, 0))
    if body is None:
        return Marks(blocks, policy.marks_elsewhere)
    on_tools, on_system = (len(marks_on(body.get(key), 0)) for key in ("tools", "system"))
    return Marks(blocks, on_tools + on_system + (body.get(MARK) is not None), on_tools if on_system else 0)


def marks_in(block: Any) -> list[Member]:
    """The marks of a block, the newest last: those of its parts, then its own."""
    return marks_on([block], 2)


def mark(
    changes: dict[int | str, Changed], messages: list[Any], body: dict[str, Any] | None, policy: Any, pins: Pins
) -> None:
    """Give blocks marks, and take those of others and of tools away."""
    automatic = json.loads(policy.automatic_mark or "null") if body is None else Member(body, MARK)

    def at(block: Block) -> Changed:
        index, place = block
        return changes.setdefault(index, Changed(Member(messages, index))).at("content").at(place)

    for block, (index, place) in pins.added:
        changed, content = at(block), items(messages[index]["content"])
        oldest = next(iter(marks_on(content[place : place + 1], 2)), automatic)
        changed.new = {MARK: oldest, **changed.new}
    if pins.removed is not None:
        changed = at(pins.removed)
        source = changed.source.value
        changed.new.pop(MARK, None)
        if MARK in source:
            changed.new[MARK] = GONE
        if "content" not in changed.new:
            _unmark_parts(changed, 1)
    if pins.clears_tools:
        _unmark(changes.setdefault("tools", Changed(Member(body, "tools"))), 0)


def _unmark(parts: Changed, levels: int) -> None:
    """Take the marks on the elements of a list, and on their parts for so many levels, away."""
    for place, part in enumerate(parts.source.value):
        if marks_on([part], 0):
            parts.at(place).new[MARK] = GONE
        if levels and marks_on([part], levels):
            _unmark_parts(parts.at(place), levels - 1)


def _unmark_parts(block: Changed, levels: int) -> None:
    parts = parts_of(block.source.value)
    if parts and marks_on(parts.value, levels):
        inner = block.at("source") if parts.holder is not block.source.value else block
        _unmark(inner.at("content"), levels)
