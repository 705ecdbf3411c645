"""What the cases read of messages in OpenAI's chat form."""

from __future__ import annotations

import json
from typing import Any


def results(messages: list[Any]) -> list[tuple[str, str]]:
    return [(one["tool_call_id"], _text(one["content"])) for one in messages if one["role"] == "tool"]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def calls(messages: list[Any]) -> list[str]:
    return [call["id"] for one in messages for call in one.get("tool_calls") or ()]


def reloaded(messages: list[Any]) -> list[Any]:
    loaded: list[Any] = json.loads(json.dumps(messages))
    return loaded
