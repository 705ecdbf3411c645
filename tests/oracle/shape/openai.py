"""OpenAI chat: an assistant's `tool_calls`, and messages of role `tool`. Ollama has both without ids."""

from __future__ import annotations

from typing import Any

from oracle.shape.base import Shape
from oracle.shape.words import BLOCK_KEYS, NO_RESULT, id_of, is_flagged, items, string
from oracle.value import Member
from recede._objects import is_object

_CALL_KEYS = frozenset({"id", "function", "custom"})
_TOOL_KEYS = {"function": "arguments", "custom": "input"}
_DEPTH = 4  # the message, tool_calls, the call, its function


class OpenAI(Shape):
    name = "openai"
    message_keys = frozenset({"tool_name"})
    takes_names_for_ids = True
    may_name_results = True

    def fits(self, message: dict[str, Any]) -> bool:
        role = message.get("role")
        return role == "tool" or (
            role == "assistant"
            and any(isinstance(call, dict) or is_object(call) for call in items(message.get("tool_calls")))
        )

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        if message["role"] == "tool":
            text = walk.observation(Member(message, "content"), "content", BLOCK_KEYS)
            of_ollama = string(message.get("tool_name"))
            name = message.get("name") if of_ollama is None else of_ollama
            is_error, takes_name = is_flagged(message), of_ollama is not None
            walk.result(message.get("tool_call_id"), text, name=name, is_error=is_error, takes_name=takes_name)
            return
        walk.content(message)
        for place, given in enumerate(message["tool_calls"]):
            path = f"tool_calls[{place}]"
            call = walk.object(given, path)
            if call is not None:
                walk.refuse_repeated(call, _CALL_KEYS, path + ".")
                name, arguments = _called(walk, call, path)
                walk.call(call.get("id"), name, arguments, block=place, depth=_DEPTH)

    def answer(self, calls: list[tuple[dict[str, Any], int]]) -> dict[str, Any]:
        ((message, place),) = calls
        call = message["tool_calls"][place]
        if id_of(call.get("id")) is not None:
            return {"role": "tool", "tool_call_id": call["id"], "content": NO_RESULT}
        tools = (call.get(key) for key in _TOOL_KEYS)
        return {
            "role": "tool",
            "tool_name": next(t for t in tools if isinstance(t, dict))["name"],
            "content": NO_RESULT,
        }


def _called(walk: Any, call: dict[str, Any], path: str) -> tuple[Any, Any]:
    """The name of the tool, and the arguments."""
    for key, arguments in _TOOL_KEYS.items():
        tool = walk.object(call.get(key), f"{path}.{key}")
        if tool is not None:
            walk.refuse_repeated(tool, frozenset({"name", arguments}), f"{path}.{key}.")
            return tool.get("name"), tool.get(arguments)
    return None, None
