"""The arguments of a `Conversation`: checks, the provider that they imply, and cache marks in its requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_not
from typing import Any

from recede._encodable import encodable
from recede._objects import changed, read
from recede.agent._tool_calls import Shape
from recede.providers import Provider
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


_MARK = "cache_control"
_VALUE = {"type": "ephemeral"}
# The messages need two.
_MOST_ELSEWHERE = Provider.of("anthropic").most_marks - 2


def marked_request(request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], int]:
    """A request without messages, with a mark on its system prompt; the mark for its messages; and its number of marks.

    Marks that it has count: a system prompt that has one gets no other. Without a system prompt the last tool gets it.
    """
    own = request.get(_MARK)
    value = own if isinstance(own, dict) else _VALUE
    system, tools = request.get("system"), request.get("tools")
    on_system, on_tools = _marks_on(system), _marks_on(tools)
    count = on_system + on_tools + (own is not None)
    if on_system or count >= _MOST_ELSEWHERE:
        return request, value, count
    if isinstance(system, str) and system.strip():
        return {**request, "system": [{"type": "text", "text": system, _MARK: value}]}, value, count + 1
    if isinstance(system, (list, tuple)) and system and (read(system[-1], "text") or "").strip():
        return {**request, "system": [*system[:-1], changed(system[-1], **{_MARK: value})]}, value, count + 1
    if not system and tools and not on_tools:
        return {**request, "tools": [*tools[:-1], changed(tools[-1], **{_MARK: value})]}, value, count + 1
    return request, value, count


def _marks_on(blocks: Any) -> int:
    return sum(read(block, _MARK) is not None for block in blocks) if isinstance(blocks, (list, tuple)) else 0


_LEVELS = 3  # a message has results, these have documents, and these have texts
_WITH_PARTS = ("tool_result", "mcp_tool_result", "search_result")


def newest_mark_only(messages: list[Any]) -> list[Any]:
    """The messages with only the newest of their cache marks; the list itself if there is nothing to change."""
    sent, is_kept = list(messages), False
    for place in range(len(sent) - 1, -1, -1):
        if isinstance(sent[place], dict):
            sent[place], is_kept = _unmarked_parts(sent[place], is_kept, _LEVELS)
    return sent if any(map(is_not, sent, messages)) else messages


def _unmarked_parts(holder: dict[str, Any], is_kept: bool, levels: int) -> tuple[dict[str, Any], bool]:
    """A message or block without the marks of its parts, except the newest if none is kept yet; and whether one is."""
    parts = holder.get("content")
    if isinstance(parts, list):
        changed = list(parts)
        for index in range(len(changed) - 1, -1, -1):
            changed[index], is_kept = _unmarked(changed[index], is_kept, levels - 1)
        if any(map(is_not, changed, parts)):
            holder = {**holder, "content": changed}
    return holder, is_kept


def _unmarked(block: Any, is_kept: bool, levels: int) -> tuple[Any, bool]:
    if not isinstance(block, dict):
        return block, is_kept
    if block.get(_MARK) is not None:
        if is_kept:
            block = {name: field for name, field in block.items() if name != _MARK}
        is_kept = True
    if not levels:
        return block, is_kept
    if block.get("type") == "document" and isinstance(block.get("source"), dict):
        source, is_kept = _unmarked_parts(block["source"], is_kept, levels)
        return (block if source is block["source"] else {**block, "source": source}), is_kept
    return _unmarked_parts(block, is_kept, levels) if block.get("type") in _WITH_PARTS else (block, is_kept)
