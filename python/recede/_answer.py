"""Answers of a model as their provider takes them back: damaged calls are repaired, other damaged parts left out."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Collection, Iterable
from typing import Any

from recede._encodable import encodable, warn_once
from recede._objects import CUT, blocks_of, choice_of, is_object, is_openai, plain, read, sent_form, stop_reason

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
# Those of them that may be null.
_NULLABLE = frozenset({"content", "refusal", "audio", "function_call"})
# Reasoning fields of OpenAI-compatible gateways, which expect them to be sent back.
_THOUGHTS = frozenset(
    {"reasoning", "reasoning_content", "reasoning_details", "reasoning_opaque", "reasoning_text", "thinking_blocks"}
    | {"extra_content", "provider_specific_fields"}
)


def answer_of(response: Any, sent: Iterable[Any] = (), tools: Collection[str] = ()) -> dict[str, Any] | None:
    """Return the message of an answer in a form that its provider accepts; None if no part can be sent.

    An answer that was cut off loses its calls: the last is incomplete, and the others would need results. Blank texts
    are dropped, and so is thinking without a signature or at the end of a message. A damaged call is repaired, so that
    it can have a result; other damaged parts are dropped. No answer raises an error. No id of the messages `sent` is
    used again; names of `tools` may contain characters that the provider does not allow.
    """
    cut = stop_reason(response) in CUT
    if is_openai(response):
        return _openai_answer(plain(read(choice_of(response), "message")), cut, _Calls(sent, tools))
    blocks = _sound_blocks(usable(blocks_of(response), cut), _Calls(sent, tools))
    if blocks and blocks[-1]["type"] == "text" and stop_reason(response) == "pause_turn":
        # It is sent back as the last message, which must not end in white space.
        blocks[-1] = {**blocks[-1], "text": blocks[-1]["text"].rstrip()}
    return {"role": "assistant", "content": blocks} if blocks else None


def as_given(message: dict[str, Any], response: Any) -> Any:
    """Return the message of `answer_of` with the client's own objects where nothing had to be repaired."""
    if is_openai(response):
        given = read(choice_of(response), "message")
        form = sent_form(given) if is_object(given) else None
        return message if form is None or _said_fields(form) != _said_fields(message) else given
    given = blocks_of(response)
    forms = [sent_form(block) if is_object(block) else None for block in given]
    content, first = [], 0
    for block in message["content"]:  # in the order of the given ones, of which some may be left out
        place = next((place for place in range(first, len(given)) if forms[place] == block), None)
        content.append(block if place is None else given[place])
        first = first if place is None else place + 1
    return {**message, "content": content}


def _said_fields(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if value is not None or name not in _NULLABLE}


def usable(blocks: list[Any], cut: bool) -> list[Any]:
    """Return the content blocks of an answer that may be sent back; the answer may be cut off."""
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
    """Return a block that is not a call of our tools; None if it cannot be sent back."""
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
            warn_once(f"blocks of type {kind[:99]!r} are left out of answers: Anthropic does not accept them")
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
                warn_once(f"the field {str(name)[:99]!r} is left out of answers: OpenAI does not accept it")
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
        """Repair an element of `tool_calls`; None if it is not an object."""
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
        if given is None or not given.strip() or given in self._ids:
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
    """Whether a text has only the characters allowed in ids and names."""
    return text.isascii() and text.replace("-", "_").replace("_", "a").isalnum()
