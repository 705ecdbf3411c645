"""Long histories, with more calls and names than are searched one by one; the oracle gives the same view."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from typing import Any

import published
import pytest
from test_engines_agree import assert_agree

import recede
from support import ENGINES

pytestmark = pytest.mark.skipif(len(ENGINES) < 2, reason="recede._core is not built: make build")

History = list[dict[str, Any]]

MESSAGES = 400
TEXTS = (
    "x" * 400,
    "short",
    "",
    "naïve → 😀 " * 60,
    "GGG é" * 80,
    "\ud800" * 90,
    "[not a placeholder " * 20,
    "[observation masked — 4200 chars]",
    "[observation masked — 4200 chars] and more " * 9,
    "before BEGIN_DISPATCH_RESULT kept END_DISPATCH_RESULT after" * 4,
    "é BEGIN_DISPATCH_RESULT never closed " * 5,
    "BEGIN_DISPATCH_RESULT → END_DISPATCH_RESULT" + "é" * 300,
    None,
    [{"type": "text", "text": "part " * 30}, {"type": "image_url"}],
    ["text", 5][:0],
)


def json_key(text: str) -> str:
    """The same text as an object of its own, as the parsers of JSON make keys."""
    return "".join(list(text))


class Text(str):
    """What some libraries hand out."""


class Dict(dict):  # type: ignore[type-arg]
    """The same."""


def result(rng: random.Random, call: str) -> dict[str, Any]:
    text: Any = rng.choice(TEXTS)
    if isinstance(text, str) and rng.random() < 0.1:
        text = Text(text)
    message = rng.choice(
        (
            {"role": "tool", "tool_call_id": call, "content": text},
            {"content": text, "tool_call_id": call, "role": "tool", "name": "run", "extra": [1]},
            {"type": "function_call_output", "call_id": call, "output": text},
            {"role": "tool", "pairRole": "result", "pairId": call, "content": text},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]},
        )
    )
    return Dict(message) if rng.random() < 0.1 else message


def history(seed: int) -> History:
    rng = random.Random(seed)
    messages: History = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Begin."}]
    while len(messages) < MESSAGES:
        call = f"call_{len(messages)}"
        function = {"name": rng.choice(("run", "read", "")), "arguments": "{}"}
        messages.append(
            {"role": "assistant", "content": "on it", "tool_calls": [{"id": call, "function": function}]}
            if rng.random() < 0.9
            else {"role": "user", "content": "and?"}
        )
        messages.extend(result(rng, call) for _ in range(rng.choice((1, 1, 1, 2))))
    return messages


@pytest.mark.parametrize(
    ("share", "options"),
    [
        (0.0, {"mask_chunk": 60, "keep_errors": True}),
        (0.2, {"keep_results": 110}),
        (0.5, {"keep_results": 25, "boundary": "break_even"}),
        (0.9, {"keep_results": 110}),
        (0.999, {"mask_chunk": 60, "keep_errors": True}),
        (1.0, {"keep_results": 25, "boundary": "break_even"}),
    ],
)
def test_any_budget(share: float, options: dict[str, Any]) -> None:
    messages = history(1)
    budget = int(recede.count_chars(messages) * share)
    assert_agree(published.reduce, messages, max_input_chars=budget)
    assert_agree(published.reduce, messages, max_input_chars=budget, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"keep_results": 3},
        {"keep_turns": 160, "keep_messages": 2},
        {"keep_messages": 5, "min_masked_chars": 10**9},
        {"keep_results": 0, "keep_by_tool": {"run": 12}},
        {"keep_results": 0, "exclude_tools": ["read"]},
        {"keep_results": 0, "placeholder": "{chars}!"},
        {"keep_results": 0, "placeholder": "<{id} of {tool}, turn {turn}>"},
        {"keep_results": 0, "max_observation_chars": 50},
        {"keep_results": 0, "image_chars": 10},
        {"keep_results": 10, "boundary": "break_even"},
        {"keep_turns": 90, "boundary": "break_even", "cold": [180]},
    ],
)
def test_any_masking(options: dict[str, Any]) -> None:
    assert_agree(published.mask_observations, history(2), **options)


def test_block_masker_and_costs() -> None:
    messages = history(3)
    assert_agree(recede.designs.mask_old_observations, messages)
    assert_agree(published.reduce, messages, max_input_tokens=1_200, token_counter=lambda text: len(text) // 3)
    assert_agree(published.reduce, messages, max_input_chars=1_200, summarizer=lambda messages, _: str(len(messages)))


def test_unmasked_messages_are_the_callers_own_and_nothing_is_changed() -> None:
    messages = [
        message
        for number in range(250)
        for message in (
            {"role": "assistant", "content": "", "tool_calls": [{"id": str(number), "function": {"name": "run"}}]},
            {"role": "tool", "tool_call_id": str(number), "content": "y" * 300 if number % 2 else "y"},
        )
    ]
    before = [dict(message) for message in messages]
    view = published.reduce(messages, max_input_chars=31_250).messages
    assert messages == before
    masked = [place for place, message in enumerate(view) if message is not messages[place]]
    assert masked == [place for place in range(3, 496) if place % 4 == 3]
    assert all(view[place] == {**before[place], "content": "[observation masked — 300 chars]"} for place in masked)


def with_keys(value: Any, key: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key(name): with_keys(inner, key) for name, inner in value.items()}
    return [with_keys(inner, key) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "kinds",
    [(json_key,), (Text,), (sys.intern, json_key), (json_key, Text, sys.intern), (Text, json_key)],
    ids=lambda kinds: " ".join(kind.__name__ for kind in kinds),
)
def test_keys_that_are_other_objects_change_nothing(kinds: tuple[Callable[[str], str], ...]) -> None:
    messages = json.loads(json.dumps(history(4)[:200], default=list))
    others = [with_keys(message, kinds[place % len(kinds)]) for place, message in enumerate(messages)]
    reduced = recede.reduce(messages, keep=3, boundary="sliding")
    assert recede.reduce(others, keep=3, boundary="sliding") == reduced and reduced.masked_count > 20
    assert_agree(recede.reduce, others, keep=3, boundary="sliding")
