"""Responses of clients: objects of `anthropic` and `openai`, or dicts, read alike without importing either client."""

from __future__ import annotations

import functools
import json
import logging
import math
from typing import Any

from recede._objects import MOST_LEVELS, is_object, plain, read

__all__ = [
    "CUT",
    "INVALID_JSON",
    "NO_NAME",
    "blocks_of",
    "check_create",
    "choice_of",
    "encodable",
    "is_openai",
    "messages_of",
    "parsed",
    "stop_reason",
    "text_of",
    "warn_once",
]

_log = logging.getLogger("recede")

# The stop reasons of an answer that was cut off: a call in it may be incomplete.
CUT = frozenset({"max_tokens", "length", "model_context_window_exceeded", "refusal", "content_filter"})
# Replacements for an input that is not a JSON object, as Anthropic recommends, and for a missing name.
INVALID_JSON = "INVALID_JSON"
NO_NAME = "no_name"


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
        warn_once("a text contained lone surrogates, which no client can send: each was replaced by U+FFFD")
        return units.decode("utf-16-le", "replace")


@functools.lru_cache(64)
def warn_once(what: str) -> None:
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


_NO_RESPONSES = (
    "takes chat completions of OpenAI: pass client.chat.completions.create. For client.responses.create make the loop "
    "yourself, with a recede.History for its items"
)


def check_create(create: Any, name: str) -> None:
    """Raise TypeError for what is no function, or a method of OpenAI's client that does not take messages."""
    if not callable(create):
        raise TypeError(f"create must be a function such as client.messages.create, not {type(create).__name__}")
    owner = type(getattr(create, "__self__", None))
    if owner.__module__.partition(".")[0] == "openai" and "Completions" not in owner.__name__:
        raise TypeError(f"{name} {_NO_RESPONSES}")


def is_openai(response: Any) -> bool:
    """Whether a response is an OpenAI chat completion; otherwise it must be an Anthropic message."""
    choices = read(response, "choices")
    if choices and isinstance(choices, (list, tuple)):
        return True
    if isinstance(read(response, "content"), (list, tuple, str)):
        return False
    if read(response, "object") == "response":
        raise TypeError(f"create returned a response of OpenAI's Responses; this {_NO_RESPONSES}")
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
