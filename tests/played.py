"""A provider on this machine that plays a model for real agents: each answer is one tool call, the last one says so."""

from __future__ import annotations

import json
import re
from typing import Any

from proxied import Answer, Request, answer_of, chunked

TURNS = 60
LAST = "All of the work is done."
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"


def play(request: Request) -> Answer:
    """The answer to a request of an agent."""
    path = request.target.partition("?")[0]
    if request.method == "GET" and path.endswith("/responses"):  # Codex tries a WebSocket first
        return [answer_of(b"{}", "426 Upgrade Required")]
    try:
        body = json.loads(request.body)
    except ValueError:
        return [answer_of(b"{}", "404 Not Found")]
    if path.endswith("/v1/messages"):
        return _anthropic(body)
    if path.endswith("/v1/messages/count_tokens"):
        return [_json({"input_tokens": len(request.body) // 4})]
    if path.endswith("/responses"):
        return _responses(body)
    if path.endswith("/chat/completions"):
        return _chat(body)
    if path.endswith((":streamGenerateContent", ":generateContent")):
        return _gemini(body, ":stream" in path)
    return [answer_of(b"{}", "404 Not Found")]


def is_turn(body: dict[str, Any]) -> bool:
    """Whether a request is one of the agent's loop: that can run commands."""
    return _command(body, 0) is not None


def _command(body: dict[str, Any], number: int) -> tuple[str, Any] | None:
    """A call of the tool that runs commands: its output is long, and another one each time."""
    # One agent loses the output of a command that ends at once.
    script = f"seq -s ' ' {1_000 + 37 * number} {2_200 + 41 * number}; sleep 0.1"
    inputs: dict[str, Any] = {
        "bash": {"command": script, "description": f"Count, part {number}"},
        "Bash": {"command": script, "description": f"Count, part {number}"},
        "exec": f"text(await tools.exec_command({json.dumps({'cmd': script})}));",
        "exec_command": {"cmd": script},
        "shell_command": {"command": script},
        "shell": {"command": ["bash", "-lc", script]},
        "run_shell_command": {"command": script, "description": f"Counts, part {number}"},
    }
    added = [tool for item in body.get("input", ()) for tool in item.get("tools") or ()]  # Codex, in "code mode"
    declared = [
        one
        for tool in [*(body.get("tools") or []), *added]
        for one in tool.get("functionDeclarations") or tool.get("tools") or [tool]
    ]
    names = {tool.get("name") or tool.get("function", {}).get("name") for tool in declared}
    name = next((name for name in inputs if name in names), None)
    return None if name is None else (name, inputs[name])


def _done(text: str) -> int:
    """How many calls have been answered; also those whose results are masked."""
    return len(set(re.findall(r'"(?:tool_use_id|tool_call_id|call_id)": "(call_\d+)"', text)))


def _json(value: Any) -> bytes:
    return answer_of(json.dumps(value).encode(), "200 OK", "Content-Type: application/json")


def _stream(events: list[tuple[str | None, Any]]) -> Answer:
    lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
    return [_HEAD, chunked(*(line.encode() for line in lines)), b"0\r\n\r\n"]


def _anthropic(body: dict[str, Any]) -> Answer:
    done = _done(json.dumps(body["messages"]))
    call = _command(body, done)
    is_over = call is None or done >= TURNS
    name, value = call or ("", {})
    usage = {"input_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 9, "output_tokens": 9}
    message = {"id": f"msg_{done}_{id(body)}", "type": "message", "role": "assistant", "model": body["model"]}
    stop = "end_turn" if is_over else "tool_use"
    block: dict[str, Any] = {"type": "text", "text": LAST}
    if not is_over:
        block = {"type": "tool_use", "id": f"call_{done}", "name": name, "input": value}
    if not body.get("stream"):
        return [_json({**message, "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage})]
    empty = {**block, "text": ""} if is_over else {**block, "input": {}}
    delta = {"type": "text_delta", "text": LAST}
    if not is_over:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(value)}
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    events: list[Any] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    return _stream([(event["type"], event) for event in events])


def _responses(body: dict[str, Any]) -> Answer:
    done = _done(json.dumps([item for item in body["input"] if str(item.get("type")).endswith("_output")]))
    call = _command(body, done)
    item: dict[str, Any] = {"type": "message", "role": "assistant", "id": f"msg_{done}"}
    item["content"] = [{"type": "output_text", "text": LAST, "annotations": []}]
    if call is not None and done < TURNS:
        name, value = call
        item = {"type": "function_call", "id": f"fc_{done}", "call_id": f"call_{done}", "name": name}
        if isinstance(value, str):  # a script
            item |= {"type": "custom_tool_call", "input": value}
        else:
            item["arguments"] = json.dumps(value)
    response = {"id": f"resp_{done}", "object": "response", "model": body["model"], "output": []}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 100, "output_tokens": 9, "total_tokens": 109, **details}
    events: list[Any] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "status": "completed", "usage": usage}},
    ]
    return _stream([(event["type"], event) for event in events])


def _chat(body: dict[str, Any]) -> Answer:
    done = _done(json.dumps(body["messages"]))
    call = _command(body, done)
    delta: dict[str, Any] = {"role": "assistant", "content": LAST}
    if call is not None and done < TURNS:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        delta = {"role": "assistant", "content": None}
        delta["tool_calls"] = [{"index": 0, "id": f"call_{done}", "type": "function", "function": function}]
    stop = "tool_calls" if "tool_calls" in delta else "stop"
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}
    head = {"id": f"chatcmpl_{done}", "created": 0, "model": body["model"]}
    if not body.get("stream"):
        choice = {"index": 0, "message": delta, "finish_reason": stop}
        return [_json({**head, "object": "chat.completion", "choices": [choice], "usage": usage})]
    head["object"] = "chat.completion.chunk"
    events: list[Any] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]},
        {**head, "choices": [], "usage": usage},
    ]
    lines = [chunked(f"data: {json.dumps(event)}\n\n".encode()) for event in events]
    return [_HEAD, *lines, chunked(b"data: [DONE]\n\n"), b"0\r\n\r\n"]


def _gemini(body: dict[str, Any], is_streamed: bool) -> Answer:
    done = sum("functionResponse" in part for content in body["contents"] for part in content.get("parts", []))
    call = _command(body, done)
    part: dict[str, Any] = {"text": LAST}
    if call is not None and done < TURNS:
        part = {"functionCall": {"name": call[0], "args": call[1]}, "thoughtSignature": "c2lnbmVk"}
    elif call is None:  # the agent asks whether it loops, or who should answer
        part = {"text": json.dumps({"unproductive_state_analysis": "", "unproductive_state_confidence": 0.0})}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 9, "totalTokenCount": 109}
    content = {"role": "model", "parts": [part]}
    found = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
    return _stream([(None, found)]) if is_streamed else [_json(found)]
