"""The bound on cost against caches that are played by the rules of their providers, which share no code with recede."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from caching_provider import CachingProvider
from hypothesis import given, settings
from hypothesis import strategies as st

import recede
from recede.proxy import RequestMasker

Turn = tuple[int, list[int], float]
"""Characters of an answer, those of the results of its calls, and the seconds until the next request."""

SIZES = st.sampled_from([10, 300, 3_000, 9_000, 30_000])
SECONDS = st.sampled_from([5.0, 5.0, 5.0, 200.0, 1_000.0, 1_700.0, 7_200.0])
TURNS = st.lists(
    st.tuples(SIZES, st.lists(SIZES, min_size=1, max_size=3), SECONDS), min_size=20, max_size=40
) | st.builds(lambda turn, count: [turn] * count, st.tuples(SIZES, st.lists(SIZES, max_size=1), SECONDS), st.just(60))


class Client(NamedTuple):
    """How requests look, where they go, and what they cost: tokens that are read, written and neither."""

    path: str
    model: str
    body: Callable[[str, list[Turn], int], dict[str, Any]]
    pay: Callable[[CachingProvider, dict[str, Any]], tuple[int, int, int]]


def chat(model: str, turns: list[Turn], tool_chars: int) -> dict[str, Any]:
    messages: list[Any] = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Find the bug."},
    ]
    for number, (said, observed, _) in enumerate(turns):
        ids = [f"{number}.{place}" for place in range(len(observed))]
        calls = [{"id": one, "type": "function", "function": {"name": "run", "arguments": "{}"}} for one in ids]
        messages.append({"role": "assistant", "content": "y" * said, **({"tool_calls": calls} if calls else {})})
        messages += [
            {"role": "tool", "tool_call_id": one, "content": "x" * chars}
            for one, chars in zip(ids, observed, strict=True)
        ]
        messages += [] if calls else [{"role": "user", "content": "Go on."}]
    return {"model": model, "tools": [{"description": "d" * tool_chars}], "messages": messages}


def responses(model: str, turns: list[Turn], tool_chars: int) -> dict[str, Any]:
    items: list[Any] = [{"role": "user", "content": "Find the bug."}]
    for number, (said, observed, _) in enumerate(turns):
        items.append({"role": "assistant", "content": [{"type": "output_text", "text": "y" * said}]})
        ids = [f"{number}.{place}" for place in range(len(observed))]
        items += [{"type": "function_call", "call_id": one, "name": "run", "arguments": "{}"} for one in ids]
        items += [
            {"type": "function_call_output", "call_id": one, "output": "x" * chars}
            for one, chars in zip(ids, observed, strict=True)
        ]
        items += [] if ids else [{"role": "user", "content": "Go on."}]
    return {"model": model, "store": False, "tools": [{"description": "d" * tool_chars}], "input": items}


def automatic(model: str, turns: list[Turn], tool_chars: int) -> dict[str, Any]:
    """In Anthropic's form, with automatic caching."""
    messages: list[Any] = [{"role": "user", "content": "Find the bug."}]
    for number, (said, observed, _) in enumerate(turns):
        ids = [f"{number}.{place}" for place in range(len(observed))]
        calls = [{"type": "tool_use", "id": one, "name": "run", "input": {}} for one in ids]
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "y" * said + "."}, *calls]})
        results = [
            {"type": "tool_result", "tool_use_id": one, "content": "x" * chars}
            for one, chars in zip(ids, observed, strict=True)
        ]
        messages.append({"role": "user", "content": results or [{"type": "text", "text": "Go on."}]})
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [{"type": "text", "text": "s" * tool_chars + ".", **mark}]
    return {"model": model, **mark, "system": system, "messages": messages}


def by_entries(provider: CachingProvider, body: dict[str, Any]) -> tuple[int, int, int]:
    whole, read, written = provider.count_entries(body)
    return read, written, whole - read - written


def by_marks(provider: CachingProvider, body: dict[str, Any]) -> tuple[int, int, int]:
    usage = provider.count(body)
    assert isinstance(usage, dict), usage
    return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"], usage["input_tokens"]


CLIENTS = {
    "chat to GPT-5.6": Client("/v1/chat/completions", "gpt-5.6-sol", chat, by_entries),
    "responses to GPT-6": Client("/v1/responses", "gpt-6.2", responses, by_entries),
    "Claude, automatic": Client("/v1/messages", "claude-opus-4-5", automatic, by_marks),
}


def shares_of_raw(client: Client, turns: list[Turn], tool_chars: int, provider: recede.Provider) -> list[float]:
    """What all requests so far have cost after each, as a share of what raw would have cost so far."""
    now = [1_700_000_000.0]
    masker = RequestMasker(keep=2, clock=lambda: now[0])
    raw, masked = CachingProvider(""), CachingProvider("")
    paid, found = [0.0, 0.0], []
    whole = client.body(client.model, turns, tool_chars)
    key = next(key for key in ("messages", "input") if key in whole)
    for place, (end, turn) in enumerate(zip(ends(whole[key]), [(0, [], 0.0), *turns], strict=False)):
        now[0] += turn[2] if place else 0.0
        body = {**whole, key: whole[key][:end]}
        view = json.loads(masker.mask("POST", client.path, {}, json.dumps(body).encode()).body)
        for index, (cache, sent) in enumerate(((raw, body), (masked, view))):
            cache.seconds = now[0]
            read, written, plain = client.pay(cache, sent)
            paid[index] += read * provider.read + written * provider.write + plain
        found.append(paid[1] / paid[0])
    return found


def ends(history: list[Any]) -> list[int]:
    """How many messages come before each request."""
    is_made = [one.get("role") == "assistant" or one.get("type") == "function_call" for one in history]
    return [end for end in range(1, len(history) + 1) if not is_made[end - 1] and (end == len(history) or is_made[end])]


@pytest.mark.parametrize("name", CLIENTS)
@settings(max_examples=settings.default.max_examples // 4)
@given(turns=TURNS, tool_chars=st.sampled_from([0, 3_000, 12_000, 38_000]))
def test_no_moment_of_a_played_cache_is_over_the_bound(name: str, turns: list[Turn], tool_chars: int) -> None:
    client = CLIENTS[name]
    provider = recede.Provider.of_model(client.model)
    assert provider is not None
    assert max(shares_of_raw(client, turns, tool_chars, provider)) <= 1.1 * (1 + 1e-9)


@pytest.mark.parametrize("name", CLIENTS)
def test_long_sessions_pay_for_their_moves(name: str) -> None:
    """The property above is not true because nothing is masked."""
    client = CLIENTS[name]
    provider = recede.Provider.of_model(client.model)
    assert provider is not None
    turns: list[Turn] = [(200, [4_000], 10.0)] * 120
    assert shares_of_raw(client, turns, 12_000, provider)[-1] < 0.8
