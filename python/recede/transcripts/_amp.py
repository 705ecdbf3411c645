"""Threads of Amp: Anthropic's messages, whose results are runs of tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recede.transcripts._draft import Draft, fields, objects, texts


def recognizes(value: Any) -> bool:
    """Whether the value is a thread: a result names its call by `toolUseID`, and has a run."""
    return any(
        block.get("type") == "tool_result" and "toolUseID" in block
        for message in objects(fields(value).get("messages"))
        for block in objects(message.get("content"))
    )


def read(value: Any) -> Iterator[Draft]:
    draft = Draft()
    for message in objects(value["messages"]):
        draft.records += 1
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            usage = message.get("usage")
            draft.request(usage, fields(usage).get("model"), fields(usage).get("timestamp"))
        blocks = [_block(block) for block in objects(content)]
        draft.add({"role": role, "content": blocks if isinstance(content, list) else content})
    yield draft


def _block(block: dict[str, Any]) -> dict[str, Any]:
    if block.get("type") == "tool_use":
        return {name: block.get(name) for name in ("type", "id", "name", "input")}
    if block.get("type") != "tool_result" or "toolUseID" not in block:
        return block
    run = fields(block.get("run"))
    said = run.get("result", run.get("error", run.get("reason")))
    found = {
        "type": "tool_result",
        "tool_use_id": block["toolUseID"],
        "content": texts(fields(said).get("message", said)),
    }
    return {**found, "is_error": True} if run.get("status") == "error" else found
