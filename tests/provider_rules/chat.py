"""OpenAI's chat completions API: what it refuses."""

from __future__ import annotations

import re
from typing import Any

from provider_rules.base import LATER, OLD, Account, Body, Taken, check, demand, held, rule, tokens_of, version

Message = dict[str, Any]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_OF_OTHERS = {"reasoning_content", "reasoning_details", "reasoning", "thinking_blocks"}
_MESSAGE_FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio", "annotations", "function_call"},
    "tool": {"role", "content", "tool_call_id", "name"},  # `name`: so in OpenAI's own cookbook
}
_PARTS = {"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}


class Request:
    """A body and its messages; `extra` fields are those of another provider with this API."""

    def __init__(self, body: Body, extra: frozenset[str] = frozenset()) -> None:
        self.body, self.extra = body, extra
        demand(body.get("model"), "you must provide a model parameter")
        messages = body.get("messages")
        demand(isinstance(messages, list) and messages, "[] is too short - 'messages'")
        self.messages: list[Message] = list(messages or ())
        self.dropped: list[Body] = []


@check
def known_fields(request: Request) -> None:
    for at, message in enumerate(request.messages):
        demand(isinstance(message, dict), f"Invalid type for 'messages[{at}]': expected an object")
        role = message.get("role")
        demand(role in _MESSAGE_FIELDS, f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', …")
        later = {name for name in message if name.startswith(LATER)}
        extra = sorted(set(message) - _MESSAGE_FIELDS[str(role)] - request.extra - later)
        demand(not extra, f"Unknown parameter: 'messages[{at}].{extra and extra[0]}'.")
        _content(message, at)


@check
def tool_messages_follow_their_calls(request: Request) -> None:
    """At once, each once."""
    open_calls: list[str] = []
    for at, message in enumerate(request.messages):
        if message["role"] == "tool":
            call = message.get("tool_call_id")
            words = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            demand(call in open_calls, f"Invalid parameter: {words} (messages[{at}])")
            open_calls.remove(str(call))
        else:
            _demand_answered(open_calls)
        if message.get("tool_calls") is not None:
            open_calls = _calls(message["tool_calls"], at)
    _demand_answered(open_calls)


def _demand_answered(open_calls: list[str]) -> None:
    demand(
        not open_calls,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(open_calls)}",
    )


def _content(message: Message, at: int) -> None:
    content, role = message.get("content"), message["role"]
    if content is None:
        has_else = role == "assistant" and any(message.get(name) for name in ("tool_calls", "refusal", "audio"))
        demand(has_else, f"Invalid value for 'content': expected a string, got null. (messages[{at}])")
        return
    demand(isinstance(content, (str, list)), f"Invalid type for 'messages[{at}].content'")
    if isinstance(content, str):
        return
    demand(content, f"Invalid 'messages[{at}].content': empty array")
    for place, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        fits = kind in _PARTS.get(role, {"text"}) or str(kind).startswith(LATER)
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


@check
def the_newest_models_have_no_tools_here(request: Request) -> None:
    """GPT-6 Astra, 6.1 Sol and 6.2 not at all, GPT-5.6 and GPT-6 with no effort alone."""
    model = str(request.body["model"])
    made = version(model, "gpt")
    if not request.body.get("tools") or made is None or made < (5, 6):
        return
    is_never = made >= (6, 2) or "gpt-6-astra" in model or "gpt-6.1-sol" in model
    is_none = request.body.get("reasoning_effort") == "none"
    words = f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use "
    demand(is_none and not is_never, words + "function tools, use /v1/responses or set reasoning_effort to 'none'.")


@rule
def finished(finish_reason: Any) -> bool:
    """Whether an answer is one: not if it was cut or filtered."""
    return finish_reason in ("stop", "tool_calls")


def shown_tokens(request: Request) -> int:
    return tokens_of(request.messages) + tokens_of(request.body.get("tools") or [])


def take(body: Body, account: Account = OLD, extra: frozenset[str] = frozenset()) -> Taken:
    """What the API does with a request."""
    return held("chat", lambda: Request(body, extra), shown_tokens)
