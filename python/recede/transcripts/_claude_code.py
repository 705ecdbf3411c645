"""Claude Code sessions: JSON Lines, one line per block of an answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recede.transcripts._draft import Draft, objects, text
from recede.transcripts._source import Record

__all__ = ["read", "recognizes"]

# State of the program: its screen, files and queue. The model does not see these records, or sees them as text that
# the session does not contain (attachments).
_LEFT_OUT = frozenset(
    """agent-name agent-setting ai-title attachment attribution-snapshot bridge-session custom-title
    file-history-snapshot last-prompt mode permission-mode pr-link progress queue-operation summary system tag
    worktree-state""".split()
)
_MARKS = ("sessionId", "leafUuid", "snapshot", "uuid")


def recognizes(record: dict[str, Any]) -> bool:
    """Whether the line belongs to such a session."""
    kind = text(record.get("type"))
    if not any(mark in record for mark in _MARKS):
        return False
    return kind in _LEFT_OUT or (kind in ("user", "assistant") and isinstance(record.get("message"), dict))


def read(records: Iterable[Record]) -> Draft:
    """The main conversation; that of a subagent if the file contains nothing else."""
    main, side = _Session(), _Session()
    for record in records:
        if isinstance(record.value, dict) and record.value.get("isSidechain") is True:
            main.draft.note("record of a subagent left out", record.line)
            if not main.draft.messages:
                side.read(record)
            else:
                side = _Session()
        else:
            main.read(record)
    return (main if main.draft.messages or not side.draft.messages else side).finish()


class _Session:
    def __init__(self) -> None:
        self.draft = Draft()
        self._seen: set[str] = set()
        self._answers: dict[str, dict[str, Any]] = {}
        self._answered: set[Any] = set()

    def read(self, record: Record) -> None:
        value = record.value if isinstance(record.value, dict) else {}
        kind = text(value.get("type"))
        message = value.get("message")
        if kind in _LEFT_OUT:
            if value.get("subtype") == "compact_boundary":
                self.draft.note("the session was compacted; the messages before it are kept", record.line)
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
        role = message.get("role", kind)
        content = message.get("content")
        self._answered |= {_name(block.get("tool_use_id")) for block in objects(content)} - {None}
        if role == "assistant" and isinstance(message.get("id"), str):
            self._extend(message["id"], content, record.line)
        else:
            self.draft.add({"role": role, "content": content}, record.line)

    def _extend(self, identity: str, content: Any, line: int) -> None:
        """Append the blocks of a line to the same answer, so that parallel calls are one turn."""
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in objects(blocks):
            if block.get("type") == "tool_use" and _name(block.get("id")) in self._answered:
                self.draft.note("result before its call, moved after it", line)
        answer = self._answers.get(identity)
        if answer is None or not isinstance(blocks, list) or not isinstance(answer["content"], list):
            answer = self._answers[identity] = {"role": "assistant", "content": blocks}
            self.draft.add(answer, line)
            return
        answer["content"] += [block for block in blocks if block not in answer["content"]]

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
        return self.draft


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else None
