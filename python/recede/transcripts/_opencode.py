"""Sessions of opencode, as `opencode export` writes them: messages of parts, of which tools have their results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recede.transcripts._draft import Conversation, Draft, at, fields, last_writes, objects, renamed, text, texts
from recede.transcripts._kept import Kept

# Of parts: texts, tools, and what the model does not see, or sees as another part.
_KNOWN = frozenset(
    "agent checkpoint compaction file patch reasoning retry snapshot step-finish step-start subtask text tool".split()
)


# What the model sees of parts of the user.
_STANDS_FOR = {"compaction": "What did we do so far?", "subtask": "The following tool was executed by the user"}


def recognizes(value: Any) -> bool:
    entries = _entries(value)
    return bool(entries) and all(
        isinstance(fields(one.get("info")).get("role"), str) and isinstance(one.get("parts"), list) for one in entries
    )


def read(value: Any) -> Iterator[Draft]:
    session, kept = Conversation(), Kept()
    entries = last_writes(_entries(value), lambda entry: at(entry, "info", "id"))
    cleared = sorted(_cleared(entries), reverse=True)
    for entry in entries:
        session.draft.records += 1
        info, parts = fields(entry["info"]), objects(entry["parts"])
        session.draft.host = info.get("providerID")
        if info["role"] != "assistant":
            session.message(info["role"], _said(parts))
        elif _was_left_out(info, parts):
            session.draft.billed("answer", info.get("modelID"), _usage(info.get("tokens")), time=_created(info))
            session.draft.note("answer that failed left out, as opencode does")
        elif parts:
            names = []
            while cleared and cleared[-1][0] <= (_created(info) or 0):
                names.append(cleared.pop()[1])
            if names:
                kept.clear(session.draft, names)
            _answer(session, info, parts)
        for part in parts:
            if (kind := text(part.get("type"))) not in _KNOWN:
                session.draft.unknown("part", "type", kind, part)
    yield session.draft


def _entries(value: Any) -> list[dict[str, Any]]:
    return objects(fields(value).get("messages", value))


def _cleared(entries: list[dict[str, Any]]) -> Iterator[tuple[float, str]]:
    """When the results of tools were cleared, and of which calls."""
    for part in (part for entry in entries for part in objects(entry.get("parts"))):
        time = at(part, "state", "time", "compacted")
        if isinstance(time, (int, float)) and isinstance(part.get("callID"), str):
            yield time / 1000, part["callID"]


def _was_left_out(info: dict[str, Any], parts: list[dict[str, Any]]) -> bool:
    """Whether no later request has an answer: it failed; one that the user aborted is sent if it has anything."""
    has_begun = any(part.get("type") not in ("step-start", "reasoning") for part in parts)
    return bool(info.get("error")) and not (at(info, "error", "name") == "MessageAbortedError" and has_begun)


def _created(info: dict[str, Any]) -> float | None:
    created = at(info, "time", "created")
    return created / 1000 if isinstance(created, (int, float)) else None


def _said(parts: list[dict[str, Any]]) -> Any:
    """The texts of a person, and the files that are images or documents."""
    said = [
        _STANDS_FOR.get(part["type"], text(part.get("text")))
        for part in parts
        if part.get("type") in ("text", *_STANDS_FOR) and part.get("ignored") is not True
    ]
    files = [
        {"type": "file", "filename": part.get("filename")}
        for part in parts
        if part.get("type") == "file" and text(part.get("mime")).startswith(("image/", "application/pdf"))
    ]
    texts_of = "\n".join(said)
    return [{"type": "text", "text": texts_of}, *files] if files else texts_of


def _answer(session: Conversation, info: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    """Add the answers of a message: its steps, each of which is a request."""
    steps: list[list[dict[str, Any]]] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and any(one.get("type") in ("text", "tool") for one in steps[-1]):
            steps.append([])
        steps[-1].append(part)
    for step in steps:
        finish = next((part for part in step if part.get("type") == "step-finish"), {})
        tokens = finish.get("tokens", info.get("tokens") if len(steps) == 1 else None)
        said = [(part.get("text"), part.get("callID")) for part in step]  # a fork has other identifiers, and these
        session.begin(usage=_usage(tokens), model=info.get("modelID"), time=_created(info), content=said)
        tools = [part for part in step if part.get("type") == "tool"]
        for part in step:
            if part.get("type") == "text":
                session.say(text(part.get("text")))
        for part in tools:
            session.call(part.get("callID"), part.get("tool"), at(part, "state", "input"))
        for part in tools:
            state = fields(part.get("state"))
            output = texts(state.get("output", state.get("error")))
            is_cut = state.get("status") in ("pending", "running")
            session.result(part.get("callID"), "[Tool execution was interrupted]" if is_cut else output)
    if info.get("summary") is True:
        session.draft.compacted(shown=[{"role": "user", "content": _said(parts)}])


def _usage(tokens: Any) -> Any:
    """Reasoning is counted apart from the output."""
    usage = renamed(tokens, "input", "output", "cache.read", "cache.write", is_apart=True)
    output = [count for count in (at(tokens, "output"), at(tokens, "reasoning")) if isinstance(count, int)]
    return {**usage, "output_tokens": sum(output)} if isinstance(usage, dict) else usage
