"""Events that agents print: Gemini CLI's stream-json, `codex exec --json`, and those of Claude's managed agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recede.transcripts._conversation import Conversation
from recede.transcripts._draft import Draft, fields, text
from recede.transcripts._source import Record

_OF_RUN = "tokens are counted for the whole run, not for each request: left out"

# Gemini CLI


def is_gemini_stream(record: dict[str, Any]) -> bool:
    """Whether a line is an event of Gemini CLI's `--output-format stream-json`."""
    kind = record.get("type")
    if kind == "message":
        return "timestamp" in record and isinstance(record.get("content"), str) and "id" not in record
    return (kind == "init" and "session_id" in record) or (
        kind in ("tool_use", "tool_result") and isinstance(record.get("tool_id"), str)
    )


def read_gemini_stream(records: Iterable[Record]) -> Iterator[Draft]:
    stream = Conversation()
    for value, line in records:
        stream.draft.records += 1
        kind, time = value.get("type"), value.get("timestamp")
        if kind == "init":
            stream.model = value.get("model")
        elif kind == "message" and value.get("role") == "assistant":
            stream.say(value.get("content"), line, time)
        elif kind == "message":
            stream.message(text(value.get("role")), value.get("content"), line)
        elif kind == "tool_use":
            stream.call(value.get("tool_id"), value.get("tool_name"), value.get("parameters"), line, time)
        elif kind == "tool_result":
            said = value.get("output") or fields(value.get("error")).get("message")
            stream.result(value.get("tool_id"), said, line)
        elif kind == "result":
            stream.draft.note(_OF_RUN, line)
        elif kind != "error":
            stream.draft.unknown("event", "type", kind, value, line)
    yield stream.draft


# Codex

_LEFT_OUT = frozenset(["error", "reasoning"])
_TOOLS = {
    "command_execution": "shell",
    "file_change": "apply_patch",
    "todo_list": "update_plan",
    "web_search": "web_search",
}
_OUTCOME = frozenset(["aggregated_output", "error", "exit_code", "id", "result", "status", "type"])


def is_codex_exec(record: dict[str, Any]) -> bool:
    kind = text(record.get("type"))
    return (kind == "thread.started" and "thread_id" in record) or (
        kind.startswith("item.") and isinstance(record.get("item"), dict)
    )


def read_codex_exec(records: Iterable[Record]) -> Iterator[Draft]:
    """Read the items when they are complete, in the shape of Chat Completions; the prompt is not among them."""
    stream = Conversation()
    begun: dict[str, tuple[dict[str, Any], int]] = {}
    for value, line in records:
        stream.draft.records += 1
        kind, item = text(value.get("type")), fields(value.get("item"))
        if kind in ("item.started", "item.updated"):
            begun[text(item.get("id"))] = item, line
        elif kind == "item.completed":
            begun.pop(text(item.get("id")), None)
            _item(stream, item, line)
        elif kind == "turn.completed":
            stream.draft.note(_OF_RUN, line)
        elif not kind.startswith(("thread.", "turn.", "error", "item.")):
            stream.draft.unknown("event", "type", kind, value, line)
    for item, line in begun.values():  # of a run that ended early
        _item(stream, item, line)
    yield stream.draft


def _item(stream: Conversation, item: dict[str, Any], line: int) -> None:
    kind = text(item.get("type"))
    if kind in ("agent_message", "plan"):
        stream.say(item.get("text"), line)
        return
    if kind in _LEFT_OUT:
        return
    if kind not in _TOOLS and not kind.endswith("tool_call"):
        stream.draft.note(f"item of unknown type {kind!r} kept as a call", line)
    made = item.get("arguments", {name: held for name, held in item.items() if name not in _OUTCOME})
    stream.call(item.get("id"), _TOOLS.get(kind) or item.get("tool", kind), made, line)
    outcome = item.get("aggregated_output", item.get("result", item.get("error")))
    content = fields(outcome).get("content", fields(outcome).get("message", outcome))
    stream.result(item.get("id"), content, line)


# Managed agents

_RESULTS = {
    "agent.tool_result": "tool_use_id",
    "agent.mcp_tool_result": "mcp_tool_use_id",
    "user.custom_tool_result": "custom_tool_use_id",
    "user.tool_result": "tool_use_id",
}
_NOT_SEEN = ("session.", "span.", "agent.thinking", "agent.thread_", "user.tool_confirmation", "user.interrupt")


def is_managed(record: dict[str, Any]) -> bool:
    kind = text(record.get("type"))
    if kind in ("user.message", "agent.message"):
        return isinstance(record.get("content"), list)
    return kind in _RESULTS or (kind.startswith("agent.") and kind.endswith("tool_use") and "input" in record)


def read_managed(records: Iterable[Record]) -> Iterator[Draft]:
    stream = Conversation()
    for value, line in records:
        stream.draft.records += 1
        kind, time = text(value.get("type")), value.get("processed_at")
        if kind == "agent.message":
            stream.say(value.get("content"), line, time)
        elif kind.startswith("agent.") and kind.endswith("tool_use"):
            stream.call(value.get("id"), value.get("name"), value.get("input"), line, time)
        elif kind in _RESULTS:
            stream.result(value.get(_RESULTS[kind]), value.get("content"), line)
        elif kind == "user.message":
            stream.message("user", value.get("content"), line)
        elif kind == "span.model_request_end":
            stream.count(value.get("model_usage"), line)
        elif not kind.startswith(_NOT_SEEN):
            stream.draft.unknown("event", "type", kind, value, line)
    yield stream.draft
