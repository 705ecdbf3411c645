"""Gemini's contents: calls and results are parts, with the fields of the API or of its Python library."""

from __future__ import annotations

from typing import Any

from recede._pure.shape.base import BlockShape
from recede._pure.shape.words import NO_RESULT

_CALL = ("functionCall", "function_call")
_RESULT = ("functionResponse", "function_response")
_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")

_PART_KEYS = frozenset({"text", *_CALL, *_RESULT})
_CALL_KEYS = frozenset({"id", "name", "args"})
_RESULT_KEYS = frozenset({"id", "name", "response"})
_DEPTH = 4  # the message, its parts, the part, its field


class Gemini(BlockShape):
    name = "gemini"
    message_keys = frozenset({"parts"})
    pairs_by_place = True
    names_results = True
    field = "parts"
    text_frame = ('[{"text":', "}]")
    takes_system_messages = False

    def fits(self, message: dict[str, Any]) -> bool:
        return "content" not in message and message.get("parts") is not None

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        for place, path, part in walk.blocks(message, "parts", _PART_KEYS):
            call_key, call = _first(part, _CALL)
            result_key, result = _first(part, _RESULT)
            call = walk.object(call, f"{path}.{call_key}")
            result = walk.object(result, f"{path}.{result_key}") if call is None else None
            if call is not None:
                walk.refuse_repeated(call, _CALL_KEYS, f"{path}.{call_key}.")
                walk.call(call.get("id"), call.get("name"), call.get("args"), block=place, depth=_DEPTH)
            elif result is not None:
                path = f"{path}.{result_key}"
                walk.refuse_repeated(result, _RESULT_KEYS, path + ".")
                result_id, name = result.get("id"), result.get("name")
                response: Any = result.get("response")
                only = _only(response)
                is_error = only == "error"
                if only is not None and isinstance(response[only], str):
                    text = walk.text(response, only, path, frozenset())
                    walk.result(result_id, text, name=name, block=place, is_error=is_error)
                else:
                    text = walk.json(result, "response", path + ".response", _DEPTH)
                    walk.result(result_id, text, name=name, block=place, is_error=is_error, frame=_FRAME)
            elif _first(part, _MEDIA)[0]:
                walk.image()
            elif isinstance(part.get("text"), str) and part.get("thought") is not True:
                walk.own_text(part)

    def masked_block(self, block: dict[str, Any], text: str) -> dict[str, Any]:
        key, result = _first(block, _RESULT)
        only = _only(result["response"])
        masked = {only if only and isinstance(result["response"][only], str) else "output": text}
        return {**block, key: {**result, "response": masked}}

    def summary(self, role: str, text: str) -> dict[str, Any]:
        return {"role": role, "parts": [{"text": text}]}

    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        key, call = _first(message["parts"][block], _CALL)
        fields = {name: call[name] for name in ("id", "name") if call.get(name) is not None}
        return {_RESULT[_CALL.index(key)]: {**fields, "response": {"output": NO_RESULT}}}


_FRAME = ('{"output":', "}")


def _first(part: dict[str, Any], keys: tuple[str, ...]) -> tuple[str, Any]:
    """The first of these fields that exists: key and value."""
    return next(((key, part[key]) for key in keys if part.get(key) is not None), ("", None))


def _only(response: Any) -> str | None:
    """The key of the only member of an object."""
    is_one = isinstance(response, dict) and len(response) == 1 and not getattr(response, "repeated", None)
    return next(iter(response)) if is_one else None
