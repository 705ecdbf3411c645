"""What a user writes, as strict type checkers see it: `make test-types`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import anthropic
from typing_extensions import assert_type

import recede
from recede.costs import Prices, Replay, replay
from recede.masker import Facts
from recede.types import OpenAIMessage, Options

history: list[OpenAIMessage] = [
    {"role": "user", "content": "Find the bug."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "run", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "a line of the log\n" * 250},
]


def before_each_request() -> None:
    view = recede.reduce(history, keep=0, boundary="sliding")
    assert_type(view, recede.Reduction)
    assert_type(view.masked_count, int)
    result = recede.reduce(history, max_input_tokens=8_000, summarizer=lambda messages, previous: "Nothing yet.")
    assert_type(result.reduction_stage, Literal["masking", "summarization", "fallback"] | None)
    request = recede.reduce({"model": "gpt-5", "messages": history}, provider=recede.Provider.of("openai"))
    assert_type(request.request, dict[str, Any] | None)
    answer = recede.reduce(b'[{"role": "user", "content": "Go."}]', max_input_tokens=25)
    assert_type(answer.json, bytes)
    published = recede.designs.mask_observations(history, keep_results=0, boundary="sliding")
    assert_type(published.masked_count, int)
    in_bytes = recede.designs.mask_observations_json(b'[{"role": "user", "content": "Go."}]', keep_messages=1)
    assert_type(in_bytes.json, bytes)


def one_set() -> None:
    options: Options = {"keep": 10, "keep_by_tool": {"Read": 20}, "boundary": 5, "max_input_tokens": 100_000}
    assert_type(recede.reduce(history, **options).masked_count, int)
    assert_type(recede.History(**options, recall=True), recede.History)


def official_client() -> None:
    client = recede.wrap(anthropic.Anthropic(), keep=10)
    assert_type(client, anthropic.Anthropic)
    view = recede.designs.mask_old_observations(history)
    answer = client.messages.create(model="claude-sonnet-4-5", max_tokens=99, messages=view)
    assert_type(answer.stop_reason == "end_turn", bool)


def loop_of_ones_own() -> None:
    session = recede.History(keep=4, on_move=print)
    session.extend(history)
    assert_type(session.view(), list[Any])
    assert_type(session.recall("1"), str)
    assert_type(session.stats().masked_count, int)
    budget = recede.designs.Budget(threshold_tokens=8_000, keep=4)
    assert_type(budget.is_over(history), bool)


def turns() -> None:
    manager = recede.designs.HybridContextManager(lambda turns: f"{len(turns)} turns.")
    assert_type(manager.add_turn("I must look.", "ls", "a.py"), int)
    assert_type(manager.get_context("You are careful.", "Find the bug."), str)
    for turn in manager.trajectory:
        assert_type(turn.observation, str)


class Step:
    def __init__(self, text: str) -> None:
        self.text = text


class Steps:
    def facts(self, step: Step) -> Facts:
        return Facts("tool", results=[(None, None, len(step.text))])

    def masked(self, step: Step, texts: Mapping[int, str]) -> Step:
        return Step(texts[0])


def messages_of_ones_own_class() -> None:
    masker = recede.masker.Masker(Steps(), keep=10)
    assert_type(masker.view([Step("ok")]), list[Step])


def prices() -> None:
    session = replay(history, ["break_even:window=10"], prices=Prices(input=3.0))
    assert_type(session, Replay)
    assert_type(session.cheapest.of_raw, float)


def wrong() -> None:
    """Each line is an error, which `warn_unused_ignores` and `reportUnnecessaryTypeIgnoreComment` hold."""
    recede.reduce(history, keep_results=4)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    recede.History(boundary="jumping")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    recede.reduce(5, max_input_tokens=8_000)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
