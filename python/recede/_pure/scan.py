"""Bytes -> Outline. The bytes are a list of messages, or a request body with one."""

from __future__ import annotations

from typing import Any

from recede._errors import TranscriptError
from recede._pure.outline import Outline
from recede._pure.reading import JsonList, JsonObject, read
from recede._pure.walk import refuse_repeated, walk
from recede.reduction._options import BODY_KEYS


def scan(data: bytes, *, surrogates: bool) -> Outline:
    """With `surrogates`, the bytes came from a str by `surrogatepass`."""
    return walk(_history(*read(data, surrogates=surrogates)))


def _history(value: Any, start: int) -> JsonList:
    if isinstance(value, JsonList):
        return value
    if not isinstance(value, JsonObject):
        raise TranscriptError("history", offset=start)
    refuse_repeated(value, frozenset(BODY_KEYS))
    for key in BODY_KEYS:
        if isinstance(value.get(key), JsonList):
            history: JsonList = value[key]
            return history
    for key in BODY_KEYS:
        if key in value:
            raise TranscriptError("history", offset=value.spans[key][0], field=key)
    raise TranscriptError("history", offset=start)
