"""The tool with which an agent fetches a masked observation, and the placeholders that name its handle."""

from __future__ import annotations

from typing import Any

RECALL_DESCRIPTION = "Fetch the full text of a masked observation again, by the handle in its placeholder."
RECALL_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"handle": {"type": "string", "description": "The 12 characters after `recall` in the placeholder."}},
    "required": ["handle"],
    "additionalProperties": False,
}

_Template = tuple[tuple[str, str], ...]

PLACEHOLDER = "[old tool output cleared to save context]"
"""The text of recede's own doors in place of an old result. It has no count: an agent that shortens an old result by
itself then changes no masked prefix."""


def with_handle(template: _Template | None) -> _Template:
    """Return a template that names the handle, before its last character if nowhere else; None: recede's own."""
    if template in (None, ((PLACEHOLDER, ""),)):
        return (f"{PLACEHOLDER[:-1]}, recall ", "handle"), (PLACEHOLDER[-1], "")
    if any(field == "handle" for _, field in template):
        return template
    literal, field = template[-1]
    if field or not literal:
        return (*template, (" recall ", "handle"))
    return (*template[:-1], (f"{literal[:-1]} recall ", "handle"), (literal[-1], ""))


def recall_tool(shape: str = "openai") -> dict[str, Any]:
    """Return the schema of the tool that fetches a masked observation by the handle in its placeholder.

    Args:
        shape: ``"openai"`` (chat completions), ``"responses"``, or ``"anthropic"``.

    Raises:
        ValueError: there is no such shape.

    Example:
        >>> from recede.masker import recall_tool
        >>> recall_tool("anthropic")["input_schema"]["required"]
        ['handle']
    """
    return _tool(shape, RECALL_DESCRIPTION, RECALL_PARAMETERS)


def turn_tool(shape: str) -> dict[str, Any]:
    """Return the schema of the tool that fetches the observation of a turn by its number."""
    turn = {"type": "integer", "description": "The number after `recall` in the placeholder."}
    parameters = {"type": "object", "properties": {"turn": turn}, "required": ["turn"], "additionalProperties": False}
    return _tool(shape, "Fetch the full text of a masked observation again, by the number of its turn.", parameters)


def _tool(shape: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    described = {"name": "recall", "description": description}
    if shape == "anthropic":
        return {**described, "input_schema": parameters}
    if shape == "responses":
        return {"type": "function", **described, "parameters": parameters}
    if shape == "openai":
        return {"type": "function", "function": {**described, "parameters": parameters}}
    raise ValueError(f"shape must be 'openai', 'responses' or 'anthropic', not {shape!r}")
