"""Small invented logs of agents of 2026, each with two results: name -> format, bytes, turns, first request's usage."""

from __future__ import annotations

import json
from typing import Any

from transcript_files import lines

from recede.transcripts import LoggedUsage


def _dumps(value: Any) -> bytes:
    return json.dumps(value).encode()


def _part(kind: str, **fields: Any) -> dict[str, Any]:
    return {"id": f"prt_{kind}", "sessionID": "ses_1", "type": kind, **fields}


def _tool(call_id: str, status: str = "completed", **state: Any) -> dict[str, Any]:
    return _part("tool", callID=call_id, tool="read", state={"status": status, "input": {"filePath": "/w"}, **state})


_TOKENS = {"input": 3, "output": 90, "reasoning": 10, "cache": {"read": 2_000, "write": 60}}
OPENCODE = {
    "info": {"id": "ses_1", "title": "t", "version": "1.4.0"},
    "messages": [
        {
            "info": {"id": "1", "role": "user", "time": {"created": 1}},
            "parts": [_part("text", text="Go."), _part("text", text="Shown alone.", ignored=True)],
        },
        {
            "info": {"id": "2", "role": "assistant", "modelID": "m", "tokens": _TOKENS, "time": {"created": 1_000}},
            "parts": [
                _part("step-start"),
                _part("reasoning", text="Hm."),
                _part("text", text="Next."),
                _tool("a", output="x = 1"),
                _tool("b", "error", error="no such file"),
                _part("step-finish", tokens=_TOKENS),
            ],
        },
        {"info": {"id": "3", "role": "assistant", "modelID": "m"}, "parts": [_part("text", text="Done.")]},
    ],
}


def _qwen(kind: str, role: str, *parts: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": role, "parts": list(parts)}
    return {
        "uuid": f"{kind}{len(parts)}",
        "parentUuid": None,
        "sessionId": "s",
        "type": kind,
        "message": message,
        **fields,
    }


def _answered(call_id: str) -> dict[str, Any]:
    return {"functionResponse": {"id": call_id, "name": "read_file", "response": {"output": "x = 1"}}}


_COUNTS = {
    "promptTokenCount": 900,
    "cachedContentTokenCount": 800,
    "candidatesTokenCount": 60,
    "thoughtsTokenCount": 40,
}
QWEN = [
    {
        "uuid": "0",
        "sessionId": "s",
        "type": "system",
        "subtype": "session_source",
        "systemPayload": {"by": "cli"},
    },
    _qwen("user", "user", {"text": "Go."}),
    _qwen(
        "assistant",
        "model",
        {"text": "Hm.", "thought": True},
        {"functionCall": {"id": "a", "name": "read_file", "args": {}}},
        {"functionCall": {"id": "b", "name": "read_file", "args": {}}},
        model="qwen3",
        usageMetadata=_COUNTS,
    ),
    _qwen("tool_result", "user", _answered("a")),
    _qwen("tool_result", "user", _answered("b")),
]
_INFO = {"modelInfo": {"modelId": "m", "providerId": "p"}}
CLINE_NATIVE = [
    {"role": "user", "content": [{"type": "text", "text": "<task>\nGo.\n</task>"}], "ts": 1},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "x"}},
            {"type": "tool_use", "id": "b", "name": "list_files", "input": {"path": "."}},
        ],
        **_INFO,
        "metrics": {"tokens": {"prompt": 900, "completion": 100, "cached": 800}, "cost": 0.1},
    },
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "[list_files for '.'] Result:"},
            {"type": "text", "text": "x"},
            {"type": "text", "text": "[read_file for 'x'] Result:\n\nx = 1"},
            {"type": "text", "text": "<environment_details>\nnow\n</environment_details>"},
        ],
    },
]
CLINE_TEXT = [
    {"role": "user", "content": "Go.", "ts": 1},
    *(
        {"role": role, "content": [{"type": "text", "text": text}]}
        for _ in range(2)
        for role, text in (("assistant", "<read_file>x</read_file>"), ("user", "[read_file for 'x'] Result:\nx = 1"))
    ),
]
CLINE_OWN = {
    "version": 1,
    "sessionId": "s",
    "system_prompt": "You are.",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Go."}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": one, "name": "read", "input": {}} for one in "ab"],
            "modelInfo": {"id": "m"},
            "metrics": {"inputTokens": 100, "cacheReadTokens": 800, "outputTokens": 100},
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": one, "content": "x = 1"} for one in "ab"]},
    ],
}
GEMINI_STREAM = [
    {"type": "init", "timestamp": "t", "session_id": "s", "model": "g"},
    {"type": "message", "timestamp": "t", "role": "user", "content": "Go."},
    {"type": "message", "timestamp": "t", "role": "assistant", "content": "Ne", "delta": True},
    {"type": "message", "timestamp": "t", "role": "assistant", "content": "xt.", "delta": True},
    {"type": "tool_use", "timestamp": "t", "tool_name": "read_file", "tool_id": "a", "parameters": {"path": "x"}},
    {"type": "tool_use", "timestamp": "t", "tool_name": "read_file", "tool_id": "b", "parameters": {"path": "y"}},
    {"type": "tool_result", "timestamp": "t", "tool_id": "a", "status": "success", "output": "x = 1"},
    {"type": "tool_result", "timestamp": "t", "tool_id": "b", "status": "error", "error": {"message": "no such file"}},
    {"type": "error", "timestamp": "t", "severity": "warning", "message": "a loop"},
]


def _item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": f"item_{kind}", "type": kind, **fields}}


CODEX_EXEC = [
    {"type": "thread.started", "thread_id": "t"},
    {"type": "turn.started"},
    _item("reasoning", text="Hm."),
    _item("agent_message", text="Next."),
    {"type": "item.started", "item": {"id": "item_command_execution", "type": "command_execution", "command": "cat x"}},
    _item("command_execution", command="cat x", aggregated_output="x = 1", exit_code=0, status="completed"),
    {
        "type": "item.started",
        "item": {"id": "m", "type": "mcp_tool_call", "server": "s", "tool": "get", "arguments": {}},
    },
    {
        "type": "item.completed",
        "item": {
            "id": "m",
            "type": "mcp_tool_call",
            "server": "s",
            "tool": "get",
            "arguments": {},
            "result": {"content": [{"type": "text", "text": "y = 1"}], "structured_content": None},
        },
    },
]


def _event(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": "e", "timestamp": "2026-05-01T10:00:00Z", "parentId": None}


COPILOT = [
    _event("session.start", sessionId="s", selectedModel="m"),
    _event("user.message", content="Go."),
    _event("assistant.turn_start", turnId="0"),
    _event(
        "assistant.message",
        content="Next.",
        toolRequests=[{"toolCallId": one, "name": "view", "arguments": {"path": "x"}} for one in "ab"],
    ),
    _event("tool.execution_start", toolCallId="a", toolName="view", arguments={}),
    _event("tool.execution_complete", toolCallId="a", success=True, result={"content": "x = 1", "more": "-"}),
    _event("tool.execution_complete", toolCallId="b", success=False, error={"message": "no such file"}),
]
MANAGED = [
    {"type": "session.status_running"},
    {"type": "user.message", "content": [{"type": "text", "text": "Go."}]},
    {"type": "agent.message", "content": [{"type": "text", "text": "Next."}]},
    {"type": "agent.tool_use", "id": "a", "name": "bash", "input": {"command": "cat x"}},
    {"type": "agent.custom_tool_use", "id": "b", "name": "ask", "input": {}},
    {
        "type": "span.model_request_end",
        "model_usage": {"input_tokens": 100, "cache_read_input_tokens": 800, "output_tokens": 100},
    },
    {"type": "agent.tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x = 1"}]},
    {"type": "user.custom_tool_result", "custom_tool_use_id": "b", "content": [{"type": "text", "text": "y"}]},
]
ATIF = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "terminus", "version": "2", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "You are."},
        {"step_id": 2, "source": "user", "message": "Go."},
        {
            "step_id": 3,
            "source": "agent",
            "message": "Next.",
            "tool_calls": [{"tool_call_id": one, "function_name": "bash", "arguments": {"cmd": "ls"}} for one in "ab"],
            "observation": {"results": [{"source_call_id": "b", "content": "b"}, {"content": "a"}]},
            "metrics": {"prompt_tokens": 900, "cached_tokens": 800, "completion_tokens": 100},
        },
        {"step_id": 4, "source": "agent", "message": "Done."},
    ],
}
ATIF_TEXT = {
    "schema_version": "ATIF-v1.4",
    "steps": [
        {"source": "user", "message": "Go."},
        *({"source": "agent", "message": "ls", "observation": {"results": [{"content": "a"}]}} for _ in range(2)),
    ],
}
PYDANTIC = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": ["Go.", {"kind": "image-url", "url": "u"}]}]},
    {
        "kind": "response",
        "parts": [
            {"part_kind": "thinking", "content": "Hm."},
            {"part_kind": "text", "content": "Next."},
            *({"part_kind": "tool-call", "tool_name": "read", "args": "{}", "tool_call_id": one} for one in "ab"),
        ],
        "usage": {"input_tokens": 900, "cache_read_tokens": 800, "output_tokens": 100},
        "model_name": "m",
        "timestamp": "2026-05-01T10:00:00Z",
    },
    {
        "kind": "request",
        "parts": [
            {"part_kind": "tool-return", "tool_name": "read", "content": {"x": 1}, "tool_call_id": "a"},
            {"part_kind": "retry-prompt", "tool_name": "read", "content": "no such file", "tool_call_id": "b"},
        ],
    },
]
AMP = {
    "v": 10,
    "id": "T-1",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Go."}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "complete": True, "id": one, "name": "Read", "input": {}} for one in "ab"],
            "usage": {"model": "m", "inputTokens": 100, "cacheReadInputTokens": 800, "outputTokens": 100},
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "toolUseID": "a", "run": {"status": "done", "result": "x = 1"}},
                {"type": "tool_result", "toolUseID": "b", "run": {"status": "error", "error": {"message": "gone"}}},
            ],
        },
    ],
}
TURNS = [
    {"turn": n + 1, "reasoning": "I look.", "action": "ls", "observation": "a b", "timestamp": 1.0} for n in range(2)
]
THOUGHTS = [{"thought": "I look.", "action": "ls", "observation": "a b", "state": "{}"} for _ in range(2)]


def _claude(kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **fields}
    return {"type": kind, "message": message, "parent_tool_use_id": None, "session_id": "s"}


_CALLS = [{"type": "tool_use", "id": one, "name": "Read", "input": {}} for one in "ab"]
_CLAUDE_USAGE = {"input_tokens": 100, "cache_read_input_tokens": 800, "output_tokens": 100}
CLAUDE_STREAM = [
    {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Read"]},
    _claude("user", "Go."),
    _claude("assistant", _CALLS, id="msg_1", model="m", usage=_CLAUDE_USAGE),
    _claude("user", [{"type": "tool_result", "tool_use_id": one, "content": "x = 1"} for one in "ab"]),
]

_PLAIN = LoggedUsage(100, 800, 0, 0, 100)
AGENTS: dict[str, tuple[str, bytes, int, LoggedUsage | None]] = {
    "opencode": ("opencode", json.dumps(OPENCODE, indent=2).encode(), 2, LoggedUsage(3, 2_000, 60, 0, 100)),
    "opencode in a line": ("opencode", _dumps(OPENCODE), 2, LoggedUsage(3, 2_000, 60, 0, 100)),
    "opencode messages": ("opencode", _dumps(OPENCODE["messages"]), 2, LoggedUsage(3, 2_000, 60, 0, 100)),
    "qwen": ("qwen_code", lines(*QWEN), 1, _PLAIN),
    "cline": ("cline", _dumps(CLINE_NATIVE), 1, _PLAIN),
    "cline text": ("cline", _dumps(CLINE_TEXT), 2, None),
    "cline own": ("cline", json.dumps(CLINE_OWN, indent=1).encode(), 1, _PLAIN),
    "gemini stream": ("gemini_stream", lines(*GEMINI_STREAM), 1, None),
    "gemini stream without its head": ("gemini_stream", lines(*GEMINI_STREAM[1:]), 1, None),
    "codex exec": ("codex_exec", lines(*CODEX_EXEC), 2, None),
    "codex exec that ends early": ("codex_exec", lines(*CODEX_EXEC[:-1]), 2, None),
    "copilot": ("copilot", lines(*COPILOT), 1, None),
    "managed": ("managed_agents", lines(*MANAGED), 1, _PLAIN),
    "atif": ("atif", json.dumps(ATIF, indent=2).encode(), 2, _PLAIN),
    "atif text": ("atif", _dumps(ATIF_TEXT), 2, None),
    "pydantic": ("pydantic_ai", _dumps(PYDANTIC), 1, _PLAIN),
    "amp": ("amp", _dumps(AMP), 1, _PLAIN),
    "turns": ("turns", _dumps(TURNS), 2, None),
    "turns in lines": ("turns", lines(*TURNS), 2, None),
    "thoughts": ("turns", json.dumps(THOUGHTS, indent=1).encode(), 2, None),
    "claude stream": ("claude_code", lines(*CLAUDE_STREAM), 1, _PLAIN),
    "claude verbose": ("claude_code", json.dumps(CLAUDE_STREAM, indent=1).encode(), 1, _PLAIN),
}
