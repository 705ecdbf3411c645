"""Small invented files in every format that `recede.transcripts` reads, and damaged ones."""

from __future__ import annotations

import copy
import gzip
import json
import random
from typing import Any

from dataset_files import DATASETS

from support import assistant, call, dumps, result, system, tool_result, tool_use, user


def lines(*records: Any) -> bytes:
    return b"".join(dumps(record) + b"\n" for record in records)


def mutated(value: Any, chance: random.Random) -> Any:
    """The value with one place replaced by something of another type, or left out."""
    value = copy.deepcopy(value)
    at: Any = value
    while True:
        key = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if isinstance(at[key], (dict, list)) and at[key] and chance.random() < 0.8:
            at = at[key]
            continue
        if isinstance(at, dict) and chance.random() < 0.2:
            del at[key]
        else:
            at[key] = chance.choice([None, 5, "text", [], [5], [[]], {}, {"type": []}, True, 1e300, -1])
        return value


def claude(kind: str, message: Any = None, **fields: Any) -> dict[str, Any]:
    extra = {} if message is None else {"message": message}
    return {"type": kind, "sessionId": "s", "isSidechain": False, **extra, **fields}


def block(identity: str, *blocks: Any, **fields: Any) -> dict[str, Any]:
    return claude("assistant", {"id": identity, "role": "assistant", "content": list(blocks)}, **fields)


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "ls"}}


def answer(call_id: str, text: str = "a b") -> dict[str, Any]:
    return claude("user", user([tool_result(call_id, text)]), toolUseResult={"stdout": text})


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "t", "type": "response_item", "payload": payload}


def event(number: int, source: str, **fields: Any) -> dict[str, Any]:
    return {"id": number, "source": source, "timestamp": "t", "message": "for the screen", **fields}


def told(call_id: str, response: str) -> dict[str, Any]:
    made = {"id": call_id, "type": "function", "function": {"name": "execute_bash", "arguments": '{"command": "ls"}'}}
    message = {"role": "assistant", "content": "I look.", "tool_calls": [made]}
    return {
        "function_name": "execute_bash",
        "tool_call_id": call_id,
        "model_response": {"id": response, "choices": [{"message": message}]},
    }


CHAT = [system("Be brief."), user("Look."), call("1"), result("1", "a b"), assistant("Done.")]

CLAUDE = [
    claude("file-history-snapshot", snapshot={}),
    claude("user", user("Look."), uuid="u1"),
    block("m1", said("I look."), uuid="u2"),
    block("m1", use("1")),
    answer("1"),
    block("m1", use("2")),
    answer("2"),
    block("m2", said("Done.")),
]

CODEX = [
    {"type": "session_meta", "payload": {"id": "x"}},
    item(type="message", role="user", content=[{"type": "input_text", "text": "Look."}]),
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Look."}},
    item(type="reasoning", summary=[]),
    item(type="function_call", name="run", arguments="{}", call_id="1"),
    item(type="function_call_output", call_id="1", output="a b"),
    item(type="message", role="assistant", content=[{"type": "output_text", "text": "Done."}]),
]

PI = [
    {"type": "session", "id": "x", "cwd": "/home"},
    {"type": "message", "message": {"role": "user", "content": [said("Look.")]}},
    {
        "type": "message",
        "message": {
            "role": "assistant",
            "content": [said("I look."), {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "a"}}],
        },
    },
    {
        "type": "message",
        "message": {"role": "toolResult", "toolCallId": "1", "content": [said("a b")], "isError": True},
    },
    {"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "a"}},
    {"type": "message", "message": {"role": "assistant", "content": [], "stopReason": "aborted"}},
    {"type": "compaction", "summary": "All was read."},
    {"type": "message", "message": {"role": "assistant", "content": [said("Done.")]}},
]

SWE_TOOLS = {
    "environment": "main",
    "trajectory": [],
    "history": [
        {**system("Be brief."), "agent": "main"},
        {**user("Look."), "agent": "main"},
        {**call("1", "2"), "thought": "", "action": "ls"},
        {"role": "tool", "content": "a b", "tool_call_ids": ["1", "2"], "message_type": "observation"},
    ],
}

SWE_TEXT = {
    "trajectory": [{"action": "ls"}],
    "history": [
        system("Be brief."),
        {**user("A demonstration."), "is_demo": True},
        user("Look."),
        {**assistant("I look.\n```\nls\n```"), "thought": "I look.", "action": "ls"},
        user("a b"),
        assistant("```\nsubmit\n```"),
    ],
}

MINI = [
    system("Be brief."),
    user("Look."),
    assistant("```bash\nls\n```"),
    user("<returncode>0</returncode>\n<output>\na b\n</output>"),
    assistant("Done."),
]

OPENHANDS = [
    event(0, "agent", action="system", args={"content": "Be brief."}),
    event(1, "user", action="message", args={"content": "Look."}),
    event(2, "environment", observation="agent_state_changed", content="", extras={}),
    event(3, "agent", action="run", args={"command": "ls", "thought": ""}, tool_call_metadata=told("1", "r")),
    event(4, "agent", observation="run", content="a b", cause=3, tool_call_metadata=told("1", "r")),
    event(5, "agent", observation="error", content="no such tool"),
    event(6, "agent", action="finish", args={"thought": "Done."}),
]

OPENHANDS_EARLY = {
    "instruction": "Look.",
    "history": [
        {"action": "message", "content": "Look."},
        {"action": "run", "command": "ls", "thought": "I look."},
        {"observation": "run", "content": "a b", "command": "ls"},
        {"action": "finish", "thought": "Done."},
    ],
}

INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "look"},
    "samples": [
        {
            "id": 1,
            "attachments": {"ff": "a b"},
            "messages": [
                {**user("Look."), "source": "input"},
                {**assistant(""), "tool_calls": [{"id": "1", "function": "browse", "arguments": {"url": "u"}}]},
                {"role": "tool", "content": "attachment://ff", "tool_call_id": "1", "function": "browse"},
                {"role": "tool", "content": "", "tool_call_id": "2", "error": {"type": "timeout", "message": "late"}},
            ],
            "events": [{"event": "model"}],
        },
        {"id": 2, "messages": [user("Again.")]},
    ],
}

TAU = [{"task_id": 0, "reward": 1.0, "traj": CHAT}, {"task_id": 1, "reward": 0.0, "traj": CHAT[:2]}]

GEMINI = {
    "sessionId": "s",
    "projectHash": "h",
    "messages": [
        {"id": "1", "type": "user", "content": "Look."},
        {"id": "2", "type": "info", "content": "An update is there."},
        {
            "id": "3",
            "type": "gemini",
            "content": "I look.",
            "thoughts": [{"subject": "looking"}],
            "toolCalls": [
                {
                    "id": "1",
                    "name": "ls",
                    "args": {"path": "."},
                    "status": "success",
                    "result": [{"functionResponse": {"id": "1", "name": "ls", "response": {"output": "a b"}}}],
                },
                {"id": "2", "name": "ls", "args": {}, "status": "error", "result": [said("no"), {"text": "pe"}]},
            ],
        },
        {"id": "4", "type": "gemini", "content": [{"text": "Done."}]},
    ],
}

# name -> (format, bytes, histories, records, messages of the first, turns of it, its observations)
FILES: dict[str, tuple[str, bytes, int, int, int, int, list[str]]] = {
    "messages": ("messages", dumps(CHAT), 1, 5, 5, 2, ["a b"]),
    "pretty": ("messages", json.dumps(CHAT, indent=2).encode(), 1, 5, 5, 2, ["a b"]),
    "body": ("body", dumps({"model": "m", "messages": CHAT}), 1, 5, 5, 2, ["a b"]),
    "responses": ("body", dumps({"input": [line["payload"] for line in CODEX[4:6]]}), 1, 2, 2, 1, ["a b"]),
    "anthropic": (
        "body",
        dumps({"system": "s", "messages": [user("Look."), tool_use("1"), user([tool_result("1", "a b")])]}),
        1,
        3,
        3,
        1,
        ["a b"],
    ),
    "json_lines": ("json_lines", lines(*CHAT), 1, 5, 5, 2, ["a b"]),
    "body_lines": ("body_lines", lines({"messages": CHAT}, {"messages": CHAT[:2]}), 2, 7, 5, 2, ["a b"]),
    "claude_code": ("claude_code", lines(*CLAUDE), 1, 7, 5, 2, ["a b", "a b"]),
    "codex": ("codex", lines(*CODEX), 1, 5, 5, 2, ["a b"]),
    "pi": ("pi", lines(*PI), 1, 6, 5, 2, ["a b"]),
    "swe_agent": ("swe_agent", json.dumps(SWE_TOOLS, indent=2).encode(), 1, 4, 5, 1, ["a b", ""]),
    "swe_agent_text": ("swe_agent", dumps(SWE_TEXT), 1, 6, 6, 2, ["a b"]),
    "mini_swe": ("mini_swe", dumps(MINI), 1, 5, 5, 2, [MINI[3]["content"]]),
    "mini_swe_v2": (
        "mini_swe",
        dumps({"trajectory_format": "mini-swe-agent-1.1", "info": {}, "messages": [*MINI, {"role": "exit"}]}),
        1,
        6,
        5,
        2,
        [MINI[3]["content"]],
    ),
    "openhands": ("openhands", dumps(OPENHANDS), 1, 7, 6, 2, ["a b"]),
    "openhands_early": ("openhands", dumps(OPENHANDS_EARLY), 1, 4, 4, 2, ["a b"]),
    "openhands_lines": ("openhands", lines(OPENHANDS_EARLY, OPENHANDS_EARLY), 2, 8, 4, 2, ["a b"]),
    "inspect": ("inspect", json.dumps(INSPECT, indent=2).encode(), 2, 5, 4, 1, ["a b", "late"]),
    "tau_bench": ("tau_bench", dumps(TAU), 2, 7, 5, 2, ["a b"]),
    "gemini": ("gemini", dumps(GEMINI), 1, 4, 4, 2, ["a b", "nope"]),
    **DATASETS,
}
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b" \n\r\n", "bad: the file is empty: an empty history is written []"),
    "gzip": (gzip.compress(lines(*CODEX), mtime=0)[:9], "bad: the gzip data is truncated or damaged"),
    "gzip of one value": (
        gzip.compress(b'[{"role": "user"}]')[:-9],
        "bad: the gzip data is truncated or damaged at byte",
    ),
    "binary": (b"\x89PNG\r\n" + bytes(range(128, 256)), "bad: malformed JSON at byte 0"),
    "text": (b"hello", "bad: malformed JSON at byte 0"),
    "no history": (b'{"a": 1}', "bad: not a history"),
    "no records": (b'{"a": 1}\n{"b": 2}\n' * 99, "bad: not a history"),
    "number": (b"7", "bad: not a history"),
    "no session": (b'{"type": "session_meta"}\n[]\n', "bad: not a history, but lines of the type session_meta: "),
    "bom": (b"\xef\xbb\xbf" + lines(*CODEX), "bad: line 1: malformed JSON at byte 0"),
    "document": (b'\n\n{"messages": [\n{"role": "user"},\n', "bad: the input ends in the middle of a value at byte 35"),
    "document with gaps": (b'{"messages": [\n\n\n{"role": x}]}', "bad: malformed JSON at byte 26"),
    "deep": (b"[" * 100_000, "bad: nesting deeper than 1,024 levels at byte 1024"),
    "content": (lines(*CLAUDE, claude("user", user(5))), "bad: line 9: a content of the wrong type"),
    "part": (dumps([{"traj": [user([5])]}]), "bad: a part that is not an object in message 0"),
}

# Name -> damaged lines of Codex, the lines of CODEX of which something is lost, and the first line that is skipped.
# Where the last line has no end, it is being written.
_TORN = b'{"type": "response_item", "payl'
DAMAGED: dict[str, tuple[bytes, set[int], int]] = {
    "cut": (lines(*CODEX)[:-9], {6}, 7),
    "cut in a character": (lines(*CODEX) + '{"type": "é'.encode()[:-1], set(), 8),
    "cut inside": (lines(CODEX[0]) + _TORN + b"\n" + lines(*CODEX[1:]), set(), 2),
    "cut first": (lines(CODEX[0])[9:] + lines(*CODEX[1:]), {0}, 1),
    "cut first to its beginning": (lines(CODEX[0])[:9] + b"\n" + lines(*CODEX[1:]), {0}, 1),
    "goes on": (_TORN + lines(*CODEX), set(), 1),
    "goes on with another line": (lines(*CODEX[:3]) + _TORN + lines(*CODEX[3:]), set(), 4),
    "cut inside of a character, and goes on": (
        lines(*CODEX[:3]) + '{"type": "é'.encode()[:-1] + lines(*CODEX[3:]),
        set(),
        4,
    ),
    "no number": (lines(CODEX[0]) + b'{"type": 1e}\n' + lines(*CODEX[1:]), set(), 2),
    "utf-8": (lines(*CODEX[:2]) + b'{"type": "\xff"}\n' + lines(*CODEX[2:]), set(), 3),
    "glued and cut": (lines(*CODEX)[:-1] + b'{"type": "\n', set(), 7),
    "glued utf-8": (lines(*CODEX) + b'{}{"type": "\xff"}\n', set(), 8),
    "zeros": (lines(*CODEX[:4]) + bytes(4096) + b"\n" + lines(*CODEX[4:]), set(), 5),
    "zeros before": (lines(*CODEX[:4]) + bytes(512) + lines(*CODEX[4:]), set(), 5),
    "zeros at the end": (lines(*CODEX) + bytes(512), set(), 8),
    "zeros at the beginning": (bytes(512) + lines(*CODEX), set(), 1),
    "zeros in the first line": (bytes(512) + b"\n" + lines(*CODEX), set(), 1),
    "no object": (lines(*CODEX[:4]) + b"null\n7\n[]\n" + lines(*CODEX[4:]), set(), 5),
    "words": (lines(*CODEX[:4]) + b"Killed\n" + lines(*CODEX[4:]), set(), 5),
    "words before": (b"Loaded cached credentials.\nwarning: none\n" + lines(*CODEX), set(), 1),
    "braces": (lines(*CODEX) + b"}}}{{{\n", set(), 8),
    "deep": (lines(*CODEX) + b'{"a":' * 9_000 + b"\n", set(), 8),
}
