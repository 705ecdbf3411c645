"""What the providers refuse, as functions of a request's body: the first fault in their words, or None.

They know no more of a request than a provider does. The words are those of the real errors where these are known.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")

_BLOCKS = {
    "user": {"text", "image", "document", "tool_result", "search_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result"},
}
_BLOCK_FIELDS = {
    "text": {"type", "text", "citations", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
}
_MESSAGE_FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio", "annotations", "function_call"},
    "tool": {"role", "content", "tool_call_id", "name"},  # `name`: so in OpenAI's own cookbook
}


# The fields of an item of OpenAI's Responses, by its type.
_ITEM_FIELDS = {
    "message": {"type", "id", "role", "status", "content", "phase"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status", "namespace"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
}
_STATUSES = ("in_progress", "completed", "incomplete")


class RefusedError(Exception):
    """A request that a provider answers with 400."""


def signed(thinking: str) -> str:
    """The signature that the provider gives to a thinking block, and looks for when it comes back."""
    return hashlib.sha256(b"ours" + thinking.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def anthropic_fault(body: dict[str, Any]) -> str | None:
    """Why Anthropic's messages API refuses the request."""
    try:
        for field in ("model", "max_tokens"):
            demand(body.get(field), f"{field}: Field required")
        _anthropic(body.get("messages"))
        _marks(body)
    except RefusedError as refused:
        return str(refused)
    return None


def openai_fault(body: dict[str, Any]) -> str | None:
    """Why OpenAI's chat completions API refuses the request."""
    try:
        demand(body.get("model"), "you must provide a model parameter")
        _openai(body.get("messages"))
    except RefusedError as refused:
        return str(refused)
    return None


def responses_fault(body: dict[str, Any]) -> str | None:
    """Why OpenAI's Responses API refuses the request."""
    try:
        demand(body.get("model"), "Missing required parameter: 'model'.")
        demand("messages" not in body, "Unsupported parameter: 'messages'. In the Responses API, it is 'input'.")
        for field in ("max_tokens", "max_completion_tokens"):
            demand(field not in body, f"Unsupported parameter: '{field}'. Use 'max_output_tokens' instead.")
        _responses(body.get("input"))
    except RefusedError as refused:
        return str(refused)
    return None


def demand(fact: Any, words: str) -> None:
    if not fact:
        raise RefusedError(words)


# Anthropic


def _anthropic(messages: Any) -> None:
    demand(isinstance(messages, list) and messages, "messages: at least one message is required")
    for at, message in enumerate(messages):
        demand(isinstance(message, dict), f"messages.{at}: Input should be an object")
        role = message.get("role")
        demand(role in _BLOCKS, f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant"')
        extra = sorted(set(message) - {"role", "content"})
        demand(not extra, f"messages.{at}.{extra and extra[0]}: Extra inputs are not permitted")
    demand(messages[0]["role"] == "user", 'messages: first message must use the "user" role')
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for at, message in enumerate(messages):
        blocks = _blocks(message, at, is_last=at == len(messages) - 1)
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)  # turns of one role in a row are taken as one
        else:
            turns.append((message["role"], list(blocks)))
    _pairs(turns)
    last = messages[-1]
    text = last["content"] if isinstance(last["content"], str) else (last["content"] or [{}])[-1].get("text", "")
    ends_clean = last["role"] == "user" or text == text.rstrip()
    demand(ends_clean, "messages: final assistant content cannot end with trailing whitespace")


def _marks(body: dict[str, Any]) -> None:
    """Of the prompt cache, in the order in which the parts of a request precede each other."""
    places = [body.get("tools"), body.get("system"), *(message["content"] for message in body["messages"])]
    marks: list[dict[str, Any]] = []
    for blocks in places:
        for block in blocks if isinstance(blocks, list) else []:
            parts = block.get("content") if isinstance(block.get("content"), list) else []
            marks += [one["cache_control"] for one in [*parts, block] if one.get("cache_control") is not None]
    demand(len(marks) <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    for mark in marks:
        is_known = mark.get("type") == "ephemeral" and mark.get("ttl", "5m") in ("5m", "1h")
        demand(is_known and not set(mark) - {"type", "ttl"}, "cache_control: Input tag does not match")
    hours = [mark.get("ttl") == "1h" for mark in marks]
    demand(hours == sorted(hours, reverse=True), "a ttl='1h' cache_control block must not come after a ttl='5m' one.")


def _blocks(message: dict[str, Any], at: int, is_last: bool) -> list[dict[str, Any]]:
    content, role = message.get("content"), message["role"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    demand(isinstance(content, list), f"messages.{at}.content: Input should be a valid list")
    may_be_empty = is_last and role == "assistant"
    demand(
        content or may_be_empty,
        f"messages.{at}: all messages must have non-empty content except for the optional final assistant message",
    )
    for place, block in enumerate(content):
        where = f"messages.{at}.content.{place}"
        kind = block.get("type") if isinstance(block, dict) else None
        demand(kind in _BLOCKS[role], f"{where}: Input tag {kind!r} found using 'type' does not match")
        extra = sorted(set(block) - _BLOCK_FIELDS.get(kind, set(block)))
        demand(not extra, f"{where}.{kind}.{extra and extra[0]}: Extra inputs are not permitted")
        if kind == "text":
            _text(block, where)
        elif kind == "thinking":
            is_ours = block.get("signature") == signed(str(block.get("thinking")))
            demand(is_ours, f"{where}: Invalid `signature` in `thinking` block")
        elif kind == "tool_use":
            demand(isinstance(block.get("input"), dict), f"{where}.tool_use.input: Input should be a valid dictionary")
            demand(_ID.match(str(block.get("id"))), f"{where}.tool_use.id: String should match pattern")
            is_name = isinstance(block.get("name"), str) and _NAME.match(block["name"])
            demand(is_name, f"{where}.tool_use.name: String should match pattern")
        elif kind == "tool_result":
            _result(block, where)
    kinds = [block["type"] for block in content]
    thinks = [kind in ("thinking", "redacted_thinking") for kind in kinds]
    if any(thinks):
        demand(not thinks[-1], f"messages.{at}: The final block in an assistant message cannot be `thinking`.")
        demand(
            thinks[0],
            f"messages.{at}.content.0: If an assistant message contains any thinking blocks, the first block must be "
            "`thinking` or `redacted_thinking`",
        )
    return list(content)


def _text(block: dict[str, Any], where: str) -> None:
    text = block.get("text")
    demand(isinstance(text, str), f"{where}.text.text: Input should be a valid string")
    demand(text, "messages: text content blocks must be non-empty")
    demand(str(text).strip(), "messages: text content blocks must contain non-whitespace text")


def _result(block: dict[str, Any], where: str) -> None:
    content = block.get("content", "")
    demand(isinstance(content, (str, list)), f"{where}.tool_result.content: Input should be a valid list")
    for place, part in enumerate(content if isinstance(content, list) else []):
        kind = part.get("type") if isinstance(part, dict) else None
        inside = f"{where}.tool_result.content.{place}"
        demand(kind in ("text", "image", "document", "search_result"), f"{inside}: Input tag {kind!r} does not match")
        if kind == "text":
            _text(part, inside)
    demand(isinstance(block.get("is_error", False), bool), f"{where}.tool_result.is_error: Input should be a boolean")


def _pairs(turns: list[tuple[str, list[dict[str, Any]]]]) -> None:
    seen: set[str] = set()
    for at, (role, blocks) in enumerate(turns):
        calls = [str(block["id"]) for block in blocks if block["type"] == "tool_use"]
        demand(len(calls) == len(set(calls)) and not seen & set(calls), "messages: `tool_use` ids must be unique")
        seen |= set(calls)
        if role == "assistant":
            following = turns[at + 1][1] if at + 1 < len(turns) else []
            leading = _leading_results(following)
            missing = [call for call in calls if call not in leading]
            demand(
                not missing,
                f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message.",
            )
            continue
        asked = [str(block["id"]) for block in turns[at - 1][1] if block["type"] == "tool_use"] if at else []
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        strange = [call for call in answered if call not in asked]
        demand(
            not strange,
            f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(map(str, strange))}",
        )
        twice = [call for call in answered if answered.count(call) > 1]
        demand(not twice, f"messages.{at}: each tool_use must have a single result. Found multiple: {twice[:1]}")


def _leading_results(blocks: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for block in blocks:
        if block["type"] != "tool_result":
            break
        found.append(block["tool_use_id"])
    return found


# OpenAI


def _openai(messages: Any) -> None:
    demand(isinstance(messages, list) and messages, "[] is too short - 'messages'")
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        demand(isinstance(message, dict), f"Invalid type for 'messages[{at}]': expected an object")
        role = message.get("role")
        demand(role in _MESSAGE_FIELDS, f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', …")
        extra = sorted(set(message) - _MESSAGE_FIELDS[role])
        demand(not extra, f"Unknown parameter: 'messages[{at}].{extra and extra[0]}'.")
        if role == "tool":
            call = message.get("tool_call_id")
            demand(
                call in open_calls,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                f"'tool_calls'. (messages[{at}])",
            )
            open_calls.remove(str(call))
        else:
            _demand_answered(open_calls)
        _content(message, at)
        if message.get("tool_calls") is not None:
            open_calls = _calls(message["tool_calls"], at)
    _demand_answered(open_calls)


def _demand_answered(open_calls: list[str]) -> None:
    demand(
        not open_calls,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(open_calls)}",
    )


def _content(message: dict[str, Any], at: int) -> None:
    content, role = message.get("content"), message["role"]
    if content is None:
        has_else = role == "assistant" and any(message.get(name) for name in ("tool_calls", "refusal", "audio"))
        demand(has_else, f"Invalid value for 'content': expected a string, got null. (messages[{at}])")
        return
    demand(isinstance(content, (str, list)), f"Invalid type for 'messages[{at}].content'")
    if isinstance(content, str):
        return
    demand(content, f"Invalid 'messages[{at}].content': empty array")
    allowed = {"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}
    for place, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        fits = kind in allowed.get(role, {"text"})
        demand(fits, f"Invalid value: '{kind}' (messages[{at}].content[{place}].type)")
        is_text = kind != "text" or isinstance(part.get("text"), str)
        demand(is_text, f"Missing required parameter: 'messages[{at}].content[{place}].text'.")


def _calls(calls: Any, at: int) -> list[str]:
    demand(isinstance(calls, list) and calls, f"Invalid 'messages[{at}].tool_calls': empty array")
    found: list[str] = []
    for place, call in enumerate(calls):
        where = f"messages[{at}].tool_calls[{place}]"
        demand(isinstance(call, dict) and isinstance(call.get("id"), str), f"Missing required parameter: '{where}.id'")
        kind = call.get("type")
        demand(kind in ("function", "custom"), f"Invalid value for '{where}.type'")
        said = call.get(kind)
        demand(isinstance(said, dict) and isinstance(said.get("name"), str), f"Missing parameter: '{where}.{kind}'")
        demand(_NAME.match(said["name"]), f"Invalid '{where}.{kind}.name': string does not match pattern.")
        field = "arguments" if kind == "function" else "input"
        demand(isinstance(said.get(field), str), f"Invalid type for '{where}.{kind}.{field}': expected a string")
        demand(call["id"] not in found, f"Duplicate value for 'tool_call_id' of '{call['id']}'")
        found.append(call["id"])
    return found


# OpenAI's Responses


def _responses(given: Any) -> None:
    if isinstance(given, str):
        return
    demand(isinstance(given, list) and given, "Missing required parameter: 'input'.")
    asked = [item.get("call_id") for item in given if item.get("type") == "function_call"]
    answered = [item.get("call_id") for item in given if item.get("type") == "function_call_output"]
    for at, item in enumerate(given):
        kind = item.get("type", "message")
        demand(kind in _ITEM_FIELDS, f"Invalid value: '{kind}'. (input[{at}].type)")
        extra = sorted(set(item) - _ITEM_FIELDS[kind])
        demand(not extra, f"Unknown parameter: 'input[{at}].{extra and extra[0]}'.")
        demand(item.get("status", "completed") in _STATUSES, f"Invalid value for 'input[{at}].status'.")
        if kind == "message":
            _item_content(item, at)
        elif kind == "reasoning":
            after = given[at + 1] if at + 1 < len(given) else {}
            is_followed = after.get("role") == "assistant" or after.get("type") in ("function_call", "reasoning")
            demand(
                is_followed,
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.",
            )
        elif kind == "function_call":
            for name in ("call_id", "name", "arguments"):
                demand(isinstance(item.get(name), str), f"Missing required parameter: 'input[{at}].{name}'.")
            demand(_NAME.match(item["name"]), f"Invalid 'input[{at}].name': string does not match pattern.")
            call = item["call_id"]
            demand(call in answered, f"No tool output found for function call {call}.")
        else:
            call, output = item.get("call_id"), item.get("output")
            demand(call in asked, f"No tool call found for function call output with call_id {call}.")
            demand(isinstance(output, (str, list)), f"Invalid type for 'input[{at}].output'.")


def _item_content(item: dict[str, Any], at: int) -> None:
    role, content = item.get("role"), item.get("content")
    demand(role in ("user", "assistant", "system", "developer"), f"Invalid value: '{role}'. (input[{at}].role)")
    demand(isinstance(content, (str, list)), f"Invalid type for 'input[{at}].content'.")
    allowed = {"output_text", "refusal"} if role == "assistant" else {"input_text", "input_image", "input_file"}
    for place, part in enumerate(content if isinstance(content, list) else []):
        kind = part.get("type") if isinstance(part, dict) else None
        demand(kind in allowed, f"Invalid value: '{kind}'. (input[{at}].content[{place}].type)")
        fields = {"type", "text", "annotations", "logprobs"} if kind == "output_text" else set(part)
        extra = sorted(set(part) - fields)
        demand(not extra, f"Unknown parameter: 'input[{at}].content[{place}].{extra and extra[0]}'.")
