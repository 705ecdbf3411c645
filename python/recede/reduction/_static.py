"""Static parts of a request: sent with each view besides its messages, and counted towards its limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recede._bodies import loads
from recede._errors import TranscriptError
from recede.reduction._counting import count_tokens
from recede.reduction._kinds import CHARS_PER_TOKEN

if TYPE_CHECKING:
    from recede.types import TokenCounter

OVER_LIMIT = (
    "a request is over max_input_tokens although old results are masked and long ones cut: it is sent; only "
    "recede.reduce and recede.History drop messages, or the compaction of the framework or agent"
)

_FIELDS = (
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
    "tools",
    "toolConfig",
    "functions",
)
"""The fields of requests, of all providers, that have the system prompt and the tools."""

_MARK = "cache_control"
_FREE_VALUES, _LEAST_BYTES = 1 << 16, 32  # as the scanner of a request bounds those of its history


def has_limits(options: Mapping[str, Any]) -> bool:
    """Whether the size of a request matters to these options."""
    return options.get("max_input_tokens") is not None or bool(options.get("trigger_tokens"))


def static_cost(request: Mapping[str, Any], counter: TokenCounter | None) -> int:
    """The system prompt and tools of a request, in quarter tokens: a string by its text, all else as compact JSON.

    Cache marks do not count: they come and go.
    """
    from recede._objects import plain

    cost = 0
    for name in _FIELDS:
        value = request.get(name)
        if value is not None:
            text = value if isinstance(value, str) else _compact(unmarked(plain(value)))
            cost += len(text) if counter is None else CHARS_PER_TOKEN * count_tokens(counter, text)
    return cost


def static_cost_of_json(
    engine: Any, data: bytes, surrogates: bool, counter: TokenCounter | None, *, is_bounded: bool = False
) -> int:
    """The static cost of a serialized request; if it is bounded, very many small values in it are a `TranscriptError`.

    They take memory by their number, as objects of Python do.
    """
    values = engine.fields(data, surrogates, list(_FIELDS))
    if is_bounded:
        count = sum(value.count(mark) for value in values if value is not None for mark in b",[{")
        if count > _FREE_VALUES + len(data) // _LEAST_BYTES:
            raise TranscriptError("size")
    found = {name: loads(value) for name, value in zip(_FIELDS, values, strict=True) if value is not None}
    return static_cost(found, counter)


def unmarked(value: Any) -> Any:
    """A value without its cache marks, which move while the history stays."""
    if isinstance(value, dict):
        return {name: unmarked(one) for name, one in value.items() if name != _MARK}
    return list(map(unmarked, value)) if isinstance(value, (list, tuple)) else value


def _compact(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
