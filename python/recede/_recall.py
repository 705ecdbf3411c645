"""The tool with which an agent fetches a masked observation, and the placeholders that name its handle."""

from __future__ import annotations

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RECALL_DESCRIPTION", "RECALL_PARAMETERS", "recall_tool", "with_handle"]

RECALL_DESCRIPTION = "Fetch the full text of a masked observation again, by the handle in its placeholder."
RECALL_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"handle": {"type": "string", "description": "The 12 characters after `recall` in the placeholder."}},
    "required": ["handle"],
    "additionalProperties": False,
}

_Template = tuple[tuple[str, str], ...]

_HEAD = ("[observation masked — ", "chars")
_HEAD_OF_LINES = ("[observation masked — ", "lines")


def with_handle(template: _Template | None, *, has_lines: bool = False) -> _Template:
    """A template, or the built-in one for None, that names the handle: before its last character, if nowhere else."""
    if template is None:
        template = (_HEAD_OF_LINES, (" lines omitted,]", "")) if has_lines else (_HEAD, (" chars,]", ""))
    if any(field == "handle" for _, field in template):
        return template
    literal, field = template[-1]
    if field or not literal:
        return (*template, (" recall ", "handle"))
    return (*template[:-1], (f"{literal[:-1]} recall ", "handle"), (literal[-1], ""))


def recall_tool(shape: str = "openai") -> dict[str, Any]:
    """The schema of a tool with which the agent can fetch a masked observation, by the handle in its placeholder.

    Args:
        shape: ``"openai"`` (chat completions), ``"responses"``, or ``"anthropic"``.

    Raises:
        ValueError: there is no such shape.

    Example:
        >>> from recede.masker import recall_tool
        >>> recall_tool("anthropic")["input_schema"]["required"]
        ['handle']
    """
    described = {"name": "recall", "description": RECALL_DESCRIPTION}
    if shape == "anthropic":
        return {**described, "input_schema": RECALL_PARAMETERS}
    if shape == "responses":
        return {"type": "function", **described, "parameters": RECALL_PARAMETERS}
    if shape == "openai":
        return {"type": "function", "function": {**described, "parameters": RECALL_PARAMETERS}}
    raise ValueError(f"shape must be 'openai', 'responses' or 'anthropic', not {shape!r}")
