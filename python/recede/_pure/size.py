"""The approximate length of a value as compact JSON."""

from __future__ import annotations

from typing import Any

from recede._objects import is_object
from recede._pure.reading import MAX_DEPTH, JsonObject

# Characters of any value that is no string, object or list.
_SCALAR_CHARS = 4


class TooDeep(Exception):
    """A value is nested over 1,024 levels."""


class ForeignObject(Exception):
    """A value holds an object of a client, which must first be converted."""


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
                raise TooDeep
            if isinstance(value, dict):
                keys, members = _members(value)
                chars += sum(len(key) + 2 if isinstance(key, str) else _SCALAR_CHARS for key in keys)
                chars += len(keys)  # colons
            else:
                members = list(value)
            chars += len("[]") + max(0, len(members) - 1)  # brackets and commas
            waiting += [(member, depth + 1) for member in members]
        elif is_object(value):
            raise ForeignObject
        else:
            chars += _SCALAR_CHARS
    return chars


def _members(value: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The keys and values of all members, including those replaced by a later member of the same key."""
    keys, values = list(value), list(value.values())
    if isinstance(value, JsonObject):
        keys += [key for key, _, _ in value.repeated]
        values += [replaced for _, _, replaced in value.repeated]
    return keys, values
