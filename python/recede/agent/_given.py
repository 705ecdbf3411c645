"""Checks of the arguments of a `Conversation`, and the provider that they imply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from recede._encodable import encodable
from recede._objects import read
from recede.agent._tool_calls import Shape
from recede.reduction._kinds import optional_function


def spoken_message(content: Any) -> dict[str, Any]:
    """Make a user message without blank text parts, which Anthropic refuses, in every later request, too."""
    if not isinstance(content, (str, list)):
        raise TypeError(f"a message must be a text or a list of content parts, not {type(content).__name__}")
    said = content.strip() if isinstance(content, str) else [part for part in content if not _is_blank(part)]
    if not said:
        raise ValueError("the message is empty, which every provider refuses")
    return {"role": "user", "content": encodable(content if isinstance(content, str) else said)}


def _is_blank(part: Any) -> bool:
    text = read(part, "text")
    return read(part, "type") == "text" and not (text.strip() if isinstance(text, str) else text)


def check_tools(tools: Any, run_tool: Any) -> None:
    if not isinstance(tools, (list, tuple)):
        raise TypeError(f"tools must be a list of definitions, not {type(tools).__name__}")
    if tools and run_tool is None:
        raise TypeError("give run_tool, the function that runs the tools")
    optional_function("run_tool", run_tool)


def client_of(create: Callable[..., Any]) -> str:
    """Name the package of a client's method: ``"anthropic"`` and ``"openai"`` are the official clients."""
    return type(getattr(create, "__self__", None)).__module__.partition(".")[0]


def shape_of(create: Callable[..., Any], tools: Sequence[Any]) -> Shape:
    """Find the provider that the client or the tools imply."""
    client = client_of(create)
    if client == "openai" or (client != "anthropic" and any(read(tool, "function") for tool in tools)):
        return "openai"
    return "anthropic"
