"""Traces: spans with the attributes of OpenInference, or of OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from recede.transcripts._datasets import find_list
from recede.transcripts._draft import Draft, at, call, fields, kept, objects, parsed, renamed, result, text, texts
from recede.transcripts._joined import Request, by_time, joined
from recede.transcripts._requests import time_of
from recede.transcripts._source import Record

_LEFT_OUT = frozenset(["blob", "file", "reasoning", "uri"])  # of parts
_MOST_PASSED = 200  # spans that detection reads: the first may be those of tools and chains


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


def _trace(span: dict[str, Any]) -> Any:
    return _identity(span, "trace_id", "traceId", "context.trace_id")


def _name(span: dict[str, Any]) -> str | None:
    name = _identity(span, "span_id", "spanId", "context.span_id")
    return f"{_trace(span)} {name}" if name else None


def _identity(span: dict[str, Any], *names: str) -> Any:
    context = fields(span.get("context"))
    return next((found[name] for found in (span, context) for name in names if isinstance(found.get(name), str)), None)


def _time(span: dict[str, Any]) -> float | None:
    nanoseconds = span.get("startTimeUnixNano", span.get("start_time_unix_nano"))
    if isinstance(nanoseconds, (int, str)) and str(nanoseconds)[:30].isdecimal():
        return time_of(int(str(nanoseconds)[:30]) / 1e9)
    return time_of(span.get("start_time", span.get("startTime")))


class Convention(NamedTuple):
    """How model calls stand in the attributes of spans, and how their messages are listed without spans."""

    root: str  # the attribute with all that is said of a model call
    has_messages: Callable[[dict[str, Any]], bool]
    request: Callable[[dict[str, Any], dict[str, Any], int], Request]  # of a span, its attribute and its line
    are_messages: Callable[[list[dict[str, Any]]], bool]  # whether objects of a list are
    messages: Callable[[Any], list[dict[str, Any]]]  # in the shape of Chat Completions

    def recognizes_line(self, value: Any) -> bool:
        """Whether a line has a span of a model call."""
        return any(self._said_of(span) is not None for span in islice(_spans(value), _MOST_PASSED))

    def recognizes(self, value: Any) -> bool:
        """Whether the value has such spans, or is a list of messages."""
        has_spans = isinstance(value, list) or "resourceSpans" in fields(value)
        return find_list(value, self.are_messages) is not None or (has_spans and self.recognizes_line(value))

    def read(self, value: Any) -> Iterator[Draft]:
        """Read the messages of each conversation, in the shape of Chat Completions."""
        own = find_list(value, self.are_messages)
        if own is None:
            yield from self.read_lines([Record(value, 0)])
            return
        draft = Draft()
        draft.records = len(own)
        for message in self.messages(own):
            draft.add(message)
        yield draft

    def read_lines(self, records: Iterable[Record]) -> Iterator[Draft]:
        """Read one span a line, likewise."""
        spans = ((span, self._said_of(span), line) for value, line in records for span in _spans(value))
        requests = (self.request(span, said, line) for span, said, line in spans if said is not None)
        return joined(by_time(requests))

    def _said_of(self, span: dict[str, Any]) -> dict[str, Any] | None:
        said = fields(_attributes(span).get(self.root))
        return said if self.has_messages(said) else None


# OpenInference


def _openinference_request(span: dict[str, Any], llm: dict[str, Any], line: int) -> Request:
    places = "prompt", "completion", "prompt_details.cache_read", "prompt_details.cache_write"
    usage = renamed(fields(llm.get("token_count")), *places)
    sent, answer = (_openinference_messages(llm.get(name)) for name in ("input_messages", "output_messages"))
    return Request(_trace(span), _time(span), sent, answer, usage, llm.get("model_name"), line, _name(span))


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
            call(one.get("id"), at(one, "function", "name"), at(one, "function", "arguments")) for one in made
        ]
    return found


OPENINFERENCE = Convention(
    "llm",
    lambda llm: "input_messages" in llm or "output_messages" in llm,
    _openinference_request,
    lambda items: all("role" not in item and "role" in fields(_tree(item).get("message")) for item in items),
    _openinference_messages,
)

# OpenTelemetry


def _are_otel(messages: list[dict[str, Any]]) -> bool:
    """Whether they are messages with typed `parts`."""
    return all(
        "role" in message and isinstance(message.get("parts"), list) and all(map(_is_part, objects(message["parts"])))
        for message in messages
    ) and any(objects(message["parts"]) for message in messages)


def _is_part(part: dict[str, Any]) -> bool:
    """Whether it is a part of the conventions: those of others have their texts in other fields."""
    return "type" in part and (part["type"] != "text" or "content" in part)


def _otel_request(span: dict[str, Any], said: dict[str, Any], line: int) -> Request:
    places = "input_tokens", "output_tokens", "cache_read.input_tokens", "cache_creation.input_tokens"
    usage = renamed(fields(said.get("usage")), *places)
    system = _otel_messages([{"role": "system", "parts": parsed(said.get("system_instructions"))}])
    return Request(
        at(said, "conversation", "id") or _trace(span),
        _time(span),
        [*(one for one in system if one["content"]), *_otel_messages(parsed(at(said, "input", "messages")))],
        _otel_messages(parsed(at(said, "output", "messages"))),
        usage,
        at(said, "response", "model") or at(said, "request", "model"),
        line,
        _name(span),
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


OTEL = Convention(
    "gen_ai",
    lambda said: any(at(said, name, "messages") is not None for name in ("input", "output")),
    _otel_request,
    _are_otel,
    _otel_messages,
)
