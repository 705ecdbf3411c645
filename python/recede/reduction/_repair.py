"""Apply the repairs that an engine planned, on copies."""

from __future__ import annotations

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from typing import Any

__all__ = ["apply_repairs"]


def apply_repairs(messages: list[Any], operations: list[tuple[Any, ...]]) -> list[Any]:
    """The history after the operations."""
    from recede._pure.shape import shape_of

    dropped: set[int] = set()
    blocks: dict[int, list[tuple[Any, ...]]] = {}
    new: dict[int, list[Any]] = {}
    for operation in operations:
        name, index = operation[:2]
        if name == "drop_message":
            dropped.add(index)
        elif name == "add_message":
            calls = [(messages[message], block) for message, block in operation[2]]
            shape: Any = shape_of(calls[0][0])
            new.setdefault(index, []).append(shape.answer(calls))
        else:
            blocks.setdefault(index, []).append(operation)
    mended: list[Any] = []
    for index, message in enumerate(messages):
        mended += new.get(index, ())
        if index in blocks:
            message = _mend_blocks(shape_of(message), message, blocks[index], messages)
        if index not in dropped:
            mended.append(message)
    return mended + new.get(len(messages), [])


def _mend_blocks(shape: Any, message: Any, operations: list[tuple[Any, ...]], messages: list[Any]) -> Any:
    dropped = {operation[2] for operation in operations if operation[0] == "drop_block"}
    added: dict[int, list[Any]] = {}
    for name, _, block, *call in operations:
        if name == "add_block":
            ((call_message, call_block),) = call
            added.setdefault(block, []).append(shape.answer_block(messages[call_message], call_block))
    mended: list[Any] = []
    blocks = shape.blocks(message)
    for place, block in enumerate(blocks):
        mended += added.get(place, ())
        if place not in dropped:
            mended.append(block)
    return shape.mended(message, mended + added.get(len(blocks), []))
