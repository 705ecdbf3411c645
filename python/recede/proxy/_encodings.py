"""Bodies that are compressed, decoded under a limit."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["EncodingError", "decoded", "decoder"]


class EncodingError(ValueError):
    """A body that cannot be decoded."""


def decoded(data: bytes, encoding: str, max_bytes: int) -> bytes:
    """A body without its encoding; `EncodingError` if that is unknown, damaged, or of more than `max_bytes`."""
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


def decoder(encoding: str) -> Callable[[bytes], bytes] | None:
    """What decodes an answer piece by piece; None if the encoding is unknown here."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return lambda piece: piece
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(47 if encoding != "deflate" else 15).decompress
    try:
        if encoding == "zstd":
            decompress: Callable[[bytes], bytes] = _zstd().decompress
            return decompress
        if encoding == "br":
            decompress = import_module("brotli").Decompressor().process
            return decompress
    except (EncodingError, ImportError):
        pass
    return None


def _zstd() -> Any:
    for name in ("compression.zstd", "backports.zstd"):  # of Python 3.14; of the extra
        try:
            return import_module(name).ZstdDecompressor()
        except ImportError:
            continue
    raise EncodingError("unknown")
