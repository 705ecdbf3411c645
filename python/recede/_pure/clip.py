"""Texts cut in the middle: a beginning, how many characters are left out, an end."""

from __future__ import annotations

import re

from recede._pure.placeholder import Masked

_MARKER = "[… {} chars omitted …]"
_MARKER_FORM = re.compile(r"\[… ([0-9]+) chars omitted(?:, recall #[0-9]+)? …\]")

LEAST_CHARS = 60
"""A text that is cut has as many characters at least: what is left out is said in half of them."""


def clip(text: str, chars: int) -> Masked:
    """The text in exactly so many characters, as its beginning and its end; as it is where it has no more."""
    if len(text) <= chars:
        return Masked((slice(0, len(text)),), text)
    marker = ""
    while len(marker) < len(marker := _MARKER.format(len(text) - chars + len(marker))):
        pass  # the marker takes the place of text, which it counts
    kept = chars - len(marker)
    beginning, end = slice(0, kept - kept // 2), slice(len(text) - kept // 2, len(text))
    return Masked((beginning, marker, end), text[beginning] + marker + text[end], is_clipped=True)


def is_clipped(text: str) -> bool:
    """Whether the text is one that was cut in the middle."""
    return any(abs(found.start() - (len(text) - found.end())) <= 1 for found in _MARKER_FORM.finditer(text))
