"""Bytes -> the messages in them, and the request body around these, if there is one."""

from __future__ import annotations

from oracle.reading import JsonList, JsonObject, read
from oracle.walk import refuse_repeated
from recede._bodies import BODY_KEYS
from recede._errors import TranscriptError


def scan(data: bytes, *, surrogates: bool) -> tuple[JsonList, JsonObject | None]:
    """With `surrogates`, the bytes came from a str by `surrogatepass`."""
    value, start = read(data, surrogates=surrogates)
    if isinstance(value, JsonList):
        return value, None
    if not isinstance(value, JsonObject):
        raise TranscriptError("history", offset=start)
    refuse_repeated(value, frozenset(BODY_KEYS))
    for key in BODY_KEYS:
        if isinstance(value.get(key), JsonList):
            return value[key], value
    field = next((key for key in BODY_KEYS if key in value), None)
    raise TranscriptError("history", offset=value.spans[field][0] if field else start, field=field)
