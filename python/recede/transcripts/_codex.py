"""Codex sessions: JSON Lines whose `response_item` payloads are items of the OpenAI Responses API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recede.transcripts._draft import Draft, text
from recede.transcripts._source import Record

__all__ = ["read", "recognizes"]

# Events repeat items for display; contexts and metadata are settings.
_LEFT_OUT = frozenset(["event_msg", "session_meta", "turn_context", "world_state"])
_KNOWN = frozenset(["message", "reasoning"])
_NOT_SENT = frozenset(["ghost_snapshot"])


def recognizes(record: dict[str, Any]) -> bool:
    """Whether the line belongs to such a session."""
    return text(record.get("type")) in {"response_item", "compacted", *_LEFT_OUT} and isinstance(
        record.get("payload"), dict
    )


def read(records: Iterable[Record]) -> Draft:
    """The items, as they were sent."""
    draft = Draft()
    for value, line, _ in records:
        kind = text(value.get("type")) if isinstance(value, dict) else ""
        payload = value.get("payload") if isinstance(value, dict) else None
        if kind == "response_item" and isinstance(payload, dict):
            item = text(payload.get("type"))
            if item in _NOT_SENT:
                continue
            if item not in _KNOWN and not item.endswith(("_call", "_call_output")):
                draft.note(f"item of unknown type {item!r} kept", line)
            draft.records += 1
            draft.add(payload, line)
        elif kind == "compacted":
            draft.note("the session was compacted; the messages before it are kept, their copy is left out", line)
        elif kind not in _LEFT_OUT:
            draft.note(f"record of unknown type {kind!r} left out, since it holds no item", line)
    return draft
