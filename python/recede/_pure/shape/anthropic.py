"""Anthropic's messages: calls and results are blocks of the content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recede._pure.shape.base import Shape
from recede._pure.shape.words import BLOCK_KEYS, NO_RESULT, PART_KEYS, block_type, items

_DEPTH = 3  # the message, content, the block


class Anthropic(Shape):
    name = "anthropic"
    results_are_blocks = True
    wants_results_first = True
    takes_system_messages = False

    def fits(self, message: dict[str, Any]) -> bool:
        return any(block_type(block) in ("tool_use", "tool_result") for block in items(message.get("content")))

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        for place, path, block in walk.blocks(message, "content", BLOCK_KEYS):
            kind = block_type(block)
            if kind == "tool_result":
                text = walk.text(block, "content", path + ".content", PART_KEYS)
                walk.result(block.get("tool_use_id"), text, block=place, is_error=block.get("is_error") is True)
            elif kind == "tool_use":
                walk.call(block.get("id"), block.get("name"), block.get("input"), block=place, depth=_DEPTH)
            else:
                walk.part(block)

    def masked(self, message: dict[str, Any], texts: Mapping[int, str]) -> dict[str, Any]:
        blocks = list(message["content"])
        for place, text in texts.items():
            blocks[place] = {**blocks[place], "content": text}
        return {**message, "content": blocks}

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        return {"role": "user", "content": [self.answer_block(*call) for call in calls]}

    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": message["content"][block]["id"], "content": NO_RESULT}
