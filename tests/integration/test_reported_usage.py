"""A `Conversation` with the official clients hands its history what the provider counted."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest

import recede
from provider_server import serving, text
from support import engine_module


@pytest.fixture(autouse=True)
def _needs_the_core() -> None:
    engine_module("rust")


def conversation(shape: str, url: str, **options: Any) -> recede.Conversation:
    if shape == "anthropic":
        create: Any = anthropic.Anthropic(api_key="x", base_url=url, max_retries=0).messages.create
        return recede.Conversation(create, model="claude", max_tokens=99, **options)
    create = openai.OpenAI(api_key="x", base_url=f"{url}/v1", max_retries=0).chat.completions.create
    return recede.Conversation(create, model="gpt", max_tokens=99, **options)


@pytest.mark.parametrize(
    ("shape", "on_text", "counted"),
    [
        ("anthropic", None, (2, 20, 0, 0, 10)),
        ("anthropic", lambda said: None, (2, 20, 0, 0, 10)),
        ("openai", None, (2, 14, 6, 0, 10)),
    ],
)
def test_each_answer_is_reported(shape: str, on_text: Any, counted: tuple[int, ...]) -> None:
    with serving(text("Hello."), text("Well.")) as server:
        talk = conversation(shape, server.url, on_text=on_text)
        talk.turn("Go.")
        talk.turn("Go on.")
        assert talk.history.stats().reported[:5] == counted
        assert talk.history.cold_requests == ()


def test_after_a_pause_the_cache_is_taken_to_be_cold() -> None:
    with serving(text("Hello."), text("Well."), text("Bye.")) as server:
        talk = conversation("anthropic", server.url)
        talk.turn("Go.")
        talk._cache_seconds = -1  # any pause is longer
        talk.turn("Go on.")
        assert talk.history.cold_requests == (3,)
        talk._cache_seconds = 300
        talk.turn("And on.")
        assert talk.history.cold_requests == (3,)
