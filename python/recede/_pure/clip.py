"""Texts cut in the middle: a beginning, how many characters are left out, an end."""

from __future__ import annotations

import re

from recede._pure.placeholder import Masked

_MARKER = "[… {} chars omitted …]"
_MARKER_FORM = re.compile(r"\[… [0-9]{1,20} chars omitted …\]")
LEAST_CHARS = 60
"""A text that is cut has as many characters at least: what is left out is said in half of them."""


def clip(text: str, max_chars: int, image_chars: int = 0) -> Masked:
    """A text with images in so many characters: its beginning, how many are left out, and its end."""
    kept, marker = min(len(text), max_chars), ""
    while len(marker) < len(marker := _MARKER.format(len(text) + image_chars - kept)):
        kept = min(len(text), max_chars - len(marker))
    at_end = kept // 2 if kept < len(text) else 0
    beginning, end = slice(0, kept - at_end), slice(len(text) - at_end, len(text))
    return Masked((beginning, marker, end), text[beginning] + marker + text[end], is_clipped=True)


def is_clipped(text: str) -> bool:
    """Whether a text is one that was cut: the marker is in its middle."""
    return any(found.start() - (len(text) - found.end()) in (0, 1) for found in _MARKER_FORM.finditer(text))


def shorter(chars: int, share: int, cost: int) -> int:
    """A length for a text that costs more than its share at this one."""
    return min(chars * share // cost, chars - chars // 4 - 1)
