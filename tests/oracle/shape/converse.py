"""Bedrock's Converse: calls and results are blocks of the content, which have no `type`."""

from __future__ import annotations

from typing import Any

from oracle.shape.base import BlockShape
from oracle.shape.reasoning import read_converse
from oracle.shape.words import NO_RESULT, is_repeated, items
from oracle.value import Changed, Member, Text

_MEDIA = ("image", "document", "video", "audio")
_BLOCK_KEYS = frozenset({"text", "toolUse", "toolResult"})
_CALL_KEYS = frozenset({"toolUseId", "name", "input", "type"})
_RESULT_KEYS = frozenset({"toolUseId", "content", "status", "type"})
_PART_KEYS = frozenset({"text", "json"})
_CALL_DEPTH = 4  # the message, its content, the block, its field
_BLOCK_DEPTH = 2  # the message, its content
_PART_DEPTH = 5  # the message, its content, the block, its field, the content of the result
_JSON_DEPTH = 6  # the same, the content of the result, its part


class Converse(BlockShape):
    name = "converse"
    id_path = ("toolResult", "toolUseId")
    part_type = None
    wants_results_first = True
    wants_one_message = True
    wants_unique_ids = True
    takes_system_messages = False

    def fits(self, message: dict[str, Any]) -> bool:
        for block in items(message.get("content")):
            if isinstance(block, dict):
                if "type" in block:
                    return False
                if any(block.get(key) is not None for key in (*_BLOCK_KEYS, *_MEDIA)):
                    return True
        return False

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        for place, path, block in walk.blocks(Member(message, "content"), _BLOCK_KEYS):
            call = walk.object(block.get("toolUse"), path + ".toolUse")
            result = walk.object(block.get("toolResult"), path + ".toolResult") if call is None else None
            server = next((one for one in (call, result) if one is not None and _is_of_server(one)), None)
            if server is not None:
                keys = _CALL_KEYS if server is call else _RESULT_KEYS
                walk.refuse_repeated(server, keys, path + (".toolUse." if server is call else ".toolResult."))
                walk.half(server.get("toolUseId"), place, server is result)
                walk.message.has_more = True
                walk.message.own.json_chars += walk.unmarked_size(block, _BLOCK_DEPTH)
            elif call is not None:
                walk.refuse_repeated(call, _CALL_KEYS, path + ".toolUse.")
                walk.call(call.get("toolUseId"), call.get("name"), call.get("input"), block=place, depth=_CALL_DEPTH)
            elif result is not None:
                path += ".toolResult."
                walk.refuse_repeated(result, _RESULT_KEYS, path)
                text = _observation(walk, Member(result, "content"), path + "content")
                is_error = result.get("status") == "error"
                walk.result(result.get("toolUseId"), text, block=place, is_error=is_error)
            elif isinstance(block.get("text"), str):
                walk.message.has_more |= _is_of_user(message, block)
                walk.piece(Member(block, "text"), walk.message.own)
            elif _is_media(block):
                walk.message.has_more = True
                walk.message.own.images += 1
            elif _is_uncounted(walk, block):
                walk.message.has_more |= _is_of_user(message, block)
            else:
                walk.message.has_more |= _is_of_user(message, block) or "document" in block
                walk.message.is_lasting |= "document" not in block
                walk.message.own.json_chars += walk.unmarked_size(block, _BLOCK_DEPTH)

    def mask_block(self, block: Changed, text: Any) -> None:
        result = block.at("toolResult")
        result.new["content"] = self.content(text) if isinstance(result.source.value["content"], list) else text

    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        call_id = message["content"][block]["toolUse"]["toolUseId"]
        return {"toolResult": {"toolUseId": call_id, "content": self.content(NO_RESULT)}}


def _is_of_user(message: dict[str, Any], block: dict[str, Any]) -> bool:
    return message.get("role") == "user" and "cachePoint" not in block


def _is_of_server(block: dict[str, Any]) -> bool:
    """Whether the provider runs the tool: the type says so, which others need not have."""
    return isinstance(block.get("type"), str) and block["type"] not in ("tool_use", "tool_result")


def _observation(walk: Any, content: Member, path: str) -> Text:
    """Read a list of texts, media and JSON; with JSON in it, it has no text."""
    if not isinstance(content.value, list):
        text: Text = walk.text(content, path, _PART_KEYS)
        return text
    text, texts = Text(), []
    for _, _, part in walk.parts(content, path, _PART_KEYS):
        if part.get("json") is not None:
            text.json = content
            text.json_chars += walk.size(part["json"], _JSON_DEPTH)
        elif isinstance(part.get("text"), str):
            texts.append(Member(part, "text"))
        elif _is_media(part):
            text.images += 1
        elif not _is_uncounted(walk, part):
            text.json = content
            text.json_chars += walk.unmarked_size(part, _PART_DEPTH)
    for piece in texts:
        if text.json is None:
            walk.piece(piece, text)
        else:
            text.json_chars += len(piece.value)
    return text


def _is_media(part: dict[str, Any]) -> bool:
    for key in _MEDIA:
        if part.get(key) is not None:
            return not (key == "document" and _is_text(part, part[key]))
    return False


def _is_text(part: dict[str, Any], document: Any) -> bool:
    """Whether the source of a document is text, or parts with text; with repeated keys it may be."""
    source = document.get("source") if isinstance(document, dict) else None
    if not isinstance(source, dict):
        return False
    is_clear = not any(is_repeated(one, "document", "source", "text", "content") for one in (part, document, source))
    return not is_clear or source.get("text") is not None or source.get("content") is not None


def _is_uncounted(walk: Any, part: dict[str, Any]) -> bool:
    """Whether it is reasoning, which is read, or a mark of the cache."""
    if "reasoningContent" in part:
        read_converse(walk.message, part["reasoningContent"])
    return "reasoningContent" in part or "cachePoint" in part
