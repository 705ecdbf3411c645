"""A `Conversation` with the official clients hands its history what the provider counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import anthropic
import openai
import pytest

import recede
from provider_server import serving, text

CLIENTS = ExitStack()  # of the running test


@contextmanager
def answering(*answers: Any) -> Iterator[Any]:
    with serving(*answers) as server, CLIENTS:
        yield server


def conversation(shape: str, url: str, **options: Any) -> recede.designs.Conversation:
    if shape == "anthropic":
        ours = CLIENTS.enter_context(anthropic.Anthropic(api_key="x", base_url=url, max_retries=0))
        return recede.designs.Conversation(ours.messages.create, model="claude", max_tokens=99, **options)
    other = CLIENTS.enter_context(openai.OpenAI(api_key="x", base_url=f"{url}/v1", max_retries=0))
    return recede.designs.Conversation(other.chat.completions.create, model="gpt", max_tokens=99, **options)


@pytest.mark.parametrize(
    ("shape", "on_text", "counted"),
    [
        ("anthropic", None, (2, 20, 0, 4, 10)),
        ("anthropic", lambda said: None, (2, 20, 0, 4, 10)),
        ("openai", None, (2, 14, 6, 0, 10)),
    ],
)
def test_each_answer_is_reported(shape: str, on_text: Any, counted: tuple[int, ...]) -> None:
    with answering(text("Hello."), text("Well.")) as server:
        talk = conversation(shape, server.url, on_text=on_text)
        talk.turn("Go.")
        talk.turn("Go on.")
        assert talk.history.stats().reported[:5] == counted
        assert talk.history.cold_requests == ()


def test_after_a_pause_the_cache_is_taken_to_be_cold() -> None:
    with answering(text("Hello."), text("Well."), text("Bye.")) as server:
        talk = conversation("anthropic", server.url)
        talk.turn("Go.")
        talk._cache_seconds = -1  # any pause is longer
        talk.turn("Go on.")
        assert talk.history.cold_requests == (3,)
        talk._cache_seconds = 300
        talk.turn("And on.")
        assert talk.history.cold_requests == (3,)
