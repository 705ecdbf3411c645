"""Qwen Code sessions: JSON Lines whose messages are contents of the Gemini API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recede.transcripts._draft import Draft, Place, fields, objects, text
from recede.transcripts._source import Record


def recognizes(record: dict[str, Any]) -> bool:
    if "sessionId" not in record or "uuid" not in record:
        return False
    return "systemPayload" in record or isinstance(fields(record.get("message")).get("parts"), list)


def read(records: Iterable[Record]) -> Iterator[Draft]:
    """Read the main conversation, then those of subagents, each with a context of its own."""
    drafts: dict[str | None, Draft] = {None: Draft()}
    places: dict[Any, Place] = {}  # of records: where those that name them are
    for value, line in records:
        name = text(value.get("agentId")) or "agent" if value.get("isSidechain") is True else None
        draft, parent = drafts.setdefault(name, Draft(name)), value.get("parentUuid")
        if isinstance(parent, str) and parent in places and places[parent].draft.context == name:
            drafts[name] = draft = places[parent].go_on()
        _read(value, line, draft)
        if isinstance(value.get("uuid"), str):
            places[value["uuid"]] = draft.here()
    yield from [draft for draft in drafts.values() if draft.end] or [drafts[None]]


def _read(value: dict[str, Any], line: int, draft: Draft) -> None:
    message, kind = fields(value.get("message")), text(value.get("type"))
    if kind == "system":
        if value.get("subtype") == "chat_compression":
            draft.compacted(line, objects(fields(value.get("systemPayload")).get("compressedHistory")))
        return
    if not isinstance(message.get("parts"), list):
        draft.unknown("record", "type", kind, value, line, why=", since it holds no message")
        return
    draft.records += 1
    role = "model" if kind == "assistant" else text(message.get("role")) or "user"
    if role == "model":
        draft.request(value.get("usageMetadata"), value.get("model"), value.get("timestamp"), line)
    last = draft.messages[-1]["parts"] if kind == "tool_result" and draft.messages else []
    if any("functionResponse" in part for part in objects(last)):
        last.extend(message["parts"])  # a line has one result; the request had all those of a turn in one content
    else:
        draft.add({"role": role, "parts": message["parts"]}, line)
