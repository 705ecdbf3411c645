"""Which messages are one answer of the model with its results: from the definition alone, in any shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

History = list[dict[str, Any]]


def numbered(history: History) -> History:
    """Copies of the messages that know their place, also where a view shows them masked."""
    return [{**message, "place": place} for place, message in enumerate(history)]


def torn(history: History, view: History) -> list[set[int]]:
    """The answers of a numbered history that a view shows in part."""
    shown = {message["place"] for message in view if "place" in message}
    return [answer for answer in answers(history) if answer & shown and not answer <= shown]


def answers(history: History) -> list[set[int]]:
    """Agent-made messages in a row, each row with the messages that hold results of its calls."""
    found: list[set[int]] = []
    newest: dict[str, set[int]] = {}  # by the id of a call, the answer that made it
    for place, message in enumerate(history):
        for call_id in filter(_is_text, _results(message)):
            newest.get(call_id, set()).add(place)
        if _is_agent_made(message):
            if not (place and _is_agent_made(history[place - 1])):
                found.append(set())
            found[-1].add(place)
        for call_id in filter(_is_text, _calls(message)):
            newest[call_id] = found[-1] if _is_agent_made(message) else {place}
    return found


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_agent_made(message: dict[str, Any]) -> bool:
    if str(message.get("content")).partition("\n")[0] == "Conversation summary:":
        return False  # what an earlier reduction put there is no answer
    kind = str(message.get("type"))
    return message.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def _blocks(message: dict[str, Any], kind: str) -> Iterable[dict[str, Any]]:
    content = message.get("content")
    return (block for block in content if block.get("type") == kind) if isinstance(content, list) else ()


def _calls(message: dict[str, Any]) -> list[Any]:
    if message.get("pairRole") == "call":
        return [message.get("pairId")]
    if str(message.get("type")).endswith("_call"):
        return [message.get("call_id")]
    return [call["id"] for call in (*(message.get("tool_calls") or ()), *_blocks(message, "tool_use"))]


def _results(message: dict[str, Any]) -> list[Any]:
    if message.get("pairRole") == "result":
        return [message.get("pairId")]
    if str(message.get("type")).endswith("_call_output"):
        return [message.get("call_id")]
    return [message.get("tool_call_id"), *(block.get("tool_use_id") for block in _blocks(message, "tool_result"))]
