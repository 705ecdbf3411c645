"""JSON of messages: the elements of an array as written, and decoded ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from recede._errors import TranscriptError

__all__ = ["elements", "loads"]

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


def loads(raw: bytes) -> Any:
    """Decode JSON that the strict reader accepted, of which Python may refuse some."""
    try:
        return json.loads(raw.decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise TranscriptError("depth") from None
    except ValueError:  # an integer of over 4,300 digits
        raise TranscriptError("number") from None
