"""Bodies: decoded under a limit; and token counts in a provider's answer, read while it passes. No text is kept."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from recede._usage import LoggedUsage, usage_of


class EncodingError(ValueError):
    """A body that cannot be decoded."""


def decoded(data: bytes, encoding: str, max_bytes: int) -> bytes:
    """Decode a body; raise `EncodingError` if its encoding is unknown or damaged, or it has more than `max_bytes`."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return data
    engine: Any
    if encoding in ("gzip", "x-gzip"):
        engine = zlib.decompressobj(31)
    elif encoding == "deflate":
        # By the standard with zlib's header, which many clients leave out.
        engine = zlib.decompressobj(
            15 if data[:1] and data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0 else -15
        )
    elif encoding == "zstd":
        engine = _zstd()
    else:
        raise EncodingError("unknown")
    try:
        plain: bytes = engine.decompress(data, max_bytes + 1)
    except Exception as error:  # each library has its own
        raise EncodingError("damaged") from error
    if len(plain) > max_bytes:
        raise EncodingError("too large")
    if not engine.eof or engine.unused_data:
        raise EncodingError("truncated")
    return plain


_STEP = 1 << 16  # bytes that are decoded at a time


def decoder(encoding: str) -> Callable[[bytes], Iterator[bytes]] | None:
    """Make a decoder for the pieces of an answer, in steps of at most 64 KB; None if the encoding is unknown."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return lambda piece: iter((piece,))
    if encoding in ("gzip", "x-gzip", "deflate"):
        return partial(_inflated, zlib.decompressobj(47 if encoding != "deflate" else 15))
    with suppress(EncodingError, ImportError):
        if encoding == "zstd":
            return partial(_unpacked, _zstd())
        if encoding == "br":
            return partial(_unpacked_brotli, import_module("brotli").Decompressor())
    return None


def text_of(data: bytes, encoding: str) -> str:
    """Decode the beginning of an answer, as far as that is possible."""
    decode, plain = decoder(encoding), bytearray()
    with suppress(Exception):  # each library has its own
        for piece in decode(data) if decode is not None else ():
            plain += piece
            if len(plain) > _FREE_BYTES:
                break
    return plain.decode(errors="replace")


def _inflated(engine: Any, piece: bytes) -> Iterator[bytes]:
    while True:
        plain = engine.decompress(piece, _STEP)
        yield plain
        piece = engine.unconsumed_tail
        if not piece and len(plain) < _STEP:
            return


def _unpacked(engine: Any, piece: bytes) -> Iterator[bytes]:
    while not engine.eof:
        yield engine.decompress(piece, _STEP)
        piece = b""
        if engine.needs_input:
            return


def _unpacked_brotli(engine: Any, piece: bytes) -> Iterator[bytes]:
    while True:
        yield engine.process(piece, output_buffer_limit=_STEP)  # a TypeError before Brotli 1.2, which knows no limit
        piece = b""
        if engine.can_accept_more_data():
            return


def _zstd() -> Any:
    for name in ("compression.zstd", "backports.zstd"):  # of Python 3.14; of the extra
        try:
            return import_module(name).ZstdDecompressor()
        except ImportError:
            continue
    raise EncodingError("unknown")


_MAX_BYTES = 8 << 20  # of an answer, or of one event
# What is decoded is at most so many times what came, and this beginning: no answer of a model is packed so well.
_MAX_RATIO, _FREE_BYTES = 100, 1 << 20
_WORDS = (b'"usage"', b'"usageMetadata"')


class AnswerReader:
    """A reader of the pieces of an answer: its usage, its model, and what the provider has dropped of the request."""

    def __init__(self, content_type: str, encoding: str) -> None:
        self.usage: LoggedUsage | None = None
        self.model: str | None = None
        self.dropped_reasoning = 0  # blocks
        self._is_stream = content_type.startswith("text/event-stream")
        self._decode: Callable[[bytes], Iterator[bytes]] | None = decoder(encoding)
        self._left = _FREE_BYTES  # bytes that may yet be decoded
        self._rest: list[bytes] = []  # of the answer, or of a line that has not ended
        self._size = 0
        self._found: dict[str, Any] = {}

    def feed(self, piece: bytes) -> None:
        if self._decode is None:
            return
        self._left += _MAX_RATIO * len(piece)
        try:
            for plain in self._decode(piece):
                self._left -= len(plain)
                if self._is_stream:
                    *lines, plain = plain.split(b"\n")
                    for line in lines:
                        self._keep(line)
                        self._end_line()
                self._keep(plain)
                if min(self._left, _MAX_BYTES - self._size) < 0:
                    return self._give_up()
        except Exception:  # each library has its own error; an answer that cannot be decoded is passed on all the same
            self._give_up()

    def end(self) -> None:
        if self._is_stream:
            self._end_line()
        else:
            self._read(b"".join(self._rest))
        self._give_up()

    def _keep(self, data: bytes) -> None:
        if data:
            self._rest.append(data)
            self._size += len(data)

    def _end_line(self) -> None:
        line = b"".join(self._rest)
        self._rest, self._size = [], 0
        if line.startswith(b"data:"):
            self._read(line[5:])

    def _give_up(self) -> None:
        self._decode, self._rest, self._size = None, [], 0

    def _read(self, data: bytes) -> None:
        if not any(word in data for word in _WORDS):
            return
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                self._take(one)

    def _take(self, value: dict[str, Any]) -> None:
        """Add an event's counts to those of earlier events: Anthropic's first has the input, its last the output."""
        # Anthropic's first event, and the last one of Responses and of Interactions, have the answer in a field.
        holders = ("message", "response", "interaction")
        holder = next((value[name] for name in holders if isinstance(value.get(name), dict)), value)
        for name in ("model", "modelVersion"):
            if isinstance(holder.get(name), str):
                self.model = holder[name][:100]
        if isinstance(holder.get("input_transformations"), list):
            types = [str(one.get("type")) for one in holder["input_transformations"] if isinstance(one, dict)]
            self.dropped_reasoning = sum(not kind.endswith("_allowed") for kind in types)
        if isinstance(holder.get("usage"), dict):
            self._found.update({name: one for name, one in holder["usage"].items() if one is not None})
            self.usage = usage_of(self._found, lambda _: None)
        if isinstance(holder.get("usageMetadata"), dict):
            self.usage = usage_of(holder["usageMetadata"], lambda _: None) or LoggedUsage(0, 0, 0, 0, 0)
