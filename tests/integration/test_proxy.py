"""The proxy between real clients and a provider on this machine: what passes is the same, byte by byte."""
# ruff: noqa: SIM117 - the servers in one statement, what is done with them in another

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import json
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

import anthropic
import openai
from proxied import Answer, Request, Upstream, answer_of, ask, chunked, proxying, recording, stats

import recede
from provider_server import Failure, Server, calls, serving, text
from provider_server import call as tool_call
from recede._agents import AGENTS
from recede._hosts import TITLES
from recede.proxy import server as server_module
from recede.proxy._routes import Target
from recede.proxy.server import UPSTREAMS, Proxy
from support import ROOT

KEY = "sk-ant-secret-0123456789"
JSON = ("Content-Type", "application/json")
Bodies = dict[str, Any]


def anthropic_messages(turns: int, chars: int = 4_000) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    for number in range(turns):
        use = {"type": "tool_use", "id": f"toolu_x{number}", "name": "run", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_x{number}", "content": "x" * chars}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return messages


def chat_messages(turns: int, chars: int = 4_000) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    for number in range(turns):
        call = {"id": f"call_x{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_x{number}", "content": "x" * chars})
    return messages


def response_items(turns: int, chars: int = 4_000) -> list[Any]:
    items: list[Any] = [{"role": "user", "content": "Go."}]
    for number in range(turns):
        items.append({"type": "function_call", "call_id": f"call_x{number}", "name": "run", "arguments": "{}"})
        items.append({"type": "function_call_output", "call_id": f"call_x{number}", "output": "x" * chars})
    return items


def anthropic_body(turns: int = 40, **fields: Any) -> bytes:
    return json.dumps({"model": "claude-opus-5", "messages": anthropic_messages(turns), **fields}).encode()


# Everything that is not masked


BINARY = bytes(range(256)) * 40
UNTOUCHED: list[tuple[str, str, bytes | None, list[tuple[str, str]]]] = [
    ("GET", "/v1/models?limit=2&after=a%2Fb", None, []),
    ("GET", "/v1/files/a%2Fb%20c/content", None, [("X-Api-Key", KEY), ("anthropic-beta", "files")]),
    ("GET", "/v1/odd/%7Euser;v=1/../x//y?q=a+b&q=%C3%A9", None, [("Accept", "text/html"), ("Cookie", "a=1; b=2")]),
    ("HEAD", "/v1/models", None, []),
    ("OPTIONS", "/v1/messages", None, []),
    ("DELETE", "/v1/files/file_1", None, [("User-Agent", "someone/1.0")]),
    ("PUT", "/v1/thing", BINARY, [("Content-Type", "application/octet-stream")]),
    ("POST", "/v1/files", BINARY, [("Content-Type", "multipart/form-data; boundary=x")]),
    ("POST", "/v1/files", BINARY, [("Transfer-Encoding", "chunked")]),
    ("POST", "/v1/messages/batches", b'{"requests": []}', [JSON]),
    ("POST", "/v1/messages", b'{"messages": [', [JSON, ("Accept-Encoding", "gzip, br")]),
    ("POST", "/v1/messages?beta=true", anthropic_body(3), [JSON, ("Anthropic-Version", "2023-06-01")]),
    ("POST", "/v1/messages", gzip.compress(anthropic_body(3)), [JSON, ("Content-Encoding", "gzip")]),
    ("POST", "/v1/messages", b"\x00not gzip", [JSON, ("Content-Encoding", "gzip")]),
    ("POST", "/v1/messages", anthropic_body(40), [JSON, ("Content-Encoding", "br")]),
    ("POST", "/v1/messages", b"", [JSON]),
    ("PATCH", "/v1/thing", b"{}", [("X-Twice", "1"), ("X-Twice", "2"), ("X-Empty", "")]),
    ("POST", "/v1beta/models/gemini-2.5-pro:countTokens?key=secret", b"{}", [JSON]),
]


@pytest.fixture
def echo() -> Iterator[Upstream]:
    with recording(lambda request: [answer_of(request.body[:50])]) as upstream:
        yield upstream


@pytest.fixture
def proxy(echo: Upstream, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """With the echo as the address of every provider."""
    for name in UPSTREAMS:
        monkeypatch.setitem(UPSTREAMS, name, echo.url)
    with proxying(None) as running:
        yield running


def test_untouched_requests_arrive_as_they_were_sent(echo: Upstream, proxy: Proxy) -> None:
    for method, target, body, headers in UNTOUCHED:
        directly = ask(echo.url, method, target, body, headers)
        through = ask(proxy.url, method, target, body, headers)
        one, two = echo.requests[-2:]
        assert one.compared() == two.compared(), (method, target)
        assert directly.compared() == through.compared(), (method, target)


def test_messages_without_a_version_are_masked_and_arrive_where_the_provider_takes_them(echo: Upstream) -> None:
    for base, target in (("", "/v1/messages?beta=true"), ("/v1", "/v1/messages?beta=true")):
        with proxying(echo.url + base) as proxy:
            ask(proxy.url, "POST", "/messages?beta=true", anthropic_body(), [JSON, ("X-Api-Key", KEY)])
        assert echo.requests[-1].target == target
        assert b"old tool output cleared" in echo.requests[-1].body
    with proxying(echo.url) as proxy:
        ask(proxy.url, "POST", "/v1/threads/thread_1/messages", b"{}", [JSON])
    assert echo.requests[-1].target == "/v1/threads/thread_1/messages"


def test_a_login_of_chatgpt_goes_to_its_own_server(echo: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UPSTREAMS, "chatgpt", echo.url + "/backend-api/codex")
    body = json.dumps({"model": "gpt-5.3-codex", "input": response_items(40)}).encode()
    login = [JSON, ("Authorization", "Bearer x"), ("ChatGPT-Account-ID", "account")]
    with recording(lambda _: [answer_of(b"{}")]) as api:
        monkeypatch.setitem(UPSTREAMS, "openai", api.url)
        with proxying(None) as proxy:
            ask(proxy.url, "POST", "/v1/responses", body, login)
            ask(proxy.url, "POST", "/v1/responses", body, login[:2])
    assert [one.target for one in echo.requests] == ["/backend-api/codex/responses"]
    assert [one.target for one in api.requests] == ["/v1/responses"]
    assert b"old tool output cleared" in echo.requests[0].body


def test_headers_of_the_connection_are_not_passed_on(echo: Upstream, proxy: Proxy) -> None:
    headers = [("Connection", "close, X-Mine"), ("X-Mine", "1"), ("Te", "trailers"), ("Proxy-Authorization", "Basic x")]
    ask(proxy.url, "GET", "/v1/models", None, [*headers, ("X-Kept", "1"), ("x-recede", "off")])
    names = {name.lower() for name, _ in echo.requests[-1].headers}
    assert names - {"connection"} == {"host", "x-kept"}
    assert echo.requests[-1].named("host") == echo.url.partition("://")[2]


def test_each_header_of_the_connection_is_read(echo: Upstream, proxy: Proxy) -> None:
    headers = [("Connection", "X-One"), ("X-One", "1"), ("Connection", "close,x-two , X-Three"), ("X-Two", "2")]
    answer = b"HTTP/1.1 200 OK\r\nConnection: X-A\r\nX-A: 1\r\nConnection: close, X-B\r\nX-B: 1\r\nX-C: 1\r\n\r\n"
    echo.answer = lambda _: [answer]
    got = ask(proxy.url, "GET", "/v1/models", None, [*headers, ("X-Three", "3"), ("X-Kept", "1")])
    assert {name.lower() for name, _ in echo.requests[-1].headers} - {"connection"} == {"host", "x-kept"}
    assert got.named("x-c") == "1" and got.named("x-a") is got.named("x-b") is None


OTHER_BYTES = [b"X-Latin: caf\xe9", b"X-Odd: \xff\xfe \xc3\x28", b"X-Utf: caf\xc3\xa9", b"X-Both: \xc3\xa9\xe9"]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "HEAD"])
def test_bytes_of_headers_that_are_no_utf_8_pass_both_ways(method: str, echo: Upstream, proxy: Proxy) -> None:
    body = b"{}" if method == "POST" else b""
    head_of_answer = b"\r\n".join([b"HTTP/1.1 200 D'acc\xf4rd", *OTHER_BYTES, b"Connection: close"])
    answer = head_of_answer + b"\r\nContent-Length: 2\r\n\r\n" + (b"" if method == "HEAD" else b"ok")
    echo.answer = lambda _: [answer]
    for path in (b"/v1/messages", b"/v1/models"):
        lines = [b"%s %s HTTP/1.1" % (method.encode(), path), b"Host: localhost", *OTHER_BYTES, b"Connection: close"]
        got = exchange(proxy.url, b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", b""]) + body)
        sent = [f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in echo.requests[-1].headers]
        assert [line for line in sent if line.startswith(b"X-")] == OTHER_BYTES
        assert got.splitlines()[0] == b"HTTP/1.1 200 D'acc\xf4rd"
        assert [line for line in got.splitlines() if line.startswith(b"X-")] == OTHER_BYTES
        assert got.endswith(b"\r\n\r\n" if method == "HEAD" else b"\r\n\r\nok")


def exchange(url: str, *packets: bytes) -> bytes:
    """All that is answered to these packets, each sent on its own."""
    got = b""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 20) as client:
        with contextlib.suppress(ConnectionError):  # it closes on what is left
            for packet in packets:
                client.sendall(packet)
                time.sleep(0.05)
            while piece := client.recv(1 << 16):
                got += piece
    return got


EVENTS = (
    b'event: message_start\ndata: {"type": "message_start"}\n\n',
    b"event: ping\ndata: {}\n\n",
    b"data: [DONE]\n\n",
)
STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
)
ANSWERS = {
    "json": answer_of(b'{"a": 1}', "200 OK", "Content-Type: application/json", "anthropic-ratelimit-unified-5h: 0.4"),
    "events": STREAM + chunked(*EVENTS) + b"0\r\n\r\n",
    "gzip": answer_of(gzip.compress(b"{}" * 999), "200 OK", "Content-Encoding: gzip", "Content-Type: application/json"),
    "overloaded": answer_of(b'{"type": "error"}', "529 Overloaded", "retry-after: 7", "x-should-retry: true"),
    "unauthorized": answer_of(
        b"{}", "401 Unauthorized", "WWW-Authenticate: Bearer", "Set-Cookie: a=1", "Set-Cookie: b=2"
    ),
    "redirect": answer_of(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:1/elsewhere"),
    "no content": b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
    "not modified": b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n',
    "until it closes": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nsome text",
    "bare": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "own words": answer_of(b"x", "418 I am a teapot", "X-Latin: caf\u00e9", "Server: theirs", "Date: yesterday"),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_answers_arrive_as_they_were_given(name: str, method: str) -> None:
    with recording(lambda _: [ANSWERS[name]]) as upstream, proxying(upstream.url) as proxy:
        body = anthropic_body(2) if method == "POST" else None
        directly = ask(upstream.url, method, "/v1/messages", body, [JSON])
        through = ask(proxy.url, method, "/v1/messages", body, [JSON])
        assert directly.compared() == through.compared()


def test_an_answer_to_a_head_has_the_length_and_no_body() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 512\r\n\r\n"
    with recording(lambda _: [head]) as upstream, proxying(upstream.url) as proxy:
        assert ask(proxy.url, "HEAD", "/v1/files/x").named("content-length") == "512"


# What is masked


@pytest.mark.parametrize(
    ("path", "field", "history"),
    [
        ("/v1/messages", "messages", anthropic_messages(40)),
        ("/v1/chat/completions", "messages", chat_messages(40)),
        ("/v1/responses", "input", response_items(40)),
    ],
)
def test_a_masked_request_says_so(path: str, field: str, history: list[Any], echo: Upstream, proxy: Proxy) -> None:
    body = json.dumps({"model": "m", field: history}).encode()
    got = ask(proxy.url, "POST", path, body, [JSON, ("Content-Encoding", "identity")])
    sent = echo.requests[-1].body
    view = json.loads(sent)[field]
    assert len(sent) < len(body) / 2 and len(view) == len(history)
    assert recede.check_pairs(view) == recede.check_pairs(history)
    before, _, after = (got.named("x-recede") or "").removeprefix("masked; ").partition("->")
    assert int(before) == recede.count_chars(history) and int(after) == recede.count_chars(view)
    raw = ask(proxy.url, "POST", path, body, [JSON, ("x-recede", "off")])
    assert echo.requests[-1].body == body and raw.named("x-recede") is None


def test_a_compressed_request_that_is_masked_goes_plain(echo: Upstream, proxy: Proxy) -> None:
    body = anthropic_body()
    ask(proxy.url, "POST", "/v1/messages", gzip.compress(body), [JSON, ("content-encoding", "gzip")])
    request = echo.requests[-1]
    assert request.named("content-encoding") is None and b"old tool output cleared" in request.body
    assert request.named("content-length") == str(len(request.body))


def test_a_retry_sends_the_same_bytes(echo: Upstream, proxy: Proxy) -> None:
    for _ in range(3):
        ask(proxy.url, "POST", "/v1/messages", anthropic_body(), [JSON])
    assert len({request.body for request in echo.requests}) == 1


# Official clients


@pytest.fixture
def provider() -> Iterator[Server]:
    with serving() as running:
        yield running
        assert running.refusals == []


SAID = [text("Hello there"), calls(tool_call("run", {"a": [1, "é"]}), say="Now:"), text("cut", "max_tokens")]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_client_of_anthropic_gets_what_it_gets_without(provider: Server, is_streamed: bool) -> None:
    found = []
    for is_through in (False, True):
        provider.script[:] = [*SAID]
        provider._calls = 0
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(proxying(provider.url)).url if is_through else provider.url
            client = stack.enter_context(anthropic.Anthropic(api_key=KEY, base_url=url, max_retries=0))
            for turns in (1, 20, 40):
                request: Any = {"model": "claude-opus-5", "max_tokens": 9, "messages": anthropic_messages(turns)}
                if is_streamed:
                    with client.messages.stream(**request) as stream:
                        found.append([event.model_dump() for event in stream])
                else:
                    found.append([client.messages.create(**request).model_dump()])
    assert found[:3] == found[3:]
    sizes = [len(json.dumps(body)) for body in provider.requests]
    assert sizes[0] == sizes[3] and sizes[5] < sizes[2] / 2


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_client_of_openai_gets_what_it_gets_without(provider: Server, api: str, is_streamed: bool) -> None:
    found = []
    for is_through in (False, True):
        provider.script[:] = [text("Hello"), calls(tool_call("run", {"a": 1}))]
        provider._calls = 0
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(proxying(provider.url)).url if is_through else provider.url
            client = stack.enter_context(openai.OpenAI(api_key=KEY, base_url=url + "/v1", max_retries=0))
            for turns in (2, 40):
                answer: Any
                if api == "chat":
                    messages = chat_messages(turns)
                    answer = client.chat.completions.create(model="m", messages=messages, stream=is_streamed)
                else:
                    answer = client.responses.create(model="m", input=response_items(turns), stream=is_streamed)
                found.append([one.model_dump() for one in answer] if is_streamed else [answer.model_dump()])
    times = re.compile(r"'created(_at)?': [0-9.]+")
    assert times.sub("", str(found[:2])) == times.sub("", str(found[2:]))
    assert len(json.dumps(provider.requests[3])) < len(json.dumps(provider.requests[1])) / 2


def test_errors_and_retries_are_those_of_the_provider(provider: Server) -> None:
    headers = {"retry-after-ms": "5", "x-should-retry": "true"}
    provider.script[:] = [
        Failure(529, "overloaded_error", headers),
        Failure(429, "rate_limit_error", headers),
        text("ok"),
    ]
    with proxying(provider.url) as proxy, anthropic.Anthropic(api_key=KEY, base_url=proxy.url, max_retries=2) as client:
        request: Any = {"model": "claude-opus-5", "max_tokens": 9, "messages": anthropic_messages(40)}
        assert client.messages.create(**request).content[0].type == "text"
        assert provider.requests[0] == provider.requests[1] == provider.requests[2]
        provider.script[:] = [Failure(401, "authentication_error")]
        with pytest.raises(anthropic.AuthenticationError, match="authentication_error"):
            client.messages.create(**request)


def test_count_tokens_models_files_and_batches_of_clients(echo: Upstream, proxy: Proxy) -> None:
    echo.answer = lambda _: [
        answer_of(b'{"input_tokens": 5, "data": [], "id": "x"}', "200 OK", "Content-Type: application/json")
    ]
    with anthropic.Anthropic(api_key=KEY, base_url=proxy.url, max_retries=0) as client:
        counted = client.messages.count_tokens(model="claude-opus-5", messages=anthropic_messages(40))
        assert counted.input_tokens == 5 and b"old tool output cleared" in echo.requests[-1].body
        list(client.models.list())
        client.beta.files.upload(file=("a.txt", BINARY))
        assert BINARY in echo.requests[-1].body
        client.messages.batches.create(requests=[])
        assert echo.requests[-1].target == "/v1/messages/batches"
    assert stats(proxy)["totals"]["requests"] == 0


# Streams and faults


@contextlib.contextmanager
def streaming(url: str, body: bytes) -> Iterator[http.client.HTTPResponse]:
    """The answer to a request whose connection is closed with the block."""
    with contextlib.closing(http.client.HTTPConnection(url.partition("://")[2], timeout=20)) as connection:
        connection.request("POST", "/v1/messages", body, {"Content-Type": "application/json"})
        with connection.getresponse() as response:
            yield response


def test_events_are_not_held_back() -> None:
    go = threading.Event()

    def answer(_: Request) -> Answer:
        yield STREAM + chunked(EVENTS[0])
        yield go
        yield chunked(*EVENTS[1:]) + b"0\r\n\r\n"

    with recording(answer) as upstream, proxying(upstream.url) as proxy:
        with streaming(proxy.url, anthropic_body(1)) as response:
            assert response.read(len(EVENTS[0])) == EVENTS[0]
            go.set()
            assert response.read() == b"".join(EVENTS[1:])


def test_a_client_that_goes_cancels_the_request_upstream() -> None:
    never = threading.Event()

    def answer(_: Request) -> Answer:
        yield STREAM + chunked(EVENTS[0])
        yield never

    with recording(answer) as upstream, proxying(upstream.url) as proxy:
        with streaming(proxy.url, anthropic_body(1)) as response:
            response.read(5)
        assert upstream.gone.wait(30)


def test_a_client_that_goes_once_it_has_the_usage_is_counted() -> None:
    """Codex closes its connection at the event that ends an answer, before the end of the answer itself."""
    never = threading.Event()
    usage = b'data: {"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 2}}}\n\n'

    def answer(_: Request) -> Answer:
        yield STREAM + chunked(usage)
        yield never

    with recording(answer) as upstream, proxying(upstream.url) as proxy:
        with streaming(proxy.url, anthropic_body(1)) as response:
            assert response.read(len(usage)) == usage
        assert upstream.gone.wait(30)
    assert (proxy.totals.sums.requests, proxy.totals.sums.sent_tokens) == (1, 5)


def test_a_client_that_goes_before_the_answer_cancels_the_request_upstream() -> None:
    with recording(lambda _: [threading.Event()]) as upstream, proxying(upstream.url) as proxy:
        body = anthropic_body(1)
        with socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2]))) as client:
            head = f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            while not upstream.requests:
                time.sleep(0.01)
        assert upstream.gone.wait(30)


@pytest.mark.parametrize(
    "pieces", [[b""], [b"HTTP/1.1 200"], [b"\x00\xffgarbage\r\n\r\n"], [b"HTTP/1.1 abc OK\r\n\r\n"]]
)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1beta/models/g:generateContent"])
def test_an_upstream_that_answers_nothing_or_garbage_is_a_502(pieces: list[bytes], path: str) -> None:
    with recording(lambda _: pieces) as upstream, proxying(upstream.url) as proxy:
        got = ask(proxy.url, "POST", path, b'{"messages": []}', [JSON])
        error = json.loads(got.body)["error"]
        assert got.status == 502 and "recede proxy: 127.0.0.1" in error["message"]
        expected = {"/v1/messages": ("type", "api_error"), "/v1/chat/completions": ("type", "server_error")}
        key, value = expected.get(path, ("status", "UNAVAILABLE"))
        assert error[key] == value
        assert stats(proxy)["errors"] == 1


def test_an_upstream_that_cannot_be_reached_is_a_502_and_clients_understand_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with proxying(url) as proxy, anthropic.Anthropic(api_key=KEY, base_url=proxy.url, max_retries=0) as client:
        with pytest.raises(anthropic.InternalServerError, match=r"recede proxy: 127\.0\.0\.1 could not be reached"):
            client.messages.create(model="claude-opus-5", max_tokens=1, messages=[{"role": "user", "content": "Hi"}])


def test_an_upstream_that_stalls_is_a_504(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_SILENCE_SECONDS", 0.2)
    with recording(lambda _: [threading.Event()]) as upstream, proxying(upstream.url) as proxy:
        assert ask(proxy.url, "POST", "/v1/messages", anthropic_body(1), [JSON]).status == 504


@pytest.mark.parametrize(
    "first", [STREAM + chunked(EVENTS[0]), b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + b"x" * 90]
)
@pytest.mark.parametrize("stalls", [False, True])
def test_half_an_answer_does_not_look_whole(first: bytes, stalls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_SILENCE_SECONDS", 0.3)
    with (
        recording(lambda _: [first, threading.Event()] if stalls else [first]) as upstream,
        proxying(upstream.url) as proxy,
        streaming(proxy.url, anthropic_body(1)) as response,
        pytest.raises((http.client.IncompleteRead, ConnectionError)),
    ):
        response.read()


def test_what_does_not_end_is_broken_off_once_the_time_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream, a request without an answer, and a client that does not read: each waits for ever."""
    monkeypatch.setattr(server_module, "_SHUTDOWN_SECONDS", 0.3)
    never = threading.Event()

    def answer(request: Request) -> Answer:
        if request.target == "/v1/models":
            return [never]
        return [STREAM + chunked(EVENTS[0]), *([chunked(b"x" * (1 << 20))] * 64), never]

    # The clients stay until the proxy has ended.
    with contextlib.ExitStack() as stack, recording(answer) as upstream, proxying(upstream.url) as proxy:
        assert proxy._runner is not None
        proxy._runner._shutdown_timeout = 3_600.0  # that of the server is not what ends them
        for first in ("GET /v1/models HTTP/1.1", "GET /v1/files HTTP/1.1"):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])), 20))
            client.sendall(head("Authorization: Bearer x", first=first))
        while len(upstream.requests) < 2:
            time.sleep(0.01)


def test_websockets_are_refused_at_once(proxy: Proxy) -> None:
    headers = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Key", "x"),
        ("Sec-WebSocket-Version", "13"),
    ]
    got = ask(proxy.url, "GET", "/v1/responses", None, headers)
    assert got.status == 426 and got.named("connection") == "close"


def test_a_client_that_waits_for_100_gets_it(echo: Upstream, proxy: Proxy) -> None:
    body = anthropic_body(2)
    with socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])), 10) as client:
        head = "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(100).startswith(b"HTTP/1.1 100 Continue")
        client.sendall(body)
        assert client.recv(100).startswith(b"HTTP/1.1 200")
    assert echo.requests[-1].body == body and echo.requests[-1].named("expect") is None


def test_a_body_over_the_limit_is_a_413(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_BODY_BYTES", 10_000)
    got = ask(proxy.url, "POST", "/v1/messages", anthropic_body(3)[:10_001], [JSON])
    assert got.status == 413 and json.loads(got.body)["error"]["type"] == "request_too_large"


# Who may ask


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_another_host_is_refused(host: str, echo: Upstream, proxy: Proxy) -> None:
    for path in ("/v1/models", "/recede/", "/recede/stats"):
        assert ask(proxy.url, "GET", path, None, [("Host", host)]).status == 403
    assert echo.requests == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8787", "192.168.1.5:8787"])
def test_addresses_and_localhost_are_hosts(host: str, proxy: Proxy) -> None:
    assert ask(proxy.url, "GET", "/recede/stats", None, [("Host", host)]).status == 200


OTHER_HOST = """
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30).status)
    except OSError as error:
        print(getattr(error, "code", type(error.reason).__name__))
"""


@pytest.fixture
def other_host() -> Iterator[str]:
    """A network namespace that reaches this one as another host does, at 10.226.0.1; its name."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    name = f"rcd{os.getpid()}"
    with contextlib.ExitStack() as stack:
        for line in (
            f"netns add {name}",
            f"link add {name}a type veth peer name {name}b netns {name}",
            f"addr add 10.226.0.1/24 dev {name}a",
            f"link set {name}a up",
            f"-n {name} addr add 10.226.0.2/24 dev {name}b",
            f"-n {name} link set {name}b up",
        ):
            done = subprocess.run(["ip", *line.split()], capture_output=True, text=True)
            if "Operation not permitted" in done.stderr:
                pytest.skip("network namespaces are not permitted here")
            assert done.returncode == 0, done.stderr
            if line.startswith("netns"):
                stack.callback(subprocess.run, ["ip", "netns", "del", name])
        yield name


def test_another_host_reaches_only_an_address_that_was_given(other_host: str, echo: Upstream) -> None:
    with contextlib.ExitStack() as stack:
        hosts = ("127.0.0.1", "10.226.0.1", "0.0.0.0")
        ports = [stack.enter_context(proxying(echo.url, host=host)).url.rpartition(":")[2] for host in hosts]
        urls = [f"http://10.226.0.1:{port}/v1/models" for port in ports]
        command = ["ip", "netns", "exec", other_host, sys.executable, "-c", OTHER_HOST, *urls]
        assert subprocess.check_output(command, text=True).split() == ["ConnectionRefusedError", "200", "200"]
        with pytest.raises(ConnectionRefusedError):
            ask(f"http://127.0.0.1:{ports[1]}", "GET", "/v1/models")
    assert len(echo.requests) == 2


@pytest.mark.parametrize("path", ["/v1/models", "/recede/stats", "/recede/", "/", "/@x/v1/models"])
def test_a_page_of_another_site_is_refused_at_every_path(path: str, echo: Upstream, proxy: Proxy) -> None:
    for site in ("cross-site", "same-site", "Cross-Site "):
        for headers in ([("Sec-Fetch-Site", site)], [("sec-fetch-site", "none"), ("Sec-Fetch-Site", site)]):
            assert ask(proxy.url, "GET", path, None, headers).status == 403
    assert not echo.requests
    for site in ("none", "same-origin"):
        assert ask(proxy.url, "GET", "/v1/models", None, [("Sec-Fetch-Site", site)]).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_other_origins_are_refused(origin: str, echo: Upstream, proxy: Proxy) -> None:
    assert ask(proxy.url, "POST", "/v1/messages", b"{}", [("Origin", origin)]).status == 403
    assert ask(proxy.url, "POST", "/v1/messages", b"{}", [("Origin", proxy.url)]).status == 200
    assert len(echo.requests) == 1


def test_a_request_cannot_choose_its_upstream(echo: Upstream, proxy: Proxy) -> None:
    with recording(lambda _: [answer_of(b"elsewhere")]) as other:
        name = other.url.partition("://")[2]
        for target in (f"{other.url}/v1/models", f"//{name}/v1/models", f"/@{name}/v1", f"\\{name}"):
            ask(proxy.url, "GET", target)
            ask(proxy.url, "GET", "/v1/models", None, [("X-Forwarded-Host", name), ("X-Upstream", other.url)])
        assert other.requests == [] and len(echo.requests) >= 4


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "127.0.0.1:PORT/v1"])
def test_an_upstream_that_is_this_proxy_is_refused(name: str) -> None:
    port = free_port()
    url = "http://" + (name.replace("PORT", str(port)) if "PORT" in name else f"{name}:{port}")
    with pytest.raises(ValueError, match=r"requests to http://[a-z0-9.]+:\d+ would come back to this proxy"):
        asyncio.run(Proxy(recede.proxy.RequestMasker(), upstream=url, port=port).start())


def test_a_network_proxy_that_is_this_proxy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@127.0.0.1:{port}")
    with pytest.raises(ValueError, match=f"^requests to http://127.0.0.1:{port} would come back to this proxy"):
        asyncio.run(Proxy(recede.proxy.RequestMasker(), port=port).start())


def test_a_client_that_takes_it_for_a_network_proxy_is_told(echo: Upstream, proxy: Proxy) -> None:
    got = ask(proxy.url, "CONNECT", "api.anthropic.com:443", None, [("Host", "127.0.0.1")])
    assert got.status == 405 and b"set the base URL" in got.body and echo.requests == []


@pytest.mark.parametrize("size", [2, 3])
def test_the_last_proxy_of_a_ring_is_refused(size: int) -> None:
    port = free_port()
    with contextlib.ExitStack() as stack:
        last = stack.enter_context(proxying(f"http://127.0.0.1:{port}"))
        for _ in range(size - 2):
            last = stack.enter_context(proxying(last.url))
        with pytest.raises(ValueError, match=f"requests to {last.url} would come back to this proxy"):
            asyncio.run(Proxy(recede.proxy.RequestMasker(), upstream=last.url, port=port).start())
        assert ask(last.url, "POST", "/v1/messages", b"{}", [JSON]).status == 502  # that one does not listen


def test_proxies_in_a_row_pass_requests_on_as_they_are(echo: Upstream, proxy: Proxy) -> None:
    with proxying(proxy.url) as middle, proxying(middle.url) as first:
        for method, target, body, headers in UNTOUCHED:
            ask(echo.url, method, target, body, headers)
            ask(first.url, method, target, body, headers)
            one, two = echo.requests[-2:]
            assert one.compared() == two.compared(), (method, target)


def test_proxies_that_take_a_provider_each_are_no_ring(echo: Upstream) -> None:
    port = free_port()
    with proxying(None, upstreams={"openai": f"http://127.0.0.1:{port}", "anthropic": echo.url}) as one:
        with proxying(None, upstreams={"anthropic": one.url, "openai": echo.url}, port=port) as other:
            for proxy in (one, other):
                for path in ("/v1/messages", "/v1/chat/completions"):
                    assert ask(proxy.url, "POST", path, b"{}", [JSON]).status == 200


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ftp://x", "'ftp://x'"), ("api.anthropic.com", "'api.anthropic.com'"), ("http://", "'http://'"),
        ("https://u:p@x", "no user and password"), ("https://x/?a=p", "without a query, such as https://x"),
        ("x.example/v1?key=p", "'x.example/v1'"), ("u:p@x.example#p", "'x.example'"), ("http://[p?p", "'http://[p'"),
    ],
)  # fmt: skip
def test_what_is_no_upstream_is_refused(url: str, shown: str) -> None:
    with pytest.raises(ValueError, match="an upstream must") as caught:
        Proxy(recede.proxy.RequestMasker(), upstream=url)
    assert shown in str(caught.value)


BEARER = ("authorization", "Bearer sk")
WHOSE: list[tuple[str, str, list[tuple[str, str]], str | None]] = [
    ("POST", "/v1/messages", [], "anthropic"),
    ("POST", "/v1/messages", [BEARER], "anthropic"),
    ("POST", "/v1/models", [("anthropic-version", "1")], "anthropic"),
    ("GET", "/v1/models", [("Anthropic-Beta", "1"), BEARER], "anthropic"),
    ("GET", "/v1/files/f/content", [("X-Api-Key", KEY)], "anthropic"),
    ("POST", "/v1/chat/completions", [("x-api-key", KEY)], "anthropic"),
    ("POST", "/messages", [("x-api-key", KEY)], "anthropic"),
    ("HEAD", "/", [], "anthropic"),
    ("GET", "/api/hello", [], "anthropic"),
    ("GET", "/v1/models", [BEARER], "openai"),
    ("POST", "/v1/embeddings", [("AUTHORIZATION", "bearer sk")], "openai"),
    ("POST", "/v1/responses", [], "openai"),
    ("POST", "/chat/completions", [BEARER], "openai"),
    ("POST", "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", [], "gemini"),
    ("GET", "/v1beta/models", [], "gemini"),
    ("GET", "/v1beta/models", [BEARER], "gemini"),
    ("POST", "/upload/v1beta/files", [], "gemini"),
    ("GET", "/v1/models?key=AIza", [], "gemini"),
    ("GET", "/v1/models?pageSize=3&key=AIza", [BEARER], "gemini"),
    ("POST", "/v1beta/openai/chat/completions", [BEARER], "gemini"),
    ("POST", "/v1/chat/completions?key=AIza", [], "gemini"),
    ("GET", "/v1/models", [("x-goog-api-key", "AIza")], "gemini"),
    ("GET", "/v1/models", [("X-Goog-User-Project", "p"), BEARER], "gemini"),
    ("GET", "/v1/models", [], None),
    ("GET", "/v1/models", [("Authorization", "Basic QQ==")], None),
    ("GET", "/v1/models?keys=1&monkey=2", [], None),
    ("GET", "/models", [BEARER], None),
    ("GET", "/", [], None),
    ("HEAD", "/x", [], None),
    ("POST", "/api/oauth/token", [BEARER], None),
    ("POST", "/openai/deployments/d/completions", [("api-key", KEY)], None),
    ("GET", "/v1beta/models", [("x-api-key", KEY)], None),
    ("POST", "/v1/messages?key=AIza", [("anthropic-version", "1")], None),
    ("GET", "/v1/models", [("x-goog-api-key", "AIza"), ("x-api-key", KEY)], None),
    ("POST", "/v1/messages", [("authorization", "Bearer sk-ant-oat01-x")], "anthropic"),
    ("POST", "/v1beta/openai/chat/completions", [("authorization", "Bearer AIzax")], "gemini"),
    *(
        ("POST", path, [("Authorization", f"Bearer {key}x")], None)
        for key in ("xai-", "sk-or-", "gsk_", "sk-ant-", "AIza")
        for path in ("/v1/chat/completions", "/v1/responses", "/chat/completions")
    ),
    ("POST", "/v1/messages", [("authorization", "bearer  sk-or-v1-x")], None),
    ("GET", "/v1/models", [("authorization", "Bearer xai-x")], None),
    ("POST", "/v1/chat/completions", [("api-key", KEY)], None),
    ("POST", "/v1/messages", [("x-api-key", "sk-or-v1-x")], None),
    ("POST", "/v1/messages", [("x-api-key", "sk-proj-x")], None),
    ("POST", "/v1/messages", [BEARER, ("x-api-key", "xai-x")], None),
    ("GET", "/v1/models", [("x-goog-api-key", "gsk_x")], None),
    ("POST", "/v1beta/models/gemini-3-pro:generateContent?alt=sse&key=sk-ant-x", [], None),
    ("POST", "/v1/messages", [("authorization", "Bearer sk-proj-x")], None),
    ("POST", "/v1/responses", [("authorization", "Bearer sk-proj-x")], "openai"),
]


@contextlib.contextmanager
def three_providers(are_usual: bool = True, **options: Any) -> Iterator[tuple[Proxy, dict[str, Upstream]]]:
    """A proxy between three providers: as if they had their usual addresses, or those that were given."""
    with contextlib.ExitStack() as stack:
        ends = {name: stack.enter_context(recording(lambda _: [answer_of(b"")])) for name in UPSTREAMS}
        urls: Any = {name: end.url for name, end in ends.items()}
        if are_usual:
            stack.enter_context(pytest.MonkeyPatch.context()).setattr(server_module, "UPSTREAMS", urls)
        yield stack.enter_context(proxying(None, upstreams=urls, **options)), ends


def _versioned(target: str) -> str:
    return "/v1/messages" if target == "/messages" else target


def test_a_request_goes_to_whom_its_key_is_for_and_to_no_one_else(caplog: pytest.LogCaptureFixture) -> None:
    with three_providers() as (proxy, ends):
        for method, target, headers, whose in WHOSE:
            got = ask(proxy.url, method, target, b"{}" if method == "POST" else None, headers)
            found = {name: [one.target for one in end.requests] for name, end in ends.items()}
            expected = {name: [_versioned(target)] if name == whose else [] for name in ends}
            assert found == expected, (method, target, headers)
            assert got.status == (400 if whose is None else 200)
            if whose is None and method != "HEAD":
                assert re.search("identify its provider|its key is", json.loads(got.body)["error"]["message"])
            for end in ends.values():
                end.requests.clear()
        assert stats(proxy)["errors"] == sum(whose is None for *_, whose in WHOSE)
    assert "is refused" in caplog.text and KEY not in caplog.text and "AIza" not in caplog.text


MODELS: list[tuple[str, str, str, str | None]] = [
    ("/v1/messages", '{"model": "deepseek-v4-pro"}', "deepseek", "https://api.deepseek.com/anthropic"),
    ("/messages?beta=true", '{"model": "glm-5.3[1m]"}', "zai", "https://api.z.ai/api/anthropic"),
    ("/v1/messages/count_tokens", '{"model": "MiniMax-M3"}', "minimax", "https://api.minimax.io/anthropic"),
    ("/v1/chat/completions", '{"messages": [], "model": "qwen4-max"}', "alibaba", "https://dashscope.aliyuncs.com/c"),
    ("/chat/completions", '{"model": "mistral-large-4"}', "mistral", "https://api.mistral.ai/v1"),
    ("/v1/responses", '{"model": "grok-4.7", "previous_response_id": "r"}', "xai", "https://api.x.ai/v1"),
    ("/v1/responses", '{"model": "claude-opus-5"}', "anthropic", "`recede proxy --upstream URL -- claude`"),
    ("/v1beta/models/kimi-k3:generateContent", "{}", "moonshot", "`recede proxy --upstream URL -- claude`"),
    ("/v1beta/models/gpt-5:generateContent", "{}", "openai", "`recede proxy --upstream URL -- claude`"),
    ("/v1/messages", '{"model": "claude-opus-5"}', "anthropic", None),
    ("/v1/messages", '{"model": "my-own"}', "", None),
    ("/v1/messages", "{}", "", None),
    ("/v1/messages", '{"model": "deepseek', "", None),
    ("/v1/messages", '{"model": 3}', "", None),
    ("/v1/responses", '{"model": "gpt-6.2-sol"}', "openai", None),
    ("/v1/embeddings", '{"model": "qwen4-max"}', "", None),
]


@pytest.mark.parametrize("is_off", [False, True])
def test_a_model_of_another_maker_does_not_go_to_a_default_upstream(is_off: bool) -> None:
    off = [("X-Recede", "off")] if is_off else []
    with three_providers(command="claude") as (proxy, ends):
        for path, body, maker, told in MODELS:
            for packed, more in ((body.encode(), []), (gzip.compress(body.encode()), [("Content-Encoding", "gzip")])):
                got = ask(proxy.url, "POST", path, packed, [JSON, BEARER, *more, *off])
                sent = [request for end in ends.values() for request in end.requests]
                assert len(sent) == (told is None) and got.status == (200 if told is None else 400), (path, body)
                if told is not None:
                    error = json.loads(got.body)
                    said = error["error"]["message"]
                    assert told in said and TITLES[maker] in said
                    assert error.get("type", "error") == "error" and ("type" in error) == ("messages" in path)
                for end in ends.values():
                    end.requests.clear()


def test_a_model_of_another_maker_goes_where_somebody_said(echo: Upstream) -> None:
    with three_providers(are_usual=False) as (proxy, ends):
        for path, body, _, _ in MODELS:
            assert ask(proxy.url, "POST", path, body.encode(), [JSON, BEARER]).status == 200
        assert sum(len(end.requests) for end in ends.values()) == len(MODELS)


def test_a_refused_request_is_not_noted() -> None:
    """So a session that begins at the right upstream later has no pause that never was."""
    masker = recede.proxy.RequestMasker(keep=10)
    body = json.dumps({"model": "deepseek-v4-pro", "messages": anthropic_messages(3)}).encode()
    with three_providers(masker=masker) as (proxy, _):
        assert ask(proxy.url, "POST", "/v1/messages", body, [JSON]).status == 400
    assert len(masker._ledger) == 0


def test_a_key_of_another_maker_does_not_go_to_a_host_of_the_table() -> None:
    """Also where somebody gave its address."""
    with proxying("https://api.deepseek.com/anthropic", command="npx claude") as proxy:
        for target in ("/v1/messages", "/v1/models", "/anything"):
            got = ask(proxy.url, "POST", target, b"{}", [JSON, ("x-api-key", KEY)])
            assert got.status == 400, target
            assert KEY not in got.body.decode()
        assert "`recede proxy --upstream https://api.anthropic.com -- npx claude`" in got.body.decode()
        assert stats(proxy)["errors"] == 3


def test_a_key_of_another_company_goes_where_a_variable_says() -> None:
    with three_providers(are_usual=False) as (proxy, ends):
        for path, whose in (("/v1/chat/completions", "openai"), ("/v1/messages", "anthropic")):
            for key in ("xai-x", "sk-or-x", "gsk_x", "sk-ant-x", "AIzax"):
                assert ask(proxy.url, "POST", path, b"{}", [("Authorization", f"Bearer {key}")]).status == 200
            assert {name: len(end.requests) for name, end in ends.items() if end.requests} == {whose: 5}
            ends[whose].requests.clear()


def test_what_cannot_be_told_goes_where_the_requests_of_the_command_go() -> None:
    unknown = ("POST", "/api/oauth/token", b"", [BEARER])
    for usual, first, whose in (
        ("anthropic", [], "anthropic"),
        (None, [], None),
        (None, ["/v1/messages"], "anthropic"),
        (None, ["/v1/responses", "/v1/responses"], "openai"),
        (None, ["/v1/messages", "/v1/responses"], None),
        ("anthropic", ["/v1/responses"], None),
    ):
        agent = {"anthropic": AGENTS["claude"], None: None}[usual]
        with three_providers(of_command=True, agent=agent) as (proxy, ends):
            for target in first:
                ask(proxy.url, "POST", target, b"{}")
            assert ask(proxy.url, *unknown).status == (400 if whose is None else 200)
            asked = {name for name, end in ends.items() for one in end.requests if one.target == "/api/oauth/token"}
            assert asked == ({whose} - {None})
    with three_providers() as (proxy, ends):  # without a command, whoever reaches it asks
        ask(proxy.url, "POST", "/v1/messages", b"{}")
        assert ask(proxy.url, *unknown).status == 400


def test_with_one_upstream_nothing_has_to_be_told(echo: Upstream) -> None:
    with proxying(echo.url) as proxy:
        for method, target, headers, _ in WHOSE:
            assert ask(proxy.url, method, target, None, headers).status == 200
        assert [request.target for request in echo.requests] == [_versioned(target) for _, target, *_ in WHOSE]


def test_no_key_and_no_body_is_logged_or_shown(echo: Upstream, proxy: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    headers = [JSON, ("x-api-key", KEY), ("Authorization", f"Bearer {KEY}")]
    shown = ""
    for body in (anthropic_body(40), b'{"messages": ["' + KEY.encode(), anthropic_body(1, note=KEY)):
        for target in ("/v1/messages", f"/v1beta/models/g:generateContent?key={KEY}", f"/v1/models?key={KEY}"):
            ask(proxy.url, "POST", target, body, headers)
    echo.answer = lambda _: [b"\x00" + KEY.encode()]
    shown += ask(proxy.url, "POST", f"/v1/messages?key={KEY}", anthropic_body(3), headers).body.decode()
    for page in ("", "stats", "metrics"):
        shown += ask(proxy.url, "GET", f"/recede/{page}").body.decode()
    assert len(caplog.records) > 8
    assert KEY not in shown + caplog.text and "xxxx" not in shown + caplog.text


def head(*lines: str, first: str = "POST /v1/messages HTTP/1.1") -> bytes:
    return "\r\n".join([first, "Host: localhost", f"X-Api-Key: {KEY}", *lines, "", ""]).encode()


CHUNKED, LENGTH, SECOND = "Transfer-Encoding: chunked", "Content-Length: 0", head(first="GET /second HTTP/1.1")
NO_REQUESTS = {
    "length and chunks": head("Content-Length: 5", CHUNKED) + b"0\r\n\r\n" + SECOND,
    "chunks and length": head(CHUNKED, "Content-Length: 60") + b"0\r\n\r\n" + SECOND,
    "two lengths": head(LENGTH, f"Content-Length: {len(SECOND)}") + SECOND,
    "a list of lengths": head(f"Content-Length: 0, {len(SECOND)}") + SECOND,
    "a length with a sign": head("Content-Length: +0") + SECOND,
    "a space after a name": head("Transfer-Encoding : chunked", LENGTH) + b"0\r\n\r\n" + SECOND,
    "another coding last": head("Transfer-Encoding: chunked, identity") + b"0\r\n\r\n" + SECOND,
    "an odd coding": head("Transfer-Encoding: \x0bchunked", LENGTH) + b"0\r\n\r\n" + SECOND,
    "two codings": head(CHUNKED, "Transfer-Encoding: identity") + b"0\r\n\r\n" + SECOND,
    "a folded header": head("X: a\r\n b", LENGTH) + SECOND,
    "line feeds": head(LENGTH).replace(b"\r\n", b"\n") + SECOND,
    "a carriage return": head("X: a\rContent-Length: 3", LENGTH) + SECOND,
    "a zero byte after a key": head(f"Authorization: Bearer {KEY}\x00", LENGTH) + SECOND,
    "an odd size of a chunk": head(CHUNKED) + b"0x5\r\n" + KEY.encode() + b"\r\n0\r\n\r\n" + SECOND,
    "a chunk with a line feed": head(CHUNKED) + b"2;\n" + KEY.encode() + b"\r\nab\r\n0\r\n\r\n" + SECOND,
    "a longer chunk": head(CHUNKED) + b"2\r\n{}" + KEY.encode() + b"\r\n0\r\n\r\n" + SECOND,
    "two hosts": head("Host: evil.example", LENGTH) + SECOND,
    "a space in the path": head(LENGTH, first=f"POST /v1/ {KEY} HTTP/1.1") + SECOND,
    "a huge header": head("X: " + KEY + "a" * 200_000) + SECOND,
    "many headers": head(*[f"X{number}: {KEY}" for number in range(5_000)]) + SECOND,
    "a huge line": head(first=f"GET /{KEY}{'a' * 200_000} HTTP/1.1") + SECOND,
}


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_what_is_no_request_is_refused_and_is_not_two(
    name: str, echo: Upstream, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])), 20) as client:
        got = b""
        with contextlib.suppress(ConnectionError):  # it closes on what is left
            client.sendall(NO_REQUESTS[name])
            while piece := client.recv(1 << 16):
                got += piece
    assert not got or b" 400 " in got.partition(b"\r\n")[0], got
    assert echo.requests == []
    assert KEY not in caplog.text + got.decode() and len(caplog.text) < 1_000


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/files"])  # a body that is read whole, and one that passes
@pytest.mark.parametrize("rest", [b"zz\r\n", b"5\r\nabcdefgh\r\n", b"-1\r\n", b"\r\n\r\n", SECOND, b"\xff" * 99])
@pytest.mark.parametrize("pieces", [1, 3])
def test_a_body_whose_chunks_break_later_is_answered(
    path: str, rest: bytes, pieces: int, echo: Upstream, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    first = head(CHUNKED, first=f"POST {path} HTTP/1.1")
    got = exchange(proxy.url, first, *[b"2\r\n{}\r\n"] * pieces, rest)
    assert got.startswith(b"HTTP/1.1 400 ") and b"this is no request of HTTP" in got and got.count(b"HTTP/1.1") == 1
    assert echo.requests == [] and KEY not in caplog.text + got.decode()


def test_a_body_that_breaks_behind_another_request_is_answered(echo: Upstream, proxy: Proxy) -> None:
    go = threading.Event()
    echo.answer = lambda _: [go, answer_of(b"first")]
    second = head(CHUNKED, first="POST /v1/messages HTTP/1.1") + b"2\r\n{}\r\n"
    threading.Timer(0.5, go.set).start()
    got = exchange(proxy.url, head(first="GET /v1/models HTTP/1.1"), second, b"zz\r\n")
    assert got.startswith(b"HTTP/1.1 200 ") and got.count(b"HTTP/1.1 400 ") == 1 and b"first" in got
    assert [request.target for request in echo.requests] == ["/v1/models"]


# Figures


def with_usage(reads: int, writes: int, model: str = "claude-opus-5") -> bytes:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": reads,
        "cache_creation_input_tokens": writes,
        "output_tokens": 1,
    }
    start = {"type": "message_start", "message": {"model": model, "usage": usage}}
    delta = {"type": "message_delta", "usage": {"output_tokens": 100}}
    events = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in (start, delta)]
    return STREAM + chunked(events[0][:40], events[0][40:] + events[1]) + b"0\r\n\r\n"


def test_figures_are_those_of_the_usage_that_was_reported(echo: Upstream, proxy: Proxy) -> None:
    echo.answer = lambda _: [with_usage(0, 10_000)]
    ask(proxy.url, "POST", "/v1/messages", anthropic_body(39), [JSON])
    echo.answer = lambda _: [with_usage(10_000, 1_000)]
    got = ask(proxy.url, "POST", "/v1/messages", anthropic_body(40), [JSON])
    before, _, after = (got.named("x-recede") or "").removeprefix("masked; ").partition("->")
    found = stats(proxy)
    (conversation,) = found["conversations"]
    totals = found["totals"]
    assert totals["requests"] == 2 and totals["sent_tokens"] == 10_003 + 11_003
    assert totals["cached_tokens"] == 10_000 and totals["written_tokens"] == 11_000
    assert totals["output_tokens"] == 200 and conversation["model"] == "claude-opus-5"
    assert conversation["points"][1][1:] == [11_003 + (int(before) - int(after)) // 4, 11_003, 10_000]
    prices = recede.costs.MODELS["claude-opus-5"].prices
    paid = 6 * prices.input + 11_000 * prices.write + 10_000 * prices.cached + 200 * prices.output
    assert totals["paid_usd"] == pytest.approx(paid / 1e6, abs=2e-6)
    assert totals["raw_usd"] > totals["paid_usd"] and totals["without_usage"] == 0


@pytest.mark.parametrize(
    ("path", "body", "answer", "sent", "cached"),
    [
        (
            "/v1/chat/completions", {"messages": chat_messages(4)},
            {"model": "gpt-5.4", "usage": {"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 512}}},
            900, 512,
        ),
        (
            "/v1/responses", {"input": response_items(4)},
            {"type": "response.completed", "response": {"model": "gpt-5.4", "usage": {"input_tokens": 900}}}, 900, 0,
        ),
        (
            "/v1beta/models/g:generateContent", {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
            {"modelVersion": "gemini-3-pro", "usageMetadata": {"promptTokenCount": 70, "cachedContentTokenCount": 30}},
            70, 30,
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_usage_is_read_from_each_provider(
    path: str, body: Bodies, answer: Bodies, sent: int, cached: int, encoding: str, echo: Upstream, proxy: Proxy
) -> None:
    data = json.dumps(answer).encode()
    data = gzip.compress(data) if encoding == "gzip" else data
    echo.answer = lambda _: [
        answer_of(data, "200 OK", "Content-Type: application/json", f"Content-Encoding: {encoding}")
    ]
    ask(proxy.url, "POST", path, json.dumps(body).encode(), [JSON])
    totals = stats(proxy)["totals"]
    assert (totals["sent_tokens"], totals["cached_tokens"], totals["without_usage"]) == (sent, cached, 0)


def test_conversations_are_shown_apart_and_metrics_are_theirs(echo: Upstream, proxy: Proxy) -> None:
    for turns in (0, 0, 1, 2):
        for name, said in ((b"toolu_a", b"Go."), (b"toolu_b", b"Go and find the bug.")):
            body = anthropic_body(turns).replace(b"toolu_x", name).replace(b"Go.", said)
            ask(proxy.url, "POST", "/v1/messages", body, [JSON])
    found = stats(proxy)
    assert sorted(one["requests"] for one in found["conversations"]) == [4, 4]
    metrics = ask(proxy.url, "GET", "/recede/metrics").body.decode()
    assert "recede_requests_total 8\n" in metrics and "# TYPE recede_saved_tokens gauge\n" in metrics


def test_a_subscription_has_tokens_and_shares_and_no_dollars(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its host, whose keys look like any, or by its login; a conversation at the maker's usual host has dollars."""
    usage = {"input_tokens": 50_000, "output_tokens": 10}
    answer = json.dumps({"model": "claude-opus-5", "usage": usage}).encode()
    plans = {"https://api.kimi.com/coding": [], "https://api.z.ai/api/coding": []}
    with recording(lambda _: [answer_of(answer, "200 OK", "Content-Type: application/json")]) as end:
        monkeypatch.setattr(Target, "url_of", lambda _, path: end.url + path)
        for url, headers in [*plans.items(), (end.url, [("Authorization", "Bearer sk-ant-oat01-x")]), (end.url, None)]:
            with proxying(url, recede.proxy.RequestMasker(keep=2, boundary="sliding")) as proxy:
                ask(proxy.url, "POST", "/v1/messages", anthropic_body(12), [JSON, BEARER, *(headers or [])])
                shown, said = stats(proxy)["totals"], proxy.totals.sentence()
            assert shown["raw_tokens"] > shown["sent_tokens"] > 0, url
            has_dollars = headers is None
            assert (shown["raw_usd"] > 0, "$" in said, "no dollars" in said) == (
                has_dollars,
                has_dollars,
                not has_dollars,
            )
            assert "%" in said and proxy.totals.has_saved == (has_dollars is False or shown["saved_usd"] > 0)


def test_observing_sends_raw_and_estimates(echo: Upstream) -> None:
    echo.answer = lambda _: [with_usage(0, 45_000)]
    with proxying(echo.url, observe=True) as proxy:
        body = anthropic_body(40)
        got = ask(proxy.url, "POST", "/v1/messages", body, [JSON])
        assert echo.requests[-1].body == body and got.named("x-recede") is None
        packed = gzip.compress(body)
        ask(proxy.url, "POST", "/v1/messages", packed, [JSON, ("Content-Encoding", "gzip")])
        assert echo.requests[-1].body == packed and echo.requests[-1].named("content-encoding") == "gzip"
        totals = stats(proxy)["totals"]
        assert totals["raw_tokens"] == 2 * 45_003 and totals["sent_tokens"] < 60_000
        assert stats(proxy)["mode"] == "observe" and "would have saved" in proxy.totals.sentence()


# What docs/proxy.md shows


def shown(first_line: str) -> dict[str, Any]:
    """The names that the block of the page has in which this line is."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "proxy.md").read_text(), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if first_line in block]
    names: dict[str, Any] = {}
    exec(block, names)
    return names


def test_the_asgi_middleware_of_the_page_masks() -> None:
    got: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        got.extend([scope, await receive(), await receive()])

    whole = gzip.compress(anthropic_body(40))
    later = {"type": "http.disconnect"}
    pieces = [
        {"type": "http.request", "body": whole[:500], "more_body": True},
        {"type": "http.request", "body": whole[500:], "more_body": False},
        later,
    ]

    async def receive() -> Any:
        return pieces.pop(0)

    headers = [(b"content-encoding", b"gzip"), (b"content-length", b"%d" % len(whole)), (b"x-api-key", b"k")]
    scope = {"type": "http", "method": "POST", "path": "/v1/messages", "headers": headers}
    asyncio.run(shown("class Masked:")["Masked"](app, keep=10)(scope, receive, None))
    found, request, after = got
    assert b"old tool output cleared" in request["body"] and after is later
    assert found["headers"] == [(b"x-api-key", b"k"), (b"content-length", b"%d" % len(request["body"]))]


def test_the_addon_of_the_page_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tflow = pytest.importorskip("mitmproxy.test.tflow", reason="mitmproxy is not installed")
    monkeypatch.chdir(tmp_path)
    flow = tflow.tflow()
    flow.request.method, flow.request.path = "POST", "/v1/messages"
    flow.request.headers["content-encoding"] = "gzip"
    flow.request.raw_content = gzip.compress(anthropic_body(40))
    shown("class Recede:")["addons"][0].request(flow)
    assert b"old tool output cleared" in flow.request.raw_content and "content-encoding" not in flow.request.headers
    assert flow.request.headers["content-length"] == str(len(flow.request.raw_content))
