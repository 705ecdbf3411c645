"""Codex sessions: JSON Lines whose `response_item` payloads are items of the OpenAI Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from recede.transcripts._draft import Draft, fields, objects, text
from recede.transcripts._source import Record

__all__ = ["read", "recognizes"]

# Events repeat items for display; contexts and metadata are settings.
_LEFT_OUT = frozenset(["event_msg", "session_meta", "turn_context", "world_state"])
_NOT_SENT = frozenset(["ghost_snapshot"])


def recognizes(record: dict[str, Any]) -> bool:
    """Whether a line belongs to a Codex session."""
    return text(record.get("type")) in {"response_item", "compacted", *_LEFT_OUT} and isinstance(
        record.get("payload"), dict
    )


def read(records: Iterable[Record]) -> Iterator[Draft]:
    """Read the items as they were sent."""
    session = _Session()
    for record in records:
        session.read(record)
    session.answered(None)
    yield session.draft


class _Answer(NamedTuple):
    messages: int
    time: Any
    line: int


class _Session:
    def __init__(self) -> None:
        self.draft = Draft()
        self._model: Any = None
        self._answer: _Answer | None = None  # begun, and not yet counted
        self._total: Any = None

    def read(self, record: Record) -> None:
        value, line = record
        draft = self.draft
        kind = text(value.get("type")) if isinstance(value, dict) else ""
        payload = value.get("payload") if isinstance(value, dict) else None
        if kind == "response_item" and isinstance(payload, dict):
            item = text(payload.get("type"))
            if item in _NOT_SENT:
                return
            if item == "message" and payload.get("role") != "assistant":
                self.answered(None)
            elif not item.endswith("_output") and self._answer is None:
                self._answer = _Answer(len(draft.messages), value.get("timestamp"), line)
            draft.records += 1
            draft.add(payload, line)
        elif kind == "compacted":
            self.answered(None)
            shown = payload.get("replacement_history") if isinstance(payload, dict) else None
            draft.compacted(line, objects(shown))
        elif kind == "turn_context" and isinstance(payload, dict):
            self._model = payload.get("model", self._model)
        elif kind == "event_msg" and isinstance(payload, dict) and payload.get("type") == "token_count":
            self._count(payload.get("info"))
            draft.plan = text(fields(payload.get("rate_limits")).get("plan_type")) or draft.plan
        elif kind not in _LEFT_OUT:
            draft.note(f"record of unknown type {kind!r} left out, since it holds no item", line)

    def _count(self, info: Any) -> None:
        """Record the tokens of the last request; an event with the same total is a repetition."""
        if isinstance(info, dict) and info.get("total_token_usage") != self._total:
            self._total = info.get("total_token_usage")
            self.answered(info.get("last_token_usage"))

    def answered(self, usage: Any) -> None:
        """Complete an answer: its usage was logged, or never will be."""
        if self._answer is not None:
            messages, time, line = self._answer
            self.draft.request(usage, self._model, time, line, messages)
            self._answer = None
