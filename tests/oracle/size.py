"""The approximate length of a value as compact JSON."""

from __future__ import annotations

from typing import Any

from oracle.reading import MAX_DEPTH
from recede._objects import is_object

_SCALAR_CHARS = 4
"""Characters of any value that is no string, object or list."""


class Unsized(Exception):
    """A value is nested too deep, "depth", or holds a client's object, which must be converted first, "part"."""


def compact_chars(value: Any, depth: int) -> int:
    """The approximate length of a value's compact JSON. `depth` is its nesting level."""
    chars = 0
    waiting = [(value, depth)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            chars += len(value) + 2
        elif value is False:
            chars += len("false")
        elif isinstance(value, (dict, list, tuple)):
            if depth == MAX_DEPTH:
                raise Unsized("depth")
            members = list(value)
            if isinstance(value, dict):
                # Members that a later one of the same key replaced count too.
                pairs = [*value.items(), *((key, one) for key, _, one in getattr(value, "repeated", ()))]
                chars += sum(1 + (len(key) + 2 if isinstance(key, str) else _SCALAR_CHARS) for key, _ in pairs)
                members = [one for _, one in pairs]
            chars += len("[]") + max(0, len(members) - 1)  # brackets and commas
            waiting += [(member, depth + 1) for member in members]
        elif is_object(value):
            raise Unsized("part")
        else:
            chars += _SCALAR_CHARS
    return chars


_MARK = 3
"""Quarter tokens of a bracket, a comma, a colon or a quote."""


def weight(text: str) -> int:
    """Quarter tokens of a text, before the scale of its model: no space, 3 for a digit or mark, a letter 1."""
    data = text.encode("utf-8", "surrogatepass")
    low = sum(byte < 0x40 and byte != 0x20 for byte in data)
    return len(data) - data.count(b" ") + 2 * low


def json_weight(value: Any) -> int:
    """The same of a value as compact JSON, with four digits for each number."""
    if isinstance(value, str):
        return weight(value) + 2 * _MARK
    if isinstance(value, dict):
        pairs = [*value.items(), *((key, one) for key, _, one in getattr(value, "repeated", ()))]
        keys = sum(json_weight(key) if isinstance(key, str) else 4 * _MARK for key, _ in pairs)
        inside = keys + _MARK * len(pairs) + sum(json_weight(one) for _, one in pairs)
        return inside + _MARK * (2 + max(0, len(pairs) - 1))
    if isinstance(value, (list, tuple)):
        return sum(map(json_weight, value)) + _MARK * (2 + max(0, len(value) - 1))
    if isinstance(value, bool) or value is None:
        return len({True: "true", False: "false", None: "null"}[value])
    return 4 * _MARK


def opaque_weight(chars: int) -> int:
    """The same of JSON in which no text is read."""
    return chars * 13 // 10
