"""The handle by which an observation is recalled."""

from __future__ import annotations

import hashlib
import re

HANDLE_CHARS = 12
HANDLE = re.compile(f"[0-9a-f]{{{HANDLE_CHARS}}}")


MARKER_FORM = re.compile(rf"\[… [0-9]{{1,20}} chars omitted(?:, recall ({HANDLE.pattern}))? …\]")


def middle_marker(text: str) -> re.Match[str] | None:
    """The marker of a text that was cut before, which is in its middle."""
    found = MARKER_FORM.finditer(text)
    return next((one for one in found if one.start() - (len(text) - one.end()) in (0, 1)), None)


def handle_of(id: str, text: str) -> str:
    """The beginning of the SHA-256 of the id of its call and its text; of a cut text the handle in its marker."""
    marker = middle_marker(text)
    if marker is not None and marker[1] is not None:
        return marker[1]
    raw_id, raw_text = (part.encode("utf-8", "surrogatepass") for part in (id, text))
    return hashlib.sha256(b"%d:%b%b" % (len(raw_id), raw_id, raw_text)).hexdigest()[:HANDLE_CHARS]
