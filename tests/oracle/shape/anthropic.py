"""Anthropic's messages: calls and results are blocks of the content."""

from __future__ import annotations

from typing import Any

from oracle.shape.base import BlockShape
from oracle.shape.words import BLOCK_KEYS, NO_RESULT, PART_KEYS, block_type, items, moving_mark, references
from oracle.value import Changed, Member

_DEPTH = 3  # the message, content, the block
_RESULT_DEPTH = 4  # the same, content


class Anthropic(BlockShape):
    name = "anthropic"
    id_path = ("tool_use_id",)
    wants_results_first = True
    wants_unique_ids = True
    takes_system_messages = False

    def fits(self, message: dict[str, Any]) -> bool:
        kinds = [block_type(block) or "" for block in items(message.get("content"))]
        own = ("tool_use", "tool_result", "compaction")
        return any(kind.endswith(("_tool_use", "_tool_result")) or kind in own for kind in kinds)

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        for place, path, block in walk.blocks(Member(message, "content"), BLOCK_KEYS):
            kind = block_type(block)
            if kind == "tool_result":
                text = walk.observation(Member(block, "content"), path + ".content", PART_KEYS, _RESULT_DEPTH)
                walk.result(block.get("tool_use_id"), text, block=place, is_error=block.get("is_error") is True)
            elif kind == "tool_use":
                walk.call(block.get("id"), block.get("name"), block.get("input"), block=place, depth=_DEPTH)
            else:
                if (kind or "").endswith(("_tool_use", "_tool_result")):
                    is_result = (kind or "").endswith("_result")
                    walk.half(block.get("tool_use_id" if is_result else "id"), place, is_result)
                walk.message.has_compaction |= kind == "compaction"
                walk.beside(block, is_of_user=message.get("role") == "user")
                walk.part(block, walk.message.own)

    def mask_block(self, block: Changed, text: Any) -> None:
        """The newest mark inside of the observation becomes that of the block, if it has none."""
        source = block.source.value
        kept = references(source.get("content"))
        block.new["content"] = [{"type": "text", "text": text}, *kept] if kept else text
        mark = moving_mark(source.get("content"))
        if mark is not None and source.get(mark.key) is None:
            block.new[mark.key] = mark

    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": message["content"][block]["id"], "content": NO_RESULT}
