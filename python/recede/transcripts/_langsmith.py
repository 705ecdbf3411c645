"""LangSmith runs, and messages of LangChain as it writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from recede.transcripts._datasets import find_list
from recede.transcripts._draft import Draft, at, call, fields, objects, parsed, renamed, result, text
from recede.transcripts._joined import Request, by_time, joined
from recede.transcripts._requests import time_of
from recede.transcripts._source import Record

_MODELS = ("chat_model", "llm")
_FIELDS = frozenset(
    """additional_kwargs artifact content example id invalid_tool_calls name response_metadata status tool_call_chunks
    tool_call_id tool_calls type usage_metadata""".split()
)  # of messages
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}


def recognizes_line(record: dict[str, Any]) -> bool:
    return isinstance(record.get("run_type"), str) and ("inputs" in record or "outputs" in record)


def recognizes(value: Any) -> bool:
    """Whether the value has LangSmith runs, or is a list of LangChain messages."""
    return _own_messages(value) is not None or bool(_runs(value))


def read(value: Any) -> Iterator[Draft]:
    own = _own_messages(value)
    if own is None:
        yield from read_lines(Record(run, 0) for run in _runs(value))
        return
    draft = Draft()
    draft.records = len(own)
    for message in objects(own):
        draft.beside(_plain(message), _FIELDS)
        draft.add(_message(message))
    yield draft


def read_lines(records: Iterable[Record]) -> Iterator[Draft]:
    """Read one run a line: model runs, or whole chains where a trace has no model runs."""
    models: list[Request] = []
    chains: list[Request] = []
    for run, line in records:
        request = _request(run, line)
        if request.sent or request.answer:
            (models if run.get("run_type") in _MODELS else chains).append(request)
    traces = {request.trace for request in models}
    # Of the runs of a chain the outermost has the most messages.
    longest: dict[Any, Request] = {}
    for request in chains:
        held = longest.get(request.trace)
        if held is None or len(request.sent) > len(held.sent):
            longest[request.trace] = request
    yield from joined(by_time(chain(models, (one for one in longest.values() if one.trace not in traces))))


def _runs(value: Any) -> list[dict[str, Any]]:
    found = (
        next((value[name] for name in ("runs", "data") if name in value), None) if isinstance(value, dict) else value
    )
    runs = objects(found)
    return runs if runs and any(map(recognizes_line, runs)) else []


def _request(run: dict[str, Any], line: int) -> Request:
    inputs, outputs = fields(parsed(run.get("inputs"))), fields(parsed(run.get("outputs")))
    sent, answer = _messages(inputs.get("messages")), _answer(outputs)
    if sent and answer[: len(sent)] == sent:  # the state of a graph, which has grown
        sent, answer = answer, []
    elif run.get("run_type") not in _MODELS:
        sent, answer = [*sent, *answer], []
    model = outputs.get("model", at(parsed(run.get("extra")), "metadata", "ls_model_name"))
    trace = run["trace_id"] if isinstance(run.get("trace_id"), str) else None
    name = run["id"] if isinstance(run.get("id"), str) else None
    return Request(trace, time_of(run.get("start_time")), sent, answer, _usage(outputs), model, line, name)


def _answer(outputs: dict[str, Any]) -> list[dict[str, Any]]:
    generations = outputs.get("generations")
    if isinstance(generations, list) and generations and isinstance(generations[0], list):
        generations = generations[0]
    found = objects(generations) or objects(outputs.get("choices"))
    if found:
        return _messages([found[0].get("message")])
    if "role" in outputs:
        return _messages([outputs])
    return _messages(outputs.get("messages", [outputs.get("message", outputs.get("output"))]))


def _usage(outputs: dict[str, Any]) -> Any:
    """The provider's usage, which LangChain keeps with the message."""
    generations = outputs.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    message = _plain(fields(at(generations, "message")))
    counts = fields(message.get("usage_metadata", outputs.get("usage_metadata")))
    if not counts:
        return outputs.get("usage")
    details = "input_token_details.cache_read", "input_token_details.cache_creation"
    return renamed(counts, "input_tokens", "output_tokens", *details)


# Messages


def _own_messages(value: Any) -> list[Any] | None:
    def is_message(one: dict[str, Any]) -> bool:
        is_plain = text(one.get("type")) in _ROLES and "role" not in one and ("content" in one or "data" in one)
        return is_plain or (isinstance(one.get("kwargs"), dict) and "lc" in one)

    return find_list(value, lambda messages: all(map(is_message, messages)))


def _messages(value: Any) -> list[dict[str, Any]]:
    value = parsed(value)
    if isinstance(value, list) and value and isinstance(value[0], list):  # a batch of one
        value = value[0]
    return [_message(message) for message in objects(value)]


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """The fields of a message, or of its serialized constructor, and its type."""
    if isinstance(message.get("kwargs"), dict):
        names = message.get("id")
        kind = text(names[-1]) if isinstance(names, list) and names else ""
        kind = kind.removesuffix("Chunk").removesuffix("Message").lower()
        return {"type": kind, **message["kwargs"]}
    if isinstance(message.get("data"), dict):
        return {"type": message.get("type"), **message["data"]}
    return message


def _message(message: dict[str, Any]) -> dict[str, Any]:
    plain = _plain(message)
    if "role" in plain and "type" not in plain:
        return plain
    kind = text(plain.get("type")).removesuffix("MessageChunk").lower()
    role, content = _ROLES.get(kind) or text(plain.get("role")) or kind, plain.get("content")
    if role == "tool":
        return result(plain.get("tool_call_id"), content, plain.get("name"))
    calls = [call(one.get("id"), one.get("name"), one.get("args")) for one in objects(plain.get("tool_calls"))]
    calls = calls or objects(fields(plain.get("additional_kwargs")).get("tool_calls"))
    if calls and isinstance(content, list):  # the blocks of a provider, which are calls a second time
        content = [part for part in content if fields(part).get("type") != "tool_use"]
    return {"role": role, "content": content, **({"tool_calls": calls} if calls else {})}
