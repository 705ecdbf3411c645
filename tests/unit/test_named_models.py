"""The name of a model as the option `provider`, and in a request that is reduced."""

from __future__ import annotations

import json
from typing import Any

import pytest

import recede
from recede.masker import Masker
from recede.proxy import RequestMasker

OPUS = recede.Provider.of("anthropic", "claude-opus-5-5")


def history(results: int = 60) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Find the bug."}]
    for number in range(results):
        call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(number), "content": f"{number} " + "a line\n" * 600})
    return messages


def moves(done: Any) -> list[Any]:
    """The moves of the boundary, of a reduction or of a history."""
    if isinstance(done, recede.History):
        done.view()
        done = done.stats()
    return [(move.request, move.masked_count) for move in done.boundary_moves]


def encoded(body: Any) -> bytes:
    return json.dumps(body).encode()


USUAL, OF_OPUS = (moves(recede.reduce(history(), provider=one)) for one in ("anthropic", OPUS))


def test_the_facts_of_this_model_change_what_is_sent() -> None:
    assert USUAL != OF_OPUS


@pytest.mark.parametrize(
    "name",
    [
        "claude-opus-5-5",
        "anthropic/claude-opus-5.5",
        "us.anthropic.claude-opus-5-5-20261101-v1:0",
        "claude-opus-5-5[1m]",
    ],
)
def test_a_model_is_a_provider_with_or_without_prefix_region_and_date(name: str) -> None:
    assert moves(recede.reduce(history(), provider=name)) == OF_OPUS


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("anthropic_1h:claude-opus-5-5", recede.Provider.of("anthropic_1h", "claude-opus-5-5")),
        ("bedrock:us.anthropic.claude-opus-5-5", recede.Provider.of("bedrock", "claude-opus-5-5")),
        ("openai:gpt-5.6-sol", recede.Provider.of("openai", "gpt-5.6-sol")),
        ("o3", recede.Provider.of("openai", "o3")),
        ("claude-unheard-of", recede.Provider.of("anthropic")),
    ],
)
def test_a_name_before_the_model_chooses_the_lifetime(name: str, provider: recede.Provider) -> None:
    found = moves(recede.reduce(history(), provider=name))
    assert found == moves(recede.reduce(history(), provider=provider))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unheard-of-3", "there is no provider 'unheard-of-3'.*or a known model; for any other give a recede.Provider"),
        ("anthropic_1h:unheard-of", "the model 'unheard-of' is not known: give a recede.Provider"),
        ("anthropic:", "there is no provider 'anthropic:'; did you mean 'anthropic'"),
    ],
)
def test_a_name_without_row_and_family_asks_for_a_provider(name: str, words: str) -> None:
    for door in (recede.History, Masker, RequestMasker, lambda **options: recede.reduce([], **options)):
        with pytest.raises(ValueError, match=words):
            door(provider=name)


@pytest.mark.parametrize("form", [dict, json.dumps, encoded])
def test_a_request_names_its_model_to_reduce(form: Any) -> None:
    def found(**body: Any) -> list[Any]:
        return moves(recede.reduce(form({"messages": history(), **body})))

    assert found() == found(model="unheard-of") == found(model=None) == found(model=["claude-opus-5-5"]) == USUAL
    assert found(model="claude-opus-5-5") == found(model="anthropic/claude-opus-5-5") == OF_OPUS
    one = moves(recede.reduce(form({"model": "claude-opus-5-5", "messages": history()}), provider="anthropic"))
    assert one == USUAL  # the option says more
