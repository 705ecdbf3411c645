"""Gemini CLI sessions: one object whose messages contain the calls with their results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from recede.transcripts._draft import Draft, objects, text

__all__ = ["read", "recognizes"]

# Messages of the program to the user.
_LEFT_OUT = frozenset(["error", "info", "warning"])


def recognizes(value: Any) -> bool:
    """Whether it is such a session."""
    return isinstance(value, dict) and "sessionId" in value and isinstance(value.get("messages"), list)


def read(value: Any) -> Iterator[Draft]:
    """The messages, in the shape of Anthropic."""
    draft = Draft()
    for message in objects(value["messages"]):
        draft.records += 1
        kind = text(message.get("type"))
        if kind in _LEFT_OUT:
            continue
        if kind not in ("user", "gemini"):
            draft.note(f"message of unknown type {kind!r} kept")
        calls = objects(message.get("toolCalls"))
        if kind == "gemini":
            draft.request(_usage(message.get("tokens")), message.get("model"), message.get("timestamp"))
        role = "assistant" if kind == "gemini" else "user"
        content = [{"type": "text", "text": said}] if (said := _text(message.get("content"))) else []
        draft.add({"role": role, "content": [*content, *map(_use, calls)]})
        results = [_result(call) for call in calls if call.get("result") is not None]
        if results:
            draft.add({"role": "user", "content": results})
    yield draft


def _usage(tokens: Any) -> Any:
    """The tokens with the names of Responses; what is read from the cache is a part of the input."""
    if not isinstance(tokens, dict):
        return tokens
    # The prompts of built-in tools are input, thoughts are output, both counted apart.
    input, output = (_sum(tokens, *names) for names in (("input", "tool"), ("output", "thoughts")))
    return {"input_tokens": input, "cached_input_tokens": tokens.get("cached"), "output_tokens": output}


def _sum(tokens: dict[str, Any], *names: str) -> Any:
    """Their sum; a value of a wrong type as it is."""
    values = [tokens[name] for name in names if tokens.get(name) is not None]
    wrong = [value for value in values if not isinstance(value, int)]
    return wrong[0] if wrong else sum(values)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(text(part.get("text")) for part in objects(content))


def _use(call: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.get("id"), "name": call.get("name"), "input": call.get("args")}


def _result(call: dict[str, Any]) -> dict[str, Any]:
    parts = objects(call["result"]) or objects([call["result"]])
    block = {"type": "tool_result", "tool_use_id": call.get("id"), "content": "".join(map(_output, parts))}
    return {**block, "is_error": True} if call.get("status") == "error" else block


def _output(part: dict[str, Any]) -> str:
    response = part["functionResponse"].get("response") if isinstance(part.get("functionResponse"), dict) else None
    if not isinstance(response, dict):
        return text(part.get("text"))
    output = response.get("output", response.get("error", response))
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
