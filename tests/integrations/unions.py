"""A sample of each member of a framework's own union of contents, by its name, so that a new one is tried too."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, Literal, Union

from typing_extensions import get_type_hints

LINE = "a line of the log"
LONG = f"{LINE}\n" * 60
_LISTS = (list, Iterable, Sequence)
_QUALIFIERS = {"NotRequired", "ReadOnly", "Required"}
_MOST_LEVELS = 5


def samples(union: Any) -> dict[str, Any]:
    """A value for each TypedDict among the members of a union: all fields are given, and all texts are long."""
    return {_name(member): _sample(member, 0) for member in members(union) if hasattr(member, "__total__")}


def _name(member: Any) -> str:
    return str(getattr(member, "__name__", member))


def members(union: Any) -> list[Any]:
    """The members, those of unions in it too, without None."""
    if typing.get_origin(union) is typing.Annotated:
        return members(typing.get_args(union)[0])
    if typing.get_origin(union) in (Union, UnionType):
        return [one for part in typing.get_args(union) for one in members(part)]
    return [] if union is type(None) else [union]


def _sample(kind: Any, level: int) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated or _name(origin) in _QUALIFIERS:
        return _sample(arguments[0], level)
    if origin is Literal:
        return arguments[0]
    if origin in (Union, UnionType):
        return _sample(members(kind)[0], level)
    if origin in _LISTS:
        return [_sample(arguments[0], level + 1)] if level < _MOST_LEVELS else []
    if hasattr(kind, "__total__"):  # a TypedDict of typing or of typing_extensions
        hints = get_type_hints(kind, include_extras=True)
        return {name: _sample(hint, level + 1) for name, hint in hints.items() if level < _MOST_LEVELS}
    if origin in (dict, Mapping) or kind is dict:
        return {"key": LONG}
    return {int: 1, float: 1.0, bool: True}.get(kind, LONG)
