"""Long sessions of agents in which masking pays: the logs that they leave, and the histories that they send."""

from __future__ import annotations

import json
from typing import Any

from transcript_files import claude, lines

from support import dumps, tool_result, tool_use, user

STEPS = 90
TALK = "Next, I look into that. " * 125, 200  # what the agent says with each call, and the calls: summaries pay
Messages = list[dict[str, Any]]


def answers(steps: int) -> list[tuple[str, dict[str, Any], str]]:
    """Calls and results of a session, of sizes that agents have."""
    return [
        (f"c{step}", {"command": f"make {step}"}, f"{step} passed " * (40 + step * 37 % 500)) for step in range(steps)
    ]


def texts(said: str, kind: str = "text") -> Messages:
    return [{"type": kind, "text": said}] if said else []


def anthropic(said: str = "", steps: int = STEPS) -> Messages:
    history: Messages = [user("Go.")]
    for name, value, text in answers(steps):
        content = [*texts(said), *tool_use(name, name="Bash", value=value)["content"]]
        history += [{"role": "assistant", "content": content}, user([tool_result(name, text)])]
    return [*history, {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}]


def claude_log(said: str = "", steps: int = STEPS) -> bytes:
    return lines(*(claude(message["role"], message) for message in anthropic(said, steps)))


def pi_log(said: str = "", steps: int = STEPS) -> bytes:
    records: list[Any] = [{"type": "session", "id": "1"}, {"type": "message", "message": user("Go.")}]
    for name, value, text in answers(steps):
        call = {"type": "toolCall", "id": name, "name": "bash", "arguments": value}
        result = {"role": "toolResult", "toolCallId": name, "content": [{"type": "text", "text": text}]}
        records.append({"type": "message", "message": {"role": "assistant", "content": [*texts(said), call]}})
        records.append({"type": "message", "message": result})
    records.append(
        {"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}}
    )
    return lines(*records)


def responses(said: str = "", steps: int = STEPS) -> Messages:
    items: Messages = [{"type": "message", **user([{"type": "input_text", "text": "Go."}])}]
    for name, value, text in answers(steps):
        content = texts(said, "output_text")
        items += [{"type": "message", "role": "assistant", "content": content}] if content else []
        items.append({"type": "function_call", "call_id": name, "name": "run", "arguments": json.dumps(value)})
        items.append({"type": "function_call_output", "call_id": name, "output": text})
    done = {"type": "output_text", "text": "Done."}
    return [*items, {"type": "message", "role": "assistant", "content": [done]}]


def codex_log(said: str = "", steps: int = STEPS) -> bytes:
    return lines(*({"type": "response_item", "payload": item} for item in responses(said, steps)))


def contents(said: str = "", steps: int = STEPS) -> Messages:
    history: Messages = [{"role": "user", "parts": [{"text": "Go."}]}]
    for name, value, text in answers(steps):
        call = {"functionCall": {"id": name, "name": "run", "args": value}}
        result = {"functionResponse": {"id": name, "name": "run", "response": {"output": text}}}
        history += [
            {"role": "model", "parts": [*([{"text": said}] if said else []), call]},
            {"role": "user", "parts": [result]},
        ]
    return [*history, {"role": "model", "parts": [{"text": "Done."}]}]


def gemini_log(said: str = "", steps: int = STEPS) -> bytes:
    records: list[Any] = [{"type": "user", "content": "Go."}]
    for name, value, text in answers(steps):
        result = [{"functionResponse": {"id": name, "name": "run", "response": {"output": text}}}]
        call = {"id": name, "name": "run", "args": value, "result": result}
        records.append({"type": "gemini", "content": said, "toolCalls": [call]})
    return dumps({"sessionId": "1", "messages": [*records, {"type": "gemini", "content": "Done."}]})
