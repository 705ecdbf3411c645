"""Values of a model's answer in a form that a client can send: JSON, without lone surrogates."""

from __future__ import annotations

import functools
import json
import logging
import math
from operator import is_
from typing import Any

from recede._objects import MOST_LEVELS, is_object, plain

_log = logging.getLogger("recede")


def encodable(value: Any, level: int = 0) -> Any:
    """Convert a value to a form that a client can send: surrogate pairs are joined, lone surrogates replaced.

    Values that need no change, and objects of a client whose fields need none, are returned as they are.

    Raises:
        TypeError: it contains something that JSON cannot represent.
        ValueError: it contains a number that JSON cannot represent, or is nested too deeply.
    """
    if isinstance(value, str):
        return value if value.isascii() else _joined(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise ValueError(f"it contains {value}, which JSON cannot represent")
    if level > MOST_LEVELS:
        raise ValueError(f"it is nested deeper than {MOST_LEVELS} levels")
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("it contains an object with a key that is not a string")
        fields = {encodable(name): encodable(field, level + 1) for name, field in value.items()}
        is_same = all(name in value and fields[name] is value[name] for name in fields)
        return value if is_same and len(fields) == len(value) else fields
    if isinstance(value, (list, tuple)):
        elements = [encodable(element, level + 1) for element in value]
        is_same = isinstance(value, list) and all(map(is_, elements, value))
        return value if is_same else elements
    if is_object(value):
        form = plain(value)
        sound = encodable(form, level + 1)
        return value if sound is form else sound
    raise TypeError(f"it contains a {type(value).__name__}, which JSON cannot represent")


def _joined(text: str) -> str:
    """Replace lone surrogates of a text; a surrogate pair becomes one character, as in a JSON parser."""
    try:
        text.encode()
    except UnicodeEncodeError:
        units = text.encode("utf-16-le", "surrogatepass")
    else:
        return text
    try:
        return units.decode("utf-16-le")
    except UnicodeDecodeError:
        warn_once("a text contained lone surrogates, which no client can send: each was replaced by U+FFFD")
        return units.decode("utf-16-le", "replace")


@functools.lru_cache(64)
def warn_once(what: str) -> None:
    _log.warning(what)


def parsed(written: str) -> dict[str, Any]:
    """Parse the input of a call as the model wrote it; a ValueError if it is no JSON object that could be sent."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        value = encodable(json.loads(written, parse_constant=refuse)) if written.strip() else {}
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value
