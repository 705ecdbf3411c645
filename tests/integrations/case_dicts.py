"""Plain dicts and a loop of one's own, with a `Masker`: what every adapter is compared with."""

from __future__ import annotations

import json
from typing import Any

from sessions import LAST, Turn, as_dicts, shown

import recede

WAYS = ("sync", "failing")


def reasoned(answer: Any, thought: str) -> Any:
    thinking = {"type": "thinking", "thinking": thought, "signature": f"of {thought}"}
    return {**answer, "content": [thinking, *answer["content"]]}


def thoughts(message: Any) -> list[str]:
    blocks = message["content"] if isinstance(message["content"], list) else []
    return [block["thinking"] for block in blocks if block["type"] == "thinking"]


def history(turns: list[Turn]) -> list[Any]:
    return as_dicts(turns)


def masking(**options: Any) -> recede.masker.Masker[Any]:
    return recede.masker.Masker(**options)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    given: list[Any] = masking.view(messages)
    return given


def results(messages: list[Any]) -> list[tuple[str, str]]:
    return shown(messages)


def calls(messages: list[Any]) -> list[str]:
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    return [block["id"] for block in blocks if block["type"] == "tool_use"]


def body(messages: list[Any]) -> tuple[str, dict[str, Any]]:
    return "anthropic", {"model": "m", "max_tokens": 9, "messages": messages}


def reloaded(messages: list[Any]) -> list[Any]:
    loaded: list[Any] = json.loads(json.dumps(messages))
    return loaded


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    stored: list[Any] = as_dicts([])
    requests = []
    for turn in [*turns, LAST]:
        for _ in range(2 if way == "failing" else 1):
            requests.append(masking.view(stored))
        stored += as_dicts([turn])[1:]
        for call in turn.calls:
            if call.name == "recall":
                try:
                    text = masking.recall(stored, call.args["handle"])
                except LookupError as error:
                    text = f"{error}: call the tool again"
                stored.append(
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": text}]}
                )
    return requests, stored
