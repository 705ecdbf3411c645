"""The handle by which an observation is recalled."""

from __future__ import annotations

import hashlib
import re

HANDLE_CHARS = 12
HANDLE = re.compile(f"[0-9a-f]{{{HANDLE_CHARS}}}")


def handle_of(id: str, text: str) -> str:
    """The beginning of the SHA-256 of the id of its call and its text."""
    raw_id, raw_text = (part.encode("utf-8", "surrogatepass") for part in (id, text))
    return hashlib.sha256(b"%d:%b%b" % (len(raw_id), raw_id, raw_text)).hexdigest()[:HANDLE_CHARS]
