"""Blocks, ids, pairs of calls and results, and marks of the prompt cache."""

from __future__ import annotations

import re
from typing import Any

from provider_rules.anthropic.request import THINKING, Block, Request
from provider_rules.base import LATER, check, demand

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
MOST_MARKS = 4

_OF_SERVER = {"server_tool_use", "mcp_tool_use", "mcp_tool_result", "mcp_tool_listing", "compaction", "fallback"}
_BLOCKS = {
    "user": {"text", "image", "document", "tool_result", "search_result", "container_upload"},
    "assistant": {"text", *THINKING, "tool_use", *_OF_SERVER},
    "system": {"text", "tool_addition", "tool_removal"},
}
_BLOCK_FIELDS = {
    "text": {"type", "text", "citations", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller", "toolset_name"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
}
_MESSAGE_FIELDS = {"role", "content"}
_PARTS = ("text", "image", "document", "search_result", "tool_reference", "browser_state")


def is_known(kind: Any, role: str) -> bool:
    name = str(kind)
    is_result = role == "assistant" and name.endswith("_tool_result")  # of a tool that runs at the provider
    return name in _BLOCKS[role] or is_result or name.startswith(LATER)


@check
def first_is_the_users(request: Request) -> None:
    spoken = [message["role"] for message in request.messages if message["role"] != "system"]
    demand(spoken[:1] == ["user"], 'messages: first message must use the "user" role')


@check
def known_fields(request: Request) -> None:
    for at, message in enumerate(request.messages):
        known = _MESSAGE_FIELDS | ({"clear_at", "output_config"} if message["role"] == "system" else set())
        extra = sorted(set(message) - known)
        demand(not extra, f"messages.{at}.{extra and extra[0]}: Extra inputs are not permitted")
        for place, block in enumerate(request.blocks[at]):
            kind = block.get("type")
            where = f"messages.{at}.content.{place}"
            words = f"{where}: Input tag {kind!r} found using 'type' does not match any of the expected tags"
            demand(is_known(kind, message["role"]), words)
            extra = sorted(set(block) - _BLOCK_FIELDS.get(str(kind), set(block)))
            demand(not extra, f"{where}.{kind}.{extra and extra[0]}: Extra inputs are not permitted")


@check
def nothing_is_empty(request: Request) -> None:
    last = len(request.messages) - 1
    for at, message in enumerate(request.messages):
        may_be_empty = (at == last and message["role"] == "assistant") or message["role"] == "system"
        words = "all messages must have non-empty content except for the optional final assistant message"
        demand(request.blocks[at] or may_be_empty, f"messages.{at}: {words}")
        for place, block in enumerate(request.blocks[at]):
            _text(block, f"messages.{at}.content.{place}")


@check
def calls_and_results_are_well_formed(request: Request) -> None:
    for at, place, block in request.each:
        where = f"messages.{at}.content.{place}"
        if block["type"] == "tool_use":
            demand(isinstance(block.get("input"), dict), f"{where}.tool_use.input: Input should be a valid dictionary")
            demand(_ID.match(str(block.get("id"))), f"{where}.tool_use.id: String should match pattern")
            is_name = isinstance(block.get("name"), str) and NAME.match(block["name"])
            demand(is_name, f"{where}.tool_use.name: String should match pattern")
        elif block["type"] == "tool_result":
            _result(block, where)


def _text(block: Block, where: str) -> None:
    if block["type"] == "text":
        text = block.get("text")
        demand(isinstance(text, str), f"{where}.text.text: Input should be a valid string")
        demand(text, "messages: text content blocks must be non-empty")
        demand(str(text).strip(), "messages: text content blocks must contain non-whitespace text")


def _result(block: Block, where: str) -> None:
    content = block.get("content", "")
    demand(isinstance(content, (str, list)), f"{where}.tool_result.content: Input should be a valid list")
    for place, part in enumerate(content if isinstance(content, list) else []):
        kind = part.get("type") if isinstance(part, dict) else None
        inside = f"{where}.tool_result.content.{place}"
        demand(kind in _PARTS or str(kind).startswith(LATER), f"{inside}: Input tag {kind!r} does not match")
        _text(part, inside)
    demand(isinstance(block.get("is_error", False), bool), f"{where}.tool_result.is_error: Input should be a boolean")


@check
def results_lead_the_next_message(request: Request) -> None:
    turns = request.turns
    seen: set[str] = set()
    for at, (role, blocks) in enumerate(turns):
        calls = _calls(blocks)
        demand(len(calls) == len(set(calls)) and not seen & set(calls), "messages: `tool_use` ids must be unique")
        seen |= set(calls)
        if role == "assistant":
            leading = _leading_results(turns[at + 1][1] if at + 1 < len(turns) else [])
            missing = [call for call in calls if call not in leading]
            demand(
                not missing,
                f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message.",
            )
            continue
        asked = _calls(turns[at - 1][1]) if at else []
        answered = [str(block["tool_use_id"]) for block in blocks if block["type"] == "tool_result"]
        strange = ", ".join(call for call in answered if call not in asked)
        demand(not strange, f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {strange}")
        twice = [call for call in answered if answered.count(call) > 1]
        demand(not twice, f"messages.{at}: each tool_use must have a single result. Found multiple: {twice[:1]}")


@check
def answers_to_code_have_results_only(request: Request) -> None:
    """Calls that a program at the provider makes are answered by results alone."""
    for (_, before), (role, blocks) in zip(request.turns, request.turns[1:], strict=False):
        callers = [block.get("caller") or {} for block in before if block["type"] == "tool_use"]
        is_of_code = any(str(caller.get("type")).startswith("code_execution") for caller in callers)
        if role == "user" and is_of_code:
            is_alone = all(block["type"] == "tool_result" for block in blocks)
            demand(is_alone, "When responding to programmatic tool calls, messages must have only tool_result blocks")


def _calls(blocks: list[Block]) -> list[str]:
    return [str(block["id"]) for block in blocks if block["type"] == "tool_use"]


def _leading_results(blocks: list[Block]) -> list[str]:
    found: list[str] = []
    for block in blocks:
        if block["type"] != "tool_result":
            break
        found.append(block["tool_use_id"])
    return found


def _marks(request: Request) -> list[Any]:
    """The marks of a request, in the order of its prefixes."""
    body, marks = request.body, []
    places = [body.get("tools"), body.get("system"), *(message.get("content") for message in request.messages)]
    for blocks in places:
        for block in blocks if isinstance(blocks, list) else []:
            parts = block.get("content") if isinstance(block.get("content"), list) else []
            marks += [one["cache_control"] for one in [*parts, block] if one.get("cache_control") is not None]
    return marks


@check
def at_most_four_marks(request: Request) -> None:
    """Automatic caching, a mark of the request itself, takes a place."""
    marks = [*_marks(request), *([request.body["cache_control"]] if request.body.get("cache_control") else [])]
    demand(len(marks) <= MOST_MARKS, f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    for mark in marks:
        is_mark = mark.get("type") == "ephemeral" and mark.get("ttl", "5m") in ("5m", "1h")
        # Claude Code shares the cache of what all its users send: `scope`, of a beta.
        demand(is_mark and not set(mark) - {"type", "ttl", "scope"}, "cache_control: Input tag does not match")


@check
def longer_lifetimes_come_first(request: Request) -> None:
    hours = [mark.get("ttl") == "1h" for mark in _marks(request)]
    words = "a ttl='1h' cache_control block must not come after a ttl='5m' one."
    demand(hours == sorted(hours, reverse=True), words)
    automatic = request.body.get("cache_control")
    if automatic and request.blocks[-1]:
        own = request.blocks[-1][-1].get("cache_control") or automatic
        words = "cache_control: the last block has another ttl than the automatic cache_control"
        demand(own.get("ttl", "5m") == automatic.get("ttl", "5m"), words)
