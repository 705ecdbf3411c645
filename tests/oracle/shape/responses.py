"""Items of OpenAI's Responses: calls and outputs are identified by the end of their `type`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oracle.shape.base import Shape
from oracle.shape.words import (
    IMAGE_TYPES,
    NO_RESULT,
    PART_KEYS,
    STREAMS,
    block_type,
    is_flagged,
    is_repeated,
    items,
    string,
)
from oracle.value import Changed, Member, Text

_SEARCH_OUTPUT = "tool_search_output"
_APPROVAL, _APPROVED = "mcp_approval_request", "mcp_approval_response"
_KINDS = ("function", "custom_tool", "computer", "local_shell", "shell", "apply_patch", "tool_search")
_ARGUMENTS = ("arguments", "input", "action", "operation", "actions")

# Outputs of calls that do not take a text alone.
_NO_OUTPUT: dict[str, dict[str, Any]] = {
    "tool_search_call": {"execution": "client", "tools": []},
    "shell_call": {"output": [{"stdout": "", "stderr": NO_RESULT, "outcome": {"type": "timeout"}}]},
    "apply_patch_call": {"status": "failed", "output": NO_RESULT},
}


class Responses(Shape):
    name = "responses"
    is_one_call = True
    result_field = "output"
    part_type = "input_text"
    message_keys = frozenset({"approval_request_id"})

    def fits(self, message: dict[str, Any]) -> bool:
        kind = string(message.get("type")) or ""
        if kind in (_APPROVAL, _APPROVED):
            return True
        is_one = (kind.endswith("_call") or kind == _SEARCH_OUTPUT) and message.get("call_id") is not None
        return is_one or kind.endswith("_call_output")

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        if message["type"] == _APPROVAL:
            walk.refuse_repeated(message, frozenset({"id"}), "")
            walk.call(message.get("id"), message.get("name"), message.get("arguments"))
            return
        if message["type"] in (_SEARCH_OUTPUT, _APPROVED):
            walk.result(message.get("call_id" if message["type"] == _SEARCH_OUTPUT else "approval_request_id"), Text())
            walk.message.own.json_chars += walk.unmarked_size(message, 0)
            return
        walk.content(message)
        if message["type"].endswith("_call"):
            arguments = (message.get(key) for key in _ARGUMENTS)
            present = next((value for value in arguments if value is not None), None)
            walk.call(message["call_id"], message.get("name"), present)
            return
        output = Member(message, "output")
        walk.object(output.value, "output")
        if _are_streams(output.value):
            text = Text()
            for piece in _streams(output):
                walk.piece(piece, text)
            walk.message.own.json_chars += walk.size(output.value, 1) - len(text.joined)
        elif not _is_opaque(walk, output):
            text = walk.observation(output, "output", PART_KEYS)
        elif block_type(output.value) in IMAGE_TYPES:
            text = Text()
            walk.message.own.images += 1
        else:
            text = Text()
            walk.outline.unread.append(walk.message)
            walk.message.own.json_chars += walk.size(output.value, 1)
        call_id = message.get("call_id")
        if call_id is None and message["type"] == "local_shell_call_output":
            walk.refuse_repeated(message, frozenset({"id"}), "")
            call_id = message.get("id")
        walk.result(call_id, text, is_error=is_flagged(message))

    def path_of_id(self, message: dict[str, Any]) -> tuple[str, ...]:
        return ("approval_request_id" if message["type"] == _APPROVED else "call_id",)

    def mask(self, message: Changed, texts: Mapping[int, Any]) -> None:
        output = message.source.value.get("output")
        if not _are_streams(output):
            super().mask(message, texts)
            return
        text = texts[0]
        for place, one in enumerate(output if isinstance(output, list) else [output]):
            changed = message.at("output")
            for key in STREAMS:
                if isinstance(one.get(key), str):
                    (changed.at(place) if isinstance(output, list) else changed).new[key] = text
                    text = ""

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        ((message, _),) = calls
        if message["type"] == _APPROVAL:
            response = {"type": _APPROVED, "approval_request_id": message["id"]}
            return {**response, "approve": False, "reason": NO_RESULT}
        kind = _SEARCH_OUTPUT if message["type"] == "tool_search_call" else message["type"] + "_output"
        output = _NO_OUTPUT.get(message["type"], {"output": NO_RESULT})
        return {"type": kind, "call_id": message["call_id"], **output}


def _are_streams(output: Any) -> bool:
    """Whether an output is what a shell has written: an object with such a text, or a list of them."""
    parts = [output] if isinstance(output, dict) else items(output)
    return bool(parts) and all(isinstance(one, dict) and _has_streams(one) for one in parts)


def _has_streams(part: dict[str, Any]) -> bool:
    is_plain = "type" not in part and not is_repeated(part, "type", "text", *STREAMS)
    return is_plain and any(isinstance(part.get(key), str) for key in STREAMS)


def _streams(output: Member) -> list[Member]:
    """The texts of what a shell has written."""
    parts = output.value if isinstance(output.value, list) else [output.value]
    return [Member(one, key) for one in parts for key in STREAMS if isinstance(one.get(key), str)]


def _is_opaque(walk: Any, output: Member) -> bool:
    """Whether an output is of an unknown form: no text, and no list of parts with types."""
    if isinstance(output.value, list):
        parts = [part for _, _, part in walk.parts(output, "output", PART_KEYS)]
        return any("type" not in part for part in parts)
    return output.value is not None and not isinstance(output.value, str)


def takes(call: str, output: str) -> bool:
    """Whether a call of this type takes an output of that type. Codex answers a local shell like a function."""
    if output == _APPROVED or call == _APPROVAL:
        return output == _APPROVED and call == _APPROVAL
    if output == _SEARCH_OUTPUT:
        return call == "tool_search_call"
    if not call.endswith("_call") or not output.endswith("_call_output"):
        return False  # one of them is no item
    kind, of_output = call.removesuffix("_call"), output.removesuffix("_call_output")
    is_known = kind in _KINDS and of_output in _KINDS
    return kind == of_output or not is_known or (kind, of_output) == ("local_shell", "function")
