"""The helpers for the tests of others."""

from __future__ import annotations

from typing import Any

import pytest
from generated import histories
from hypothesis import HealthCheck, Phase, find, given, settings

from recede.testing import assert_pairs_valid
from support import call, result, tool_use, turns, user

QUICK = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def show(shape: Any, *signs: Any) -> None:
    """For each sign there is a generated history that has it."""
    missing = [*signs]

    def all_were_seen(history: list[dict[str, Any]]) -> bool:
        missing[:] = [sign for sign in missing if not sign(history)]
        return not missing

    many = settings(QUICK, max_examples=3_000, database=None, phases=[Phase.generate])
    find(histories(shape), all_were_seen, settings=many)


def test_valid_pairs_pass() -> None:
    assert_pairs_valid([])
    assert_pairs_valid([user("hi"), *turns(3), call("open")])


def test_faults_are_listed() -> None:
    history = [result("9", "?"), tool_use("1"), user("and?")]
    with pytest.raises(AssertionError) as caught:
        assert_pairs_valid(history)
    assert str(caught.value) == (
        "the pairs of this history are not valid:\n"
        "  message 0: result_without_call, id '9'\n"
        "  message 1: call_without_result, id '1'"
    )


@given(history=histories("openai"))
@QUICK
def test_openai(history: list[dict[str, Any]]) -> None:
    assert {message["role"] for message in history} <= {"system", "developer", "user", "assistant", "tool"}


@given(history=histories("anthropic"))
@QUICK
def test_anthropic(history: list[dict[str, Any]]) -> None:
    assert not any("tool_calls" in message or "pairRole" in message or "call_id" in message for message in history)


@given(history=histories("chat_message"))
@QUICK
def test_chat_message(history: list[dict[str, Any]]) -> None:
    assert not any("tool_calls" in message or "call_id" in message for message in history)


@given(history=histories("responses", max_turns=2, max_parallel_calls=2))
@QUICK
def test_responses(history: list[dict[str, Any]]) -> None:
    assert sum("call_id" in message and message["type"].endswith("_call") for message in history) <= 4


@pytest.mark.parametrize("shape", ["openai", "anthropic", "responses", "chat_message", "mixed", None])
def test_whole_histories_are_valid(shape: Any) -> None:
    @given(history=histories(shape, whole=True))
    @QUICK
    def check(history: list[dict[str, Any]]) -> None:
        assert_pairs_valid(history)

    check()


def is_wounded(history: list[dict[str, Any]]) -> bool:
    try:
        assert_pairs_valid(history)
    except AssertionError:
        return True
    return False


def test_the_oddities_come_up() -> None:
    def text_has(mark: str) -> Any:
        return lambda history: mark in repr(history)

    show(
        "openai",
        lambda history: any(len(message.get("tool_calls", ())) >= 10 for message in history),
        lambda history: any(m["role"] == "tool" and "content" not in m for m in history),
        lambda history: any(m["role"] == "tool" and m.get("content", "") is None for m in history),
        lambda history: any(m["role"] == "tool" and isinstance(m.get("content"), list) for m in history),
    )
    show("anthropic", text_has("'is_error': True"), text_has("'type': 'image'"))
    marks = [
        "END_DISPATCH_RESULT",
        "[observation masked — 4200 chars]",
        "Conversation summary:",
        "unresolved",
        "\\ud83d",
    ]
    show(None, is_wounded, lambda history: len(history) > 12, *map(text_has, marks))
