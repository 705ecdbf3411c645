"""Decoding of compressed bodies, under a limit."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any


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
