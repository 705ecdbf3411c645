"""What `recede.arrow` makes of a column: each row reduced by itself, with what is wrong as a value."""

from __future__ import annotations

import json
from typing import Any

import recede
from recede.reduction._unrecognized import unrecognized

__all__ = ["FIGURES", "reduced", "sizes"]

FIGURES = ("turns", "chars_before", "chars_after", "masked_count", "dropped_count", "within_limit", "reduction_stage")


def reduced(row: bytes | None, **options: Any) -> dict[str, Any]:
    """The view of a row, its figures, and its error, as the columns of a `Reducer` without a prefix."""
    nothing = dict.fromkeys(("view", "messages", *FIGURES, "error_kind", "error"))
    if row is None:
        return nothing
    try:
        result = recede.reduce(row, **options)
    except recede.TranscriptError as error:
        return {**nothing, "error_kind": error.kind, "error": str(error)}
    value = json.loads(row)
    history = value if isinstance(value, list) else value.get("messages", value.get("input", value.get("contents")))
    words = unrecognized(history)
    if words is not None:
        return {**nothing, "error_kind": "empty", "error": words}
    figures = {name: getattr(result, name) for name in FIGURES}
    return {**nothing, "view": result.json, "messages": len(history), **figures}


def sizes(row: bytes | None, keep: int) -> dict[str, Any]:
    """The columns of `Stats` without a prefix."""
    found = reduced(row, keep=keep, boundary="sliding")
    names = ("raw_chars", "observations", "observation_chars", "masked_view_chars")
    if found["view"] is None or row is None:
        return {**dict.fromkeys(("messages", "turns", *names, "masked_count")), **_error(found)}
    tools = recede.reduce(row, keep=keep).tools.values()
    observations = sum(tool.observations for tool in tools), sum(tool.chars for tool in tools)
    counts = (found["chars_before"], *observations, found["chars_after"])
    kept = {name: found[name] for name in ("messages", "turns", "masked_count")}
    return {**kept, **dict(zip(names, counts, strict=True)), **_error(found)}


def _error(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("error_kind", "error")}
