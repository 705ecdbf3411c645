"""Responses of clients: objects of `anthropic` and `openai`, or dicts, read alike without importing either client."""

from __future__ import annotations

from typing import Any

from recede._objects import read

# The stop reasons of an answer that was cut off: a call in it may be incomplete.
CUT = frozenset({"max_tokens", "length", "model_context_window_exceeded", "refusal", "content_filter"})


_NO_RESPONSES = (
    "takes chat completions of OpenAI: pass client.chat.completions.create. For client.responses.create make the loop "
    "yourself, with a recede.History for its items"
)


def check_create(create: Any, name: str) -> None:
    """Raise TypeError unless the value is a function, and not a method of OpenAI's client without messages."""
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
    choices = read(response, "choices")
    return choices[0] if choices and isinstance(choices, (list, tuple)) else None


def blocks_of(response: Any) -> list[Any]:
    """Return the content blocks of an Anthropic message; some gateways return a plain string."""
    content = read(response, "content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, (list, tuple)) else []


def stop_reason(response: Any) -> str | None:
    """Return why an answer ended: `stop_reason`, or the `finish_reason` of the first choice."""
    choice = choice_of(response)
    reason = read(response, "stop_reason") if choice is None else read(choice, "finish_reason")
    return reason if isinstance(reason, str) else None


def messages_of(response: Any) -> list[Any]:
    """Return the messages of a client's object: a response, a message, or an item of one."""
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
    if message is None:
        return ""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(block.get("text") or "" for block in content if block.get("type") == "text")
    return content or message.get("refusal") or ""
