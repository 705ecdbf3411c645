"""SWE-agent (`.traj`) and mini-SWE-agent trajectories, which may work without tool calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from recede.transcripts._draft import Draft, fields, kept, objects, result, text

# The other fields repeat the content in pieces, or are notes of the program.
_FIELDS = frozenset(["content", "name", "role", "tool_call_id", "tool_calls"])


def recognizes(value: Any) -> bool:
    history = objects(value.get("history")) if isinstance(value, dict) else []
    return bool(history) and all("role" in message for message in history)


def read(value: Any) -> Iterator[Draft]:
    """Read the messages sent to the model; `trajectory` repeats them step by step."""
    yield _draft(value["history"])


def is_mini(value: Any) -> bool:
    """Whether the value names the format, or a shell block is answered by a return code."""
    if isinstance(value, dict):
        is_named = text(value.get("trajectory_format")).startswith("mini-swe-agent")
        return is_named and isinstance(value.get("messages"), list)
    return any(
        call.get("role") == "assistant"
        and "```" in text(call.get("content"))
        and answer.get("role") == "user"
        and text(answer.get("content")).startswith("<returncode>")
        for call, answer in pairwise(objects(value))
    )


def read_mini(value: Any) -> Iterator[Draft]:
    """Read the messages; an entry with the role `exit` is for the user."""
    yield _draft(value["messages"] if isinstance(value, dict) else value)


def _draft(history: list[Any]) -> Draft:
    draft = Draft()
    for message in history:
        draft.records += 1
        if not isinstance(message, dict):
            draft.note("entry of the history left out, since it is no object")
        elif isinstance(message.get("output"), list) and message.get("object") == "response":  # of the Responses API
            time = fields(message.get("extra")).get("timestamp", message.get("created_at"))
            draft.request(message.get("usage"), message.get("model"), time)
            for item in objects(message["output"]):
                draft.add(item)
        elif message.get("role") != "exit":
            _add(message, draft)
    return draft


def _add(message: dict[str, Any], draft: Draft) -> None:
    role, content = message.get("role"), message.get("content")
    if text(message.get("type")).endswith("_output"):  # of the Responses API
        draft.add({name: held for name, held in message.items() if name != "extra"})
        return
    known = {name: value for name, value in message.items() if name in _FIELDS}
    ids = message.get("tool_call_ids")
    last = draft.messages[-1] if draft.messages else {}
    extra = message.get("extra")
    if role == "assistant" and isinstance(extra, dict) and isinstance(response := extra.get("response"), dict):
        draft.request(response.get("usage"), response.get("model"), extra.get("timestamp", response.get("created")))
    if role == "tool" and isinstance(ids, list) and ids:
        # One text answers all calls of the turn, but every call needs its own result.
        for index, call_id in enumerate(ids):
            draft.add(result(call_id, "" if index else content))
    elif role == "user" and last.get("role") == "assistant" and not last.get("tool_calls"):
        draft.answer(content)  # without tool calls the environment answers with a user message
    else:
        draft.add(kept(known, message))
