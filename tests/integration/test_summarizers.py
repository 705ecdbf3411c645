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
from recede._question import UnfinishedError
from recede.designs import HybridContextManager
from support import SUMMARY

TURN = ("I must look. " * 30 + "So.", "cat a.py", "the text of a.py")  # longer than a summary
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
        serving(text(f"First.\n{SUMMARY}"), text(f"Second.\n{SUMMARY}")) as server,
        sync_summarizer(provider, server, max_tokens=99) as summarizer,
    ):
        manager = added(HybridContextManager(summarizer, **SMALL), 8)
    assert manager.summaries == [(2, f"First.\n{SUMMARY}"), (6, f"Second.\n{SUMMARY}")]
    assert server.refusals == []
    first, second = server.requests
    asked = first["system"] if provider == "anthropic" else first["messages"][0]["content"]
    assert asked == summarizers.PROMPT
    reasoning = {"anthropic": (99, None), "openai": (6_099, "minimal")}[provider]
    assert (first.get("max_tokens") or first.get("max_completion_tokens"), first.get("reasoning_effort")) == reasoning
    told = second["messages"][-1]["content"]
    assert told.startswith(
        f"The summary so far:\n\nFirst.\n{SUMMARY}\n\nTurn 3:\nReasoning: {TURN[0]}\nAction: cat a.py\n"
    )
    assert told.endswith(f"Turn 6:\nReasoning: {TURN[0]}\nAction: cat a.py\nObservation: the text of a.py")


@PROVIDERS
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Failure(529, "overloaded_error"), "APIStatusError|InternalServerError|OverloadedError"),
        (Failure(400, "invalid_request_error"), "BadRequestError"),
        (text("lost", drop_after=20), "APIConnectionError|RemoteProtocolError|APIError"),
        (text(""), "UnfinishedError"),
        (text(" \n"), "UnfinishedError"),
        (text(SUMMARY, stop="max_tokens"), "UnfinishedError"),
        (text("I can't help with that.", stop="refusal"), "UnfinishedError"),
        (text("Goal: State: " * 9), "UnfinishedError"),
    ],
    ids=["overloaded", "refused", "dropped", "empty", "blank", "cut", "a refusal", "garbage"],
)
def test_a_model_that_fails_loses_nothing(provider: str, answer: Any, error: str) -> None:
    with serving(answer, text(SUMMARY)) as server, sync_summarizer(provider, server) as summarizer:
        manager = added(HybridContextManager(summarizer, **SMALL))
        assert type(manager.summarizer_error).__name__ in error.split("|")
        assert (manager.stats().summary_failures, manager.phase) == (1, "masking")
        assert manager.get_context("S", "U").count("\nTurn ") == 4
        added(manager, 1)
    assert manager.summaries == [(2, SUMMARY)]


@PROVIDERS
def test_lone_surrogates_of_turns_and_summaries_are_replaced(provider: str) -> None:
    with serving(text(f"A \udce9.\n{SUMMARY}")) as server, sync_summarizer(provider, server) as summarizer:
        manager = HybridContextManager(summarizer, **SMALL)
        for _ in range(4):
            manager.add_turn(TURN[0], "cat caf\udce9", "\ud83d")
    assert manager.summarizer_error is None
    assert manager.summaries == [(2, f"A \ufffd.\n{SUMMARY}")]
    assert "cat caf\ufffd\nObservation: \ufffd" in server.requests[0]["messages"][-1]["content"]


@PROVIDERS
def test_a_model_that_answers_nonsense_loses_nothing(provider: str) -> None:
    def damage(body: dict[str, Any]) -> Any:
        return {**body, "content": None, "choices": [None]}

    script = text("lost", damage=damage), text(SUMMARY)
    with serving(*script) as server, sync_summarizer(provider, server) as summarizer:
        manager = added(HybridContextManager(summarizer, **SMALL))
        assert type(manager.summarizer_error) in (TypeError, UnfinishedError)
        added(manager, 1)
    assert manager.summaries == [(2, SUMMARY)]


@PROVIDERS
def test_a_model_that_takes_too_long_loses_nothing(provider: str) -> None:
    held = threading.Event()
    with (
        serving(text("late", pause=held), text(SUMMARY)) as server,
        sync_summarizer(provider, server, timeout=0.2) as summarizer,
    ):
        manager = added(HybridContextManager(summarizer, **SMALL))
        assert type(manager.summarizer_error).__name__ == "APITimeoutError"
        held.set()
        added(manager, 1)
    assert manager.summaries == [(2, SUMMARY)]


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

    with serving(Failure(500), text(SUMMARY)) as server:
        manager = asyncio.run(run(server))
    assert manager.summaries == [(2, SUMMARY)]
    assert manager.stats().summary_failures == 1


@PROVIDERS
def test_it_summarizes_messages_for_reduce(provider: str) -> None:
    history = [{"role": "user", "content": f"message {number} " * 20} for number in range(9)]
    with serving(text(SUMMARY)) as server, sync_summarizer(provider, server) as summarizer:
        result = published.reduce(history, max_input_chars=1_500, fill=None, summarizer=summarizer)
    assert result.messages[0]["content"] == f"Conversation summary:\n{SUMMARY}"
    assert "[user] message 0 message 0 " in server.requests[0]["messages"][-1]["content"]
