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
