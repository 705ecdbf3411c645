"""Cache marks of messages: the newest of them alone."""

from __future__ import annotations

from operator import is_not
from typing import Any

_MARK = "cache_control"
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
