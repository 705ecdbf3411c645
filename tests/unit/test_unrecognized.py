"""Messages of an unknown shape are named by their fields; an empty history is none of them."""

from __future__ import annotations

from typing import Any

import pytest

from recede.reduction._unrecognized import unrecognized
from support import assistant, call, user


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "text": "hi"}, {"role": "ai", "text": "hello"}],
        [{"from": "human", "value": "hi"}],
        [{"message.role": "user", "message.content": "hi"}],
        [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        [{"role": "assistant", "text": "a turn, but no characters"}],
        [{"id": 1, "action": "run", "content": None}, {"id": 2, "observation": "run", "text": "done"}],
    ],
    ids=["role and text", "from and value", "attributes", "parts", "an answer", "events"],
)
def test_messages_of_an_unknown_shape_are_named_by_their_fields(messages: list[Any]) -> None:
    words = unrecognized(messages)
    assert words is not None
    assert words.startswith(
        f"nothing was recognized in {len(messages)} messages with the fields {next(iter(messages[0]))}"
    )


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user("")],
        [user(None), user([])],
        [user("hi"), {"from": "human"}],
        [assistant(""), {"role": "assistant", "content": None, "timestamp": 5}],
        [call("1")],
    ],
)
def test_messages_that_are_recognized_or_empty_are_not(messages: list[Any]) -> None:
    assert unrecognized(messages) is None


def test_many_fields_are_cut_to_a_line() -> None:
    words = unrecognized([{"x" * 500 + str(n): n for n in range(99)}])
    assert words is not None
    assert len(words) < 700
