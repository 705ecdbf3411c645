"""The file of a `History`: JSON, whose messages are kept as they were written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["as_json", "elements"]

_decoder = json.JSONDecoder()
_WHITE_SPACE = " \t\n\r"


def elements(text: str, start: int = 0) -> Iterator[str]:
    """The elements of the array that begins here, as they are written; the text was read before, so it is JSON."""
    at = text.index("[", start) + 1
    while True:
        while text[at] in _WHITE_SPACE or text[at] == ",":
            at += 1
        if text[at] == "]":
            return
        end = _decoder.raw_decode(text, at)[1]
        yield text[at:end]
        at = end


def as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON has them, without functions; each of them takes a list for a set or a tuple."""
    return {
        name: list(value)
        if isinstance(value, (set, frozenset, tuple))
        else dict(value)
        if isinstance(value, Mapping)
        else value
        for name, value in options.items()
        if not callable(value) and not callable(getattr(value, "generate", None))
    }
