"""Anthropic's messages: calls and results are blocks of the content."""

from __future__ import annotations

from typing import Any

from recede._pure.shape.base import BlockShape
from recede._pure.shape.words import BLOCK_KEYS, MARK, NO_RESULT, PART_KEYS, block_type, items, mark_in

_DEPTH = 3  # the message, content, the block


class Anthropic(BlockShape):
    name = "anthropic"
    wants_results_first = True
    takes_system_messages = False

    def fits(self, message: dict[str, Any]) -> bool:
        return any(block_type(block) in ("tool_use", "tool_result") for block in items(message.get("content")))

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        for place, path, block in walk.blocks(message, "content", BLOCK_KEYS):
            kind = block_type(block)
            if kind == "tool_result":
                text = walk.text(block, "content", path + ".content", PART_KEYS)
                is_error = block.get("is_error") is True
                walk.result(block.get("tool_use_id"), text, block=place, is_error=is_error, holder=block)
            elif kind == "tool_use":
                walk.call(block.get("id"), block.get("name"), block.get("input"), block=place, depth=_DEPTH)
            else:
                walk.part(block)

    def masked_block(self, block: dict[str, Any], text: str) -> dict[str, Any]:
        mark = mark_in(block.get("content")) if block.get(MARK) is None else None
        return {**block, "content": text, **({} if mark is None else {MARK: mark})}

    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": message["content"][block]["id"], "content": NO_RESULT}
