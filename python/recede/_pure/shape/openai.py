"""OpenAI chat: an assistant's `tool_calls`, and messages of role `tool`."""

from __future__ import annotations

from typing import Any

from recede._objects import is_object
from recede._pure.shape.base import Shape
from recede._pure.shape.words import BLOCK_KEYS, NO_RESULT, is_flagged, items

_CALL_KEYS = frozenset({"id", "function", "custom"})
_FUNCTION_KEYS = frozenset({"name", "arguments"})
_CUSTOM_KEYS = frozenset({"name", "input"})
_DEPTH = 4  # the message, tool_calls, the call, its function


class OpenAI(Shape):
    name = "openai"

    def fits(self, message: dict[str, Any]) -> bool:
        role = message.get("role")
        return role == "tool" or (
            role == "assistant"
            and any(isinstance(call, dict) or is_object(call) for call in items(message.get("tool_calls")))
        )

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        if message["role"] == "tool":
            text = walk.text(message, "content", "content", BLOCK_KEYS)
            walk.result(message.get("tool_call_id"), text, is_error=is_flagged(message))
            return
        walk.content()
        for place, given in enumerate(message["tool_calls"]):
            call = walk.object(given, f"tool_calls[{place}]")
            if call is not None:
                path = f"tool_calls[{place}]."
                walk.refuse_repeated(call, _CALL_KEYS, path)
                function = walk.object(call.get("function"), path + "function")
                custom = (
                    call.get("custom") if function is not None else walk.object(call.get("custom"), path + "custom")
                )
                name = arguments = None
                if function is not None:
                    walk.refuse_repeated(function, _FUNCTION_KEYS, path + "function.")
                    name, arguments = function.get("name"), function.get("arguments")
                elif custom is not None:
                    walk.refuse_repeated(custom, _CUSTOM_KEYS, path + "custom.")
                    name, arguments = custom.get("name"), custom.get("input")
                walk.call(call.get("id"), name, arguments, block=place, depth=_DEPTH)

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        ((message, place),) = calls
        return {"role": "tool", "tool_call_id": message["tool_calls"][place]["id"], "content": NO_RESULT}
