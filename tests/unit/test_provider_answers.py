"""What is read of answers while they pass: usage from any piece on, and no more memory or time than they are worth."""

from __future__ import annotations

import functools
import gzip
import json
import tracemalloc
import zlib
from typing import Any

import pytest

from recede.proxy._answers import AnswerReader

USAGE = {"input_tokens": 3, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 40, "output_tokens": 7}
JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"


def event(**fields: Any) -> bytes:
    return b"event: x\r\ndata: " + json.dumps(fields).encode() + b"\r\n\r\n"


def zstd_packer() -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        module = pytest.importorskip(name) if name.startswith("backports") else _module(name)
        if module is not None:
            return module.ZstdCompressor()
    raise AssertionError


def _module(name: str) -> Any:
    try:
        return __import__(name, fromlist=["ZstdCompressor"])
    except ImportError:
        return None


def brotli_packer() -> Any:
    return pytest.importorskip("brotli", "1.2").Compressor()


PACKERS = {
    "gzip": lambda: zlib.compressobj(wbits=31),
    "deflate": zlib.compressobj,
    "zstd": zstd_packer,
    "br": brotli_packer,
}


@functools.cache
def packed(name: str, *pieces: bytes) -> bytes:
    packer = PACKERS[name]()
    pack = getattr(packer, "compress", None) or packer.process
    end = packer.finish if name == "br" else packer.flush
    return b"".join([*map(pack, pieces), end()])


@pytest.mark.parametrize("encoding", ["", *PACKERS])
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize("kind", [JSON, EVENTS])
def test_usage_is_read_in_any_pieces_and_encodings(encoding: str, step: int, kind: str) -> None:
    start = event(type="message_start", message={"model": "claude-opus-5", "usage": USAGE})
    whole = json.dumps({"model": "claude-opus-5", "usage": USAGE}).encode()
    if kind == EVENTS:
        texts = [event(type="content_block_delta", text=f"{n} words") for n in range(9)]
        whole = b"".join([start, *texts, event(type="message_delta", usage={"output_tokens": 7})])
    data = packed(encoding, whole) if encoding else whole
    reader = AnswerReader(kind, encoding)
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])
    reader.end()
    assert reader.model == "claude-opus-5" and reader.usage == (3, 900, 40, 0, 7)


@pytest.mark.parametrize(
    ("kind", "line"), [(JSON, b"\0" * (1 << 20)), (EVENTS, (b"data: {%s}\n\n" % (b" " * 1_000)) * 1_000)]
)
@pytest.mark.parametrize("encoding", PACKERS)
def test_what_is_packed_too_well_is_not_unpacked(kind: str, line: bytes, encoding: str) -> None:
    bomb = packed(encoding, *[line] * 16)
    reader = AnswerReader(kind, encoding)
    tracemalloc.start()
    try:
        reader.feed(bomb[:9_700])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20
    reader.feed(bomb[9_700:])
    reader.feed(gzip.compress(b""))
    reader.end()
    assert reader.usage is None


@pytest.mark.timeout(30)  # it took minutes when each piece copied what was there
def test_a_long_event_in_small_pieces_takes_linear_time() -> None:
    reader = AnswerReader(EVENTS, "")
    data = event(type="response.completed", response={"usage": USAGE, "text": "x" * 7_000_000})
    for at in range(0, len(data), 50):
        reader.feed(data[at : at + 50])
    reader.end()
    assert reader.usage == (3, 900, 40, 0, 7)


def test_an_event_over_the_limit_ends_the_reading() -> None:
    reader = AnswerReader(EVENTS, "")
    for _ in range(20):
        reader.feed(b"x" * (1 << 20))
    reader.feed(b"\n" + event(usage=USAGE))
    reader.end()
    assert reader.usage is None


ODD = [
    b"",
    b"[",
    b"data: [[[",
    b'{"usage": [1]}',
    b'{"usage": {"input_tokens": 1e999}}',
    b'{"usage":' + b"[" * 50_000,
    b'{"usage": {"input_tokens": ' + b"9" * 5_000 + b"}}",
    b'{"usage": {"input_tokens": -4}}',
    b'{"usage": {"input_tokens": true}}',
    b"\xff\xfe\x00",
    b'{"usageMetadata": {"promptTokenCount": "x"}}',
]


@pytest.mark.parametrize("data", ODD)
@pytest.mark.parametrize("kind", [JSON, EVENTS, ""])
def test_odd_answers_are_read_as_nothing(data: bytes, kind: str) -> None:
    reader = AnswerReader(kind, "")
    reader.feed(b"data: " + data + b"\n\n" if kind == EVENTS else data)
    reader.end()
    assert not any(reader.usage or ())


def test_what_the_provider_says_that_it_dropped_is_counted() -> None:
    reader = AnswerReader("application/json", "")
    kinds = ["thinking_dropped", "thinking_mismatch_allowed", "thinking_dropped"]
    report = [{"type": kind, "path": "messages.1.content.0"} for kind in kinds]
    reader.feed(
        json.dumps({"usage": {"input_tokens": 1, "output_tokens": 1}, "input_transformations": report}).encode()
    )
    reader.end()
    assert reader.dropped_reasoning == 2
