"""Strict parsing and validation of untrusted JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from recede._errors import TranscriptError

_LARGEST = (1 << 48) - 1  # above any real count, and sums of counts still fit in 64 bits


def parsed(raw: bytes | str, pairs_hook: Any = None) -> Any:
    """Parse strict JSON; a ValueError if it is none, or is nested too deeply."""
    text = raw if isinstance(raw, str) else raw.decode("utf-8", "surrogatepass")
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=pairs_hook)
    except RecursionError:
        raise TranscriptError("depth") from None


def unique(raw: bytes | str) -> dict[str, Any]:
    """Parse a strict JSON object without duplicate keys at any depth; a ValueError if it is none."""
    value = parsed(raw, _once)
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def are_numbers(values: Iterable[Any], largest: int = _LARGEST) -> bool:
    """Whether all values are whole numbers from 0 up to a limit."""
    return all(type(value) is int and 0 <= value <= largest for value in values)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a duplicate key")
    return value
