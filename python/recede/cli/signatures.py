"""Signatures: kinds of files that are no history by their first bytes, and of histories that recede saved."""

from __future__ import annotations

HEAD_BYTES = 512

_SIGNATURES = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd: unpack it first"),
    (b"\xfd7zXZ", "packed by xz: unpack it first"),
    (b"BZh", "packed by bzip2: unpack it first"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
    (b"\xef\xbb\xbf", "text with a byte order mark: save it as UTF-8 without one"),
)
_SAVED = b"recede store\r\n\x1a\n"


def is_saved_history(head: bytes) -> bool:
    return head[16 : 16 + len(_SAVED)] == _SAVED


def likeness(head: bytes) -> str | None:
    """Name the kind of a file; None for JSON, however damaged, and for what is gzipped."""
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "a WebP image"
    if head[257:262] == b"ustar":
        return "a tar archive: unpack it first"
    if head.lstrip(b" \t\r\n\0")[:1] in (b"{", b"[", b"") or head.startswith(b"\x1f\x8b"):
        return None
    is_text = all(byte >= 32 or byte in b"\t\n\r\f\x1b" for byte in head)
    return "plain text" if is_text and head.decode(errors="ignore").encode()[:400] == head[:400] else "binary data"
