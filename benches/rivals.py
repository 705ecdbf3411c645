"""What one would write without recede: each rival masks the observations older than the last N messages.

Each is the fastest form we know, and its answer is compared with that of recede before it is measured. The simplest
loops only mask. Those that also tell what recede tells stand in benches/tuned.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import orjson

from histories import Message, Shape
from tuned import BEGIN, KEEP, LONGEST_PLACEHOLDER, TUNED, Answer, masked_text

PLACEHOLDER = "[Observation omitted for brevity]"

# The simplest loops: no telemetry, no pair check, no budget; text contents only.


def simplest(messages: list[Message], keep: int = KEEP) -> list[Message]:
    """OpenAI chat and ChatMessage: mask old observations, nothing else."""
    view = []
    for message in messages[:-keep]:
        if message["role"] == "tool":
            text = message["content"]
            placeholder = f"[observation masked — {len(text)} chars]"
            if len(placeholder) < len(text):
                message = message.copy()
                message["content"] = placeholder
        view.append(message)
    return view + messages[-keep:]


def simplest_dispatch(messages: list[Message], keep: int = KEEP) -> list[Message]:
    """`simplest` that keeps dispatch blocks and leaves placeholders alone: the view is that of recede on any text."""
    view = []
    for message in messages[:-keep]:
        if message["role"] == "tool":
            text = message["content"]
            if len(text) > LONGEST_PLACEHOLDER and BEGIN not in text:
                left = f"[observation masked — {len(text)} chars]"
            else:
                left = masked_text(text)
            if left is not text:
                message = message.copy()
                message["content"] = left
        view.append(message)
    return view + messages[-keep:]


def simplest_anthropic(messages: list[Message], keep: int = KEEP) -> list[Message]:
    """Anthropic messages: the same for `tool_result` blocks."""
    view = []
    for message in messages[:-keep]:
        blocks = message["content"]
        if message["role"] == "user" and type(blocks) is list:
            masked_blocks = []
            for block in blocks:
                if block["type"] == "tool_result":
                    text = block["content"]
                    placeholder = f"[observation masked — {len(text)} chars]"
                    if len(placeholder) < len(text):
                        block = block.copy()
                        block["content"] = placeholder
                masked_blocks.append(block)
            message = message.copy()
            message["content"] = masked_blocks
        view.append(message)
    return view + messages[-keep:]


def simplest_responses(messages: list[Message], keep: int = KEEP) -> list[Message]:
    """OpenAI Responses: the same for `function_call_output` items."""
    view = []
    for message in messages[:-keep]:
        if message.get("type") == "function_call_output":
            text = message["output"]
            placeholder = f"[observation masked — {len(text)} chars]"
            if len(placeholder) < len(text):
                message = message.copy()
                message["output"] = placeholder
        view.append(message)
    return view + messages[-keep:]


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


def orjson_simplest_dispatch(data: bytes) -> bytes:
    """The same with dispatch blocks kept: one search through all bytes is cheaper than one for each text."""
    mask = simplest_dispatch if BEGIN.encode() in data else simplest
    return orjson.dumps(mask(orjson.loads(data)))


def orjson_tuned(data: bytes, *, max_input_chars: int, shape: Shape = "openai") -> Answer:
    """orjson and the tuned loop; the first field of the answer is the view as bytes."""
    answer = TUNED[shape](orjson.loads(data), max_input_chars=max_input_chars)
    return (orjson.dumps(answer[0]), *answer[1:]) if answer[1] else (data, *answer[1:])


def json_tuned(data: bytes, *, max_input_chars: int) -> Answer:
    """The standard library and the tuned loop."""
    answer = TUNED["openai"](json.loads(data), max_input_chars=max_input_chars)
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


def msgspec_counting(data: bytes) -> bytes:
    """msgspec with raw contents; those that are masked are decoded, for their characters."""
    messages = _decode_messages(data)
    for message in messages[:-KEEP]:
        if message.role == "tool":
            size = len(orjson.loads(memoryview(message.content)))  # faster than msgspec here
            placeholder = f"[observation masked — {size} chars]"
            if len(placeholder) < size:
                message.content = msgspec.Raw(f'"{placeholder}"'.encode())
    return _encode(messages)


def msgspec_bytes(data: bytes) -> bytes:
    """The same without the count that raw contents lack: the placeholder tells bytes, escapes included."""
    messages = _decode_messages(data)
    for message in messages[:-KEEP]:
        if message.role == "tool":
            size = len(memoryview(message.content)) - 2
            placeholder = f"[observation masked — {size} chars]"
            if len(placeholder) < size:
                message.content = msgspec.Raw(f'"{placeholder}"'.encode())
    return _encode(messages)


# What cannot be beaten: the bytes alone.


def fresh_copy(data: bytes) -> bytearray:
    """A copy into new memory."""
    return bytearray(data)


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
            if number < first and len(PLACEHOLDER) < len(observation):
                shown = PLACEHOLDER
            parts.append(f"\nTurn {number + 1}:\nReasoning: {reasoning}\nAction: {action}\nObservation: {shown}\n")
        return "\n".join(parts)


def warm_copy(data: bytes) -> Callable[[], None]:
    """A function that copies the bytes into memory that was touched before."""
    target = memoryview(bytearray(data))

    def copy() -> None:
        target[:] = data

    return copy


def same_but_for_sizes(view: bytes, other: bytes) -> bool:
    """Whether two views differ only in what comes of another size: the placeholders, and texts about as short."""
    pairs = list(zip(json.loads(view), json.loads(other), strict=True))
    return all(
        ours == theirs
        or (
            (ours | {"content": ""} == theirs | {"content": ""})
            and len(ours["content"]) < LONGEST_PLACEHOLDER > len(theirs["content"])
        )
        for ours, theirs in pairs
    )
