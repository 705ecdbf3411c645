"""A provider on this machine that plays a model for real agents: each answer is one tool call, the last one says so."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from caching_provider import PREFIXES, CachingProvider
from proxied import Answer, Request, answer_of, chunked

from provider_rules import OLD, PROVIDERS, Account, signed
from recede._question import PROMPT
from recede.costs import PRESETS, model_prices
from recede.proxy._answers import decoded
from recede.proxy._masker import MAX_BODY_BYTES
from support import SUMMARY

TURNS = 60
HEAD = "Conversation summary:"
LAST = "All of the work is done."
# Characters of a result: the 40 quantiles of those of Claude Code's sessions in the corpus.
CORPUS_SIZES = (
    1, 22, 22, 31, 45, 59, 70, 84, 98, 117, 135, 156, 163, 167, 171, 171, 173, 179, 184, 210, 253, 312, 376, 436, 531,
    610, 690, 792, 882, 1001, 1067, 1206, 1492, 1832, 2224, 2619, 3332, 4224, 6068, 12595,
)  # fmt: skip
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
_OUTPUT_TOKENS = 9

Inputs = dict[str, Any]
"""What each tool would be called with: an agent has one of them."""


class Usage(NamedTuple):
    """Tokens of a request."""

    plain: int
    read: int
    written: int


def _last(body: dict[str, Any]) -> str:
    """What it says where it makes no call: the summary that it is asked for, or that all is done."""
    return SUMMARY if PROMPT.partition("\n")[0] in json.dumps(body) else LAST


class PlayedModel:
    """Answers the requests of an agent as its provider would, keeps its prompt cache by the rules, and adds up costs.

    Claude thinks before each call where a request lets it, and is played to an account made before 2026-08-31.

    Args:
        turns: how many calls it makes.
        sizes: characters of their results; by default some 6,000, growing.
        calls: calls of other tools, by number.
        account: who asks.
        thinks: whether Claude does.
    """

    def __init__(
        self,
        turns: int = TURNS,
        sizes: Sequence[int] = (),
        calls: Mapping[int, Inputs] | None = None,
        account: Account = OLD,
        thinks: bool = True,
    ) -> None:
        self.turns, self.sizes, self.calls, self.account, self.thinks = turns, sizes, calls or {}, account, thinks
        self.requests: list[Request] = []  # those of the agent's loop
        self.refused: list[str] = []
        self.usd = 0.0  # of all requests
        self.costs: list[float] = []  # of the input of each request of the agent's loop
        self._cache, self._lock = CachingProvider(""), threading.Lock()

    @property
    def input_usd(self) -> float:
        """Of the requests of the agent's loop."""
        return sum(self.costs)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Of the requests of the agent's loop."""
        return [json.loads(one.body) for one in self.requests]

    def __call__(self, request: Request) -> Answer:
        path = request.target.partition("?")[0]
        if request.method == "GET" and path.endswith("/responses"):  # Codex tries a WebSocket first
            return [answer_of(b"{}", "426 Upgrade Required")]
        if path.endswith("/count_tokens"):
            return [self._counted(request)]
        answers: dict[str, Callable[..., Answer]] = {
            "/v1/messages": partial(_anthropic, self.account, self.thinks),
            "/responses": _responses,
            "/chat/completions": _chat,
        }
        answers |= {":streamGenerateContent": _gemini, ":generateContent": _gemini}
        answer = next((answer for end, answer in answers.items() if path.endswith(end)), None)
        if answer is None or not request.body:
            return [answer_of(b"{}", "404 Not Found")]
        plain = _plain(request)
        request, body = replace(request, body=plain), json.loads(plain)
        with self._lock:
            usage = self._usage(path, body)
            if usage is None:
                return [_refusal(self.refused[-1])]
            # Of hidden turns nothing is left to count.
            number = len(self.requests) if HEAD in json.dumps(body) else _answered(body)
            call = self._call(body, number)
            if call is not None:
                self.requests.append(request)
            self._charge(path, body, usage, is_turn=call is not None)
        shown = None if number >= self.turns else call
        return answer(body, number, shown, usage, ":generate" in path, call is not None)

    def _counted(self, request: Request) -> bytes:
        plain = _plain(request)
        fault = PROVIDERS["anthropic"].count_tokens(json.loads(plain), self.account).fault
        return _json({"input_tokens": len(plain) // 4}) if fault is None else _refusal(fault)

    def _usage(self, path: str, body: dict[str, Any]) -> Usage | None:
        """The tokens of a request; None if it is refused."""
        words = self._fault(path, body)
        if words is not None:
            self.refused.append(words)
            return None
        tools = [{"type": "text", "text": json.dumps(tool), "description": ""} for tool in body.get("tools") or ()]
        if path.endswith("/messages"):
            found = self._cache.count({**body, "system": _system(body), "tools": tools})
            if isinstance(found, str):
                self.refused.append(found)
                return None
            return Usage(found["input_tokens"], found["cache_read_input_tokens"], found["cache_creation_input_tokens"])
        least, step = next((one for end, one in PREFIXES.items() if path.endswith(end)), (4_096, 1))
        described = [{"description": tool["text"]} for tool in tools]
        history = next(body[key] for key in ("messages", "input", "contents") if key in body)
        added = [{**item, "text": json.dumps(item["tools"])} if "tools" in item else item for item in history]
        tokens, read = self._cache.count_prefix({"input": added, "tools": described}, least, step)
        return Usage(0, read, tokens - read)

    def _fault(self, path: str, body: dict[str, Any]) -> str | None:
        """Why the provider refuses a request."""
        fault: str | None
        if path.endswith("/messages"):
            fault = PROVIDERS["anthropic"].take(body, self.account).fault
        elif path.endswith("/responses"):
            fault = PROVIDERS["responses"].take(body, self.account).fault
        elif "contents" in body:
            model = path.rpartition("/")[2].partition(":")[0]
            fault = PROVIDERS["gemini"].take(body, self.account, model).fault
        else:
            fault = PROVIDERS["templates"].take(body, self.account).fault
        return fault

    def _charge(self, path: str, body: dict[str, Any], usage: Usage, is_turn: bool) -> None:
        known = model_prices(body.get("model") or path.rpartition("/")[2].partition(":")[0])
        usual = "anthropic" if path.endswith("/messages") else "gemini" if "contents" in body else "openai"
        prices = known.prices if known else PRESETS[usual]
        self.usd += prices.cost(*usage, _OUTPUT_TOKENS)
        self.costs += [prices.cost(*usage, 0)] if is_turn else []

    def _call(self, body: dict[str, Any], number: int) -> tuple[str, Any] | None:
        """The next call, of a tool that the request has; None if that is not one of the agent's loop."""
        inputs = self._inputs(number)
        added = [tool for item in body.get("input", ()) for tool in item.get("tools") or ()]  # Codex, in "code mode"
        declared = [
            one
            for tool in [*(body.get("tools") or []), *added]
            for one in tool.get("functionDeclarations") or tool.get("tools") or [tool]
        ]
        described = {one["name"]: one for one in (tool.get("function", tool) for tool in declared) if "name" in one}
        name = next((name for name in inputs if name in described), None)
        return None if name is None else (name, _known(inputs[name], described[name]))

    def _inputs(self, number: int) -> Inputs:
        if number in self.calls:
            return self.calls[number]
        first, last = 1_000 + 37 * number, 2_200 + 41 * number
        if self.sizes:  # all of them, in an order without runs
            first, last = 10_000, 10_000 + self.sizes[17 * number % len(self.sizes)] // 6
        # One agent loses the output of a command that ends at once.
        script = f"seq -s ' ' {first} {last}; sleep 0.1"
        described = {"command": script, "description": f"Count, part {number}"}
        return {
            "bash": described,
            "Bash": described,
            "exec": f"text(await tools.exec_command({json.dumps({'cmd': script})}));",
            "exec_command": {"cmd": script},
            "shell_command": {"command": script},
            "shell": {"command": ["bash", "-lc", script]},
            "run_shell_command": described,
            "run_terminal_command": described,
            "run_commands": {"commands": [script]},
        }


def _known(value: Any, tool: dict[str, Any]) -> Any:
    """An input without the fields that a tool does not have."""
    schemas = (tool.get(name) for name in ("input_schema", "parameters", "parametersJsonSchema"))
    fields = next((schema["properties"] for schema in schemas if schema and schema.get("properties")), value)
    return {name: one for name, one in value.items() if name in fields} if isinstance(value, dict) else value


def _answered(body: dict[str, Any]) -> int:
    """How many calls have been answered; also those whose results are masked, or which an agent has left out."""
    if "contents" in body:
        return sum("functionResponse" in part for content in body["contents"] for part in content.get("parts", []))
    history = body.get("messages") or [item for item in body["input"] if str(item.get("type")).endswith("_output")]
    numbers = re.findall(r'"(?:tool_use_id|tool_call_id|call_id)": "call_(\d+)"', json.dumps(history))
    return max(map(int, numbers), default=-1) + 1


def _system(body: dict[str, Any]) -> Any:
    """The system prompt; the API takes out what Claude Code says there of itself, anew at each request."""
    system = body.get("system", ())
    if isinstance(system, str):
        return system
    return [block for block in system if not block.get("text", "").startswith("x-anthropic-billing-header:")]


def _plain(request: Request) -> bytes:
    return decoded(request.body, request.named("content-encoding") or "", MAX_BODY_BYTES)


def _refusal(words: str) -> bytes:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    return answer_of(json.dumps(error).encode(), "400 Bad Request", "Content-Type: application/json")


def _json(value: Any) -> bytes:
    return answer_of(json.dumps(value).encode(), "200 OK", "Content-Type: application/json")


def _stream(events: list[tuple[str | None, Any]], end: bytes = b"") -> Answer:
    lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
    return [_HEAD, chunked(*(line.encode() for line in lines)), chunked(end) if end else b"", b"0\r\n\r\n"]


def _anthropic(
    account: Account, may_think: bool, body: dict[str, Any], done: int, call: Any, tokens: Usage, *_: bool
) -> Answer:
    name, value = call or ("", {})
    usage = {"input_tokens": tokens.plain, "cache_read_input_tokens": tokens.read, "output_tokens": _OUTPUT_TOKENS}
    usage["cache_creation_input_tokens"] = tokens.written
    message = {"id": f"msg_{done}_{id(body)}", "type": "message", "role": "assistant", "model": body["model"]}
    stop = "tool_use" if call else "end_turn"
    block: dict[str, Any] = {"type": "text", "text": _last(body)}
    if call:
        block = {"type": "tool_use", "id": f"call_{done}", "name": name, "input": value}
    thinks = may_think and call and (body.get("thinking") or {}).get("type") in ("adaptive", "enabled")
    thought = {"type": "thinking", "thinking": f"Part {done} is next."}
    thoughts = PROVIDERS["anthropic"].answered(body, [thought], account) if thinks else []
    if not body.get("stream"):
        return [
            _json(
                {**message, "content": [*thoughts, block], "stop_reason": stop, "stop_sequence": None, "usage": usage}
            )
        ]
    empty = {**block, "input": {}} if call else {**block, "text": ""}
    delta = {"type": "text_delta", "text": _last(body)}
    if call:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(value)}
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    ended = {"stop_reason": stop, "stop_sequence": None}
    events: list[Any] = [
        {"type": "message_start", "message": begun},
        *_thinking(thoughts),
        {"type": "content_block_start", "index": len(thoughts), "content_block": empty},
        {"type": "content_block_delta", "index": len(thoughts), "delta": delta},
        {"type": "content_block_stop", "index": len(thoughts)},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": _OUTPUT_TOKENS}},
        {"type": "message_stop"},
    ]
    return _stream([(event["type"], event) for event in events])


def _thinking(thoughts: list[dict[str, Any]]) -> list[Any]:
    events: list[Any] = []
    for at, thought in enumerate(thoughts):
        deltas = [{"type": f"{name}_delta", name: thought[name]} for name in ("thinking", "signature")]
        empty = {**thought, "thinking": "", "signature": ""}
        events.append({"type": "content_block_start", "index": at, "content_block": empty})
        events += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": at})
    return events


def _responses(body: dict[str, Any], done: int, call: Any, tokens: Usage, *_: bool) -> Answer:
    item: dict[str, Any] = {"type": "message", "role": "assistant", "id": f"msg_{done}", "status": "completed"}
    item["content"] = [{"type": "output_text", "text": _last(body), "annotations": []}]
    if call is not None:
        name, value = call
        item = {"type": "function_call", "id": f"fc_{done}", "call_id": f"call_{done}", "name": name}
        item["status"] = "completed"
        if isinstance(value, str):  # a script
            item |= {"type": "custom_tool_call", "input": value}
        else:
            item["arguments"] = json.dumps(value)
    response = {"id": f"resp_{done}", "object": "response", "created_at": 1, "model": body["model"], "output": []}
    usage: dict[str, Any] = {"input_tokens": sum(tokens), "output_tokens": _OUTPUT_TOKENS}
    usage["total_tokens"] = sum(usage.values())
    usage["input_tokens_details"] = {"cached_tokens": tokens.read}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    whole = {**response, "output": [item], "status": "completed", "usage": usage}
    if not body.get("stream"):
        return [_json(whole)]
    kind, field, text = {
        "message": ("output_text", "content", _last(body)),
        "function_call": ("function_call_arguments", "arguments", item.get("arguments")),
        "custom_tool_call": ("custom_tool_call_input", "input", item.get("input")),
    }[item["type"]]
    place = {"output_index": 0, "item_id": item["id"], **({"content_index": 0} if call is None else {})}
    begun = {**item, "status": "in_progress", field: [] if call is None else ""}
    events: list[Any] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": f"response.{kind}.delta", **place, "delta": text},
        {"type": f"response.{kind}.done", **place, ("text" if call is None else field): text},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return _stream([(event["type"], event) for event in numbered])


def _chat(body: dict[str, Any], done: int, call: Any, tokens: Usage, *_: bool) -> Answer:
    delta: dict[str, Any] = {"role": "assistant", "content": _last(body)}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        delta = {"role": "assistant", "content": None}
        delta["tool_calls"] = [{"index": 0, "id": f"call_{done}", "type": "function", "function": function}]
    stop = "tool_calls" if "tool_calls" in delta else "stop"
    usage: dict[str, Any] = {"prompt_tokens": sum(tokens), "completion_tokens": _OUTPUT_TOKENS}
    usage |= {"total_tokens": sum(usage.values()), "prompt_tokens_details": {"cached_tokens": tokens.read}}
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
    return _stream([(None, event) for event in events], b"data: [DONE]\n\n")


def _gemini(body: Any, _done: int, call: Any, tokens: Usage, is_whole: bool, is_turn: bool) -> Answer:
    part: dict[str, Any] = {"text": _last(body)}
    if call is not None:
        part = {"functionCall": {"name": call[0], "args": call[1]}, "thoughtSignature": signed(call[0])}
    elif not is_turn:  # the agent asks whether it loops, or who should answer
        part = {"text": json.dumps({"unproductive_state_analysis": "", "unproductive_state_confidence": 0.0})}
    usage = {"promptTokenCount": sum(tokens), "candidatesTokenCount": _OUTPUT_TOKENS}
    usage |= {"totalTokenCount": sum(usage.values()), "cachedContentTokenCount": tokens.read}
    content = {"role": "model", "parts": [part]}
    found = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
    return [_json(found)] if is_whole else _stream([(None, found)])
