"""Bedrock's Converse: calls and results are blocks of the content, which have no `type`."""

from __future__ import annotations

from typing import Any

from recede._pure.shape.base import BlockShape
from recede._pure.shape.words import NO_RESULT, items

_MEDIA = ("image", "document", "video")
_FIELDS = ("text", "toolUse", "toolResult", *_MEDIA)

_BLOCK_KEYS = frozenset({"text", "toolUse", "toolResult"})
_CALL_KEYS = frozenset({"toolUseId", "name", "input"})
_RESULT_KEYS = frozenset({"toolUseId", "content", "status"})
_PART_KEYS = frozenset({"text", "json"})
_FRAME = ('[{"text":', "}]")
_CALL_DEPTH = 4  # the message, its content, the block, its field
_JSON_DEPTH = 6  # the same, the content of the result, its part


class Converse(BlockShape):
    name = "converse"
    pairs_by_place = True
    text_frame = ('[{"text":', "}]")
    wants_results_first = True
    takes_system_messages = False

    def fits(self, message: dict[str, Any]) -> bool:
        for block in items(message.get("content")):
            if isinstance(block, dict):
                if "type" in block:
                    return False
                if any(block.get(key) is not None for key in _FIELDS):
                    return True
        return False

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        for place, path, block in walk.blocks(message, "content", _BLOCK_KEYS):
            call = walk.object(block.get("toolUse"), path + ".toolUse")
            result = walk.object(block.get("toolResult"), path + ".toolResult") if call is None else None
            if call is not None:
                walk.refuse_repeated(call, _CALL_KEYS, path + ".toolUse.")
                walk.call(call.get("toolUseId"), call.get("name"), call.get("input"), block=place, depth=_CALL_DEPTH)
            elif result is not None:
                path += ".toolResult"
                walk.refuse_repeated(result, _RESULT_KEYS, path + ".")
                is_error = result.get("status") == "error"
                content = result.get("content")
                if not isinstance(content, list):
                    text = walk.text(result, "content", path + ".content", _PART_KEYS)
                    walk.result(result.get("toolUseId"), text, block=place, is_error=is_error)
                    continue
                text = walk.texts(result, "content", path + ".content", _PART_KEYS, _JSON_DEPTH, _MEDIA)
                walk.result(result.get("toolUseId"), text, block=place, is_error=is_error, frame=_FRAME)
            elif isinstance(block.get("text"), str):
                walk.own_text(block)
            elif any(block.get(key) is not None for key in _MEDIA):
                walk.image()

    def masked_block(self, block: dict[str, Any], text: str) -> dict[str, Any]:
        result = block["toolResult"]
        content = [{"text": text}] if isinstance(result["content"], list) else text
        return {**block, "toolResult": {**result, "content": content}}

    def summary(self, role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": [{"text": text}]}

    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        call_id = message["content"][block]["toolUse"]["toolUseId"]
        return {"toolResult": {"toolUseId": call_id, "content": [{"text": NO_RESULT}]}}
