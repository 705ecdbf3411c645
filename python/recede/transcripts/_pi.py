"""Sessions whose entries name the one before them: JSON Lines of the pi coding agent, and of Qwen Code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recede.transcripts._draft import Draft, Place, fields, objects, renamed, text
from recede.transcripts._requests import Shown
from recede.transcripts._source import Record

_LEFT_OUT = frozenset(["custom", "label", "model_change", "session", "session_info", "thinking_level_change"])
_PLACES = ("input", "output", "cacheRead", "cacheWrite")  # of tokens
_ROLES = frozenset(["assistant", "bashExecution", "toolResult", "user"])


def recognizes(record: dict[str, Any]) -> bool:
    message = record.get("message")
    if record.get("type") == "message":
        return isinstance(message, dict) and text(message.get("role")) in _ROLES and "role" not in record
    return record.get("type") == "session" and "cwd" in record


def read(records: Iterable[Record]) -> Iterator[Draft]:
    draft = Draft()
    firsts: dict[Any, int] = {}  # of entries, by their number and identifier: the messages before them
    places: dict[str, Place] = {}  # of entries: where those that name them are
    for entry, (value, line) in enumerate(records):
        kind, message, name = text(value.get("type")), value.get("message"), value.get("id")
        if isinstance(name, str) and name in places and isinstance(message, dict):
            _again(places[name].draft, firsts[name], value, message, line)
            continue
        parent = value.get("parentId", "")
        if parent is None:
            draft = draft.back_to(0) if places else draft
        elif isinstance(parent, str) and parent in places:
            draft = places[parent].go_on()
        firsts[entry] = draft.end
        if isinstance(name, str):
            firsts[name] = draft.end
        if kind == "message" and isinstance(message, dict):
            _answer_or_add(draft, value, message, line)
        elif kind == "custom_message":
            draft.add({"role": "user", "content": value.get("content")}, line)
        elif kind == "branch_summary":
            draft.add({"role": "user", "content": text(value.get("summary"))}, line)
        elif kind == "compaction":
            kept = value.get("firstKeptEntryId", value.get("firstKeptEntryIndex"))
            _compacted(draft, value, firsts.get(kept) if isinstance(kept, (int, str)) else None, line)
        elif kind not in _LEFT_OUT:
            draft.unknown("entry", "type", kind, value, line, why=", since it holds no message")
        if isinstance(name, str):
            places[name] = draft.here()
    yield draft


def _answer_or_add(draft: Draft, value: dict[str, Any], message: dict[str, Any], line: int) -> None:
    draft.records += 1
    is_aborted = message.get("stopReason") in ("aborted", "error")
    if message.get("role") == "assistant":
        _request(draft, value, message, line, is_aborted=is_aborted)
    if is_aborted:
        draft.note("aborted answer left out, as pi does when it resumes", line)
    elif message.get("excludeFromContext") is not True:
        draft.add(_message(message, draft, line), line)


def _request(draft: Draft, value: dict[str, Any], message: dict[str, Any], line: int, *, is_aborted: bool) -> None:
    draft.host = message.get("provider")
    usage = renamed(message.get("usage"), *_PLACES, is_apart=True)
    if is_aborted and draft.counted(usage, line)[0] is None:
        return  # it was not billed
    time, record = value.get("timestamp"), value.get("id")
    content = message.get("content") if isinstance(record, str) else None  # a fork is a file that begins with copies
    draft.request(usage, message.get("model"), time, line, record=record, content=content)


def _again(draft: Draft, place: int, value: dict[str, Any], message: dict[str, Any], line: int) -> None:
    """An entry that is written again: the last write counts."""
    if message.get("role") == "assistant":
        _request(draft, value, message, line, is_aborted=False)
    if draft.start <= place < draft.end:
        draft.messages[place - draft.start] = _message(message, draft, line)
    draft.note("entry written again: the last write counts", line)


def _compacted(draft: Draft, value: dict[str, Any], first: int | None, line: int) -> None:
    summary, end = {"role": "user", "content": text(value.get("summary"))}, draft.end
    draft.compacted(line, Shown(lambda: [summary, *([] if first is None else draft.path(first, end))]))
    usage = renamed(value.get("usage"), *_PLACES, is_apart=True)
    draft.billed("compaction", value.get("model"), usage, line, value.get("timestamp"))


def _message(message: dict[str, Any], draft: Draft, line: int) -> dict[str, Any]:
    role, content = text(message.get("role")), message.get("content")
    if role == "toolResult":
        block = {"type": "tool_result", "tool_use_id": message.get("toolCallId"), "content": content}
        if message.get("isError") is True:
            block["is_error"] = True
        return {"role": "user", "content": [block]}
    if role == "bashExecution":
        return {"role": "user", "content": f"Ran `{text(message.get('command'))}`\n{text(message.get('output'))}"}
    if role == "assistant":
        return {"role": role, "content": [_block(part) for part in objects(content)]}
    if role not in _ROLES:
        draft.note(f"message of unknown role {role!r} kept", line)
    return {"role": role or "user", "content": content}


def _block(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") != "toolCall":
        return part
    return {"type": "tool_use", "id": part.get("id"), "name": part.get("name"), "input": part.get("arguments")}


# Qwen Code, whose messages are contents of the Gemini API


def is_qwen_code(record: dict[str, Any]) -> bool:
    if "sessionId" not in record or "uuid" not in record:
        return False
    return "systemPayload" in record or isinstance(fields(record.get("message")).get("parts"), list)


def read_qwen_code(records: Iterable[Record]) -> Iterator[Draft]:
    """Read the main conversation, then those of subagents, each with a context of its own."""
    drafts: dict[str | None, Draft] = {None: Draft()}
    places: dict[Any, Place] = {}  # of records: where those that name them are
    for value, line in records:
        if _is_qwen_code_again(value, line, places):
            continue
        name = text(value.get("agentId")) or "agent" if value.get("isSidechain") is True else None
        draft, parent = drafts.setdefault(name, Draft(name)), value.get("parentUuid")
        if isinstance(parent, str) and parent in places and places[parent].draft.context == name:
            drafts[name] = draft = places[parent].go_on()
        _read_qwen_code(value, line, draft)
        if isinstance(value.get("uuid"), str):
            places[value["uuid"]] = draft.here()
    yield from [draft for draft in drafts.values() if draft.end] or [drafts[None]]


def _is_qwen_code_again(value: dict[str, Any], line: int, places: dict[Any, Place]) -> bool:
    """Whether it is an answer that is written again since the last compaction: then its last write counts."""
    name, parts = value.get("uuid"), fields(value.get("message")).get("parts")
    place = places.get(name) if isinstance(name, str) and value.get("type") == "assistant" else None
    if (
        place is None
        or not isinstance(parts, list)
        or place.messages <= max((mark.messages for mark in place.draft.marks[-1:]), default=0)
    ):
        return False
    draft, answer = place.draft, place.messages - 1 - place.draft.start
    draft.messages[answer] = {"role": "model", "parts": parts}
    _qwen_code_request(draft, value, parts, line)
    draft.note("record written again: the last write counts", line)
    return True


def _qwen_code_request(draft: Draft, value: dict[str, Any], parts: list[Any], line: int) -> None:
    usage, time, record = value.get("usageMetadata"), value.get("timestamp"), value.get("uuid")
    draft.request(usage, value.get("model"), time, line, record=record, content=parts)


def _read_qwen_code(value: dict[str, Any], line: int, draft: Draft) -> None:
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
        _qwen_code_request(draft, value, message["parts"], line)
    last = draft.messages[-1]["parts"] if kind == "tool_result" and draft.messages else []
    if any("functionResponse" in part for part in objects(last)):
        last.extend(message["parts"])  # a line has one result; the request had all those of a turn in one content
    else:
        draft.add({"role": role, "parts": message["parts"]}, line)
