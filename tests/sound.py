"""Histories of any shape made into ones that a provider takes, in the form of Anthropic or of OpenAI."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from provider_rules import signed

Message = dict[str, Any]


class Said(NamedTuple):
    """A message without the form that a provider wants: what was said, the calls made, the results given."""

    role: str
    text: str
    calls: list[tuple[Any, str, Any]]
    results: list[tuple[Any, str]]
    is_error: bool = False


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def said(messages: list[Message]) -> Iterator[Said]:
    """What the messages say, in whatever shape they are."""
    for message in messages:
        role, kind = str(message.get("role") or ""), str(message.get("type") or "")
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        calls = [(b.get("id"), b.get("name"), b.get("input")) for b in blocks if b.get("type") == "tool_use"]
        results = [(b.get("tool_use_id"), text_of(b.get("content"))) for b in blocks if b.get("type") == "tool_result"]
        for made in message.get("tool_calls") or ():
            function = made.get("function") or made.get("custom") or {}
            calls.append((made.get("id"), function.get("name"), function.get("arguments")))
        if kind.endswith("_call"):
            calls.append((message.get("call_id"), message.get("name"), message.get("arguments")))
            role = "assistant"
        elif kind.endswith("_call_output"):
            results.append((message.get("call_id"), text_of(message.get("output"))))
        elif role == "tool" or message.get("pairRole") == "result":
            results.append((message.get("tool_call_id") or message.get("pairId"), text_of(content)))
        elif message.get("pairRole") == "call":
            calls.append((message.get("pairId"), "run", None))
        if results:
            role, text = "results", "".join(b.get("text") or "" for b in blocks if b.get("type") == "text")
        else:
            text = text_of(content)
        is_error = any(block.get("is_error") is True for block in blocks)
        if role in ("system", "developer", "user", "assistant", "results"):
            yield Said(role, text, [(i, str(n or "run"), a) for i, n, a in calls], results, is_error)


class Turn(NamedTuple):
    """What was said before a run, and the run's text, calls and results, the pairs whole and each id its own."""

    before: list[tuple[str, str]]
    text: str
    calls: list[tuple[str, str, dict[str, Any]]]
    results: list[tuple[str, str]]
    is_error: bool


def turns_of(messages: list[Message]) -> Iterator[Turn]:
    numbers = itertools.count(1)
    before: list[tuple[str, str]] = []
    run: list[Said] = []
    answers: list[Said] = []

    def ended() -> Turn:
        given = {call_id: text for one in answers for call_id, text in one.results}
        calls, results = [], []
        for old_id, name, value in (made for one in run for made in one.calls):
            new_id = f"call_{next(numbers)}"
            name = re.sub(r"[^a-zA-Z0-9_-]", "e", name or "run")  # what both providers take
            calls.append((new_id, name, value if isinstance(value, dict) else {"arguments": value}))
            results.append((new_id, given.get(old_id, "[no result recorded]")))
        return Turn(
            before[:],
            "\n".join(one.text for one in run if one.text.strip()),
            calls,
            results,
            any(one.is_error for one in answers),
        )

    for one in said(messages):
        if one.role == "assistant" and not answers:
            run.append(one)
            continue
        if one.role == "results":
            if run:
                answers.append(one)
            continue
        if run:
            yield ended()
            before, run, answers = [], [], []
        if one.role == "assistant":
            run.append(one)
        elif one.text.strip():
            before.append((one.role, one.text))
    yield ended()


def as_anthropic(messages: list[Message], with_thinking: bool = False) -> list[Message]:
    """The history as Anthropic's messages API takes it; its system messages are what users say."""
    history: list[Message] = []
    for turn in turns_of(messages):
        history += ({"role": "user", "content": text} for _, text in turn.before)
        if not (turn.text or turn.calls):
            continue
        if not history:
            history.append({"role": "user", "content": "Go."})
        blocks: list[Message] = []
        if with_thinking:
            blocks.append({"type": "thinking", "thinking": turn.text, "signature": signed(turn.text)})
        if turn.text:
            blocks.append({"type": "text", "text": turn.text})
        blocks += ({"type": "tool_use", "id": i, "name": name, "input": value} for i, name, value in turn.calls)
        history.append({"role": "assistant", "content": blocks})
        results: list[Message] = [{"type": "tool_result", "tool_use_id": i, "content": t} for i, t in turn.results]
        if results and turn.is_error:
            results[0]["is_error"] = True
        if results:
            history.append({"role": "user", "content": results})
    return history


def has_tool_blocks(history: list[Message]) -> bool:
    """Whether a history can be known as one of Anthropic."""
    contents = [message["content"] for message in history if isinstance(message["content"], list)]
    return any(block["type"] in ("tool_use", "tool_result") for blocks in contents for block in blocks)


def as_openai(messages: list[Message]) -> list[Message]:
    """The history as OpenAI's chat completions API takes it."""
    history: list[Message] = []
    for turn in turns_of(messages):
        history += ({"role": role, "content": text} for role, text in turn.before)
        if not (turn.text or turn.calls):
            continue
        message: Message = {"role": "assistant", "content": turn.text or None}
        if turn.calls:
            message["tool_calls"] = [
                {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(value)}}
                for i, name, value in turn.calls
            ]
        history.append(message)
        history += ({"role": "tool", "tool_call_id": i, "content": text} for i, text in turn.results)
    return history


def as_gemini(messages: list[Message], ids: str) -> list[Message]:
    """The history as Gemini takes it, with ids on "both" sides, on "calls", on "results", or on neither."""
    history: list[Message] = []
    for turn in turns_of(messages):
        history += ({"role": "user", "parts": [{"text": text}]} for _, text in turn.before)
        if not (turn.text or turn.calls):
            continue
        if not history or history[-1]["role"] == "model":
            history.append({"role": "user", "parts": [{"text": "Go."}]})
        parts: list[Message] = [{"text": "hm", "thought": True}]
        parts += [{"text": turn.text}] if turn.text else []
        for call_id, name, value in turn.calls:
            call = {"name": name, "args": value, **({"id": call_id} if ids in ("both", "calls") else {})}
            parts.append({"functionCall": call, "thoughtSignature": signed(name)})
        history.append({"role": "model", "parts": parts})
        results: list[Message] = []
        for number, ((call_id, text), (_, name, _)) in enumerate(zip(turn.results, turn.calls, strict=True)):
            key = "error" if turn.is_error else ("output", "result")[number % 2]
            response = {"name": name, "response": {key: text, "code": 1} if number % 3 == 2 else {key: text}}
            results.append(
                {"functionResponse": {**({"id": call_id} if ids in ("both", "results") else {}), **response}}
            )
        if results:
            history.append({"role": "user", "parts": results})
    return history


def as_converse(messages: list[Message]) -> list[Message]:
    """The history as Bedrock's Converse takes it."""
    history: list[Message] = []
    points: list[Message] = [{"cachePoint": {"type": "default"}}] * 4  # which a request may have
    for turn in turns_of(messages):
        history += ({"role": "user", "content": [{"text": text}]} for _, text in turn.before)
        if not (turn.text or turn.calls):
            continue
        if not history or history[-1]["role"] == "assistant":
            history.append({"role": "user", "content": [{"text": "Go."}]})
        blocks: list[Message] = [{"text": turn.text}] if turn.text else []
        blocks += ({"toolUse": {"toolUseId": i, "name": name, "input": value}} for i, name, value in turn.calls)
        history.append({"role": "assistant", "content": blocks})
        results: list[Message] = []
        for number, (call_id, text) in enumerate(turn.results):
            content: list[Message] = [{"json": {"out": text}}, {"text": text}] if number % 3 == 2 else [{"text": text}]
            status = {"status": "error"} if turn.is_error else {}
            results.append({"toolResult": {"toolUseId": call_id, "content": content, **status}})
        if results:
            history.append({"role": "user", "content": [*results, *points[:1]]})
            del points[:1]
    return joined(history)


def joined(messages: list[Message]) -> list[Message]:
    """With messages of one role in a row as one, which Converse demands."""
    history: list[Message] = []
    for message in messages:
        if history and history[-1]["role"] == message["role"]:
            history[-1] = {**message, "content": [*history[-1]["content"], *message["content"]]}
        else:
            history.append(message)
    return history
