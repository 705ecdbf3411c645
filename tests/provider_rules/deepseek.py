"""DeepSeek and others that speak as OpenAI's chat and want their reasoning back."""

from __future__ import annotations

from typing import Any

from provider_rules import chat
from provider_rules.base import OLD, Account, Body, Taken, check, demand, held, rule

NEWEST = "deepseek-v4-pro"
_FIELDS = frozenset({"reasoning_content", "reasoning_details", "reasoning"})
_SILENT = ("glm", "minimax", "openrouter", "grok")


@check
def reasoning_content_stays(request: chat.Request) -> None:
    """On each assistant message with calls, even empty, for good; so do DeepSeek V4 and Kimi K2.5."""
    if any(name in str(request.body["model"]) for name in _SILENT):
        return
    for message in request.messages:
        has_it = not message.get("tool_calls") or "reasoning_content" in message
        demand(has_it, "The `reasoning_content` in the thinking mode must be passed back to the API.")


@rule
def missing_reasoning_makes_answers_worse(request: chat.Request) -> int:
    """GLM, MiniMax, OpenRouter and xAI say nothing: how many answers came back without theirs."""
    spoken = [message for message in request.messages if message["role"] == "assistant"]
    return sum(not _FIELDS & set(message) for message in spoken)


def reads(body: Body) -> dict[str, Any]:
    return {"answers without reasoning": missing_reasoning_makes_answers_worse(chat.Request(body, _FIELDS))}


def take(body: Body, account: Account = OLD) -> Taken:
    """What the API does with a request."""
    taken = chat.take(body, account, _FIELDS)
    return taken if taken.fault else held("deepseek", lambda: chat.Request(body, _FIELDS), chat.shown_tokens)
