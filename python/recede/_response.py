"""What clients answer with: objects of `anthropic` and `openai`, or dicts, read alike. No client is imported."""

from __future__ import annotations

from typing import Any

__all__ = ["CUT", "answer_of", "changed", "is_openai", "messages_of", "plain", "read", "stop_reason", "usable"]

# An answer that ended so was cut: a call in it may be unfinished.
CUT = frozenset({"max_tokens", "length", "model_context_window_exceeded", "refusal", "content_filter"})


def read(value: Any, name: str) -> Any:
    """A field of an object or of a dict; None where it is not there."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def changed(value: Any, **updates: Any) -> Any:
    """A copy of an object or of a dict with other fields."""
    if isinstance(value, dict):
        return {**value, **updates}
    if hasattr(value, "model_copy"):
        return value.model_copy(update=updates)
    import copy

    other = copy.copy(value)
    for name, field in updates.items():
        setattr(other, name, field)
    return other


def plain(value: Any) -> Any:
    """Objects of a client as JSON has them: the fields that came over the wire, and no others."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, dict):
        return {name: plain(field) for name, field in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if hasattr(value, "__dict__"):
        return {name: plain(field) for name, field in vars(value).items()}
    return value


def is_openai(response: Any) -> bool:
    """Whether a response is one of OpenAI's chat completions; otherwise it must be one of Anthropic's messages."""
    if read(response, "choices"):
        return True
    if isinstance(read(response, "content"), (list, tuple)):
        return False
    raise TypeError(
        f"create gave a {type(response).__name__} that is no response: neither a message with a list of content "
        "blocks nor a chat completion with choices"
    )


def stop_reason(response: Any) -> str | None:
    """Why an answer ended: `stop_reason`, or the `finish_reason` of the first choice."""
    choices = read(response, "choices")
    reason = read(choices[0], "finish_reason") if choices else read(response, "stop_reason")
    return reason if isinstance(reason, str) else None


def messages_of(response: Any) -> list[dict[str, Any]]:
    """The messages of a history that a client's object is: a response, a message, or an item of one."""
    body = plain(response)
    if not isinstance(body, dict):
        return [body]
    if "choices" in body:
        if not body["choices"]:
            raise ValueError("a chat completion without choices holds no message")
        return [_without_nulls(body["choices"][0]["message"])]
    if body.get("object") == "response":
        return list(body["output"])
    if "stop_reason" in body:
        return [{"role": body.get("role", "assistant"), "content": body["content"]}]
    return [body if "type" in body else _without_nulls(body)]


def answer_of(response: Any) -> dict[str, Any] | None:
    """The message of an answer as a provider takes it back; None where nothing of it can be sent.

    Of an answer that was cut no call is left, since the last is unfinished and the others would need results, and
    no thinking without a signature. Blank texts are left out, and so is a message that would end in thinking.
    """
    message = messages_of(response)[0]
    cut = stop_reason(response) in CUT
    if is_openai(response):
        message = {name: value for name, value in message.items() if not (cut and name in ("tool_calls", "audio"))}
        content = message.get("content")
        said = content.strip() if isinstance(content, str) else content
        return message if said or message.get("tool_calls") or message.get("refusal") else None
    blocks = usable(message["content"], cut)
    if not blocks or blocks[-1].get("type") in ("thinking", "redacted_thinking"):
        return None
    return {**message, "content": blocks}


def usable(blocks: list[Any], cut: bool) -> list[Any]:
    """The content blocks that may be sent back, of an answer that was cut or not."""
    answered = {read(block, "tool_use_id") for block in blocks}
    kept = []
    for block in blocks:
        kind = read(block, "type")
        if kind == "text" and not (read(block, "text") or "").strip():
            continue
        if cut and kind == "thinking" and not read(block, "signature"):
            continue
        # A tool of the provider's own was run where its result is there.
        if cut and isinstance(kind, str) and kind.endswith("tool_use") and read(block, "id") not in answered:
            continue
        kept.append(block)
    return kept


def _without_nulls(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if value is not None or name == "content"}
