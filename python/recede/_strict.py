"""JSON that another may have written: parsed strictly, and checked, where it comes in."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from recede._errors import TranscriptError

__all__ = ["are_numbers", "parsed", "unique"]

_LARGEST = (1 << 48) - 1  # no count comes near it, and no sum of counts passes 64 bits


def parsed(raw: bytes | str) -> Any:
    """The value of strict JSON.

    Raises:
        ValueError: it is none, or nested so deep that nobody could use it.
    """
    text = raw if isinstance(raw, str) else raw.decode("utf-8", "surrogatepass")
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise TranscriptError("depth") from None


def unique(raw: bytes | str) -> dict[str, Any]:
    """The value of a strict JSON object in which no key stands twice, at any depth.

    Raises:
        ValueError: it is none.
    """
    text = raw if isinstance(raw, str) else raw.decode("utf-8", "surrogatepass")
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except RecursionError:
        raise TranscriptError("depth") from None
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def are_numbers(values: Iterable[Any], largest: int = _LARGEST) -> bool:
    """Whether these are whole numbers from 0, none larger than this."""
    return all(type(value) is int and 0 <= value <= largest for value in values)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key stands twice")
    return value
