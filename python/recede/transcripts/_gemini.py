"""Gemini CLI sessions: one object whose messages contain the calls with their results, or its changes in lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from recede.transcripts._draft import Draft, Place, first_fields, has_words, kept, last_writes, objects, text
from recede.transcripts._source import Record

# Messages of the program to the user.
_LEFT_OUT = frozenset(["error", "info", "warning"])
_HEAD = frozenset(["directories", "summary"])  # of a session, those with texts
_CALL = frozenset(["args", "description", "displayName", "result", "resultDisplay"])  # likewise
_FIELDS = frozenset(["content", "displayContent", "thoughts", "tokens", "toolCalls"])  # of messages
_KNOWN = frozenset(
    """codeExecutionResult executableCode fileData functionCall functionResponse inlineData text thought
    thoughtSignature""".split()
)  # fields of parts


def recognizes(value: Any) -> bool:
    messages = value.get("messages") if isinstance(value, dict) and "sessionId" in value else None
    return isinstance(messages, list) and (not messages or any("type" in message for message in objects(messages)))


def recognizes_line(record: dict[str, Any]) -> bool:
    return {"sessionId", "projectHash"} <= record.keys() and "messages" not in record


def read(value: Any) -> Iterator[Draft]:
    draft = Draft()
    for message in last_writes(objects(value["messages"]), lambda message: message.get("id")):
        _add(draft, message)
    yield draft


def read_lines(records: Iterable[Record]) -> Iterator[Draft]:
    """Read lines: a message with a known id replaces the earlier one, and some lines remove messages."""
    draft = Draft()
    nodes: dict[str, _Node] = {}
    chain: list[str] = []  # the history, by the names of its messages
    for value, line in records:
        if isinstance(value.get("$rewindTo"), str):
            name = None
            while chain and name != value["$rewindTo"]:  # if that is missing all messages go, as in the program
                name = chain.pop()
                nodes[name].is_kept = False
        elif isinstance(value.get("id"), str):
            _put(chain, nodes, value["id"], value, line)
        elif isinstance(value.get("$set"), dict):
            changed = value["$set"].get("messages")
            if isinstance(changed, list):  # the history was replaced, for instance by a summary
                _replace(chain, nodes, objects(changed), line)
        elif not recognizes_line(value):
            what = "record of unknown type left out, since it holds no message"
            draft.left_out(what, first_fields(value), value, line)
        else:
            draft.beside(value, _HEAD, line)
    places: dict[str | None, Place] = {None: draft.here()}
    for name, node in nodes.items():
        draft = places[node.before].go_on()
        _add(draft, node.message, node.line, is_paid=not node.is_copy)
        places[name] = draft.here()
    yield places[chain[-1] if chain else None].go_on()


@dataclass
class _Node:
    message: dict[str, Any]
    line: int
    before: str | None
    is_copy: bool  # of one that was in a history before, whose request is counted there
    is_kept: bool = True


def _put(chain: list[str], nodes: dict[str, _Node], name: str, message: dict[str, Any], line: int) -> None:
    known = nodes.get(name)
    if known is not None and known.is_kept:
        known.message, known.line = message, line
        return
    if known is not None:  # it was removed, and comes again
        name = f"{name} {len(nodes)}"
    nodes[name] = _Node(message, line, chain[-1] if chain else None, is_copy=known is not None)
    chain.append(name)


def _replace(chain: list[str], nodes: dict[str, _Node], messages: list[dict[str, Any]], line: int) -> None:
    """Begin a history again with these messages."""
    before, chain[:] = chain[:], []
    for name in before:
        nodes[name].is_kept = False
    for place, message in enumerate(messages):
        name = text(message.get("id")) or f"{place} of line {line}"
        if place < len(before) and before[place] == name:
            nodes[name].is_kept = True
            chain.append(name)
        else:
            _put(chain, nodes, name, message, line)


def _add(draft: Draft, message: dict[str, Any], line: int = 0, *, is_paid: bool = True) -> None:
    draft.records += 1
    kind = text(message.get("type"))
    if kind in _LEFT_OUT:
        return
    if kind not in ("user", "gemini"):
        draft.note(f"message of unknown type {kind!r} kept", line)
    calls = objects(message.get("toolCalls"))
    parts = objects(message.get("content"))
    if parts and all("functionResponse" in part for part in parts):
        return  # a turn of a replaced history, whose results are with their calls
    if not calls and any("functionCall" in part for part in parts):
        draft.note("call without its record left out", line)
    if kind == "gemini" and is_paid:
        answer = [message.get("content"), [call.get("args") for call in calls]] if "id" in message else None
        draft.request(
            _usage(message.get("tokens")), message.get("model"), message.get("timestamp"), line, content=answer
        )
    role = "assistant" if kind == "gemini" else "user"
    said = message.get("content")
    if not isinstance(said, str):
        said = "".join(text(part.get("text")) for part in parts if part.get("thought") is not True)
    content = [{"type": "text", "text": said}] if said else []
    content += [part for part in parts if _KNOWN.isdisjoint(part)]
    others = {name: held for name, held in message.items() if name not in _FIELDS}
    made = [
        {"type": "tool_use", "id": call.get("id"), "name": call.get("name"), "input": call.get("args")}
        for call in calls
    ]
    draft.add(kept({"role": role, "content": [*content, *made]}, others), line)
    for call in calls:
        draft.beside(call, _CALL, line)
    draft.beside(message, _FIELDS, line)
    results = [_result(call, draft) for call in calls if call.get("result") is not None]
    if results:
        draft.add({"role": "user", "content": results}, line)


def _usage(tokens: Any) -> Any:
    """Rename tokens as the Responses API does; cached tokens are part of the input."""
    if not isinstance(tokens, dict):
        return tokens
    # The prompts of built-in tools are input, thoughts are output, both counted apart.
    input, output = (_sum(tokens, *names) for names in (("input", "tool"), ("output", "thoughts")))
    return {"input_tokens": input, "cached_input_tokens": tokens.get("cached"), "output_tokens": output}


def _sum(tokens: dict[str, Any], *names: str) -> Any:
    """Add two counts; return a value of a wrong type as it is, and None without the first."""
    if tokens.get(names[0]) is None:
        return None
    values = [tokens[name] for name in names if tokens.get(name) is not None]
    wrong = [value for value in values if not isinstance(value, int)]
    return wrong[0] if wrong else sum(values)


def _result(call: dict[str, Any], draft: Draft) -> dict[str, Any]:
    parts = objects(call["result"]) or objects([call["result"]])
    said = "".join(map(_output, parts))
    if not said and has_words(parts):
        draft.unread[f"field {', '.join(parts[0])}"] += 1
    block = {"type": "tool_result", "tool_use_id": call.get("id"), "content": said}
    return {**block, "is_error": True} if call.get("status") == "error" else block


def _output(part: dict[str, Any]) -> str:
    response = part["functionResponse"].get("response") if isinstance(part.get("functionResponse"), dict) else None
    if not isinstance(response, dict):
        return text(part.get("text"))
    output = response.get("output", response.get("error", response))
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
