"""Lists of messages: arrays, request bodies, JSON Lines of either; rows of datasets (Nebius' SWE-agent, ShareGPT)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from recede._bodies import BODY_KEYS
from recede.transcripts._draft import Draft, call, fields, objects, parsed, text
from recede.transcripts._joined import Request, joined
from recede.transcripts._requests import time_of
from recede.transcripts._source import Record

# Where rows have their messages.
_COLUMNS = ("conversations", "messages", "trajectory", "conversation", "traj", "input")

_ROLES = {"ai": "assistant"}
_SPEAKERS = {"human": "user", **dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "model"), "assistant")}
_CALLS = frozenset(["function_call", "function-call", "tool_call"])
_RESULTS = frozenset(["function", "function_response", "function-response", "observation", "tool", "tool_response"])


def find_list(value: Any, recognizes: Callable[[list[dict[str, Any]]], bool]) -> list[Any] | None:
    """Return the value if it is a list of messages, or the list in a column with a usual name."""
    for found in [value] if isinstance(value, list) else map(fields(value).get, _COLUMNS):
        messages = objects(found)
        if messages and recognizes(messages):
            return found
    return None


def is_nebius(value: Any) -> bool:
    """Whether a row has messages with `role` and `text`, or a system prompt in `system_prompt`."""
    return _nebius(value) is not None


def read_nebius(value: Any) -> Iterator[Draft]:
    """Read messages without tool calls: a user message after an agent's message is its observation."""
    draft = Draft()
    for message in _messages(_nebius(value), draft):
        role = text(message.get("role"))
        content = message.get("system_prompt") if message.get("text") is None else message["text"]
        if role == "user" and draft.messages and draft.messages[-1].get("role") == "assistant":
            draft.answer(content)
        else:
            draft.add({"role": _ROLES.get(role, role), "content": content})
    yield draft


def _nebius(value: Any) -> list[Any] | None:
    return find_list(
        value, lambda messages: all("role" in one and "text" in one and "content" not in one for one in messages)
    )


def is_sharegpt(value: Any) -> bool:
    return _sharegpt(value) is not None


def read_sharegpt(value: Any) -> Iterator[Draft]:
    """Read messages; calls and results that are messages of their own are paired."""
    draft = Draft()
    system = fields(value).get("system")
    if isinstance(system, str) and system:
        draft.add({"role": "system", "content": system})
    for message in _messages(_sharegpt(value), draft):
        speaker = text(message.get("from")).lower()
        if speaker in _CALLS:
            _call(message.get("value"), draft)
        elif speaker in _RESULTS:
            _result(message.get("value"), draft)
        else:
            draft.add({"role": _SPEAKERS.get(speaker, speaker), "content": message.get("value")})
    yield draft


def _sharegpt(value: Any) -> list[Any] | None:
    return find_list(
        value, lambda messages: all("from" in one and "value" in one and "role" not in one for one in messages)
    )


def _messages(found: list[Any] | None, draft: Draft) -> Iterator[dict[str, Any]]:
    for message in found or []:
        draft.records += 1
        if isinstance(message, dict):
            yield message
        else:
            draft.note("message left out, since it is no object")


def _call(value: Any, draft: Draft) -> None:
    """Parse a call that is written as the JSON of its name and arguments."""
    made = fields(parsed(value))
    if not isinstance(made.get("name"), str):
        draft.add({"role": "assistant", "content": value})
        return
    arguments = made.get("arguments", made.get("parameters"))
    call_id = f"call-{len(draft.messages)}"
    draft.add({"role": "assistant", "content": None, "tool_calls": [call(call_id, made["name"], arguments)]})


def _result(value: Any, draft: Draft) -> None:
    last = draft.messages[-1] if draft.messages else {}
    if last.get("tool_calls"):
        draft.add({"role": "tool", "tool_call_id": last["tool_calls"][0]["id"], "content": value})
        return
    if last.get("role") != "assistant":
        if last.get("role") == "tool":
            draft.note("result after another kept with an empty call, since the calls are in one text")
        draft.add({"role": "assistant", "content": ""})
    draft.answer(value)


# Chats whose parts repeat their calls, and hold the texts of their results

_PARTS = frozenset(["tool_call", "tool_output"])
_OF_SUBAGENT = re.compile(r"(assistant|system|tool|user)-subagent-(.+)")


def is_chat_of_parts(value: Any) -> bool:
    return _chat_of_parts(value) is not None


def read_chat_of_parts(value: Any) -> Iterator[Draft]:
    """Read each call once; messages of a subagent, which their role names, are a history of their own."""
    drafts: dict[str | None, Draft] = {None: Draft()}
    for message in _messages(_chat_of_parts(value), drafts[None]):
        of_subagent = _OF_SUBAGENT.fullmatch(text(message.get("role")))
        name = of_subagent[2] if of_subagent else None
        drafts.setdefault(name, Draft(name)).add(
            _of_parts({**message, "role": of_subagent[1]} if of_subagent else message)
        )
    yield from [draft for draft in drafts.values() if draft.end] or [drafts[None]]


def _of_parts(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    made = [
        call(part.get("tool_call_id", part.get("id")), part.get("name"), part.get("arguments", part.get("args")))
        for part in objects(content)
        if part.get("type") == "tool_call"
    ]
    others = [
        {**part, "type": "text"} if fields(part).get("type") == "tool_output" else part
        for part in content
        if fields(part).get("type") != "tool_call"
    ]
    calls = message.get("tool_calls") or made
    return {**message, "content": others or None, **({"tool_calls": calls} if calls else {})}


def _chat_of_parts(value: Any) -> list[Any] | None:
    def has_part(message: dict[str, Any]) -> bool:
        parts = objects(message.get("content")) if "role" in message else []
        return any(part.get("type") in _PARTS for part in parts)

    return find_list(value, lambda messages: any(map(has_part, messages)))


# Messages as they were sent


_ITEMS = frozenset(["message", "reasoning"])
_TIMES = ("timestamp", "time", "created", "created_at")  # of a request, in the order of preference


def is_message(record: dict[str, Any]) -> bool:
    kind = text(record.get("type"))
    return "role" in record or "pairRole" in record or kind in _ITEMS or kind.endswith(("_call", "_call_output"))


def read_message_lines(records: Iterable[Record]) -> Iterator[Draft]:
    draft = Draft()
    for value, line in records:
        draft.records += 1
        draft.add(value, line)
    yield draft


def is_messages(value: Any) -> bool:
    """Whether the value is an array; elements that are not messages are errors when it is read."""
    return isinstance(value, list)


def is_body(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in BODY_KEYS)


def read_messages(value: Any) -> Iterator[Draft]:
    return read_message_lines(Record(message, 0) for message in value)


def read_body(value: Any) -> Iterator[Draft]:
    """Read one body: its history, which does not have the answer."""
    for request in _requests([Record(value, 0)], lambda line: None):
        yield from _conversations([request._replace(answer=[])])


def read_body_lines(records: Iterable[Record], skip: Callable[[int], None]) -> Iterator[Draft]:
    """Read request bodies: one that begins with an earlier body continues it; what a provider answered follows it."""
    return _conversations(_requests(records, skip))


def _conversations(requests: Iterable[Request]) -> Iterator[Draft]:
    for draft in joined(requests, with_unpaid=False):
        draft.records = draft.end
        yield draft


def _requests(records: Iterable[Record], skip: Callable[[int], None]) -> Iterator[Request]:
    """The bodies, each with its answer, which stands beside it or in the lines after it."""
    request: Request | None = None
    for value, line in records:
        if is_body(value):
            if request is not None:
                yield request
            sent = next(value[key] for key in BODY_KEYS if isinstance(value.get(key), list))
            request = _answered(
                Request("", None, sent, [], None, value.get("model"), line), value, value.get("response")
            )
        elif request is not None and _answered(request, value, value) is not request:
            request = _answered(request, value, value)
        else:
            skip(line)
    if request is not None:
        yield request


def _answered(request: Request, record: dict[str, Any], answer: Any) -> Request:
    """The request with the usage and the text of an answer, or of the response that it holds; itself without one."""
    for held in (fields(answer), fields(fields(answer).get("response"))):
        usage = next((held[name] for name in ("usage", "usageMetadata") if isinstance(held.get(name), dict)), None)
        if usage is not None:
            times = (one[name] for one in (record, held) for name in _TIMES if one.get(name) is not None)
            model = held.get("model", request.model)
            return request._replace(time=time_of(next(times, None)), answer=_answer_of(held), usage=usage, model=model)
    return request


def _answer_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of an answer: of Chat Completions, Gemini, Responses or Anthropic."""
    for choice in objects(answer.get("choices"))[:1]:
        return objects([choice.get("message")])
    for candidate in objects(answer.get("candidates"))[:1]:
        return objects([candidate.get("content")])
    if answer.get("role") == "assistant":
        return [{"role": "assistant", "content": answer.get("content")}]
    return objects(answer.get("output"))
