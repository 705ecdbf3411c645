"""Cache marks in the requests of a `Conversation`: on the system prompt, the newest block, and the boundary."""

from __future__ import annotations

from typing import Any

from recede._objects import changed, read
from recede.providers import Provider

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
