"""Which window, chunk and summaries cost least: the grid, its curves, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import recede
from support import assistant, dumps, turns, user

HISTORY = [user("Fix the test."), *turns(40, chars=3_000)]
SHORT = [user("Go."), *turns(12, chars=500)]
GRID: dict[str, Any] = {
    "windows": [4, 2, 8],
    "chunks": [1, 5, "break_even"],
    "summarize_at": [12, "break_even", "never"],
    "tail": 3,
}
PRICES = recede.costs.Prices(output=0)


def test_it_is_the_cheapest_of_all_combinations() -> None:
    found = recede.costs.suggest_window([HISTORY, SHORT], prices=PRICES, **GRID)
    costs = {}
    for window, chunk, at in itertools.product(GRID["windows"], GRID["chunks"], GRID["summarize_at"]):
        rest = {1: "", "break_even": ",boundary=break_even"}.get(chunk, f",chunk={chunk}")
        name = f"hybrid:window={window},at={at},tail=3{rest}"
        played = [recede.costs.replay(history, [name], prices=PRICES) for history in (HISTORY, SHORT)]
        costs[window, chunk, at] = recede.costs.compare_costs(played)[1]
    assert len(found.costs) == 1 + 27 and found.costs[0].policy == "raw"
    assert {cost.policy: cost for cost in found.costs[1:]} == {cost.policy: cost for cost in costs.values()}
    least = min(costs.values(), key=lambda cost: cost.cost)
    assert found.best.cost == least.cost
    assert costs[found.window, found.chunk, found.summarize_at] == found.best
    for place, curve in enumerate((found.windows, found.chunks, found.summaries)):
        for choice in curve:
            best = min(cost.cost for values, cost in costs.items() if values[place] == choice.value)
            assert choice.cost.cost == best
            assert choice.over_least == pytest.approx(best / least.cost - 1)
        assert min(choice.over_least for choice in curve) == 0


def test_curves_begin_with_the_smallest_and_end_with_words() -> None:
    found = recede.costs.suggest_window([HISTORY], **GRID)
    assert [choice.value for choice in found.windows] == [2, 4, 8]
    assert [choice.value for choice in found.chunks] == [1, 5, "break_even"]
    assert [choice.value for choice in found.summaries] == [12, "break_even", "never"]


def test_of_equal_ones_that_is_suggested_which_forgets_least() -> None:
    # Nothing is ever old here.
    found = recede.costs.suggest_window([[user("Hi."), assistant("Hello.")]], **GRID)
    assert (found.window, found.chunk, found.summarize_at) == (8, "break_even", "never")
    assert found.best.cost == found.costs[0].cost
    assert recede.costs.suggest_window([[user("Hi.")]], **GRID).best.cost == 0


def test_sessions_may_be_messages_bytes_text_or_transcripts() -> None:
    class Transcript:
        messages = HISTORY

    expected = recede.costs.suggest_window([HISTORY] * 4, **GRID)
    data = dumps(HISTORY)
    assert recede.costs.suggest_window([HISTORY, data, data.decode(), Transcript()], **GRID) == expected
    assert recede.costs.suggest_window(iter([HISTORY] * 4), **GRID) == expected


def test_suggestions_are_added_up() -> None:
    one, other = (recede.costs.suggest_window([history], prices=PRICES, **GRID) for history in (HISTORY, SHORT))
    assert recede.costs.Suggestion.total([one, other]) == recede.costs.suggest_window(
        [HISTORY, SHORT], prices=PRICES, **GRID
    )
    dear = recede.costs.suggest_window([SHORT], **GRID)
    both = recede.costs.Suggestion.total([one, dear])
    assert both.costs[0].cost == pytest.approx(one.costs[0].cost + dear.costs[0].cost)
    with pytest.raises(ValueError, match="same policies"):
        recede.costs.Suggestion.total([one, recede.costs.suggest_window([SHORT], prices=PRICES, windows=[3])])
    with pytest.raises(ValueError, match="no session to compare"):
        recede.costs.Suggestion.total([])


def test_the_price_of_the_calls_decides_whether_there_are_summaries() -> None:
    history = [user("Go."), *({**message, "content": "y" * 3_000} for message in turns(60))]
    options: dict[str, Any] = {"windows": [5], "chunks": [1], "summarize_at": [21, "never"], "summary_chars": 200}
    dear = recede.costs.suggest_window([history], summary_prices=recede.costs.Prices(input=1e6, output=1e6), **options)
    free = recede.costs.suggest_window([history], summary_prices=recede.costs.Prices(input=0, output=0), **options)
    assert (dear.summarize_at, free.summarize_at) == ("never", 21)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"windows": "5"}, TypeError, "windows must be a list, not one string"),
        ({"windows": []}, ValueError, "windows must have at least one value"),
        ({"windows": [1.5]}, TypeError, "windows must hold whole numbers, not 1.5"),
        ({"windows": [-1]}, ValueError, "'window' of the policy 'hybrid' must be a whole number from 0, not '-1'"),
        ({"chunks": ["often"]}, TypeError, "chunks must hold whole numbers or 'break_even', not 'often'"),
        (
            {"summarize_at": [True]},
            TypeError,
            "whole numbers or 'never' or 'break_even', not True",
        ),
        (
            {"summarize_at": [10]},
            ValueError,
            "must be more than 'tail', which is 10, not 10",
        ),
        ({"prices": {}}, TypeError, r"prices must be recede\.costs\.Prices, not dict"),
    ],
)
def test_options_that_are_wrong_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        recede.costs.suggest_window([HISTORY], **options)


def test_sessions_that_are_wrong_are_named() -> None:
    with pytest.raises(ValueError, match="no session to compare"):
        recede.costs.suggest_window([])
    with pytest.raises(recede.TranscriptError, match="message 1"):
        recede.costs.suggest_window([[user("hi"), 5]], **GRID)


def test_a_suggestion_from_usage_does_not_depend_on_its_order() -> None:
    found = recede.costs.suggest_window([[user("hi"), assistant("hello")]])
    assert len({cost.cost for cost in found.costs}) == 1
    usage = {cost.policy: cost.usage for cost in reversed(found.costs)}
    again = recede.costs.Suggestion.of_usage([recede.costs.ReplayUsage(usage, found.prices, None)])
    assert [cost.policy for cost in again.costs] == [cost.policy for cost in found.costs]
    assert (again.window, again.chunk, again.summarize_at) == (58, "break_even", "never")
