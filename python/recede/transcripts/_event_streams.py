"""Events that agents print: Gemini CLI's stream-json, `codex exec --json`, Claude's managed agents, Copilot CLI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recede.transcripts._draft import Conversation, Draft, at, fields, objects, renamed, text
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


# Copilot CLI


_OF_COPILOT = frozenset(
    """assistant.message assistant.turn_end assistant.turn_start session.resume session.start system.message
    tool.execution_complete tool.execution_start user.message""".split()
)
# State of the program, and pieces of what follows whole.
_NOT_SEEN_BY_COPILOT = """abort assistant.intent assistant.message_delta assistant.message_start assistant.reasoning
    assistant.streaming assistant.turn_ assistant.usage external_tool. hook. mcp. permission. session. skill.
    subagent. system. tool.execution_p tool.execution_start tool.user_requested user_input.""".split()


_OF_USAGE = ("assistant.message", "session.shutdown")


def is_copilot(record: dict[str, Any]) -> bool:
    return text(record.get("type")) in _OF_COPILOT and isinstance(record.get("data"), dict)


def read_copilot(records: Iterable[Record]) -> Iterator[Draft]:
    """Read the main conversation, then those of subagents, in the shape of Chat Completions."""
    session = _Copilot()
    known: set[tuple[Any, ...]] = set()  # records of usage so far
    for value, line in records:
        kind, data = text(value.get("type")), fields(value.get("data"))
        if kind in _OF_USAGE and isinstance(name := value.get("id"), str):
            record = (kind, name, text(data.get("parentToolCallId")))
            if record in known:
                session.conversations[None].draft.note("event written again left out", line)
                continue
            known.add(record)
        session.read(kind, data, value, line)
    found = [one.draft for one in session.conversations.values()]
    yield from [draft for draft in found if draft.messages] or found[:1]


class _Copilot:
    def __init__(self) -> None:
        self.conversations: dict[str | None, Conversation] = {None: Conversation()}
        self._model: Any = None
        self._begun: dict[str, dict[str, Any]] = {}  # calls, by identifier

    def read(self, kind: str, data: dict[str, Any], event: dict[str, Any], line: int) -> None:
        parent = text(data.get("parentToolCallId")) or None  # a subagent's
        one = self.conversations.setdefault(parent, Conversation(parent))
        one.draft.records += 1
        if kind == "user.message":
            one.message("user", text(data.get("transformedContent")) or data.get("content"), line)
        elif kind == "system.message":
            one.message("system", data.get("content"), line)
        elif kind == "assistant.message":
            one.begin(line, model=data.get("model") or self._model, time=event.get("timestamp"))
            one.say(data.get("content"))
            for made in objects(data.get("toolRequests")):
                one.call(made.get("toolCallId"), made.get("name"), made.get("arguments"))
        elif kind == "tool.execution_start":
            self._begun[text(data.get("toolCallId"))] = data
        elif kind == "tool.execution_complete":
            self._result(one, data, line)
        elif kind == "session.compaction_complete":
            if text(data.get("summaryContent")):
                one.draft.compacted(line, [{"role": "user", "content": data["summaryContent"]}])
        elif kind == "session.shutdown":  # the tokens of the run that ends
            for model, metric in fields(data.get("modelMetrics")).items():
                places = "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"
                usage = renamed(at(metric, "usage"), *places)
                one.draft.billed("session", model, usage, line, event.get("timestamp"))
        else:
            self._model = data.get("newModel", data.get("selectedModel", self._model))
            if not kind.startswith(tuple(_NOT_SEEN_BY_COPILOT)):
                one.draft.unknown("event", "type", kind, data, line)

    def _result(self, one: Conversation, data: dict[str, Any], line: int) -> None:
        call_id = text(data.get("toolCallId"))
        if call_id not in one.calls:  # a tool that a person called
            begun = self._begun.get(call_id, {})
            one.call(call_id, begun.get("toolName"), begun.get("arguments"), line)
        said = data.get("result") if data.get("result") is not None else data.get("error")
        one.result(call_id, fields(said).get("content", fields(said).get("message", said)), line)
