"""Models with small windows: a provider that refuses what is longer, and the limits of docs/budgets.md."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

from proxied import proxying
from test_wrap import client_of

import recede
from provider_server import Server, serving, text
from recede.proxy import RequestMasker
from support import call, function_call, function_call_output, result, tool_result, tool_use, user

WINDOWS = {32_000: 24_000, 128_000: 100_000}
"""The tokens of a model's window, and the limit."""
SHAPES = ("anthropic", "chat", "responses")
DOORS = ("wrap", "proxy")
TURNS = 28
PROMPT = "Be brief. " * 1_200
SAID = "a request is over max_input_tokens although all that may be masked or cut is"


def observed(number: int) -> str:
    return f"line {number:5} of log".ljust(20) * 1_000


def turn_of(shape: str, first: int, calls: int = 1) -> list[Any]:
    """A turn with so many results of 20,000 characters."""
    ids = [f"call_{number}" for number in range(first, first + calls)]
    texts = [observed(number) for number in range(first, first + calls)]
    pairs = list(zip(ids, texts, strict=True))
    if shape == "anthropic":
        return [tool_use(*ids), user([tool_result(*pair) for pair in pairs])]
    if shape == "chat":
        return [call(*ids), *(result(*pair) for pair in pairs)]
    return [*(function_call(id) for id in ids), *(function_call_output(*pair) for pair in pairs)]


def request_of(shape: str, history: list[Any]) -> dict[str, Any]:
    if shape == "anthropic":
        return {"model": "m", "max_tokens": 99, "system": PROMPT, "messages": history}
    if shape == "chat":
        return {"model": "m", "messages": [{"role": "system", "content": PROMPT}, *history]}
    return {"model": "m", "instructions": PROMPT, "input": history}


def ask(client: Any, shape: str, history: list[Any]) -> None:
    method = {"anthropic": "messages", "chat": "chat.completions", "responses": "responses"}[shape]
    owner = client
    for name in method.split("."):
        owner = getattr(owner, name)
    owner.create(**request_of(shape, history))


@contextlib.contextmanager
def door(name: str, shape: str, server: Server, limit: int | None) -> Iterator[Any]:
    """A client whose requests go through a door with this limit."""
    if name == "wrap":
        yield recede.wrap(client_of(shape, server), keep=10, max_input_tokens=limit)
        return
    with proxying(server.url, RequestMasker(keep=10, max_input_tokens=limit)) as proxy:
        yield client_of(shape, proxy)  # type: ignore[arg-type]  # of which it takes the URL


@pytest.mark.parametrize(
    ("window", "name", "shape"),
    [*((32_000, name, shape) for name in DOORS for shape in SHAPES), *((128_000, name, "chat") for name in DOORS)],
)
def test_no_request_is_longer_than_the_window(
    window: int, name: str, shape: str, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(*[text("Go on.")] * TURNS) as server, door(name, shape, server, WINDOWS[window]) as client:
        server.window = window
        history: list[Any] = [user("Find the bug.")]
        for number in range(TURNS):
            history += turn_of(shape, 100 * number, calls=8 if number == 14 else 1)
            ask(client, shape, history)
        assert server.refusals == []
        assert len(server.requests) == TURNS
    assert SAID not in caplog.text


@pytest.mark.parametrize("name", DOORS)
def test_without_a_limit_requests_get_longer_than_a_small_window(name: str) -> None:
    with serving(*[text("Go on.")] * TURNS) as server, door(name, "anthropic", server, None) as client:
        server.window = 32_000
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
            ask(client, "anthropic", [user("Go."), *turn_of("anthropic", 0, calls=8)])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", DOORS)
def test_a_turn_that_alone_is_longer_than_the_window_is_said(
    name: str, shape: str, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(text("Go on.")) as server, door(name, shape, server, WINDOWS[32_000]) as client:
        server.window = 32_000
        history = [user("Find the bug."), *turn_of(shape, 0, calls=40)]
        for _ in range(2):
            with pytest.raises((anthropic.BadRequestError, openai.BadRequestError), match="prompt is too long"):
                ask(client, shape, history)
    assert caplog.text.count(SAID) == 1
