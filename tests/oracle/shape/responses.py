"""Items of OpenAI's Responses: calls and outputs are identified by the end of their `type`."""

from __future__ import annotations

from typing import Any

from oracle.shape.base import Shape
from oracle.shape.words import IMAGE_TYPES, NO_RESULT, PART_KEYS, block_type, is_flagged, string
from oracle.value import Member, Text


class Responses(Shape):
    name = "responses"
    result_field = "output"
    part_type = "input_text"

    def fits(self, message: dict[str, Any]) -> bool:
        kind = string(message.get("type")) or ""
        is_call = kind.endswith("_call") and message.get("call_id") is not None
        return is_call or kind.endswith("_call_output")

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        walk.content(message)
        if message["type"].endswith("_call"):
            arguments = (message.get(key) for key in ("arguments", "input", "action"))
            present = next((value for value in arguments if value is not None), None)
            walk.call(message["call_id"], message.get("name"), present)
            return
        output = Member(message, "output")
        walk.object(output.value, "output")
        if not _is_opaque(walk, output):
            text = walk.observation(output, "output", PART_KEYS)
        elif block_type(output.value) in IMAGE_TYPES:
            text = Text()
            walk.message.own.images += 1
        else:
            text = Text()
            walk.message.own.json_chars += walk.size(output.value, 1)
        walk.result(message.get("call_id"), text, is_error=is_flagged(message))

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        ((message, _),) = calls
        return {"type": message["type"] + "_output", "call_id": message["call_id"], "output": NO_RESULT}


def _is_opaque(walk: Any, output: Member) -> bool:
    """Whether an output is of an unknown form: no text, and no list of parts with types."""
    if isinstance(output.value, list):
        parts = [part for _, _, part in walk.parts(output, "output", PART_KEYS)]
        return any("type" not in part for part in parts)
    return output.value is not None and not isinstance(output.value, str)
