"""What one would write without recede: each rival masks all results but the last N.

Each is the fastest form we know, and its answer is compared with that of recede before it is measured. The simplest
loops only mask. Those that also tell what recede tells stand in benches/tuned.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import orjson

from histories import Message, Shape
from tuned import KEEP, LEAST, PLACEHOLDER, TUNED, Answer

# The simplest loops: no telemetry, no pair check; text contents only.


def simplest(messages: list[Message], keep: int = KEEP) -> list[Message]:
    """OpenAI chat and ChatMessage: mask old observations, nothing else."""
    return _masked(messages, [index for index, one in enumerate(messages) if one["role"] == "tool"][:-keep], "content")


def simplest_anthropic(messages: list[Message], keep: int = KEEP) -> list[Message]:
    """Anthropic messages: the same for `tool_result` blocks."""
    view = messages.copy()
    for index in range(len(messages) - 1, -1, -1):
        blocks = messages[index]["content"]
        if type(blocks) is not list:
            continue
        for place in range(len(blocks) - 1, -1, -1):
            block = blocks[place]
            if block["type"] != "tool_result":
                continue
            if keep:
                keep -= 1
            elif len(block["content"]) >= LEAST:
                if view[index] is messages[index]:
                    view[index] = {**view[index], "content": blocks.copy()}
                view[index]["content"][place] = {**block, "content": PLACEHOLDER}
    return view


def simplest_responses(messages: list[Message], keep: int = KEEP) -> list[Message]:
    """OpenAI Responses: the same for `function_call_output` items."""
    results = [index for index, one in enumerate(messages) if one.get("type") == "function_call_output"]
    return _masked(messages, results[:-keep], "output")


def _masked(messages: list[Message], old: list[int], field: str) -> list[Message]:
    view = messages.copy()
    for index in old:
        message = messages[index]
        if len(message[field]) >= LEAST:
            view[index] = message = message.copy()
            message[field] = PLACEHOLDER
    return view


SIMPLEST: dict[Shape, Callable[[list[Message]], list[Message]]] = {
    "openai": simplest,
    "chat_message": simplest,
    "anthropic": simplest_anthropic,
    "responses": simplest_responses,
}


# Bytes in, bytes out.


def orjson_simplest(data: bytes) -> bytes:
    """orjson and the simplest loop."""
    return orjson.dumps(simplest(orjson.loads(data)))


def orjson_tuned(data: bytes, shape: Shape = "openai") -> Answer:
    """orjson and the tuned loop; the first field of the answer is the view as bytes."""
    answer = TUNED[shape](orjson.loads(data))
    return (orjson.dumps(answer[0]), *answer[1:]) if answer[1] else (data, *answer[1:])


def json_tuned(data: bytes) -> Answer:
    """The standard library and the tuned loop."""
    answer = TUNED["openai"](json.loads(data))
    if not answer[1]:
        return (data, *answer[1:])
    return (json.dumps(answer[0], ensure_ascii=False, separators=(",", ":")).encode(), *answer[1:])


def json_simplest(data: bytes) -> bytes:
    """The standard library and the simplest loop."""
    view = simplest(json.loads(data))
    return json.dumps(view, ensure_ascii=False, separators=(",", ":")).encode()


class RawMessage(msgspec.Struct, omit_defaults=True, gc=False):
    """An OpenAI message whose content and calls stay unread bytes. Fields that it does not name are lost."""

    role: str
    tool_call_id: str = ""
    content: msgspec.Raw = msgspec.Raw(b"null")
    tool_calls: msgspec.Raw = msgspec.Raw(b"")


_decode_messages = msgspec.json.Decoder(list[RawMessage]).decode
_encode = msgspec.json.Encoder().encode
_RAW_PLACEHOLDER = msgspec.Raw(f'"{PLACEHOLDER}"'.encode())


def msgspec_raw(data: bytes) -> bytes:
    """msgspec with contents that stay bytes; those that may be short are decoded, for their characters."""
    messages = _decode_messages(data)
    for message in [one for one in messages if one.role == "tool"][:-KEEP]:
        size = len(memoryview(message.content)) - 2
        # A character is at most the 12 bytes of two escapes.
        if size >= 12 * LEAST or len(orjson.loads(memoryview(message.content))) >= LEAST:
            message.content = _RAW_PLACEHOLDER
    return _encode(messages)


# What cannot be beaten: the bytes alone.


def fresh_copy(data: bytes) -> bytearray:
    """A copy into new memory."""
    return bytearray(data)


_OMITTED = "[Observation omitted for brevity]"


class NaiveContexts:
    """Turns in a list, rendered anew for each context: what one writes without recede."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.turns: list[tuple[str, str, str]] = []

    def add_turn(self, reasoning: str, action: str, observation: str) -> None:
        self.turns.append((reasoning, action, observation))

    def get_masked_context(self, system_prompt: str, user_prompt: str) -> str:
        parts = [system_prompt, user_prompt]
        first = len(self.turns) - self.window
        for number, (reasoning, action, observation) in enumerate(self.turns):
            shown = observation
            if number < first and len(_OMITTED) < len(observation):
                shown = _OMITTED
            parts.append(f"\nTurn {number + 1}:\nReasoning: {reasoning}\nAction: {action}\nObservation: {shown}\n")
        return "\n".join(parts)


def warm_copy(data: bytes) -> Callable[[], None]:
    """A function that copies the bytes into memory that was touched before."""
    target = memoryview(bytearray(data))

    def copy() -> None:
        target[:] = data

    return copy
