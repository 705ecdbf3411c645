"""Anthropic's messages with results elsewhere: texts of the user in tasks of Cline, Roo Code, Kilo Code; Amp's runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from recede.transcripts._draft import Draft, fields, objects, renamed, text, texts

_RESULT = re.compile(r"\[(\w+)[^\n]*\] Result:")
# What follows the results of tools in the same message.
_ENDS = ("<environment_details>", "<feedback>", "<user_message>", "<task>")


class _Result(NamedTuple):
    tool: str
    content: list[dict[str, Any]]


def recognizes(value: Any) -> bool:
    """Whether the value is the messages of a task, or a session of Cline's own format with them."""
    messages = objects(fields(value).get("messages", value))
    if isinstance(value, dict) and not (isinstance(value.get("sessionId"), str) and "version" in value):
        return False
    return all("role" in message for message in messages) and any(
        any(isinstance(message.get(name), dict) for name in ("modelInfo", "metrics"))
        if message["role"] == "assistant"
        else any(_RESULT.match(text(block.get("text"))) for block in _blocks(message.get("content")))
        for message in messages
    )


def read(value: Any) -> Iterator[Draft]:
    """Read the messages: a result that is text becomes that of its call, or of a call that is text as well."""
    draft = Draft()
    system = fields(value).get("system_prompt")
    if isinstance(system, str) and system:
        draft.add({"role": "system", "content": system})
    for message in objects(fields(value).get("messages", value)):
        draft.records += 1
        if message.get("role") == "assistant" and message.get("type") != "reasoning":
            time: Any = message.get("ts")
            model = fields(message.get("modelInfo"))
            draft.host = model.get("providerId")
            has_time = isinstance(time, (int, float)) and not isinstance(time, bool)
            usage = _usage(message.get("metrics"))
            draft.request(usage, model.get("modelId", model.get("id")), time / 1000 if has_time else None)
            draft.add({"role": "assistant", "content": message.get("content")})
        elif message.get("type") != "reasoning":
            _user(draft, message.get("role"), message.get("content"))
    yield draft


def _user(draft: Draft, role: Any, content: Any) -> None:
    results, rest = _results(_blocks(content))
    if not results:
        draft.add({"role": role, "content": content})
        return
    last = draft.messages[-1] if draft.messages else {}
    called = [one for one in objects(last.get("content")) if one.get("type") == "tool_use"]
    answered = [block.get("tool_use_id") for block in rest if block.get("type") == "tool_result"]
    waiting = [call for call in called if call.get("id") not in answered]
    paired: list[dict[str, Any]] = []
    for tool, blocks in results:
        call = next((one for one in waiting if one.get("name") == tool), waiting[0] if waiting else None)
        if call is not None:
            waiting.remove(call)
            paired.append({"type": "tool_result", "tool_use_id": call.get("id"), "content": blocks})
    if paired:
        unpaired = [block for _, blocks in results[len(paired) :] for block in blocks]
        draft.add({"role": "user", "content": [*paired, *unpaired, *rest]})
        return
    blocks = [block for _, content in results for block in content]
    if last.get("role") == "assistant" and not called:
        draft.answer(blocks)
    else:
        rest = [*blocks, *rest]
    if rest:
        draft.add({"role": "user", "content": rest})


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def _results(blocks: list[dict[str, Any]]) -> tuple[list[_Result], list[dict[str, Any]]]:
    """The results in a user message, each with its heading, and the other blocks."""
    results: list[_Result] = []
    rest: list[dict[str, Any]] = []
    is_inside = False
    for block in blocks:
        said = text(block.get("text"))
        if found := _RESULT.match(said):
            results.append(_Result(found[1], [block]))
            is_inside = True
        elif is_inside and block.get("type") in ("text", "image") and not said.lstrip().startswith(_ENDS):
            results[-1].content.append(block)
        else:
            rest.append(block)
            is_inside = False
    return results, rest


def _usage(metrics: Any) -> Any:
    """Rename tokens; `tokens.prompt` has those of the cache in it, `inputTokens` has not."""
    tokens = fields(metrics).get("tokens")
    if isinstance(tokens, dict):
        return renamed(tokens, "prompt", "completion", "cached")
    return renamed(metrics, "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", is_apart=True)


# Threads of Amp, whose results are runs of tools


def is_amp(value: Any) -> bool:
    """Whether the value is a thread: a result names its call by `toolUseID`, and has a run."""
    return any(
        block.get("type") == "tool_result" and "toolUseID" in block
        for message in objects(fields(value).get("messages"))
        for block in objects(message.get("content"))
    )


def read_amp(value: Any) -> Iterator[Draft]:
    draft = Draft()
    for message in objects(value["messages"]):
        draft.records += 1
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            usage = message.get("usage")
            draft.request(usage, fields(usage).get("model"), fields(usage).get("timestamp"))
        blocks = [_of_amp(block) for block in objects(content)]
        draft.add({"role": role, "content": blocks if isinstance(content, list) else content})
    yield draft


def _of_amp(block: dict[str, Any]) -> dict[str, Any]:
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
