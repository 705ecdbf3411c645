"""The masking manager: what it takes, what it refuses, what it costs."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import recede
from recede.designs import ObservationMaskingContextManager

TURN = ("I must look.", "cat a.py", "the text of a.py " * 9)


def manager_of(turns: int, **options: Any) -> ObservationMaskingContextManager:
    manager = ObservationMaskingContextManager(**options)
    for _ in range(turns):
        manager.add_turn(*TURN)
    return manager


def test_turns_are_numbered_from_one_and_know_when_they_came() -> None:
    before = time.time()
    manager = manager_of(3)
    assert [turn.turn for turn in manager.trajectory] == [1, 2, 3]
    assert manager.trajectory[1][1:4] == TURN
    assert before <= manager.trajectory[0].timestamp <= manager.trajectory[2].timestamp <= time.time()
    assert len(manager) == 3
    assert repr(manager_of(13)) == "<ObservationMaskingContextManager: window 10; 13 turns, 3 masked>"


def test_recall_gives_the_full_observation() -> None:
    manager = manager_of(12, window_size_m=2)
    assert manager.recall(1) == manager.recall(12) == TURN[2]
    for wrong in (0, -1, 13):
        with pytest.raises(LookupError, match=f"there is no turn {wrong}"):
            manager.recall(wrong)
    for wrong in (2**64, 10**30, 10**5_000, -(2**64)):
        with pytest.raises(LookupError, match="there is no turn"):
            manager.recall(wrong)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"window_size_m": -1}, ValueError, "window_size_m must be at least 0"),
        ({"window_size_m": 1.5}, TypeError, "window_size_m must be a whole number"),
        ({"placeholder": 5}, TypeError, "placeholder must be a string"),
        ({"placeholder": "[{tool} omitted]"}, ValueError, r"unknown field {tool}; of turns they are {turn}"),
        ({"placeholder": "{turn}"}, ValueError, "must have some text besides its fields"),
        ({"recall": 1}, TypeError, "recall must be True or False"),
    ],
)
def test_arguments_that_are_wrong_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ObservationMaskingContextManager(**options)


def test_a_turn_that_is_refused_changes_nothing() -> None:
    manager = manager_of(2)
    before = manager.get_masked_context("S", "U"), manager.report()
    for turn, words in (
        (("Think.", "act", None), "observation must be a string, not NoneType"),
        ((5, "act", ""), "reasoning must be a string, not int"),
        (("Think.", b"act", ""), "action must be a string, not bytes"),
    ):
        with pytest.raises(TypeError, match=words):
            manager.add_turn(*turn)  # type: ignore[arg-type]
    assert (manager.get_masked_context("S", "U"), manager.report()) == before
    assert len(manager) == 2
    with pytest.raises(TypeError, match="current_turn must be a whole number"):
        recede.designs.apply_observation_masking([], "3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="observation must be a string"):
        recede.designs.apply_observation_masking([("", "", 5)], 1)  # type: ignore[list-item]


def test_several_threads_do_not_corrupt_it() -> None:
    manager = ObservationMaskingContextManager(window_size_m=3)

    def work(name: str) -> None:
        for number in range(30):
            manager.add_turn(name, str(number), f"{name} {number} " * 20)
            context = manager.get_masked_context("S", "U")
            assert context.count("omitted for brevity") >= context.count("Turn ") - 3

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, "abcd"))
    for name in "abcd":
        own = [turn.action for turn in manager.trajectory if turn.reasoning == name]
        assert own == [str(number) for number in range(30)]
