"""Summarizers of the real clients, against a server on this machine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import published
import pytest

from provider_server import Failure, Server, serving, text
from recede import summarizers
from recede.designs import HybridContextManager

TURN = ("I must look.", "cat a.py", "the text of a.py")
SMALL: dict[str, Any] = {"masking_window_w": 2, "summarize_at_n": 4, "tail_window_m": 2}
Make = Callable[..., Any]


@contextmanager
def sync_summarizer(provider: str, server: Server, **request: Any) -> Iterator[Any]:
    client: Any
    if provider == "anthropic":
        with anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as client:
            yield summarizers.anthropic(client, "claude-haiku-4-5", **request)
    else:
        with openai.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client:
            yield summarizers.openai(client, "gpt-5-mini", **request)


PROVIDERS = pytest.mark.parametrize("provider", ["anthropic", "openai"])


def added(manager: HybridContextManager, turns: int = 4) -> HybridContextManager:
    for _ in range(turns):
        manager.add_turn(*TURN)
    return manager


@PROVIDERS
def test_a_model_is_asked_for_the_summary(provider: str) -> None:
    with (
        serving(text("First."), text("Second.")) as server,
        sync_summarizer(provider, server, max_tokens=99) as summarizer,
    ):
        manager = added(HybridContextManager(summarizer, **SMALL), 8)
    assert manager.summaries == [(2, "First."), (6, "Second.")]
    assert server.refusals == []
    first, second = server.requests
    asked = first["system"] if provider == "anthropic" else first["messages"][0]["content"]
    assert asked == summarizers.PROMPT
    assert (first.get("max_tokens") or first.get("max_completion_tokens")) == 99
    told = second["messages"][-1]["content"]
    assert told.startswith("The summary so far:\n\nFirst.\n\nTurn 3:\nReasoning: I must look.\nAction: cat a.py\n")
    assert told.endswith("Turn 6:\nReasoning: I must look.\nAction: cat a.py\nObservation: the text of a.py")


@PROVIDERS
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Failure(529, "overloaded_error"), "APIStatusError|InternalServerError|OverloadedError"),
        (Failure(400, "invalid_request_error"), "BadRequestError"),
        (text("lost", drop_after=20), "APIConnectionError|RemoteProtocolError|APIError"),
        (text(""), "ValueError"),
        (text(" \n"), "ValueError"),
    ],
    ids=["overloaded", "refused", "dropped", "empty", "blank"],
)
def test_a_model_that_fails_loses_nothing(provider: str, answer: Any, error: str) -> None:
    with serving(answer, text("At last.")) as server, sync_summarizer(provider, server) as summarizer:
        manager = added(HybridContextManager(summarizer, **SMALL))
        assert type(manager.summarizer_error).__name__ in error.split("|")
        assert (manager.stats().summary_failures, manager.phase) == (1, "masking")
        assert manager.get_context("S", "U").count("\nTurn ") == 4
        added(manager, 1)
    assert manager.summaries == [(2, "At last.")]


@PROVIDERS
def test_lone_surrogates_of_turns_and_summaries_are_replaced(provider: str) -> None:
    with serving(text("A \udce9.")) as server, sync_summarizer(provider, server) as summarizer:
        manager = HybridContextManager(summarizer, **SMALL)
        for _ in range(4):
            manager.add_turn("I must look.", "cat caf\udce9", "\ud83d")
    assert manager.summarizer_error is None
    assert manager.summaries == [(2, "A \ufffd.")]
    assert "cat caf\ufffd\nObservation: \ufffd" in server.requests[0]["messages"][-1]["content"]


@PROVIDERS
def test_a_model_that_answers_nonsense_loses_nothing(provider: str) -> None:
    def damage(body: dict[str, Any]) -> Any:
        return {**body, "content": None, "choices": [None]}

    script = text("lost", damage=damage), text("At last.")
    with serving(*script) as server, sync_summarizer(provider, server) as summarizer:
        manager = added(HybridContextManager(summarizer, **SMALL))
        assert type(manager.summarizer_error) in (TypeError, ValueError)
        added(manager, 1)
    assert manager.summaries == [(2, "At last.")]


@PROVIDERS
def test_a_model_that_takes_too_long_loses_nothing(provider: str) -> None:
    held = threading.Event()
    with (
        serving(text("late", pause=held), text("At last.")) as server,
        sync_summarizer(provider, server, timeout=0.2) as summarizer,
    ):
        manager = added(HybridContextManager(summarizer, **SMALL))
        assert type(manager.summarizer_error).__name__ == "APITimeoutError"
        held.set()
        added(manager, 1)
    assert manager.summaries == [(2, "At last.")]


@PROVIDERS
def test_an_async_client_makes_an_async_summarizer(provider: str) -> None:
    async def run(server: Server) -> HybridContextManager:
        client: Any
        if provider == "anthropic":
            client = anthropic.AsyncAnthropic(api_key="none", base_url=server.url, max_retries=0)
            manager = HybridContextManager(summarizers.anthropic(client, "claude-haiku-4-5"), **SMALL)
        else:
            client = openai.AsyncOpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0)
            manager = HybridContextManager(summarizers.openai(client, "gpt-5-mini"), **SMALL)
        async with client:
            with pytest.raises(RuntimeError, match="use aadd_turn"):
                manager.add_turn(*TURN)
            for _ in range(5):
                await manager.aadd_turn(*TURN)
        return manager

    with serving(Failure(500), text("A summary.")) as server:
        manager = asyncio.run(run(server))
    assert manager.summaries == [(2, "A summary.")]
    assert manager.stats().summary_failures == 1


@PROVIDERS
def test_it_summarizes_messages_for_reduce(provider: str) -> None:
    history = [{"role": "user", "content": f"message {number} " * 20} for number in range(9)]
    with serving(text("What was said.")) as server, sync_summarizer(provider, server) as summarizer:
        result = published.reduce(history, max_input_chars=1_500, fill=None, summarizer=summarizer)
    assert result.messages[0]["content"] == "Conversation summary:\nWhat was said."
    assert "[user] message 0 message 0 " in server.requests[0]["messages"][-1]["content"]
