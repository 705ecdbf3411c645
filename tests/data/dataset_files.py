"""Small invented rows and traces, in the shapes that datasets and exporters have."""

from __future__ import annotations

import json
from typing import Any

from support import assistant, call, dumps, result, system, user


def flat(request: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Messages as OpenInference flattens them: names with dots and numbers."""
    found: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.model_name": "m"}

    def put(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                put(f"{name}.{key}", inner)
        elif isinstance(value, list):
            for place, inner in enumerate(value):
                put(f"{name}.{place}", inner)
        else:
            found[name] = value

    for side, messages in request.items():
        put(f"llm.{side}", messages)
    return found


def otlp(value: Any) -> Any:
    """A value of an attribute as the OTLP exporters write it."""
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": name, "value": otlp(inner)} for name, inner in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp(inner) for inner in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def exported(*spans: dict[str, Any]) -> dict[str, Any]:
    """Spans as one line of an OTLP file."""
    written = [
        {
            "traceId": "t",
            "spanId": str(place),
            "startTimeUnixNano": str(1_700_000_000_000_000_000 + 1_000_000 * place),
            "attributes": [{"key": name, "value": otlp(value)} for name, value in span.items()],
        }
        for place, span in enumerate(spans)
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": written}]}]}


def constructed(kind: str, **fields: Any) -> dict[str, Any]:
    """A message as LangChain serializes it."""
    names = ["langchain", "schema", "messages", f"{kind}Message"]
    return {"lc": 1, "type": "constructor", "id": names, "kwargs": fields}


def run(number: int, kind: str, inputs: Any, outputs: Any) -> dict[str, Any]:
    started = f"2026-01-01T00:00:0{number}"
    return {
        "id": str(number),
        "trace_id": "t",
        "run_type": kind,
        "start_time": started,
        "inputs": inputs,
        "outputs": outputs,
    }


def sdk_event(number: int, kind: str, source: str, **fields: Any) -> dict[str, Any]:
    return {"id": str(number), "timestamp": "2026-01-01T00:00:00", "source": source, **fields, "kind": kind}


def said(text: str) -> list[dict[str, Any]]:
    return [{"cache_prompt": False, "type": "text", "text": text}]


NEBIUS = {
    "instance_id": "x",
    "target": True,
    "trajectory": [
        {"cutoff_date": "01.01.2023", "mask": False, "role": "system", "system_prompt": "Be brief.", "text": None},
        *(
            {"cutoff_date": None, "mask": False, "role": role, "system_prompt": None, "text": text}
            for role, text in (("user", "Look."), ("ai", "```\nls\n```"), ("user", "a b"), ("ai", "Done."))
        ),
    ],
    "exit_status": "submitted",
}

SHAREGPT = {
    "system": "Be brief.",
    "conversations": [
        {"from": "human", "value": "Look."},
        {"from": "gpt", "value": "<tool_call>ls</tool_call>"},
        {"from": "tool", "value": "a b"},
        {"from": "function_call", "value": '{"name": "cat", "arguments": {"path": "a"}}'},
        {"from": "observation", "value": "c"},
        {"from": "gpt", "value": "Done."},
    ],
}

_ASKED = {"message": {"role": "user", "content": "Look."}}
_CALLED = {
    "message": {
        "role": "assistant",
        "tool_calls": [{"tool_call": {"id": "1", "function": {"name": "ls", "arguments": "{}"}}}],
    }
}
_TOLD = {"message": {"role": "tool", "content": "a b", "tool_call_id": "1"}}
_DONE = {
    "message": {
        "role": "assistant",
        "contents": [{"message_content": {"type": "text", "text": "Done."}}],
    }
}
OPENINFERENCE_REQUESTS = [
    {"input_messages": [_ASKED], "output_messages": [_CALLED]},
    {"input_messages": [_ASKED, _CALLED, _TOLD], "output_messages": [_DONE]},
]
OPENINFERENCE = [
    {"name": "agent", "context": {"trace_id": "t"}, "attributes": {"openinference.span.kind": "AGENT"}},
    *(
        {"name": "ChatCompletion", "context": {"trace_id": "t"}, "attributes": flat(request)}
        for request in OPENINFERENCE_REQUESTS
    ),
]
OPENINFERENCE[1]["attributes"] |= {"llm.token_count.prompt": 12, "llm.token_count.prompt_details.cache_read": 4}
_ROW_CALL = {"tool_call.id": "1", "tool_call.function.name": "ls"}
# Rows of a data frame of Phoenix.
OPENINFERENCE_ROWS = [
    {
        "context.trace_id": "t",
        "attributes.llm.input_messages": [
            {"message.role": "user", "message.content": "Look."},
            {
                "message.role": "assistant",
                "message.tool_calls": [{"tool_call.id": "1", "tool_call.function.name": "ls"}],
            },
            {"message.role": "tool", "message.content": "a b", "message.tool_call_id": "1"},
        ],
        "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": "Done."}],
    }
]

_PARTS_ASKED = {"role": "user", "parts": [{"type": "text", "content": "Look."}]}
_PARTS_CALLED = {
    "role": "assistant",
    "parts": [
        {"type": "reasoning", "content": "Hm."},
        {"type": "tool_call", "id": "1", "name": "ls", "arguments": {}},
    ],
    "finish_reason": "tool_call",
}
_PARTS_TOLD = {
    "role": "tool",
    "parts": [{"type": "tool_call_response", "id": "1", "response": [{"type": "text", "content": "a b"}]}],
}
_PARTS_DONE = {"role": "assistant", "parts": [{"type": "text", "content": "Done."}], "finish_reason": "stop"}
OTEL = [_PARTS_ASKED, _PARTS_CALLED, _PARTS_TOLD, _PARTS_DONE]
OTEL_SPANS = exported(
    {"gen_ai.operation.name": "execute_tool"},
    {
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
        "gen_ai.input.messages": json.dumps(OTEL[:1]),
        "gen_ai.output.messages": json.dumps(OTEL[1:2]),
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.response.model": "m",
    },
    {
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        "gen_ai.input.messages": OTEL[:3],
        "gen_ai.output.messages": OTEL[3:],
    },
)

_RUN_ASKED = constructed("Human", content="Look.", type="human")
_RUN_CALLED = constructed(
    "AI",
    content=[{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "1", "name": "ls", "input": {}}],
    type="ai",
    tool_calls=[{"name": "ls", "args": {}, "id": "1", "type": "tool_call"}],
    usage_metadata={"input_tokens": 12, "output_tokens": 3, "input_token_details": {"cache_read": 4}},
)
_RUN_TOLD = constructed("Tool", content="a b", type="tool", tool_call_id="1", status="success")
_RUN_DONE = constructed("AIMessageChunk", content="Done.", type="AIMessageChunk")
LANGSMITH = [
    run(0, "chain", {"messages": [_RUN_ASKED]}, {"messages": [_RUN_ASKED, _RUN_CALLED, _RUN_TOLD, _RUN_DONE]}),
    run(1, "llm", {"messages": [[_RUN_ASKED]]}, {"generations": [[{"message": _RUN_CALLED}]]}),
    run(2, "tool", {"input": "{}"}, {"output": "a b"}),
    run(3, "llm", {"messages": [[_RUN_ASKED, _RUN_CALLED, _RUN_TOLD]]}, {"generations": [[{"message": _RUN_DONE}]]}),
]
_CHAT = [user("Look."), call("1"), result("1", "a b")]
LANGSMITH_OPENAI = run(1, "llm", {"messages": _CHAT}, {"choices": [{"message": assistant("Done.")}], "model": "m"})
LANGCHAIN = [
    {"type": "system", "content": "Be brief."},
    {"type": "human", "data": {"content": "Look.", "type": "human"}},
    {"type": "ai", "content": "I look.", "tool_calls": [{"name": "ls", "args": {}, "id": "1"}]},
    {"type": "tool", "content": "a b", "tool_call_id": "1"},
]

_CALL = {"id": "1", "name": "run", "arguments": '{"command": "ls"}', "origin": "completion"}
OPENHANDS_V1 = [
    sdk_event(0, "SystemPromptEvent", "agent", system_prompt={"type": "text", "text": "Be brief."}, tools=[]),
    sdk_event(1, "MessageEvent", "user", llm_message={"role": "user", "content": said("Look.")}, extended_content=[]),
    sdk_event(2, "ConversationStateUpdateEvent", "environment", key="full_state", value={}),
    *(
        sdk_event(
            2 + number,
            "ActionEvent",
            "agent",
            thought=said("I look."),
            action={"command": "ls", "kind": "RunAction"},
            tool_name="run",
            tool_call_id=str(number),
            tool_call={**_CALL, "id": str(number)},
            llm_response_id="r1",
        )
        for number in (1, 2)
    ),
    sdk_event(
        5,
        "ObservationEvent",
        "environment",
        tool_name="run",
        tool_call_id="1",
        observation={"content": said("a b"), "is_error": False, "kind": "RunObservation"},
        action_id="3",
    ),
    sdk_event(6, "AgentErrorEvent", "agent", tool_name="run", tool_call_id="2", error="no such tool"),
    sdk_event(7, "MessageEvent", "agent", llm_message={"role": "assistant", "content": said("Done.")}),
]

_TAU_CALL = {"id": "1", "name": "ls", "arguments": {}, "requestor": "assistant"}
TAU2 = {
    "timestamp": "t",
    "info": {},
    "tasks": [],
    "simulations": [
        {
            "id": "s",
            "task_id": "0",
            "reward_info": {"reward": 1.0},
            "messages": [
                {**user("Look."), "turn_idx": 0},
                {**assistant(""), "content": None, "tool_calls": [_TAU_CALL], "usage": {"prompt_tokens": 9}},
                {"id": "1", "role": "tool", "content": "a b", "requestor": "assistant", "error": False},
                assistant("Done."),
            ],
        }
    ],
}

_PART = {"type": "tool_call", "tool_call_id": "1", "name": "run", "arguments": "{}"}
_OUTPUT = {"role": "tool", "tool_call_id": "1", "content": [{"type": "tool_output", "text": "a b"}]}
CHAT_PARTS = {
    "messages": [
        user("Look."),
        {"role": "assistant", "content": [*said("I look."), _PART], "tool_calls": call("1")["tool_calls"]},
        _OUTPUT,
        {"role": "assistant-subagent-x", "content": [_PART]},
        {**_OUTPUT, "role": "tool-subagent-x"},
        assistant("Done."),
    ],
    "meta": {},
}

# As FILES in transcript_files.py.
DATASETS: dict[str, tuple[str, bytes, int, int, int, int, list[str]]] = {
    "nebius": ("nebius", dumps(NEBIUS), 1, 5, 5, 2, ["a b"]),
    "nebius_lines": ("nebius", dumps(NEBIUS) + b"\n" + dumps(NEBIUS), 2, 10, 5, 2, ["a b"]),
    "chat_parts": ("chat_parts", dumps(CHAT_PARTS), 2, 6, 4, 2, ["a b"]),
    "sharegpt": ("sharegpt", dumps(SHAREGPT), 1, 6, 7, 3, ["a b", "c"]),
    "sharegpt_list": ("sharegpt", dumps(SHAREGPT["conversations"]), 1, 6, 6, 3, ["a b", "c"]),
    "openinference": ("openinference", dumps(OPENINFERENCE), 1, 2, 4, 2, ["a b"]),
    "openinference_lines": ("openinference", b"\n".join(map(dumps, OPENINFERENCE)), 1, 2, 4, 2, ["a b"]),
    "openinference_rows": ("openinference", dumps(OPENINFERENCE_ROWS), 1, 1, 4, 2, ["a b"]),
    "openinference_otlp": (
        "openinference",
        dumps(exported(*(span["attributes"] for span in OPENINFERENCE))),
        1,
        2,
        4,
        2,
        ["a b"],
    ),
    "otel": ("otel", dumps(OTEL), 1, 4, 4, 2, ["a b"]),
    "otel_body": ("otel", dumps({"messages": OTEL}), 1, 4, 4, 2, ["a b"]),
    "otel_otlp": ("otel", dumps(OTEL_SPANS), 1, 2, 5, 2, ["a b"]),
    "langsmith": ("langsmith", dumps(LANGSMITH), 1, 2, 4, 2, ["a b"]),
    "langsmith_lines": ("langsmith", b"\n".join(map(dumps, LANGSMITH)), 1, 2, 4, 2, ["a b"]),
    "langsmith_chain": ("langsmith", dumps(LANGSMITH[:1]), 1, 1, 4, 2, ["a b"]),
    "langsmith_openai": ("langsmith", dumps(LANGSMITH_OPENAI), 1, 1, 4, 2, ["a b"]),
    "langchain": ("langsmith", dumps(LANGCHAIN), 1, 4, 4, 1, ["a b"]),
    "openhands_v1": ("openhands_v1", dumps(OPENHANDS_V1), 1, 8, 6, 2, ["a b", "no such tool"]),
    "openhands_v1_lines": (
        "openhands_v1",
        b"\n".join(map(dumps, OPENHANDS_V1)),
        1,
        8,
        6,
        2,
        ["a b", "no such tool"],
    ),
    "tau_bench_run": ("tau_bench", dumps({"task_id": 0, "traj": [system("Be brief."), *_CHAT]}), 1, 4, 4, 1, ["a b"]),
    "tau2_bench": ("tau_bench", dumps(TAU2), 1, 4, 4, 2, ["a b"]),
}
