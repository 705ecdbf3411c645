"""Steps of Gemini's Interactions: each message is one, by its `type`. Results may also be parts of a `user_input`."""

from __future__ import annotations

from typing import Any

from oracle.shape.base import BlockShape, Shape
from oracle.shape.reasoning import read_item
from oracle.shape.words import NO_RESULT, PART_KEYS, block_type, is_flagged, items, string
from oracle.value import Changed, Member, Text

_ROLES = ("system", "developer", "user", "assistant", "model", "tool")
_PROVIDER = frozenset(
    {
        *("code_execution", "google_search", "google_maps", "url_context"),
        *("file_search", "retrieval", "processing", "mcp_server_tool", "tool_search"),
    }
)
_BLOCK_KEYS = frozenset({"type", "text", "call_id", "name", "result", "is_error"})
_NESTED_DEPTH = 3  # the message, content, the part


class Interactions(Shape):
    name = "interactions"
    message_keys = frozenset({"result"})
    is_one_call = True
    may_name_results = True
    result_field = "result"
    id_path = ("call_id",)
    takes_system_messages = False

    def fits(self, message: dict[str, Any]) -> bool:
        return role_of(message) is not None and not _has_results(message)

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        kind = message["type"]
        walk.message.role = role_of(message)
        if kind in ("user_input", "model_output"):
            walk.content(message) if kind == "model_output" else _read_input(walk, message)
        elif kind == "function_call":
            walk.refuse_repeated(message, frozenset({"id"}), "")
            walk.call(message.get("id"), message.get("name"), message["arguments"])
        elif kind == "function_result":
            _read_result(walk, message, "result", 1, is_error=is_flagged(message))
        elif kind == "thought":
            read_item(walk.message, message)
        else:
            is_result = kind.endswith("_result")
            walk.half(message.get("call_id" if is_result else "id"), 0, is_result)
            walk.message.own.json_chars += walk.unmarked_size(message, 0)
            walk.message.has_more = True
            walk.message.is_lasting |= kind == "tool_search_result"

    def content(self, text: Any) -> Any:
        return [{"type": "text", "text": text}]

    def head(self, role: str) -> dict[str, Any]:
        return {"type": "user_input"}

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        ((message, _),) = calls
        return answer_to(message)

    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        return answer_to(message)


class InteractionsInput(BlockShape):
    """A `user_input` with results."""

    name = "interactions"
    id_path = ("call_id",)
    may_name_results = True
    takes_system_messages = False

    def fits(self, message: dict[str, Any]) -> bool:
        return role_of(message) is not None and _has_results(message)

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        walk.message.role = "user"
        _read_input(walk, message)

    def content(self, text: Any) -> Any:
        return [{"type": "text", "text": text}]

    def head(self, role: str) -> dict[str, Any]:
        return {"type": "user_input"}

    def mask_block(self, block: Changed, text: Any) -> None:
        block.new["result"] = text

    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        return answer_to(message)


def answer_to(call: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function_result",
        "call_id": call["id"],
        "name": string(call.get("name")) or "",
        "result": NO_RESULT,
    }


def role_of(message: dict[str, Any]) -> str | None:
    """Whose step a message is; None if it is no step. Items of Responses of the same type have other fields."""
    kind = string(message.get("type")) or ""
    if message.get("role") in _ROLES:
        return None
    if kind in ("user_input", "function_result"):
        return "user" if kind == "user_input" else ""
    if kind in ("model_output", "thought") or (kind.endswith("_result") and kind[:-7] in _PROVIDER):
        return "assistant"
    if not kind.endswith("_call") or message.get("call_id") is not None:
        return None
    if kind == "function_call":
        return "assistant" if isinstance(message.get("arguments"), dict) else None
    return "assistant" if kind.removesuffix("_call") in _PROVIDER and message.get("status") is None else None


def _has_results(message: dict[str, Any]) -> bool:
    parts = items(message.get("content")) if message.get("type") == "user_input" else []
    return any(block_type(part) == "function_result" for part in parts)


def _read_input(walk: Any, message: dict[str, Any]) -> None:
    if not isinstance(message.get("content"), list):
        walk.content(message)
        return
    for place, path, part in walk.blocks(Member(message, "content"), _BLOCK_KEYS):
        if block_type(part) == "function_result":
            is_error = part.get("is_error") is True
            _read_result(walk, part, path + ".result", _NESTED_DEPTH, block=place, is_error=is_error)
        else:
            walk.beside(part, is_of_user=True)
            walk.part(part, walk.message.own)


def _read_result(walk: Any, fields: dict[str, Any], path: str, depth: int, *, block: int = 0, is_error: bool) -> None:
    """Read a result: text, a list of parts, or another value, which is no text."""
    result = Member(fields, "result")
    walk.object(result.value, path)
    defines_tools = any(block_type(part) == "function" for part in items(result.value))
    if result.value is None or isinstance(result.value, (str, list)):
        text = walk.observation(result, path, PART_KEYS, depth + 1)
    else:
        text = Text(json=result, json_chars=walk.size(result.value, depth))
    walk.message.is_lasting |= defines_tools
    walk.result(
        fields.get("call_id"), text, name=fields.get("name"), block=block, is_error=is_error, is_pinned=defines_tools
    )
