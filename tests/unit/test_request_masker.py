"""Request bodies of every provider through a RequestMasker: what is masked, marked, left alone; pauses; the ledger."""

from __future__ import annotations

import copy
import gzip
import json
import logging
import os
import pickle
import re
import resource
import signal
import struct
import sys
import threading
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import recede
from recede import StoreError
from recede._agents import AGENTS, USER_TOOLS
from recede._encodable import warn_once
from recede.proxy import ColdRequests, MaskedRequest, RequestMasker
from support import assistant, call, result, user

Point = tuple[int, bytes]
MINUTE = 60.0
MARK = {"type": "ephemeral"}


def anthropic(turns: int, chars: int = 4_000, mark: dict[str, str] | None = MARK, **fields: Any) -> bytes:
    """A body as Claude Code sends it, after so many turns."""
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]
    for number in range(turns):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "run", "input": {}}
        messages.append({"role": "assistant", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x" * chars}
        messages.append({"role": "user", "content": [result]})
    if mark is not None:
        for message in messages[-1:-4:-2]:
            message["content"][-1]["cache_control"] = mark
    system = [{"type": "text", "text": "You are an agent.", **({"cache_control": mark} if mark else {})}]
    return json.dumps({"model": "claude-sonnet-4-5", "system": system, **fields, "messages": messages}).encode()


def chat(turns: int, chars: int = 4_000, key: str = "messages") -> bytes:
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    for number in range(turns):
        call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(number), "content": "x" * chars})
    return json.dumps({"model": "gpt-5.4", key: messages}).encode()


def responses(turns: int, chars: int = 4_000) -> bytes:
    items: list[Any] = [{"role": "user", "content": "Go."}]
    for number in range(turns):
        items.append({"type": "function_call", "call_id": str(number), "name": "run", "arguments": "{}"})
        items.append({"type": "function_call_output", "call_id": str(number), "output": "x" * chars})
    return json.dumps({"model": "gpt-5.3-codex", "input": items, "store": False}).encode()


def gemini(turns: int, chars: int = 4_000) -> bytes:
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Go."}]}]
    for _ in range(turns):
        call = {"functionCall": {"name": "run", "args": {}}, "thoughtSignature": "c2ln"}
        contents.append({"role": "model", "parts": [call]})
        response = {"name": "run", "response": {"output": "x" * chars}}
        contents.append({"role": "user", "parts": [{"functionResponse": response}]})
    return json.dumps({"contents": contents}).encode()


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def mask(masker: RequestMasker, body: bytes, path: str = "/v1/messages", **headers: str) -> MaskedRequest:
    return masker.mask("POST", path, {name.replace("_", "-"): value for name, value in headers.items()}, body)


BODIES = [
    ("/v1/messages", anthropic, "anthropic"),
    ("/v1/messages?beta=true", anthropic, "anthropic"),
    ("/v1/messages/count_tokens", anthropic, "anthropic"),
    ("/v1/chat/completions", chat, "openai"),
    ("/api/v1/chat/completions", chat, "openai"),
    ("/v1/responses", responses, "openai"),
    ("/backend-api/codex/responses", responses, "openai"),
    ("/v1/responses/input_tokens", responses, "openai"),
    ("/v1/responses/compact", responses, "openai"),
    ("/v1beta/openai/chat/completions", chat, "gemini"),
    ("/v1beta/models/gemini-2.5-pro:generateContent", gemini, "gemini"),
    ("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse&key=secret", gemini, "gemini"),
]


@pytest.mark.parametrize(("path", "body_of", "provider"), BODIES)
def test_bodies_of_each_path_are_masked(path: str, body_of: Any, provider: str) -> None:
    body = body_of(40)
    done = mask(RequestMasker(keep=10), body, path)
    assert (done.provider, done.fault, done.changed) == (provider, None, True)
    assert done.chars_before - done.chars_after > 40_000
    view = done.body.decode()
    raw = json.loads(body)
    history = next(raw[key] for key in ("messages", "input", "contents") if key in raw)
    sent = json.loads(view)
    assert {**sent, **dict.fromkeys(("messages", "input", "contents"))} == {
        **raw,
        **dict.fromkeys(("messages", "input", "contents")),
    }
    views = next(sent[key] for key in ("messages", "input", "contents") if key in sent)
    recede_pairs = recede.check_pairs(views)
    assert len(views) == len(history) and recede_pairs == recede.check_pairs(history)
    assert view.count("old tool output cleared") == done.masked_count > 0
    assert view.count("x" * 4_000) == 40 - done.masked_count >= 10
    assert view.count("c2ln") == body.decode().count("c2ln")


def test_a_model_without_prices_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    masker = RequestMasker()
    for body in (chat(3), chat(4), anthropic(3)):
        named = {**json.loads(body), "model": "gpt-of-\ntomorrow"}
        mask(masker, json.dumps(named).encode(), "/v1/chat/completions")
    mask(masker, json.dumps({**json.loads(chat(3)), "model": "gpt-5.4"}).encode(), "/v1/chat/completions")
    said = "the prices of 'gpt-of-\\ntomorrow' are not known: its cache is taken to cost what is usual for openai"
    assert caplog.messages == [said]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/messages"),
        ("PUT", "/v1/messages"),
        ("POST", "/v1/messages/batches"),
        ("POST", "/v1/threads/t_1/messages"),
        ("POST", "/v1/files"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1beta/models/gemini-2.5-pro:countTokens"),
        ("GET", "/v1/responses/resp_1"),
    ],
)
def test_other_requests_are_untouched(method: str, path: str) -> None:
    body = anthropic(40)
    done = RequestMasker().mask(method, path, {}, body)
    assert done.body is body and done.provider is None and not done.changed


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": 1}', b"\xff\xfe", b'{"messages": []} x', b"null"])
def test_a_body_that_cannot_be_read_is_sent_as_it_came(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    done = mask(RequestMasker(), body, authorization="Bearer secret")
    assert done.body is body and not done.changed
    if body != b"[]":
        assert done.fault
        assert "secret" not in caplog.text and len(caplog.records) == 1


def test_our_own_fault_sends_the_body_as_it_came(
    caplog: pytest.LogCaptureFixture,
) -> None:
    masker = RequestMasker(clock=lambda: 1 / 0)
    body = anthropic(40)
    done = mask(masker, body)
    assert done.body is body and done.fault == "ZeroDivisionError"
    assert [record.getMessage() for record in caplog.records] == [
        "a request to anthropic is sent as it came: ZeroDivisionError"
    ]


def test_the_header_x_recede_off_sends_a_request_raw() -> None:
    body = anthropic(40)
    assert mask(RequestMasker(), body, X_Recede="off").body is body
    assert mask(RequestMasker(), body, X_Recede="on").changed


def test_headers_may_be_pairs() -> None:
    body = anthropic(40)
    assert RequestMasker().mask("POST", "/v1/messages", [("X-Recede", "OFF")], body).body is body


KEPT = {
    "/v1/messages": [{"thread": {"type": "create"}}, {"thread": {"id": "thread_1"}}],
    "/v1/messages/count_tokens": [{"thread": {"id": "thread_1"}}],
    "/v1/responses": [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"conversation": {"id": "c"}}],
}


@pytest.mark.parametrize("path", KEPT)
def test_a_history_that_the_provider_keeps_is_sent_as_it_is_and_not_noted(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    warn_once.cache_clear()
    fields = json.loads((responses if "responses" in path else anthropic)(40))
    masker = RequestMasker()
    for kept in KEPT[path]:
        for body in (json.dumps({**fields, **kept}).encode(), json.dumps({**kept, **fields}).encode()):
            done = mask(masker, body, path)
            assert (done.body is body, done.provider, done.fault) == (True, None, None)
        assert len(masker._ledger) == 0
    names = {name for kept in KEPT[path] for name in kept}
    assert [caplog.text.count(f"requests with {name!r} are sent as they are") for name in names] == [1] * len(names)
    for nothing in (None, "", False, {}):
        body = json.dumps({**fields, **dict.fromkeys(KEPT[path][0], nothing)}).encode()
        assert mask(RequestMasker(), body, path).changed
    inside = json.dumps({**fields, "metadata": KEPT[path][0]}).encode()
    assert mask(RequestMasker(), inside, path).changed


# Marks


def marks_of(body: bytes) -> int:
    return json.dumps(json.loads(body)).count('"cache_control"')


def test_a_view_has_a_mark_at_the_boundary_and_at_most_four() -> None:
    masker, seen = RequestMasker(keep=10), set()
    for turns in range(1, 60):
        body = anthropic(turns)
        done = mask(masker, body)
        assert marks_of(done.body) <= 4
        if done.changed:
            seen.add(marks_of(done.body))
    assert 4 in seen


def test_the_views_of_a_session_begin_alike_but_at_moves() -> None:
    masker = RequestMasker(keep=10)
    views = [(mask(masker, anthropic(turns)), turns) for turns in range(1, 80)]
    moves = 0
    for (before, _), (after, turns) in pairwise(views):
        one, two = (json.loads(view.body)["messages"] for view in (before, after))
        strip = json.dumps(one).replace(', "cache_control": {"type": "ephemeral"}', "")
        next_ = json.dumps(two[: len(one)]).replace(', "cache_control": {"type": "ephemeral"}', "")
        moves += after.moved
        assert (strip == next_) is not after.moved, turns
    assert 1 <= moves < 12


def test_an_hour_long_cache_is_known_by_its_newest_mark() -> None:
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert mask(RequestMasker(), anthropic(3, mark=hour)).cache == "anthropic_1h"
    assert mask(RequestMasker(), anthropic(3)).cache == "anthropic"
    quoted = json.dumps({"role": "user", "content": json.dumps({"cache_control": hour})}).encode()
    assert mask(RequestMasker(), b'{"messages": [' + quoted + b"]}").cache == "none"


@pytest.mark.parametrize(
    ("place", "cache"),
    [
        (None, "none"),
        ("system", "none"),
        ("top", "anthropic"),
        ("message", "anthropic"),
        ("result", "anthropic"),
    ],
)
def test_where_no_message_is_cached_masks_cost_nothing(place: str | None, cache: str) -> None:
    """Anthropic caches only what is marked; else each result is masked as it leaves the window."""
    body = json.loads(anthropic(30, mark=None))
    if place == "system":
        body["system"][0]["cache_control"] = MARK
    elif place == "top":
        body["cache_control"] = MARK
    elif place == "message":
        body["messages"][0]["content"][0]["cache_control"] = MARK
    elif place == "result":
        body["messages"][-1]["content"][0] |= {"content": [{"type": "text", "text": "x", "cache_control": MARK}]}
    done = mask(RequestMasker(), json.dumps(body).encode())
    assert done.cache == cache and (done.masked_count == 20) is (cache == "none")
    assert mask(RequestMasker(provider="anthropic"), json.dumps(body).encode()).masked_count < 20
    view = recede.reduce(body["messages"], provider=cache).messages
    assert len(view) == len(json.loads(done.body)["messages"]) and done.masked_count == str(view).count(
        "old tool output"
    )
    counted = mask(RequestMasker(), json.dumps(body).encode(), "/v1/messages/count_tokens")
    assert counted.cache == "anthropic"  # clients leave marks out where they only count


HOUR, SHORT = ({"cache_control": {"type": "ephemeral", **ttl}} for ttl in ({"ttl": "1h"}, {}))
TEXT: dict[str, Any] = {"type": "text", "text": "Go."}
NEWEST_MARKS: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("anthropic_1h", {}, [TEXT | HOUR, TEXT | {"cache_control": None}]),
    ("anthropic_1h", {}, [{"type": "tool_result", "tool_use_id": "t", "content": [TEXT | HOUR]}]),
    ("anthropic_1h", {}, [TEXT | {"cache_control": {"type": "ephemeral", "note": "{}" * 200, "ttl": "1h"}}]),
    ("none", {"system": [TEXT | HOUR]}, [TEXT]),
    ("none", {"tools": [{"name": "t"} | HOUR]}, [TEXT]),
    ("anthropic_1h", HOUR, [TEXT]),
    ("anthropic_1h", {"tools": [{"name": "t"} | SHORT]}, [TEXT | HOUR]),
    ("anthropic", {"system": [TEXT | HOUR]}, [TEXT | SHORT]),
    ("none", {"tools": [{"name": "t"} | HOUR], "system": [TEXT | SHORT]}, [TEXT]),
    ("anthropic", SHORT, [TEXT | HOUR]),
    ("none", {"metadata": HOUR}, [TEXT]),
    ("none", {}, [{"type": "tool_use", "id": "t", "name": "put", "input": HOUR}]),
    ("anthropic", {"system": "Go.", "tools": "none", "cache_control": "1h"}, [TEXT | {"cache_control": "1h"}]),
    ("anthropic", {}, [TEXT | {"cache_control": {"ttl": ["1h"]}}]),
]


@pytest.mark.parametrize(("cache", "fields", "content"), NEWEST_MARKS)
@pytest.mark.parametrize("last", [False, True])
def test_the_newest_mark_is_found_by_its_place(
    cache: str, fields: dict[str, Any], content: list[Any], last: bool
) -> None:
    messages = {"messages": [{"role": "user", "content": content}]}
    body = json.dumps(messages | fields if last else fields | messages).encode()
    for written in (body, body.replace(b"cache_control", rb"cache\u005fcontrol").replace(b'"1h"', rb'"\u0031h"')):
        assert mask(RequestMasker(), written).cache == cache


# Compressed bodies


def zstd(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd as module
    else:
        module = pytest.importorskip("backports.zstd")
    compressed: bytes = module.compress(data)
    return compressed


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


ENCODINGS = [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate), ("zstd", zstd)]


@pytest.mark.parametrize(("name", "encode"), ENCODINGS)
def test_compressed_bodies_are_masked_and_sent_plain(name: str, encode: Any) -> None:
    body = anthropic(40)
    done = mask(RequestMasker(), encode(body), content_encoding=name)
    assert done.changed and done.body == mask(RequestMasker(), body).body


@pytest.mark.parametrize(("name", "encode"), ENCODINGS)
def test_compressed_bodies_that_nothing_changes_or_reads_go_as_they_came(name: str, encode: Any) -> None:
    short = encode(anthropic(2))
    assert mask(RequestMasker(), short, content_encoding=name).body is short
    torn = encode(anthropic(40))[:-5]
    assert mask(RequestMasker(), torn, content_encoding=name).fault == "encoding truncated"
    noise = b"\x01noise" * 9
    assert (mask(RequestMasker(), noise, content_encoding=name).fault or "").startswith("encoding")


def test_unknown_encodings_and_bombs_go_as_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    body = anthropic(40)
    assert mask(RequestMasker(), body, content_encoding="br").fault == "encoding unknown"
    monkeypatch.setattr("recede.proxy._masker.MAX_BODY_BYTES", 10_000)
    bomb = gzip.compress(b" " * 1_000_000)
    done = mask(RequestMasker(), bomb, content_encoding="gzip")
    assert done.body is bomb and done.fault == "encoding too large"


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of memory is measured by Linux")
@pytest.mark.parametrize(
    ("many", "around", "is_read"),
    [
        (b"{}", b"%s", False),
        (b'{"role":"tool"}', b"%s", False),
        (b"{}", b'{"role":"user","content":[%s]}', False),
        (b'""', b'{"role":"user","content":[%s]}', False),
        (b'{"role":"assistant","content":""},{"role":"user","content":""}', b"%s", True),
        (b'{"role":"tool","tool_call_id":"call_1234567","content":"123456789"}', b"%s", True),
        (b"[[[]]]", b'{"role":"user","content":"Go."}],"tools":[%s', False),
        (b'{"name":"run","description":"%s"}' % (b"x" * 200), b'{"role":"user","content":"Go."}],"tools":[%s', True),
    ],
)
def test_memory_is_bounded_by_the_body(many: bytes, around: bytes, is_read: bool) -> None:
    def peak() -> int:
        status = Path("/proc/self/status").read_text()
        return 1_024 * int(status.partition("VmHWM:")[2].split()[0])

    plain = b'{"model":"claude-sonnet-4-5","messages":[%s]}' % around % b",".join([many] * (8_000_000 // len(many)))
    body, masker = gzip.compress(plain, 1), RequestMasker(max_input_tokens=10**9)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    done = mask(masker, body, content_encoding="gzip")
    assert done.fault == (None if is_read else "size") and done.body is body
    assert peak() - before < 8 * len(plain)


# Pauses and retries


def session(masker: RequestMasker, clock: Clock, pauses: dict[int, float], last: int = 30) -> list[MaskedRequest]:
    done = []
    for turns in range(1, last + 1):
        clock.now += pauses.get(turns, 5.0)
        done.append(mask(masker, anthropic(turns)))
    return done


def test_a_pause_longer_than_the_cache_lives_moves_the_boundary() -> None:
    clock = Clock()
    warm = session(RequestMasker(clock=clock), clock, {}, 14)
    cold = session(RequestMasker(clock=clock), clock, {14: 6 * MINUTE}, 14)
    assert not warm[-1].cold and not warm[-1].moved
    assert cold[-1].cold and cold[-1].moved and cold[-1].masked_count == 4


def test_the_same_body_gives_the_same_bytes_also_later_and_after_a_restart(tmp_path: Path) -> None:
    clock, state = Clock(), tmp_path / "state"
    done = session(RequestMasker(state=state, clock=clock), clock, {14: 6 * MINUTE, 20: 20 * MINUTE})
    for pause in (0.0, 10 * MINUTE):
        clock.now += pause
        restarted = RequestMasker(state=state, clock=clock)
        for turns in (30, 13, 14, 15, 20, 29):
            again = mask(restarted, anthropic(turns))
            assert again.body == done[turns - 1].body and again.cold == done[turns - 1].cold
    forgetful = RequestMasker(clock=clock)
    assert mask(forgetful, anthropic(15)).body != done[14].body


@pytest.mark.parametrize(
    ("path", "counting", "body_of"),
    [
        ("/v1/messages", "/v1/messages/count_tokens", anthropic),
        ("/v1/responses", "/v1/responses/input_tokens", responses),
    ],
)
def test_a_request_that_counts_tokens_is_masked_as_the_next_one_and_not_noted(
    path: str, counting: str, body_of: Any
) -> None:
    clock = Clock()
    masker = RequestMasker(clock=clock)
    for turns in range(1, 14):
        clock.now += 1
        mask(masker, body_of(turns), path)
    assert not mask(masker, body_of(14), counting).cold
    clock.now += 6 * MINUTE
    counted = mask(masker, body_of(14), counting)
    clock.now += 1
    sent = mask(masker, body_of(14), path)
    assert counted.counted and counted.body == sent.body and sent.cold


def test_sub_agents_between_requests_change_nothing() -> None:
    clock, other = Clock(), Clock()
    alone = session(RequestMasker(clock=clock), clock, {14: 6 * MINUTE}, 20)
    masker, mixed = RequestMasker(clock=other), []
    for turns in range(1, 21):
        other.now += 6 * MINUTE if turns == 14 else 5.0
        mask(masker, anthropic(turns).replace(b"toolu_", b"agent_"))
        mixed.append(mask(masker, anthropic(turns)))
    assert [one.body for one in mixed] == [one.body for one in alone]


def test_openai_is_asked_to_keep_a_cache_for_a_day() -> None:
    day = b'"prompt_cache_retention": "24h", '
    for fields, is_cold in ((b"", True), (day, False), (b'"metadata": {' + day[:-2] + b"}, ", True)):
        clock = Clock()
        masker = RequestMasker(clock=clock)
        for turns in (3, 4):
            done = mask(masker, responses(turns).replace(b'"store"', fields + b'"store"'), "/v1/responses")
            clock.now += 20 * MINUTE
        assert done.cold is is_cold


# The ledger


def points(count: int, name: bytes = b"k") -> list[Point]:
    return [(2 * number + 1, name * 8 + struct.pack("<Q", number)) for number in range(count)]


def noted(ledger: ColdRequests, count: int, pauses: dict[int, float], name: bytes = b"k") -> list[int]:
    now, found = 0.0, []
    for number in range(1, count + 1):
        now += pauses.get(number, 1.0)
        found = ledger.cold_requests(points(number, name), 300, now)
    return found


def test_a_request_has_38_bytes_and_its_view_34(tmp_path: Path) -> None:
    ledger = ColdRequests(tmp_path / "state")
    noted(ledger, 10, {})
    ledger.note_view(b"k" * 16, 1, 0)
    assert (tmp_path / "state").stat().st_size == 28 + 10 * 38 + 34
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600


def test_the_ledger_finds_pauses_and_keeps_its_answers() -> None:
    ledger = ColdRequests()
    assert noted(ledger, 10, {4: 301.0, 8: 299.0}) == [points(10)[3][0]]
    assert ledger.cold_requests(points(4), 300, 1e9) == [7]
    assert ledger.cold_requests(points(5), 300, 1e9) == [7]
    assert ledger.cold_requests([], 300, 0) == []


def test_a_file_cut_at_every_length_is_read_and_continued(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    noted(ColdRequests(whole), 6, {3: 1_000.0})
    data = whole.read_bytes()
    for length in range(len(data) + 1):
        cut = tmp_path / "cut"
        cut.write_bytes(data[:length])
        ledger = ColdRequests(cut)
        records = max(0, length - 28) // 38
        assert len(ledger) == records
        ledger.cold_requests(points(7), 300, 2_000.0)
        assert cut.stat().st_size == 28 + 38 * (records + 1)
        assert len(ColdRequests(cut)) == records + 1
        ledger.close()


def test_a_file_cut_under_the_ledger_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "state"
    ledger = ColdRequests(path)
    noted(ledger, 6, {3: 1_000.0})
    for length in (28 + 38 * 3 + 5, 28, 0):
        os.truncate(path, length)
        assert 5 in ledger.cold_requests(points(7), 300, 2_000.0)
        assert len(ColdRequests(path)) == max(0, length - 28) // 38 + 1


@pytest.mark.parametrize("text", [b"notes that must not be lost", b"recede: requests, 3\n".ljust(28), b"x" * 100])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "notes"
    path.write_bytes(text)
    with pytest.raises(StoreError, match="not a ledger of requests") as error:
        RequestMasker(state=path)
    assert error.value.kind == "ledger" and path.read_bytes() == text


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as error:
        ColdRequests(tmp_path)
    assert error.value.kind == "io" and str(tmp_path) in str(error.value)


def test_the_requests_sent_last_are_kept_and_the_file_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recede.proxy._ledger._MAX_KEYS", 500)
    monkeypatch.setattr("recede.proxy._ledger._LEAST_WASTE", 50)
    path = tmp_path / "state"
    ledger, other = ColdRequests(path), ColdRequests(path)
    for number in range(600):
        ledger.cold_requests([(1, struct.pack("<QQ", number, 0))], 300, number)
    assert len(ledger) == 500
    for _ in range(1_000):
        ledger.cold_requests([(1, b"same" * 4)], 300, 600)
    assert path.stat().st_size < 38 * (2 * 500 + 60)
    other.cold_requests(points(1), 300, 600)
    for again in (ColdRequests(path), other, ledger):
        late = 10_000.0
        assert again.cold_requests([(1, struct.pack("<QQ", 599, 0)), (3, b"new." * 4)], 300, late, note=False) == [3]
        assert again.cold_requests([(1, struct.pack("<QQ", 50, 0)), (3, b"old." * 4)], 300, late, note=False) == []
        assert len(again) == 500


def test_two_ledgers_of_a_file_know_what_either_notes(tmp_path: Path) -> None:
    one, two = ColdRequests(tmp_path / "state"), ColdRequests(tmp_path / "state")
    one.cold_requests(points(1), 300, 0)
    assert two.cold_requests(points(2), 300, 1_000) == [3]
    assert one.cold_requests(points(2), 300, 1_001) == [3]
    assert one.cold_requests(points(3), 300, 1_002) == [3]
    assert two.cold_requests(points(4), 300, 1_003) == [3]


def test_two_ledgers_of_a_file_agree_under_threads(tmp_path: Path) -> None:
    ledgers = [ColdRequests(tmp_path / "state") for _ in range(2)]
    answers: list[list[list[int]]] = [[], []]

    def work(place: int) -> None:
        for number in range(1, 200):
            answers[place].append(ledgers[place].cold_requests(points(number), 300, number * 1_000.0 * (place + 1)))

    threads = [threading.Thread(target=work, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fresh = ColdRequests(tmp_path / "state")
    for number in range(1, 200):
        told = {tuple(answer[number - 1]) for answer in answers}
        final = tuple(fresh.cold_requests(points(number), 300, 0, note=False))
        # Of one request both say the same, whoever saw it first.
        assert {(2 * number - 1) in one for one in told} == {(2 * number - 1) in final}


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_a_file_that_another_process_keeps_locked_costs_no_answer_and_is_caught_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import fcntl

    path = tmp_path / "state"
    ledger = ColdRequests(path)
    ledger.cold_requests(points(1), 300, 0)
    with path.open("rb") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        for _ in range(2):
            assert ledger.cold_requests(points(2), 300, 1_000) == [3]
    assert caplog.text.count("noted in memory alone: another process has locked it") == 1
    assert ledger.cold_requests(points(3), 300, 1_001) == [3]
    assert len(ColdRequests(path)) == 3
    with path.open("rb") as again:
        fcntl.flock(again, fcntl.LOCK_EX)
        ledger.cold_requests(points(4), 300, 1_002)
    assert caplog.text.count("another process has locked it") == 2


def test_a_deleted_file_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "state"
    ledger = ColdRequests(path)
    noted(ledger, 5, {3: 1_000.0})
    path.unlink()
    assert 5 in ledger.cold_requests(points(6), 300, 2_000.0)
    assert path.stat().st_size == 28 + 38


VIEWS = [((7, 0),), ((8, 3), (9, 3)), ((1 << 63, 5),)]
KEYS = [bytes([number]) * 16 for number in range(3)]


def note_views(ledger: ColdRequests) -> None:
    for key, views in zip(KEYS, VIEWS, strict=True):
        for view in (*views, *views):
            ledger.note_view(key, *view)


def test_views_are_found_by_their_key_in_every_process(tmp_path: Path) -> None:
    one, two = ColdRequests(tmp_path / "state"), ColdRequests(tmp_path / "state")
    note_views(one)
    for ledger in (one, two, ColdRequests(tmp_path / "state")):
        assert ledger.look_up([], [*KEYS, b"?" * 16]).views == [*VIEWS, ()]


def test_views_of_a_request_beyond_four_are_not_kept() -> None:
    ledger = ColdRequests()
    for number in range(9):
        ledger.note_view(KEYS[0], number, 0)
    assert ledger.look_up([], KEYS[:1]).views == [tuple((number, 0) for number in range(4))]


def test_views_that_are_looked_up_outlive_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recede.proxy._ledger._MAX_KEYS", 20)
    ledger = ColdRequests(tmp_path / "state")
    note_views(ledger)
    for number in range(60):
        ledger.look_up([], KEYS[:1])
        ledger.note_view(struct.pack("<QQ", number, 1), 1, 0)
    assert ledger.look_up([], KEYS).views == [VIEWS[0], (), ()]


def test_provider_of_a_conversation_is_that_of_its_newest_noted_request(tmp_path: Path) -> None:
    opus, own = recede.Provider.of("anthropic", "claude-opus-5-5"), recede.Provider("ours", ttl_seconds=None)
    ledger = ColdRequests(tmp_path / "state")
    for number, provider in enumerate((opus, opus, None, own, opus), 1):
        ledger.cold_requests(points(number), 300, 0, provider=provider)
        ledger.cold_requests(points(number), 300, 0, provider=own)  # sent again: the first one stands
    for known in (ledger, ColdRequests(tmp_path / "state")):
        found = [known.look_up(points(number)).provider for number in range(1, 6)]
        assert found == [None, opus, own, own, opus]


def test_file_of_format_1_is_taken_over_with_its_pauses(tmp_path: Path) -> None:
    path, ledger = tmp_path / "state", ColdRequests()
    records = [
        key + struct.pack("<IQ", end, (1_000 + place) * 1_000 << 1 | (place == 2))
        for place, (end, key) in enumerate(points(4))
    ]
    path.write_bytes(b"recede: cold requests, 1\n".ljust(28) + b"".join(records) + b"torn")
    path.chmod(0o640)
    for ledger in (ColdRequests(path), ColdRequests(path)):
        assert len(ledger) >= 4
        assert ledger.cold_requests(points(5), 300, 1_004.0) == [5]
        ledger.note_view(KEYS[0], 1, 2)
    assert path.read_bytes().startswith(b"recede: requests, 2\n")
    assert path.stat().st_size == 28 + 6 * 38 + 34 and path.stat().st_mode & 0o777 == 0o640
    assert ColdRequests(path).look_up([], KEYS[:1]).views == [((1, 2),)]


@pytest.mark.parametrize("damage", [b"\x00", b"\x01", b"\x02", b"\xff"])
def test_damaged_record_is_absent_and_the_others_are_read(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "state"
    ledger = ColdRequests(path)
    note_views(ledger)
    noted(ledger, 3, {})
    whole = path.read_bytes()
    for at in range(28, len(whole)):
        path.write_bytes(whole[:at] + damage + whole[at + 1 :])
        read = ColdRequests(path)
        found = read.look_up([], KEYS).views
        assert all({*one} <= {*views} for one, views in zip(found, VIEWS, strict=True))
        assert sum(map(len, found)) + len(read) >= 4 + 3 - (damage != whole[at : at + 1])
        assert path.read_bytes()[:28] == whole[:28]


def test_file_that_ends_in_nulls_is_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "state"
    note_views(ColdRequests(path))
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(1 << 20))
    assert ColdRequests(path).look_up([], KEYS).views == VIEWS
    assert path.stat().st_size == size


def test_process_killed_in_the_middle_of_a_record_leaves_the_earlier_ones(tmp_path: Path) -> None:
    path = tmp_path / "state"
    note_views(ColdRequests(path))
    whole = path.read_bytes()
    for length in range(28, len(whole)):
        path.write_bytes(whole[:length])
        ledger = ColdRequests(path)
        assert sum(map(len, ledger.look_up([], KEYS).views)) == (length - 28) // 34
        ledger.note_view(b"n" * 16, 1, 1)
        assert ColdRequests(path).look_up([], [b"n" * 16]).views == [((1, 1),)]


def _limited(path: Path, limit: int) -> tuple[int, list[int]]:
    """What a child finds whose files can have so many bytes."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            logging.disable()
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            ledger = ColdRequests(path)
            found = noted(ledger, 9, {3: 1_000.0})
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            size = path.stat().st_size
            ledger.cold_requests(points(10), 300, 1_020.0)
            os.write(writing, json.dumps([size, found]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        size, found = json.loads(pipe.read())
    os.waitpid(child, 0)
    return size, found


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a forked process")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_full_disk_costs_no_answer_and_is_caught_up(tmp_path: Path) -> None:
    path = tmp_path / "state"
    size, found = _limited(path, 28 + 38 * 4 + 10)
    assert found == [5]
    assert (size - 28) % 38 == 0 and size <= 28 + 38 * 4
    assert len(ColdRequests(path)) == 10


# The user's own words


def with_words(body: bytes, place: int, tool: str, text: str) -> bytes:
    """The body with another tool and result at one place."""
    found = json.loads(body)
    history = next(found[key] for key in ("messages", "input", "contents") if key in found)
    call, result = history[1 + 2 * place], history[2 + 2 * place]
    if "tool_calls" in call:
        call["tool_calls"][0]["function"]["name"] = tool
        result["content"] = text
    elif "parts" in call:
        call["parts"][0]["functionCall"]["name"] = tool
        result["parts"][0]["functionResponse"] = {"name": tool, "response": {"output": text}}
    elif "call_id" in call:
        call["name"], result["output"] = tool, text
    else:
        call["content"][0]["name"] = tool
        result["content"][0].update(content=text, is_error=True)
    return json.dumps(found).encode()


ANSWER = "Use the second table. " * 40


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_has_the_options(copied: Any, tmp_path: Path) -> None:
    masker = RequestMasker(keep=2, boundary="sliding", state=tmp_path / "state", exclude_tools=["Write"])
    for tool in ("Write", "Read"):
        body = with_words(anthropic(40), 3, tool, ANSWER)
        assert mask(copied(masker), body).body == mask(masker, body).body != body


@pytest.mark.parametrize("agent", [agent for agent in AGENTS.values() if agent.user_tools], ids=lambda one: one.title)
def test_the_page_has_the_tools_of_each_agent_whose_results_stay(agent: Any) -> None:
    page = Path(__file__).parents[2].joinpath("docs/proxy.md").read_text("utf-8").partition("| seen in |")[2]
    [row] = re.findall(rf"^\| {re.escape(agent.title)} {re.escape(agent.version)} \| (`.*) \|$", page, re.MULTILINE)
    assert set(re.findall("`([^`]+)`", row)) == set(agent.user_tools)


USER_TEXTS = {  # whole results, by their text in the row of their agent
    text: (text if "*" in text else text + "*").replace("*", "12 files were changed.\n" + ANSWER)
    for agent in AGENTS.values()
    for text in agent.user_texts
}


@pytest.mark.parametrize("own", [{}, {"exclude_tools": ["Write"], "keep_matching": {"Kept"}}], ids=["none", "some"])
@pytest.mark.parametrize(("path", "bodies"), [(path, body_of) for path, body_of, _ in BODIES if "count" not in path])
def test_results_of_tools_that_have_the_users_own_words_are_never_masked(path: str, bodies: Any, own: Any) -> None:
    kept = [(tool, ANSWER) for tool in (*USER_TOOLS, "skill", "Skills", "activate_skill", "ask_question", "AskUser")]
    kept += [("Write", ANSWER), ("Read", "Kept: " + ANSWER)] if own else []
    for tool, text in [*kept, ("Read", ANSWER)]:
        masked = RequestMasker(keep=2, **own).mask("POST", path, {}, with_words(bodies(40), 3, tool, text)).body
        assert masked.count(b"old tool output cleared") >= 10
        assert (json.dumps(text).encode() in masked) == ((tool, text) in kept), (tool, text)


ROUTES = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions", "gemini": "/v1beta/models/g:generateContent"}
BODY_OF = {"anthropic": anthropic, "openai": chat, "gemini": gemini}


@pytest.mark.parametrize("command", [command for command, agent in AGENTS.items() if agent.user_texts])
def test_texts_of_an_agent_are_kept_in_its_requests(command: str) -> None:
    """By the User-Agent; if that names nobody, in the requests that it may have sent; not in those of others."""
    agent = AGENTS[command]
    for provider, path in ROUTES.items():
        for name, is_kept in [
            (agent.user_agent + "9.1", True),
            ("", agent.provider in (None, provider)),
            ("codex", False),
        ]:
            for text in agent.user_texts:
                body = with_words(BODY_OF[provider](40), 3, "Edit", USER_TEXTS[text])
                masked = RequestMasker(keep=2, boundary="sliding").mask("POST", path, {"User-Agent": name}, body)
                assert (json.dumps(USER_TEXTS[text]).encode() in masked.body) == is_kept, (text, name)
                assert masked.agent == {"": None, "curl": None, "codex": "Codex"}.get(name, agent.title)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude-cli/2.1.332 (external, cli)", "PreToolUse:Bash hook error: [./guard.sh]: No. "),
        ("claude-cli/2.1.332 (external, cli)", "Permission for this action has been denied. Reason: "),
        ("GeminiCLI/0.61.0/g (linux)", "<tool_output_masked>\nOutput too large. Full output available at: /tmp/a"),
    ],
)
def test_refusals_of_hooks_and_pointers_to_files_are_never_masked(name: str, text: str) -> None:
    provider = "gemini" if "Gemini" in name else "anthropic"
    body = with_words(BODY_OF[provider](40), 3, "run", text + ANSWER)
    masked = RequestMasker(keep=2, boundary="sliding").mask("POST", ROUTES[provider], {"user-agent": name}, body).body
    assert json.dumps(text + ANSWER).encode() in masked and masked.count(b"old tool output cleared") >= 10


@pytest.mark.parametrize(
    "end",
    [
        b"</system-reminder>",
        b"<\\/system-reminder>",
        b"\\u003c/system-reminder>",
        b"</system-reminder\\u003e",
        b"</s\\u0079stem-reminder>",
    ],
)
def test_the_users_own_words_are_found_whatever_is_escaped(end: bytes) -> None:
    said = "The user sent a new message while you were working:\nThe second table."
    text = "x" * 500 + f"\n\n<system-reminder>\n{said}\n</system-reminder>"
    body = with_words(anthropic(40), 3, "Bash", text).replace(b"</system-reminder>", end)
    masked = RequestMasker(keep=2).mask("POST", "/v1/messages", {}, body).body
    assert end in masked and masked.count(b"old tool output cleared") >= 10


def test_forty_requests_without_results_are_said_once_by_each_door(caplog: pytest.LogCaptureFixture) -> None:
    masker, body_masker, history = recede.masker.Masker(), recede.proxy.RequestMasker(), recede.History()
    messages: list[Any] = []
    for number in range(60):
        new = [user(f"Observation: {number}"), assistant("Thought: I run a tool.")]
        messages += new
        history.extend(new)
        masker.view(messages)
        history.view()
        body_masker.mask("POST", "/v1/chat/completions", {}, json.dumps({"messages": messages}).encode())
        assert caplog.text.count("40 requests had no tool result") == 3 * (number >= 39)


def test_single_questions_and_requests_with_results_are_not_said(caplog: pytest.LogCaptureFixture) -> None:
    masker, with_results = recede.masker.Masker(), recede.masker.Masker()
    with_results.view([user("Go."), call("1"), result("1", "done")])
    for number in range(90):
        masker.view([user(f"What is {number}?")])
        with_results.view([user(f"Go {number}."), assistant("Yes."), user("On."), assistant("Done.")])
    assert "40 requests" not in caplog.text
