"""Templates of open models, as vLLM, SGLang, llama.cpp and Ollama render a chat with them."""

from __future__ import annotations

from itertools import pairwise

from provider_rules import chat
from provider_rules.base import OLD, Account, Body, Taken, check, demand, held, rule

_FIELDS = frozenset({"reasoning_content", "model_id"})  # the second one is what Grok Build sends xAI


@rule
def system_comes_first(messages: list[chat.Message]) -> None:
    """Qwen 3.5 to 3.8."""
    is_first = all(message["role"] not in ("system", "developer") for message in messages[1:])
    demand(is_first, "System message must be at the beginning.")


@rule
def roles_alternate(messages: list[chat.Message]) -> None:
    """Gemma, Ministral: after the system message, calls with their results aside."""
    system_comes_first(messages)
    spoken = [message["role"] for message in messages if message["role"] in ("user", "assistant")]
    called = [bool(message.get("tool_calls")) for message in messages if message["role"] in ("user", "assistant")]
    words = "After the optional system message, conversation roles must alternate user and assistant roles except for "
    demand(spoken[:1] == ["user"], words + "tool calls and results.")
    for at in range(1, len(spoken)):
        demand(spoken[at] != spoken[at - 1] or called[at - 1], words + "tool calls and results.")


@rule
def tool_follows_assistant(messages: list[chat.Message]) -> None:
    """Mistral: a `tool` only after an assistant or a tool, and no user directly after one."""
    for before, message in pairwise(messages):
        follows = message["role"] != "tool" or before["role"] in ("assistant", "tool")
        demand(follows, f"Unexpected role 'tool' after role '{before['role']}'")
        demand(message["role"] != "user" or before["role"] != "tool", "Unexpected role 'user' after role 'tool'")


_OF_MODELS = {
    "qwen": system_comes_first,
    "gemma": roles_alternate,
    "ministral": roles_alternate,
    "mistral": tool_follows_assistant,
}


@check
def the_template_renders(request: chat.Request) -> None:
    for name, checked in _OF_MODELS.items():
        if str(request.body["model"]).startswith(name):
            checked(request.messages)


def take(body: Body, account: Account = OLD) -> Taken:
    """What a server does with a request to one of these models; others take all that chat takes."""
    taken = chat.take(body, account, _FIELDS)
    return taken if taken.fault else held("templates", lambda: chat.Request(body, _FIELDS), chat.shown_tokens)
