"""Cutting a text to its beginning and end, around the number of omitted characters."""

from __future__ import annotations

from oracle.placeholder import Masked

_MARKER = "[… {} chars omitted{} …]"
LEAST_CHARS = 60
"""The minimum length of a cut text, of which the marker is a large part."""


def clip(text: str, max_chars: int, image_chars: int = 0, recall: str | None = None) -> Masked:
    """Cut a text with images to this many characters; the marker may name its handle."""
    handle = "" if recall is None else f", recall {recall}"
    kept, marker = min(len(text), max_chars), ""
    while len(marker) < len(marker := _MARKER.format(len(text) + image_chars - kept, handle)):
        kept = min(len(text), max_chars - len(marker))
    at_end = kept // 2 if kept < len(text) else 0
    beginning, end = slice(0, kept - at_end), slice(len(text) - at_end, len(text))
    return Masked((beginning, marker, end), text[beginning] + marker + text[end], is_clipped=True)


def shorter(chars: int, share: int, cost: int) -> int:
    """A shorter length for a text that costs more than its share."""
    return min(chars * share // cost, chars - chars // 4 - 1)
