"""Events of GitHub's Copilot CLI: JSON Lines, each with a type and its data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recede.transcripts._conversation import Conversation
from recede.transcripts._draft import Draft, at, fields, objects, renamed, text
from recede.transcripts._source import Record

_KNOWN = frozenset(
    """assistant.message assistant.turn_end assistant.turn_start session.resume session.start system.message
    tool.execution_complete tool.execution_start user.message""".split()
)
# State of the program, and pieces of what follows whole.
_LEFT_OUT = """abort assistant.intent assistant.message_delta assistant.message_start assistant.reasoning
    assistant.streaming assistant.turn_ assistant.usage external_tool. hook. mcp. permission. session. skill.
    subagent. system. tool.execution_p tool.execution_start tool.user_requested user_input.""".split()


def recognizes(record: dict[str, Any]) -> bool:
    return text(record.get("type")) in _KNOWN and isinstance(record.get("data"), dict)


def read(records: Iterable[Record]) -> Iterator[Draft]:
    """Read the main conversation, then those of subagents, in the shape of Chat Completions."""
    session = _Session()
    for value, line in records:
        session.read(text(value.get("type")), fields(value.get("data")), value, line)
    found = [one.draft for one in session.conversations.values()]
    yield from [draft for draft in found if draft.messages] or found[:1]


class _Session:
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
                usage = renamed(  # as Chat Completions names them: those of the cache are in the input
                    at(metric, "usage"),
                    prompt_tokens="inputTokens",
                    cached_input_tokens="cacheReadTokens",
                    cache_write_input_tokens="cacheWriteTokens",
                    completion_tokens="outputTokens",
                )
                one.draft.billed("session", model, usage, line, event.get("timestamp"))
        else:
            self._model = data.get("newModel", data.get("selectedModel", self._model))
            if not kind.startswith(tuple(_LEFT_OUT)):
                one.draft.unknown("event", "type", kind, data, line)

    def _result(self, one: Conversation, data: dict[str, Any], line: int) -> None:
        call_id = text(data.get("toolCallId"))
        if call_id not in one.calls:  # a tool that a person called
            begun = self._begun.get(call_id, {})
            one.call(call_id, begun.get("toolName"), begun.get("arguments"), line)
        said = data.get("result") if data.get("result") is not None else data.get("error")
        one.result(call_id, fields(said).get("content", fields(said).get("message", said)), line)
