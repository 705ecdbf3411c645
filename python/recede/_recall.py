"""The tool with which an agent fetches a masked observation, and the placeholder that names it."""

from __future__ import annotations

TYPE_CHECKING = False  # spares the import of typing, which takes longer than all of recede
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RECALL_DESCRIPTION", "RECALL_NUMBER", "RECALL_PLACEHOLDER", "recall_tool"]

RECALL_PLACEHOLDER = "[observation masked — {chars} chars, recall #{number}]"
"""A placeholder that names the number to pass to the tool."""
RECALL_DESCRIPTION = "Fetch the full text of a masked observation again."
RECALL_NUMBER = "The number after `recall #` in the placeholder."


def recall_tool(shape: str = "openai") -> dict[str, Any]:
    """The schema of a tool with which the agent can fetch a masked observation, by the number in its placeholder.

    Args:
        shape: ``"openai"`` (chat completions), ``"responses"``, or ``"anthropic"``.

    Raises:
        ValueError: there is no such shape.

    Example:
        >>> from recede.masker import recall_tool
        >>> recall_tool("anthropic")["input_schema"]["required"]
        ['number']
    """
    number = {"type": "integer", "minimum": 1, "description": RECALL_NUMBER}
    parameters = {"type": "object", "properties": {"number": number}, "required": ["number"]}
    described = {"name": "recall", "description": RECALL_DESCRIPTION}
    if shape == "anthropic":
        return {**described, "input_schema": parameters}
    if shape == "responses":
        return {"type": "function", **described, "parameters": parameters}
    if shape == "openai":
        return {"type": "function", "function": {**described, "parameters": parameters}}
    raise ValueError(f"shape must be 'openai', 'responses' or 'anthropic', not {shape!r}")
