"""Bedrock's Converse: what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provider_rules.base import LATER, OLD, Account, Body, Taken, check, demand, held, tokens_of
from provider_rules.signatures import read, signed

_BLOCKS = {
    "user": {"text", "image", "document", "video", "toolResult", "cachePoint"},
    "assistant": {"text", "toolUse", "reasoningContent", "cachePoint"},
}
_MOST_POINTS = 4


class Request:
    """A body and its messages."""

    def __init__(self, body: Body) -> None:
        self.body = body
        messages = body.get("messages")
        demand(isinstance(messages, list) and messages, "The messages field is required.")
        self.messages: list[dict[str, Any]] = list(messages or ())
        self.dropped: list[Body] = []

    def blocks(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for at, message in enumerate(self.messages):
            for place, block in enumerate(message["content"]):
                yield message["role"], f"messages.{at}.content.{place}", block


@check
def roles_alternate(request: Request) -> None:
    demand(request.messages[0].get("role") == "user", "A conversation must start with a user message.")
    for at, message in enumerate(request.messages):
        role, content = message.get("role"), message.get("content")
        demand(role in _BLOCKS, f"Value at 'messages.{at}.role' failed to satisfy enum value set")
        extra = sorted(set(message) - {"role", "content"})
        demand(not extra, f"Unknown parameter in messages[{at}]: {extra and extra[0]!r}")
        alternates = at == 0 or request.messages[at - 1]["role"] != role
        demand(alternates, "A conversation must alternate between user and assistant roles.")
        demand(isinstance(content, list) and content, f"The content field in messages.{at} is empty.")


@check
def blocks_are_known(request: Request) -> None:
    for role, where, block in request.blocks():
        kinds = list(block) if isinstance(block, dict) else []
        is_known = len(kinds) == 1 and (kinds[0] in _BLOCKS[role] or kinds[0].startswith(LATER))
        demand(is_known, f"{where}: not one of the members of ContentBlock")
        if "toolUse" in block:
            used = block["toolUse"]
            demand(set(used) == {"toolUseId", "name", "input"}, f"{where}.toolUse: Missing required parameter")
            demand(isinstance(used["input"], dict), f"{where}.toolUse.input: not a JSON object")
        if "toolResult" in block:
            _result(block["toolResult"], f"{where}.toolResult")


def _result(result: dict[str, Any], where: str) -> None:
    is_whole = {"toolUseId", "content"} <= set(result) <= {"toolUseId", "content", "status"}
    demand(is_whole, f"{where}: Missing required parameter")
    demand(result.get("status", "success") in ("success", "error"), f"{where}.status: not of the enum")
    demand(isinstance(result["content"], list), f"{where}.content: not a list")
    for part in result["content"]:
        is_part = len(part) == 1 and set(part) <= {"text", "json", "image", "document", "video"}
        demand(is_part, f"{where}.content: not one of the members")
        demand(isinstance(part.get("text", ""), str), f"{where}.content.text: not a string")
        demand(isinstance(part.get("json", {}), (dict, list)), f"{where}.content.json: not JSON")


@check
def no_text_is_blank(request: Request) -> None:
    for _, where, block in request.blocks():
        is_said = "text" not in block or str(block["text"]).strip()
        demand(is_said, f"The text field in the ContentBlock object at {where} is blank.")


@check
def results_equal_calls(request: Request) -> None:
    asked: list[str] = []
    for at, message in enumerate(request.messages):
        content = message["content"]
        results = [block["toolResult"]["toolUseId"] for block in content if "toolResult" in block]
        missing = [call for call in asked if call not in results]
        demand(not missing, f"Expected toolResult blocks at messages.{at}.content for the following Ids: {missing}")
        demand(len(results) <= len(asked), "The number of toolResult blocks exceeds the number of toolUse blocks.")
        asked = [block["toolUse"]["toolUseId"] for block in content if "toolUse" in block]
        demand(len(asked) == len(set(asked)), f"messages.{at} contains duplicate Ids")
    demand(not asked, "Expected toolResult blocks after the last message.")


@check
def at_most_four_points(request: Request) -> None:
    points = sum("cachePoint" in block for _, _, block in request.blocks())
    points += sum("cachePoint" in block for block in request.body.get("system") or ())
    demand(points <= _MOST_POINTS, f"At most {_MOST_POINTS} cachePoint blocks are allowed. Found {points}.")


@check
def reasoning_keeps_its_signature(request: Request) -> None:
    for _, where, block in request.blocks():
        thought = (block.get("reasoningContent") or {}).get("reasoningText")
        if thought is not None:
            is_ours = read(thought.get("signature"), thought["text"])
            demand(is_ours, f"{where}: Invalid `signature` in `thinking` block")


def answered(body: Body, blocks: list[Body], account: Account = OLD) -> list[Body]:
    """The blocks of an answer to a request that was taken, with their signatures."""
    found = []
    for block in blocks:
        if "reasoningContent" in block:
            text = block["reasoningContent"]["reasoningText"]["text"]
            block = {"reasoningContent": {"reasoningText": {"text": text, "signature": signed(text)}}}
        found.append(block)
    return found


def shown_tokens(request: Request) -> int:
    return tokens_of(request.messages) + tokens_of(request.body.get("system") or [])


def take(body: Body, account: Account = OLD) -> Taken:
    """What the API does with a request."""
    return held("converse", lambda: Request(body), shown_tokens)
