"""Items of OpenAI's Responses: calls and outputs are identified by the end of their `type`."""

from __future__ import annotations

from typing import Any

from oracle.shape.base import Shape
from oracle.shape.words import NO_RESULT, PART_KEYS, is_flagged, string
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
        is_left_alone = output.value is not None and not isinstance(output.value, (str, list))
        text = Text() if is_left_alone else walk.text(output, "output", PART_KEYS)
        walk.result(message.get("call_id"), text, is_error=is_flagged(message))

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        ((message, _),) = calls
        return {"type": message["type"] + "_output", "call_id": message["call_id"], "output": NO_RESULT}
