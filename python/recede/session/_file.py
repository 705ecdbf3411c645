"""JSON of a `History`: its options, and the elements of an array as written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["as_json", "elements"]

_decoder = json.JSONDecoder()
_WHITE_SPACE = " \t\n\r"


def elements(text: str, start: int = 0) -> Iterator[str]:
    """Yield the elements of an array, as written; the text must be valid JSON."""
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
    """Options without functions, with lists for sets and tuples."""
    return {
        name: list(value)
        if isinstance(value, (set, frozenset, tuple))
        else dict(value)
        if isinstance(value, Mapping)
        else value
        for name, value in options.items()
        if not callable(value) and not callable(getattr(value, "generate", None))
    }
