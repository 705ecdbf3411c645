"""Responses of clients: objects of `anthropic` and `openai`, or dicts, read alike without importing either client."""

from __future__ import annotations

import functools
import itertools
import json
import logging
import math
from collections.abc import Collection, Iterable
from typing import Any

from recede._objects import MOST_LEVELS, is_object, plain, read

__all__ = [
    "CUT",
    "INVALID_JSON",
    "NO_NAME",
    "answer_of",
    "blocks_of",
    "choice_of",
    "encodable",
    "is_openai",
    "messages_of",
    "parsed",
    "stop_reason",
    "text_of",
    "usable",
]

_log = logging.getLogger("recede")

# The stop reasons of an answer that was cut off: a call in it may be incomplete.
CUT = frozenset({"max_tokens", "length", "model_context_window_exceeded", "refusal", "content_filter"})
# Replacements for an input that is not a JSON object, as Anthropic recommends, and for a missing name.
INVALID_JSON = "INVALID_JSON"
NO_NAME = "no_name"
_NAME_CHARS = 64
_THINKING = ("thinking", "redacted_thinking")
# Block types that Anthropic returns and accepts again, besides `*tool_use` and `*_tool_result`.
_BLOCKS = frozenset({"text", *_THINKING, "compaction", "container_upload", "fallback", "mcp_tool_listing"})
# The fields of OpenAI's messages that it accepts again, with their types.
_FIELDS: dict[str, Any] = {
    "role": str,
    "content": (str, list),
    "refusal": str,
    "name": str,
    "tool_calls": (list, dict),
    "function_call": dict,
    "audio": dict,
    "annotations": list,
}
# Reasoning fields of OpenAI-compatible gateways, which expect them to be sent back.
_THOUGHTS = frozenset(
    {"reasoning", "reasoning_content", "reasoning_details", "reasoning_opaque", "reasoning_text", "thinking_blocks"}
    | {"extra_content", "provider_specific_fields"}
)


def encodable(value: Any, level: int = 0) -> Any:
    """The value in a form that a client can send: surrogate pairs are joined, lone surrogates replaced.

    Values that need no change, and objects of a client whose fields need none, are returned as they are.

    Raises:
        TypeError: it contains something that JSON cannot represent.
        ValueError: it contains a number that JSON cannot represent, or is nested too deeply.
    """
    if isinstance(value, str):
        return value if value.isascii() else _joined(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise ValueError(f"it contains {value}, which JSON cannot represent")
    if level > MOST_LEVELS:
        raise ValueError(f"it is nested deeper than {MOST_LEVELS} levels")
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("it contains an object with a key that is not a string")
        fields = {encodable(name): encodable(field, level + 1) for name, field in value.items()}
        is_same = all(name in value and fields[name] is value[name] for name in fields)
        return value if is_same and len(fields) == len(value) else fields
    if isinstance(value, (list, tuple)):
        elements = [encodable(element, level + 1) for element in value]
        is_same = isinstance(value, list) and all(map(_is, elements, value))
        return value if is_same else elements
    if is_object(value):
        form = plain(value)
        sound = encodable(form, level + 1)
        return value if sound is form else sound
    raise TypeError(f"it contains a {type(value).__name__}, which JSON cannot represent")


def _is(one: Any, other: Any) -> bool:
    return one is other


def _joined(text: str) -> str:
    """The text without lone surrogates. A surrogate pair becomes one character, as in a JSON parser."""
    try:
        text.encode()
    except UnicodeEncodeError:
        units = text.encode("utf-16-le", "surrogatepass")
    else:
        return text
    try:
        return units.decode("utf-16-le")
    except UnicodeDecodeError:
        _warn_once("a text contained lone surrogates, which no client can send: each was replaced by U+FFFD")
        return units.decode("utf-16-le", "replace")


@functools.lru_cache(64)
def _warn_once(what: str) -> None:
    _log.warning(what)


def parsed(written: str) -> dict[str, Any]:
    """Parse the input of a call as the model wrote it.

    Raises:
        ValueError: it is not a JSON object that could be sent.
    """

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        value = encodable(json.loads(written, parse_constant=refuse)) if written.strip() else {}
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value


def is_openai(response: Any) -> bool:
    """Whether a response is an OpenAI chat completion; otherwise it must be an Anthropic message."""
    choices = read(response, "choices")
    if choices and isinstance(choices, (list, tuple)):
        return True
    if isinstance(read(response, "content"), (list, tuple, str)):
        return False
    raise TypeError(
        f"create returned a {type(response).__name__} that is not a response: neither a message with a list of content "
        "blocks nor a chat completion with choices"
    )


def choice_of(response: Any) -> Any:
    """The first choice of a chat completion; None if there is none."""
    choices = read(response, "choices")
    return choices[0] if choices and isinstance(choices, (list, tuple)) else None


def blocks_of(response: Any) -> list[Any]:
    """The content blocks of an Anthropic message; some gateways return a plain string."""
    content = read(response, "content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, (list, tuple)) else []


def stop_reason(response: Any) -> str | None:
    """Why an answer ended: `stop_reason`, or the `finish_reason` of the first choice."""
    choice = choice_of(response)
    reason = read(response, "stop_reason") if choice is None else read(choice, "finish_reason")
    return reason if isinstance(reason, str) else None


def messages_of(response: Any) -> list[Any]:
    """The history messages of a client's object: a response, a message, or an item of one."""
    if hasattr(response, "choices"):
        message = read(choice_of(response), "message")
        if message is None:
            raise ValueError("a chat completion without choices holds no message")
        return [message]
    if read(response, "object") == "response":
        return list(response.output)
    if hasattr(response, "stop_reason"):  # as the provider takes it back: without the fields around a message
        return [{"role": read(response, "role") or "assistant", "content": response.content}]
    return [response]


def text_of(message: dict[str, Any] | None) -> str:
    """The text of a message."""
    if message is None:
        return ""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(block.get("text") or "" for block in content if block.get("type") == "text")
    return content or message.get("refusal") or ""


def answer_of(response: Any, sent: Iterable[Any] = (), tools: Collection[str] = ()) -> dict[str, Any] | None:
    """The message of an answer in the form that its provider accepts; None if nothing of it can be sent.

    An answer that was cut off loses its calls: the last is incomplete, and the others would need results. Blank texts
    are dropped, and so is thinking without a signature or at the end of a message. A damaged call is repaired, so that
    it can have a result; other damaged parts are dropped. No answer raises an error.

    Args:
        response: the response.
        sent: the messages that it answers, so that no id is reused.
        tools: the names of the tools, which may contain characters that the provider does not allow.
    """
    cut = stop_reason(response) in CUT
    if is_openai(response):
        return _openai_answer(plain(read(choice_of(response), "message")), cut, _Calls(sent, tools))
    blocks = _sound_blocks(usable(blocks_of(response), cut), _Calls(sent, tools))
    if blocks and blocks[-1]["type"] == "text" and stop_reason(response) == "pause_turn":
        # It is sent back as the last message, which must not end in white space.
        blocks[-1] = {**blocks[-1], "text": blocks[-1]["text"].rstrip()}
    return {"role": "assistant", "content": blocks} if blocks else None


def usable(blocks: list[Any], cut: bool) -> list[Any]:
    """The content blocks of an answer, cut off or not, that may be sent back."""
    answered = [answer for block in blocks if isinstance(answer := read(block, "tool_use_id"), str)]
    kept = []
    for block in blocks:
        kind = read(block, "type")
        if not isinstance(kind, str):
            continue
        if kind == "text" and not _is_said(read(block, "text")):
            continue
        if cut and kind == "thinking" and not read(block, "signature"):
            continue
        # A server tool has run if its result is there.
        if cut and kind.endswith("tool_use") and read(block, "id") not in answered:
            continue
        kept.append(block)
    return kept


def _is_said(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip())


# Anthropic


def _sound_blocks(given: list[Any], calls: _Calls) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    left_out = []  # ids of calls to server tools, whose results are dropped with them
    for block in map(plain, given):
        if not isinstance(block, dict):
            continue
        kind = block["type"]
        if kind == "tool_use":
            blocks.append(calls.of_anthropic(block))
        elif (sound := _sound_block(block)) is None or block.get("tool_use_id") in left_out:
            left_out.append(block.get("id", ...))
        else:
            blocks.append(sound)
    while blocks and blocks[-1]["type"] in _THINKING:
        del blocks[-1]
    # Thinking comes first: if its first block could not be kept, the provider accepts none.
    if blocks and blocks[0]["type"] not in _THINKING:
        blocks = [block for block in blocks if block["type"] not in _THINKING]
    return blocks


def _sound_block(block: dict[str, Any]) -> dict[str, Any] | None:
    """A block that is not a call of our tools; None if it cannot be sent back."""
    kind = block["type"]
    if kind == "text" and not isinstance(block.get("citations"), (list, type(None))):
        block = {name: field for name, field in block.items() if name != "citations"}
    if kind == "thinking":
        is_whole = isinstance(block.get("thinking"), str) and _is_said(block.get("signature"))
    elif kind == "redacted_thinking":
        is_whole = isinstance(block.get("data"), str)
    elif kind.endswith("_tool_use"):
        is_whole = isinstance(block.get("id"), str) and isinstance(block.get("input"), dict)
    elif kind.endswith("_tool_result"):
        is_whole = isinstance(block.get("tool_use_id"), str)
    else:
        is_whole = kind in _BLOCKS
        if not is_whole:
            _warn_once(f"blocks of type {kind[:99]!r} are left out of answers: Anthropic does not accept them")
    try:
        return encodable(block) if is_whole else None
    except (TypeError, ValueError):
        return None


# OpenAI


def _openai_answer(given: Any, cut: bool, calls: _Calls) -> dict[str, Any] | None:
    message: dict[str, Any] = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        if cut and name in ("tool_calls", "audio"):
            continue
        if name not in _FIELDS and name not in _THOUGHTS:
            if value is not None:
                _warn_once(f"the field {str(name)[:99]!r} is left out of answers: OpenAI does not accept it")
            continue
        if value is None or not isinstance(value, _FIELDS.get(name, object)):
            continue
        if name == "tool_calls":
            found = [calls.of_openai(call) for call in ([value] if isinstance(value, dict) else value)]
            value = [call for call in found if call is not None]
        elif name == "content" and isinstance(value, list):
            value = [part for part in value if isinstance(part, dict) and _is_part(part)]
        try:
            value = encodable(value)
        except (TypeError, ValueError):
            continue
        if value or name not in ("tool_calls", "content"):
            message[name] = value
    said = message.get("content")
    if not (_is_said(said) or isinstance(said, list) or message.get("tool_calls") or message.get("refusal")):
        return None
    return {**message, "role": "assistant", "content": said}


def _is_part(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    return isinstance(part.get(kind), str) if kind in ("text", "refusal") else isinstance(kind, str)


class _Calls:
    """Repairs the calls of one answer: each gets a unique id, a name, and an input that can be sent."""

    def __init__(self, sent: Iterable[Any], tools: Collection[str]) -> None:
        self._sent = sent
        self._tools = tools
        self._ids: set[str] = set()  # of this answer

    @functools.cached_property
    def _sent_ids(self) -> set[Any]:
        found = set()
        for message in self._sent:
            for calls in (read(message, "content"), read(message, "tool_calls")):
                for call in calls if isinstance(calls, list) else ():
                    if isinstance(call_id := read(call, "id"), str):
                        found.add(call_id)
        return found

    def of_anthropic(self, block: dict[str, Any]) -> dict[str, Any]:
        """A `tool_use` block."""
        name, value, rest = block.get("name"), block.get("input"), self._rest(block, "id", "name", "input")
        try:
            value = {} if value is None else encodable(value)
        except (TypeError, ValueError) as error:
            value = str(error)
        if not isinstance(value, dict):
            value = {INVALID_JSON: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
        # Anthropic refuses duplicate ids within a request, and some characters.
        given = block.get("id")
        is_usable = isinstance(given, str) and _is_plain(given) and given not in self._sent_ids
        return {**rest, "id": self._id(given if is_usable else None), "name": self._name(name), "input": value}

    def of_openai(self, call: Any) -> dict[str, Any] | None:
        """An element of `tool_calls`; None if it is not an object."""
        if not isinstance(call, dict):
            return None
        is_custom = isinstance(call.get("custom"), dict) and not isinstance(call.get("function"), dict)
        kind, field = ("custom", "input") if is_custom else ("function", "arguments")
        said = call[kind] if isinstance(call.get(kind), dict) else {}
        written = said.get(field)
        if written is None:
            written = ""
        elif not isinstance(written, str):
            try:
                written = json.dumps(encodable(written), ensure_ascii=False)
            except (TypeError, ValueError) as error:
                written = str(error)
        of_kind = {**self._rest(said, "name", field), "name": self._name(said.get("name")), field: encodable(written)}
        given = encodable(call["id"]) if isinstance(call.get("id"), str) else None
        rest = self._rest(call, "id", "type", "function", "custom")
        return {**rest, "id": self._id(given), "type": kind, kind: of_kind}

    def _rest(self, value: dict[str, Any], *names: str) -> dict[str, Any]:
        try:
            return {name: encodable(field) for name, field in value.items() if name not in names}
        except (TypeError, ValueError):
            return {"type": value["type"]} if "type" in value and "type" not in names else {}

    def _id(self, given: str | None) -> str:
        if not given or given in self._ids:
            made = (f"recede_{number}" for number in itertools.count(1))
            given = next(one for one in made if one not in self._ids and one not in self._sent_ids)
        self._ids.add(given)
        return given

    def _name(self, given: Any) -> str:
        if not _is_said(given):
            return NO_NAME
        if given in self._tools or (_is_plain(given) and len(given) <= _NAME_CHARS):
            return str(given)
        return "".join(char if _is_plain(char) else "_" for char in given[:_NAME_CHARS])


def _is_plain(text: str) -> bool:
    """Whether it has only characters allowed in ids and names."""
    return text.isascii() and text.replace("-", "_").replace("_", "a").isalnum()
