"""Gemini's contents: calls and results are parts, with the fields of the API or of its Python library."""

from __future__ import annotations

from typing import Any

from oracle.shape.base import BlockShape
from oracle.shape.reasoning import read_block, read_sealed
from oracle.shape.words import NO_RESULT, is_repeated, items
from oracle.value import Changed, Member, Text

_CALL = ("functionCall", "function_call")
_RESULT = ("functionResponse", "function_response")
_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")

_OF_PROVIDER = (
    *("toolCall", "tool_call", "toolResponse", "tool_response"),
    *("executableCode", "executable_code", "codeExecutionResult", "code_execution_result"),
)
"""Calls of tools that the provider runs, and what they gave."""

_PART_KEYS = frozenset({"text", *_CALL, *_RESULT})
_CALL_KEYS = frozenset({"id", "name", "args"})
_RESULT_KEYS = frozenset({"id", "name", "response"})
_PART_DEPTH = 2  # the message, its parts
_DEPTH = 4  # the message, its parts, the part, its field


class Gemini(BlockShape):
    name = "gemini"
    message_keys = frozenset({"parts"})
    names_results = True
    wants_one_message = True
    takes_names_for_ids = True
    field = "parts"
    part_type = None
    takes_system_messages = False

    def fits(self, message: dict[str, Any]) -> bool:
        return "content" not in message and message.get("parts") is not None

    def read(self, walk: Any, message: dict[str, Any]) -> None:
        for place, path, part in walk.blocks(Member(message, "parts"), _PART_KEYS):
            call_key, call = _first(part, _CALL)
            result_key, result = _first(part, _RESULT)
            call = walk.object(call, f"{path}.{call_key}")
            result = walk.object(result, f"{path}.{result_key}") if call is None else None
            if call is not None:
                read_sealed(walk.message, part)
                walk.refuse_repeated(call, _CALL_KEYS, f"{path}.{call_key}.")
                walk.call(call.get("id"), call.get("name"), call.get("args"), block=place, depth=_DEPTH)
            elif result is not None:
                walk.refuse_repeated(result, _RESULT_KEYS, f"{path}.{result_key}.")
                text, is_error = _observation(walk, result, f"{path}.{result_key}"), _only(result) == "error"
                name = result.get("name")
                walk.result(
                    result.get("id"), text, name=name, block=place, is_error=is_error, takes_name=name is not None
                )
                walk.message.own.images += _media_beside(result)
            elif _first(part, _MEDIA)[0]:
                walk.message.has_more = True
                walk.message.own.images += 1
            elif part.get("thought") is True:
                read_block(walk.message, part)
            elif isinstance(part.get("text"), str):
                walk.message.has_more |= message.get("role") == "user"
                walk.piece(Member(part, "text"), walk.message.own)
                read_sealed(walk.message, part)
            else:
                is_of_provider = bool(_first(part, _OF_PROVIDER)[0])
                walk.message.has_more |= is_of_provider
                walk.message.is_lasting |= not is_of_provider
                walk.message.own.json_chars += walk.unmarked_size(part, _PART_DEPTH)

    def mask_block(self, block: Changed, text: Any) -> None:
        key, result = _first(block.source.value, _RESULT)
        if (only := _only(result)) and isinstance(result["response"][only], str):
            block.at(key).at("response").new[only] = text
        else:
            block.at(key).new["response"] = {"output": text}

    def answer_block(self, message: dict[str, Any], block: int) -> dict[str, Any]:
        key, call = _first(message["parts"][block], _CALL)
        fields = {name: call[name] for name in ("id", "name") if call.get(name) is not None}
        return {_RESULT[_CALL.index(key)]: {**fields, "response": {"output": NO_RESULT}}}


def _observation(walk: Any, result: dict[str, Any], path: str) -> Text:
    """Read a response: the text of its only member, or an object that has characters, but no text."""
    response, only = Member(result, "response"), _only(result)
    if only is not None and isinstance(response.value[only], str):
        text: Text = walk.text(Member(response.value, only), path, frozenset())
        return text
    if response.value is None:
        return Text()
    if not isinstance(response.value, dict):
        walk.fault("content", response, path + ".response")
    return Text(json=response, json_chars=walk.size(response.value, _DEPTH), is_output=True)


def _media_beside(result: dict[str, Any]) -> int:
    """How many media a response has beside its JSON, which stay where the JSON is replaced."""
    parts = [] if is_repeated(result, "parts") else items(result.get("parts"))
    return sum(isinstance(part, dict) and bool(_first(part, _MEDIA)[0]) for part in parts)


def _first(part: dict[str, Any], keys: tuple[str, ...]) -> tuple[str, Any]:
    """The first of these fields that exists: key and value."""
    return next(((key, part[key]) for key in keys if part.get(key) is not None), ("", None))


def _only(result: dict[str, Any]) -> str | None:
    """The key of the only member of a response."""
    response: Any = result.get("response")
    is_one = isinstance(response, dict) and len(response) == 1 and not getattr(response, "repeated", None)
    return next(iter(response)) if is_one else None
