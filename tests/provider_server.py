"""A provider on this machine: speaks as Anthropic, OpenAI chat and Responses, checks each request, answers by a script.

A request that a provider would refuse gets its 400 and takes no answer from the script. It plays the newest models to
an account made before 2026-08-31, and signs what its models think.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from local_server import LocalServer, listening
from provider_rules import OLD, Account, Taken, anthropic, chat, responses

Block = dict[str, Any]
Event = tuple[str, Any]  # the name of an event, and its data; what is no name is no line

_FINISH = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}


@dataclass
class Answer:
    """Content blocks in Anthropic's form, which become OpenAI's where that is asked; and what goes wrong."""

    blocks: list[Block]
    stop: str = "end_turn"
    drop_after: int | None = None  # of a stream the events, else the bytes, after which the connection is closed
    pause: threading.Event | None = None  # waited for in the middle of the answer
    damage: Callable[[Any], Any] | None = None  # the body, or a list of `Event`, as it is sent instead
    model: str = ""
    report: list[Block] = field(default_factory=list)  # of what the provider has dropped


@dataclass
class Failure:
    """An error in place of an answer."""

    status: int
    kind: str = "api_error"
    headers: dict[str, str] = field(default_factory=dict)


def text(said: str, stop: str = "end_turn", **faults: Any) -> Answer:
    return Answer([{"type": "text", "text": said}], stop, **faults)


def thought(said: str) -> Block:
    """What a model thinks; it is signed when it is sent."""
    return {"type": "thinking", "thinking": said, "signature": "to be given"}


def call(name: str, value: dict[str, Any] | None = None, id: str = "") -> Block:
    return {"type": "tool_use", "id": id, "name": name, "input": value or {}}


def calls(*blocks: Block, say: str = "", stop: str = "tool_use") -> Answer:
    return Answer([*([{"type": "text", "text": say}] if say else []), *blocks], stop)


class Server:
    """The script, and what was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: list[Answer | Failure] = []
        self.requests: list[dict[str, Any]] = []  # the bodies, refused ones too
        self.refusals: list[str] = []
        self.taken: list[Taken] = []  # what the provider does with each request
        self.answers: list[list[Block]] = []  # as they were sent, with signatures
        self.account: Account = OLD
        self.aliases: dict[Any, str] = {}  # names that a gateway has for models
        self.window: int | None = None  # the most tokens that a request may have, at four characters each
        self._calls = 0
        self._lock = threading.Lock()

    def too_long(self, body: dict[str, Any]) -> str | None:
        """The words of a provider for a request that is longer than the window of its model."""
        tokens = len(json.dumps(body, ensure_ascii=False)) // 4
        is_longer = self.window is not None and tokens > self.window
        return f"prompt is too long: {tokens} tokens > {self.window} maximum" if is_longer else None

    def take(self, api: _Api, body: dict[str, Any], asked: dict[str, Any]) -> Answer | Failure | None:
        """The next answer to a body, which its provider reads as `asked`; None if that is refused."""
        asked = {**asked, "model": self.aliases[asked["model"]]} if asked.get("model") in self.aliases else asked
        taken = api.take(asked, self.account)
        taken.fault = taken.fault or self.too_long(body)
        with self._lock:
            self.requests.append(body)
            self.taken.append(taken)
            if taken.fault is not None:
                self.refusals.append(taken.fault)
                return None
            if taken.refusal is not None:
                return Answer([], "refusal")
            if not self.script:
                return Failure(500, "the script has no further answer", {"x-should-retry": "false"})
            answer = self.script.pop(0)
            if isinstance(answer, Failure):
                return answer
            for block in answer.blocks:
                if block["type"] == "tool_use" and not block["id"]:
                    self._calls += 1
                    block["id"] = f"toolu_{self._calls}"
            signed = api.signed(asked, answer.blocks, self.account)
            self.answers.append(signed)
            model = str(asked["model"]) if asked.get("model") else ""
            return replace(answer, blocks=signed, model=model, report=taken.dropped)


@contextlib.contextmanager
def serving(*script: Answer | Failure) -> Iterator[Server]:
    """A server with this script, until the block ends."""
    with listening(_Handler, _HTTPServer) as httpd:
        server = httpd.provider = Server(httpd.url)
        server.script += script
        yield server


class _HTTPServer(LocalServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # who asked has gone
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api = _APIS[self.path.partition("?")[0].rpartition("/")[2].rpartition(":")[2]]
        server: Server = self.server.provider  # type: ignore[attr-defined]
        answer = server.take(api, body, {**api.implied, **body})
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who asked has gone
            if answer is None:
                self._error(400, "invalid_request_error", server.refusals[-1], {})
            elif isinstance(answer, Failure):
                self._error(answer.status, answer.kind, answer.kind, answer.headers)
            elif body.get("stream"):
                self._stream(answer, api.events_of(answer))
            else:
                body = api.body_of(answer)
                self._whole(answer, body if answer.damage is None else answer.damage(body))

    def _error(self, status: int, kind: str, words: str, headers: dict[str, str]) -> None:
        self._send(status, {"type": "error", "error": {"type": kind, "message": words}}, headers)

    def _whole(self, answer: Answer, body: Any) -> None:
        if answer.pause is not None:
            answer.pause.wait(30)
        self._send(200, body, {}, answer.drop_after)

    def _send(self, status: int, body: Any, headers: dict[str, str], drop_after: int | None = None) -> None:
        data = _written_out(body).encode("utf-8", "surrogatepass")
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[:drop_after])
        # A whole answer leaves the connection open: the client may be sending its next request on it.
        self.close_connection = drop_after is not None and drop_after < len(data)

    def _stream(self, answer: Answer, events: list[Event]) -> None:
        events = events if answer.damage is None else answer.damage(events)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, (name, data) in enumerate(events):
            if answer.pause is not None and number == len(events) // 2:
                answer.pause.wait(30)
            if number == answer.drop_after:
                self.close_connection = True
                return  # without the chunk that ends the body
            named = f"event: {name}\n" if name else ""
            line = f"{named}data: {_written_out(data)}\n\n".encode("utf-8", "surrogatepass")
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")


def _written_out(value: Any) -> str:
    """As JSON; a text stands for itself, whatever it is."""
    return value if isinstance(value, str) else json.dumps(value)


def _pieces(said: str) -> list[str]:
    return [said[at : at + 7] for at in range(0, len(said), 7)]


def _written(block: Block) -> str:
    """The input of a call as it is written: a call that was cut says it as `partial`."""
    return str(block["partial"]) if "partial" in block else json.dumps(block["input"])


# Anthropic


def _anthropic_body(answer: Answer) -> dict[str, Any]:
    # What was cut inside a call comes as what could be read of its input.
    content = [{**block, "input": {}} if "partial" in block else block for block in answer.blocks]
    content = [{name: value for name, value in block.items() if name != "partial"} for block in content]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": answer.stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 0},
        },
        **({"input_transformations": answer.report} if answer.report else {}),
    }


def _anthropic_events(answer: Answer) -> list[Event]:
    start = {**_anthropic_body(answer), "content": [], "stop_reason": None}
    start["usage"] = {**start["usage"], "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(answer.blocks):
        kind = block["type"]
        if kind == "text":
            empty, deltas = {"text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        elif kind == "thinking":
            empty = {"thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            if block.get("signature"):
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            empty = {"id": block["id"], "name": block["name"], "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *_pieces(_written(block))]]
        events.append({"type": "content_block_start", "index": index, "content_block": {"type": kind, **empty}})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": answer.stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    return [(event["type"], event) for event in events]


# OpenAI


def _openai_message(answer: Answer) -> dict[str, Any]:
    said = "".join(block["text"] for block in answer.blocks if block["type"] == "text")
    message: dict[str, Any] = {"role": "assistant", "content": said or None, "refusal": None, "annotations": []}
    made = [block for block in answer.blocks if block["type"] == "tool_use"]
    if made:
        message["tool_calls"] = [
            {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": _written(block)}}
            for block in made
        ]
    return message


def _openai_head(answer: Answer, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": int(time.time()), "model": answer.model}


def _openai_body(answer: Answer) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": _openai_message(answer),
        "finish_reason": _FINISH.get(answer.stop, answer.stop),
        "logprobs": None,
    }
    details = {"cached_tokens": 3}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": details}
    return {**_openai_head(answer, "chat.completion"), "choices": [choice], "usage": usage}


def _openai_events(answer: Answer) -> list[Event]:
    message = _openai_message(answer)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
    deltas += [{"content": piece} for piece in _pieces(message["content"] or "")]
    for index, made in enumerate(message.get("tool_calls", ())):
        function = made["function"]
        deltas.append({"tool_calls": [{**made, "index": index, "function": {**function, "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _pieces(function["arguments"])
        ]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": _FINISH.get(answer.stop, answer.stop)})
    head = _openai_head(answer, "chat.completion.chunk")
    return [*(("", {**head, "choices": [choice]}) for choice in choices), ("", "[DONE]")]


# OpenAI's Responses


def _responses_items(answer: Answer) -> list[dict[str, Any]]:
    status = "incomplete" if answer.stop == "max_tokens" else "completed"
    items = [dict(item) for item in answer.blocks]
    if items and items[-1]["type"] != "reasoning":
        items[-1]["status"] = status
    return items


_IDS = {"reasoning": "rs", "message": "msg", "function_call": "fc"}


def _as_items(blocks: list[Block]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for block in blocks:
        if block["type"] == "thinking":
            items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": block["thinking"]}]})
        elif block["type"] == "text":
            part = {"type": "output_text", "text": block["text"], "annotations": [], "logprobs": []}
            items.append({"type": "message", "role": "assistant", "status": "completed", "content": [part]})
        else:
            made = {"type": "function_call", "call_id": block["id"], "name": block["name"]}
            items.append({**made, "arguments": _written(block), "status": "completed"})
    return items


def _responses_body(answer: Answer) -> dict[str, Any]:
    is_cut = answer.stop == "max_tokens"
    details = {"cached_tokens": 3}, {"reasoning_tokens": 0}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": int(time.time()),
        "model": answer.model,
        "input_transformations": answer.report,
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "error": None,
        "output": _responses_items(answer),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {**usage, "input_tokens_details": details[0], "output_tokens_details": details[1]},
    }


def _responses_events(answer: Answer) -> list[Event]:
    body = _responses_body(answer)
    start = {**body, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": f"response.{name}", "response": start} for name in ("created", "in_progress")
    ]
    for index, item in enumerate(body["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {}
        if item["type"] == "function_call":
            empty = {"arguments": ""}
        if item["type"] != "reasoning":
            empty["status"] = "in_progress"
        events.append({"type": "response.output_item.added", "output_index": index, "item": {**item, **empty}})
        if item["type"] == "function_call":
            kind = "response.function_call_arguments"
            events += [{"type": f"{kind}.delta", **place, "delta": piece} for piece in _pieces(item["arguments"])]
            events.append({"type": f"{kind}.done", **place, "name": item["name"], "arguments": item["arguments"]})
        elif item["type"] == "message":
            part, place = item["content"][0], {**place, "content_index": 0}
            events.append({"type": "response.content_part.added", **place, "part": {**part, "text": ""}})
            events += [
                {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
                for piece in _pieces(part["text"])
            ]
            events.append({"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []})
            events.append({"type": "response.content_part.done", **place, "part": part})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{body['status']}", "response": body})
    return [(event["type"], {**event, "sequence_number": number}) for number, event in enumerate(events)]


# Counting


def _counted(answer: Answer) -> dict[str, Any]:
    return {"object": "response.input_tokens", "input_tokens": 7}


def _no_events(answer: Answer) -> list[Event]:
    return []


def _unsigned(body: dict[str, Any], blocks: list[Block], account: Account) -> list[Block]:
    return blocks


def _signed_items(body: dict[str, Any], blocks: list[Block], account: Account) -> list[Block]:
    """Reasoning comes encrypted where a request asks for that; ids are those that follow the request's."""
    items = _as_items(blocks)
    if "reasoning.encrypted_content" in (body.get("include") or ()):
        items = responses.answered(body, items, account)
    given = body["input"] if isinstance(body.get("input"), list) else []
    numbers = [int(number) for item in given if (number := str(item.get("id")).rpartition("_")[2]).isdecimal()]
    return [{**item, "id": f"{_IDS[item['type']]}_{at}"} for at, item in enumerate(items, max(numbers, default=0) + 1)]


class _Api(NamedTuple):
    """One of the APIs: its rules, its signatures, and its answers."""

    take: Callable[..., Taken]
    signed: Callable[[dict[str, Any], list[Block], Account], list[Block]]
    body_of: Callable[[Answer], Any]
    events_of: Callable[[Answer], list[Event]]
    implied: Mapping[str, Any] = {}  # what a path says in place of the body


_MESSAGES = _Api(anthropic.take, anthropic.answered, _anthropic_body, _anthropic_events)
_RESPONSES = _Api(responses.take, _signed_items, _responses_body, _responses_events)
_APIS: dict[str, _Api] = {
    "messages": _MESSAGES,
    "completions": _Api(chat.take, _unsigned, _openai_body, _openai_events),
    "responses": _RESPONSES,
    "count_tokens": _Api(anthropic.count_tokens, _unsigned, _counted, _no_events),
    "input_tokens": _Api(responses.take, _unsigned, _counted, _no_events),
    # Of clouds, which have the model in the path.
    **dict.fromkeys(
        ("invoke", "invoke-with-response-stream", "rawPredict", "streamRawPredict"),
        _MESSAGES._replace(implied={"model": anthropic.NEWEST}),
    ),
}
