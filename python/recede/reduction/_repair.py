"""Apply the repairs that an engine planned, on copies."""

from __future__ import annotations

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from typing import Any

__all__ = ["NO_RESULT", "apply_repairs"]

NO_RESULT = "[no result recorded]"


def apply_repairs(messages: list[Any], operations: list[tuple[Any, ...]]) -> list[Any]:
    """The history after the operations."""
    dropped: set[int] = set()
    blocks: dict[int, list[tuple[Any, ...]]] = {}
    new: dict[int, list[Any]] = {}
    for operation in operations:
        name, index = operation[:2]
        if name == "drop_message":
            dropped.add(index)
        elif name == "add_message":
            new.setdefault(index, []).append(_answer(*operation[2:]))
        else:
            blocks.setdefault(index, []).append(operation)
    mended: list[Any] = []
    for index, message in enumerate(messages):
        mended += new.get(index, ())
        if index in blocks:
            message = {**message, "content": _mend_blocks(message["content"], blocks[index])}
        if index not in dropped:
            mended.append(message)
    return mended + new.get(len(messages), [])


def _mend_blocks(content: list[Any], operations: list[tuple[Any, ...]]) -> list[Any]:
    dropped = {operation[2] for operation in operations if operation[0] == "drop_block"}
    added: dict[int, list[Any]] = {}
    for name, _, block, *call_id in operations:
        if name == "add_block":
            added.setdefault(block, []).append(_tool_result(*call_id))
    mended: list[Any] = []
    for place, block in enumerate(content):
        mended += added.get(place, ())
        if place not in dropped:
            mended.append(block)
    return mended + added.get(len(content), [])


def _tool_result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": NO_RESULT}


def _answer(shape: str, ids: list[str], responses_type: str) -> dict[str, Any]:
    """The message that answers these calls, in the shape of the calls."""
    if shape == "anthropic":
        return {"role": "user", "content": [_tool_result(call_id) for call_id in ids]}
    (call_id,) = ids
    if shape == "responses":
        return {"type": responses_type, "call_id": call_id, "output": NO_RESULT}
    if shape == "openai":
        return {"role": "tool", "tool_call_id": call_id, "content": NO_RESULT}
    return {"role": "tool", "pairRole": "result", "pairId": call_id, "content": NO_RESULT}
