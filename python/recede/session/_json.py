"""JSON of messages: the elements of an array as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from recede._bodies import loads
from recede._errors import TranscriptError
from recede.reduction._input import as_bytes
from recede.reduction._policy import compiled

__all__ = ["written_messages"]

_decoder = json.JSONDecoder()
_WHITE_SPACE = " \t\n\r"


def written_messages(data: Any, engine: Any) -> Iterator[str]:
    """Yield the messages of an array as written, once it is known to be valid."""
    raw, surrogates = as_bytes(data)
    engine.reduce_json(raw, surrogates, compiled(engine, "truncate", {}))  # refuses what is no history
    if raw.lstrip()[:1] != b"[":
        raise TranscriptError("history", offset=0)
    loads(raw)  # refuses what Python cannot read, so that no view fails later
    return _elements(raw.decode("utf-8", "surrogatepass"))


def _elements(text: str) -> Iterator[str]:
    """Yield the elements of an array, as written; the text must be valid JSON."""
    at = text.index("[") + 1
    while True:
        while text[at] in _WHITE_SPACE or text[at] == ",":
            at += 1
        if text[at] == "]":
            return
        end = _decoder.raw_decode(text, at)[1]
        yield text[at:end]
        at = end
