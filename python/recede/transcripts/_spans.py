"""Traces: spans with the attributes of OpenInference, or of OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

from recede.transcripts._datasets import find_list
from recede.transcripts._draft import Draft, call, fields, kept, objects, parsed, result, text, texts
from recede.transcripts._requests import time_of
from recede.transcripts._source import Record

_LEFT_OUT = frozenset(["blob", "file", "reasoning", "uri"])  # of parts
_MOST_PASSED = 200  # spans that detection reads: the first may be those of tools and chains


class Request(NamedTuple):
    """A request of a trace, with the history that it sent.

    Attributes:
        trace: the trace, or the conversation, that it belongs to; None if unknown.
        time: when it was sent, in Unix seconds.
        sent: the messages of the request.
        answer: those of its answer.
        usage: its tokens, with names that `usage_of` knows.
        model: the name of the model.
        line: where it was in the file.
    """

    trace: Any
    time: float | None
    sent: list[dict[str, Any]]
    answer: list[dict[str, Any]]
    usage: Any = None
    model: Any = None
    line: int | None = None


def histories(requests: Iterable[Request]) -> Iterator[Draft]:
    """Join requests into conversations: a request continues the latest earlier one whose messages it begins with."""
    grown: dict[int, Draft] = {}  # conversations, in the order of their last requests
    lasts: dict[tuple[Any, bytes], list[int]] = {}  # their numbers, by trace and what their last requests sent
    for number, request in enumerate(sorted(requests, key=lambda one: one.time or 0.0)):
        names = [] if request.trace is None else [(request.trace, name) for name in _prefixes(request.sent)]
        begun = max((held for name in names if (held := lasts.get(name))), key=lambda held: held[-1], default=None)
        draft = Draft()
        draft.records = 1
        if begun:
            earlier = grown.pop(begun.pop())
            draft.records += earlier.records
            draft.requests = earlier.requests
        for message in (*request.sent, *request.answer):
            draft.add(message, request.line)
        draft.request(request.usage, request.model, request.time, request.line, len(request.sent))
        grown[number] = draft
        for name in names[-1:]:
            lasts.setdefault(name, []).append(number)
    yield from grown.values()


def _prefixes(messages: list[dict[str, Any]]) -> Iterator[bytes]:
    """A name of each beginning of a list of messages, the shortest first."""
    so_far = blake2b(digest_size=16)
    for message in messages:
        so_far.update(json.dumps(message, sort_keys=True, default=str).encode(errors="replace"))
        yield so_far.digest()


# Spans


def _spans(value: Any) -> Iterator[dict[str, Any]]:
    """Find the spans of a value: one span, a list, or OTLP's export format."""
    if isinstance(value, list):
        yield from objects(value)
        return
    row = fields(value)
    resources = objects(row.get("resourceSpans")) or objects(row.get("resource_spans"))
    if not resources:
        yield row
    for resource in resources:
        for scope in objects(resource.get("scopeSpans")) or objects(resource.get("scope_spans")):
            yield from objects(scope.get("spans"))


def _attributes(span: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span as a tree, however they are written."""
    found = parsed(span.get("attributes"))
    if isinstance(found, list):  # OTLP
        found = {text(one.get("key")): _otlp(one.get("value")) for one in objects(found)}
    tree = _tree(found if isinstance(found, dict) else span)
    return fields(tree.get("attributes")) if "attributes" in tree and "attributes" not in span else tree


def _otlp(value: Any) -> Any:
    for kind, held in fields(value).items():
        if kind == "arrayValue":
            return [_otlp(one) for one in objects(fields(held).get("values"))]
        if kind == "kvlistValue":
            return {text(one.get("key")): _otlp(one.get("value")) for one in objects(fields(held).get("values"))}
        return int(held) if kind == "intValue" and isinstance(held, str) and held.isdecimal() else held
    return None


def _tree(flat: dict[str, Any]) -> dict[str, Any]:
    """Turn dotted names into nested objects: `a.b` is `b` in `a`."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *outer, last = key.split(".")
        at = tree
        for name in outer:
            inner = at.get(name)
            if not isinstance(inner, dict):
                at[name] = inner = {}
            at = inner
        held = at.get(last)
        at[last] = {**held, **value} if isinstance(held, dict) and isinstance(value, dict) else value
    return tree


def _items(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, which may be written as an object with numbers for names, or as JSON."""
    value = parsed(value)
    if isinstance(value, dict):
        numbered = [name for name in value if name.isdecimal()]
        return [fields(value[name]) for name in sorted(numbered, key=lambda name: (len(name), name))]
    return [_tree(one) for one in objects(value)]


def _at(tree: Any, *names: str) -> Any:
    for name in names:
        tree = fields(tree).get(name)
    return tree


def _trace(span: dict[str, Any]) -> Any:
    context = fields(span.get("context"))
    names = ("trace_id", "traceId", "context.trace_id")
    return next((found[name] for found in (span, context) for name in names if isinstance(found.get(name), str)), None)


def _time(span: dict[str, Any]) -> float | None:
    nanoseconds = span.get("startTimeUnixNano", span.get("start_time_unix_nano"))
    if isinstance(nanoseconds, (int, str)) and str(nanoseconds)[:30].isdecimal():
        return time_of(int(str(nanoseconds)[:30]) / 1e9)
    return time_of(span.get("start_time", span.get("startTime")))


# OpenInference


def is_openinference_line(record: dict[str, Any]) -> bool:
    """Whether a line has a span of a model call."""
    return any(_has_openinference(span) for span in islice(_spans(record), _MOST_PASSED))


def is_openinference(value: Any) -> bool:
    """Whether the value has spans of model calls, or is a list of their messages."""
    is_list = isinstance(value, list)
    return _own_messages(value) is not None or (
        (is_list or "resourceSpans" in fields(value))
        and any(_has_openinference(span) for span in islice(_spans(value), _MOST_PASSED))
    )


def read_openinference(value: Any) -> Iterator[Draft]:
    """Read the messages of each conversation, in the shape of Chat Completions."""
    own = _own_messages(value)
    if own is None:
        yield from histories(_openinference_requests(value, None))
    else:
        yield _listed(_openinference_messages(own), own)


def read_openinference_lines(records: Iterable[Record]) -> Iterator[Draft]:
    """Read one span a line, likewise."""
    yield from histories(request for value, line in records for request in _openinference_requests(value, line))


def _has_openinference(span: dict[str, Any]) -> bool:
    llm = fields(_attributes(span).get("llm"))
    return "input_messages" in llm or "output_messages" in llm


def _own_messages(value: Any) -> list[Any] | None:
    def is_message(item: dict[str, Any]) -> bool:
        return "role" not in item and "role" in fields(_tree(item).get("message"))

    return find_list(value, lambda items: all(map(is_message, items)))


def _openinference_requests(value: Any, line: int | None) -> Iterator[Request]:
    for span in _spans(value):
        if not _has_openinference(span):
            continue
        llm = fields(_attributes(span)["llm"])
        counts = fields(llm.get("token_count"))
        usage = {
            "prompt_tokens": counts.get("prompt"),
            "completion_tokens": counts.get("completion"),
            "input_tokens_cache_read": _at(counts, "prompt_details", "cache_read"),
            "input_tokens_cache_write": _at(counts, "prompt_details", "cache_write"),
        }
        yield Request(
            _trace(span),
            _time(span),
            _openinference_messages(llm.get("input_messages")),
            _openinference_messages(llm.get("output_messages")),
            usage,
            llm.get("model_name"),
            line,
        )


def _openinference_messages(value: Any) -> list[dict[str, Any]]:
    return [_openinference_message(fields(item.get("message", item))) for item in _items(value)]


def _openinference_message(flat: dict[str, Any]) -> dict[str, Any]:
    message = _tree(flat)
    message = fields(message.get("message", message))
    content = message.get("content")
    if content is None:
        parts = [fields(_tree(one).get("message_content", one)) for one in _items(message.get("contents"))]
        content = [{"type": "text", "text": part["text"]} for part in parts if isinstance(part.get("text"), str)]
    found: dict[str, Any] = kept({"role": text(message.get("role")), "content": content}, message)
    if found.get("role") in ("tool", "function"):
        return result(message.get("tool_call_id"), content, message.get("name"))
    made = [fields(_tree(one).get("tool_call", one)) for one in _items(message.get("tool_calls"))]
    if made:
        found["tool_calls"] = [
            call(one.get("id"), _at(one, "function", "name"), _at(one, "function", "arguments")) for one in made
        ]
    return found


# OpenTelemetry


def is_otel_line(record: dict[str, Any]) -> bool:
    """Whether a line has a span of a model call."""
    return any(_has_otel(span) for span in islice(_spans(record), _MOST_PASSED))


def is_otel(value: Any) -> bool:
    """Whether the value has spans of model calls, or is a list of messages with typed `parts`."""
    is_list = isinstance(value, list)
    return _parts_messages(value) is not None or (
        (is_list or "resourceSpans" in fields(value))
        and any(_has_otel(span) for span in islice(_spans(value), _MOST_PASSED))
    )


def read_otel(value: Any) -> Iterator[Draft]:
    """Read the messages of each conversation, in the shape of Chat Completions."""
    own = _parts_messages(value)
    if own is None:
        yield from histories(_otel_requests(value, None))
    else:
        yield _listed(_otel_messages(own), own)


def read_otel_lines(records: Iterable[Record]) -> Iterator[Draft]:
    """Read one span a line, likewise."""
    yield from histories(request for value, line in records for request in _otel_requests(value, line))


def _has_otel(span: dict[str, Any]) -> bool:
    found = fields(_attributes(span).get("gen_ai"))
    return any(_at(found, name, "messages") is not None for name in ("input", "output"))


def _parts_messages(value: Any) -> list[Any] | None:
    def is_message(message: dict[str, Any]) -> bool:
        parts = message.get("parts")
        return "role" in message and isinstance(parts, list) and all(map(_is_part, objects(parts)))

    def recognizes(messages: list[dict[str, Any]]) -> bool:
        return all(map(is_message, messages)) and any(objects(message["parts"]) for message in messages)

    return find_list(value, recognizes)


def _is_part(part: dict[str, Any]) -> bool:
    """Whether it is a part of the conventions: those of others have their texts in other fields."""
    return "type" in part and (part["type"] != "text" or "content" in part)


def _otel_requests(value: Any, line: int | None) -> Iterator[Request]:
    for span in _spans(value):
        if not _has_otel(span):
            continue
        found = fields(_attributes(span)["gen_ai"])
        counts = fields(found.get("usage"))
        usage = {
            "input_tokens": counts.get("input_tokens"),
            "output_tokens": counts.get("output_tokens"),
            "input_tokens_cache_read": _at(counts, "cache_read", "input_tokens"),
            "input_tokens_cache_write": _at(counts, "cache_creation", "input_tokens"),
        }
        system = _otel_messages([{"role": "system", "parts": parsed(found.get("system_instructions"))}])
        yield Request(
            _at(found, "conversation", "id") or _trace(span),
            _time(span),
            [*(one for one in system if one["content"]), *_otel_messages(parsed(_at(found, "input", "messages")))],
            _otel_messages(parsed(_at(found, "output", "messages"))),
            usage,
            _at(found, "response", "model") or _at(found, "request", "model"),
            line,
        )


def _otel_messages(value: Any) -> list[dict[str, Any]]:
    return [made for message in objects(value) for made in _otel_message(message)]


def _otel_message(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    role = text(message.get("role"))
    said, calls, results = [], [], []
    for part in objects(message.get("parts")):
        kind, content = part.get("type"), part.get("content")
        if kind == "tool_call":
            calls.append(call(part.get("id"), part.get("name"), part.get("arguments")))
        elif kind == "tool_call_response":
            response = part.get("response", part.get("result"))
            results.append(result(part.get("id"), texts(response), message.get("name")))
        elif kind == "text" and isinstance(content, str):
            said.append({"type": "text", "text": content})
        elif text(kind) not in _LEFT_OUT:
            said.append(part)
    if said or calls or not results:
        yield {"role": role, "content": said, **({"tool_calls": calls} if calls else {})}
    yield from results


def _listed(messages: list[dict[str, Any]], value: list[Any]) -> Draft:
    draft = Draft()
    draft.records = len(value)
    for message in messages:
        draft.add(message)
    return draft
