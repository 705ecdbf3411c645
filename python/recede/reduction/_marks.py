"""Cache marks of messages: the newest of them alone."""

from __future__ import annotations

from typing import Any

_MARK = "cache_control"
_LEVELS = 2  # a result has documents, and these have texts
_WITH_PARTS = ("tool_result", "mcp_tool_result", "search_result")


def newest_mark_only(messages: list[Any]) -> list[Any]:
    """The messages with only the newest of their cache marks; the list itself if there is nothing to change."""
    sent, is_kept = list(messages), False
    for place in range(len(sent) - 1, -1, -1):
        content = sent[place].get("content") if isinstance(sent[place], dict) else None
        if isinstance(content, list):
            blocks = list(content)
            for index in range(len(blocks) - 1, -1, -1):
                blocks[index], is_kept = _unmarked(blocks[index], is_kept)
            if any(map(_is_not, blocks, content)):
                sent[place] = {**sent[place], "content": blocks}
    return sent if any(map(_is_not, sent, messages)) else messages


def _unmarked(block: Any, is_kept: bool, levels: int = _LEVELS) -> tuple[Any, bool]:
    """The block without its marks, except its newest if none is kept yet; and whether one is kept now."""
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


def _unmarked_parts(block: dict[str, Any], is_kept: bool, levels: int) -> tuple[dict[str, Any], bool]:
    parts = block.get("content")
    if isinstance(parts, list):
        changed = list(parts)
        for index in range(len(changed) - 1, -1, -1):
            changed[index], is_kept = _unmarked(changed[index], is_kept, levels - 1)
        if any(map(_is_not, changed, parts)):
            block = {**block, "content": changed}
    return block, is_kept


def _is_not(one: Any, other: Any) -> bool:
    return one is not other
