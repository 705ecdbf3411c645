"""The model's reasoning in sessions under a limit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_reasoning import signed_turns

import recede
from support import call, result, user


def thinking_turns(count: int) -> list[Any]:
    """Turns of 250 tokens of reasoning, 25 of text and 100 of a result."""
    turns: list[Any] = [user("Find the bug.")]
    for number in range(count):
        turns += [{**call(str(number)), "content": "w" * 100, "reasoning_content": "r" * 1_000}]
        turns += [result(str(number), "x" * 400)]
    return turns


@pytest.mark.parametrize("turns", [10, 40])
def test_hidden_reasoning_counts_no_more_at_doors_that_hide(turns: int) -> None:
    session, messages = recede.History(max_input_tokens=8_000), thinking_turns(turns)
    for message in messages:
        session.append(message)
        view = session.view()
        sent = recede.count_chars(view) + sum(len(one.get("reasoning_content", "")) for one in view)
        assert sent <= 4 * 8_000
    assert session.view() == recede.reduce(messages, max_input_tokens=8_000).messages
    assert (len(session.view()) < len(messages)) is (turns == 40)
    session.rewind(11)
    assert session.view() == recede.reduce(messages[:11], max_input_tokens=8_000).messages


def reasoning_chars(view: list[Any]) -> int:
    blocks = [block for one in view if isinstance(one["content"], list) for block in one["content"]]
    return sum(len(block.get("thinking", "")) for block in blocks)


@pytest.mark.parametrize("counter", [None, lambda text: len(text.split())])
@pytest.mark.parametrize("limit", [3_000, 8_000, 16_000])
def test_voided_reasoning_counts_no_more_in_a_view(limit: int, counter: Any) -> None:
    messages, options = signed_turns(30), {"keep": 5, "max_input_tokens": limit, "token_counter": counter}
    kept = recede.reduce(messages, provider="claude-opus-4-7", **options)
    for provider in ("claude-opus-5-5", "claude-opus-4-7"):
        session = recede.History(provider=provider, **options)
        for message in messages:
            session.append(message)
            view = session.view()
        reduced = recede.reduce(messages, provider=provider, **options)
        assert view == reduced.messages
        assert json.loads(recede.reduce(json.dumps(messages).encode(), provider=provider, **options).json) == view
        assert reduced.within_limit
        if counter is None:
            assert recede.count_chars(view) + reasoning_chars(view) <= 4 * limit
    assert reduced.reasoning_dropped == 0 and reasoning_chars(view) > 0
    void = recede.reduce(messages, provider="claude-opus-5-5", **options)
    assert void.reasoning_dropped > 0
    assert void.dropped_count < kept.dropped_count or kept.dropped_count == 0
