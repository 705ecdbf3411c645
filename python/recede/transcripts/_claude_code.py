"""Claude Code sessions: JSON Lines, one line per block of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from recede.transcripts._draft import Draft, fields, objects, text
from recede.transcripts._requests import usage_of
from recede.transcripts._source import Record

__all__ = ["is_list", "read", "read_list", "recognizes"]

# State of the program: its screen, files and queue. The model does not see these records, or sees them as text that
# the session does not contain (attachments).
_LEFT_OUT = frozenset(
    """agent-name agent-setting ai-title attachment attribution-snapshot bridge-session custom-title
    file-history-snapshot last-prompt mode permission-mode pr-link progress queue-operation summary system tag
    worktree-state""".split()
)
_MARKS = ("sessionId", "session_id", "leafUuid", "snapshot", "uuid")


def recognizes(record: dict[str, Any]) -> bool:
    """Whether a line belongs to a Claude Code session."""
    kind = text(record.get("type"))
    if not any(mark in record for mark in _MARKS):
        return False
    content = fields(record.get("message")).get("content")
    return kind in _LEFT_OUT or (kind in ("user", "assistant") and isinstance(content, (str, list)))


def is_list(value: Any) -> bool:
    """Whether the value is what `claude --output-format json --verbose` prints: the records of a session."""
    records = objects(value)
    return bool(records) and all(map(_is_printed, records)) and any(map(recognizes, records))


def _is_printed(record: dict[str, Any]) -> bool:
    return isinstance(record.get("type"), str) and "role" not in record and any(mark in record for mark in _MARKS)


def read_list(value: Any) -> Iterator[Draft]:
    """Read the records of a list, as those of lines."""
    yield from read(Record(record, 0) for record in objects(value))


def read(records: Iterable[Record]) -> Iterator[Draft]:
    """Read the main conversation, then the conversations of subagents, each with a context of its own."""
    main = _Session(None)
    agents: dict[str, _Session] = {}
    agent_of: dict[Any, str] = {}  # identifier of a record -> its subagent
    name = ""
    for record in records:
        value = record.value
        caller = _name(value.get("parent_tool_use_id")) if isinstance(value, dict) else None  # of what it prints
        if caller is not None:
            agents.setdefault(caller, _Session(caller)).read(record)
            continue
        if not (isinstance(value, dict) and value.get("isSidechain") is True):
            main.read(record)
            continue
        # Early versions do not name the agent: its records are a chain that begins with one without a parent.
        identity, parent = _name(value.get("uuid")), value.get("parentUuid")
        began = identity if parent is None and identity not in agent_of else None
        known = agent_of.get(parent) if isinstance(parent, str) else None
        name = _name(value.get("agentId")) or known or began or name
        agent_of[identity] = name
        agents.setdefault(name, _Session(name)).read(record)
    drafts = [session.finish() for session in (main, *agents.values())]
    return iter([draft for draft in drafts if draft.messages] or drafts[:1])


class _Answer(NamedTuple):
    """An answer of the model, and the index of its request."""

    message: dict[str, Any]
    request: int | None


class _Session:
    def __init__(self, context: str | None) -> None:
        self.draft = Draft(context)
        self._seen: set[str] = set()
        self._answers: dict[str, _Answer] = {}
        self._answered: set[Any] = set()

    def read(self, record: Record) -> None:
        value = record.value if isinstance(record.value, dict) else {}
        kind = text(value.get("type"))
        message = value.get("message")
        if kind in _LEFT_OUT:
            if value.get("subtype") == "compact_boundary":
                self._compacted(record.line)
            return
        if not isinstance(message, dict) or not isinstance(message.get("role", kind), str):
            self.draft.note(f"record of unknown type {kind!r} left out, since it holds no message", record.line)
            return
        if kind not in ("user", "assistant"):
            self.draft.note(f"record of unknown type {kind!r} kept", record.line)
        identity = value.get("uuid")
        if isinstance(identity, str):
            if identity in self._seen:
                self.draft.note("copy of an earlier record left out", record.line)
                return
            self._seen.add(identity)
        self.draft.records += 1
        if value.get("isCompactSummary") is True:
            self._compacted(record.line)
        role = message.get("role", kind)
        content = message.get("content")
        self._answered |= {_name(block.get("tool_use_id")) for block in objects(content)} - {None}
        if role == "assistant":
            self._answer(value, message, record.line)
        else:
            self.draft.add({"role": role, "content": content}, record.line)

    def _compacted(self, line: int) -> None:
        # A boundary and the summary after it are one compaction.
        if [compaction.messages for compaction in self.draft.compactions[-1:]] != [len(self.draft.messages)]:
            self.draft.compacted(line)

    def _answer(self, value: dict[str, Any], message: dict[str, Any], line: int) -> None:
        """Append the blocks of a line to the answer that it continues, so that parallel calls are one turn."""
        identity, content = message.get("id"), message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in objects(blocks):
            if block.get("type") == "tool_use" and _name(block.get("id")) in self._answered:
                self.draft.note("result before its call, moved after it", line)
        answer = self._answers.get(identity) if isinstance(identity, str) else None
        if answer is not None and isinstance(blocks, list) and isinstance(answer.message["content"], list):
            answer.message["content"] += [block for block in blocks if block not in answer.message["content"]]
            self._count(answer, message.get("usage"), line)
            return
        request = self._request(value, message, line) if answer is None else answer.request
        answer = _Answer({"role": "assistant", "content": blocks}, request)
        if isinstance(identity, str):
            self._answers[identity] = answer
        self.draft.add(answer.message, line)

    def _request(self, value: dict[str, Any], message: dict[str, Any], line: int) -> int | None:
        if message.get("model") == "<synthetic>":  # an error, which the program logs as an answer
            return None
        answer, asked = message.get("id"), value.get("requestId")
        identity = f"{answer}/{asked}" if isinstance(answer, str) and isinstance(asked, str) else None
        self.draft.request(message.get("usage"), message.get("model"), value.get("timestamp"), line, id=identity)
        return len(self.draft.requests) - 1

    def _count(self, answer: _Answer, usage: Any, line: int) -> None:
        """Record the usage of an answer, which each of its lines repeats with more output tokens."""
        found = usage_of(usage, lambda what: self.draft.note(what, line))
        if answer.request is None or found is None:
            return
        request = self.draft.requests[answer.request]
        if request.usage is None or found.output_tokens > request.usage.output_tokens:
            self.draft.requests[answer.request] = request._replace(usage=found)

    def finish(self) -> Draft:
        """Move results that precede their call after it."""
        messages = self.draft.messages
        calls = {
            _name(block.get("id")): index
            for index, message in enumerate(messages)
            for block in objects(message["content"])
            if block.get("type") == "tool_use"
        }
        waiting: dict[int, list[int]] = {}
        order: list[int] = []
        for index, message in enumerate(messages):
            call = max((calls.get(_name(b.get("tool_use_id")), -1) for b in objects(message["content"])), default=-1)
            if call > index:
                waiting.setdefault(call, []).append(index)
            else:
                order += [index, *waiting.get(index, ())]
        self.draft.messages = [messages[index] for index in order]
        self.draft.lines = [self.draft.lines[index] for index in order]
        now = {before: index for index, before in enumerate([*order, len(order)])}
        requests = (request._replace(messages=now[request.messages]) for request in self.draft.requests)
        self.draft.requests = sorted(requests, key=lambda request: request.messages)
        self.draft.compactions = [one._replace(messages=now[one.messages]) for one in self.draft.compactions]
        return self.draft


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else None
