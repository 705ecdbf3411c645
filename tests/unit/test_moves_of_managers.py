"""`on_move` of the managers of turns: each move once, as the boundary of the same session of messages has it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import recede
from recede.designs import HybridContextManager, ObservationMaskingContextManager, ProductionHybridContextManager
from recede.types import BoundaryMove

LONG = "a line of the log\n" * 60
BREAK_EVEN: Any = {"boundary": "break_even"}


def played(manager: Any, turns: int, asks: bool) -> None:
    for number in range(turns):
        if asks:
            ask = getattr(manager, "get_masked_context", None) or manager.get_context
            ask("You are careful.", "Find the bug.")
        manager.add_turn("Think.", f"act {number}", LONG)


@pytest.mark.parametrize("asks", [True, False])
def test_each_move_is_told_once(asks: bool, caplog: pytest.LogCaptureFixture) -> None:
    told: list[BoundaryMove] = []
    manager = ObservationMaskingContextManager(3, on_move=told.append, **BREAK_EVEN)
    with caplog.at_level(logging.INFO, "recede"):
        played(manager, 60, asks)
    assert len(told) > 2 and [move.request for move in told] == sorted({move.request for move in told})
    assert sum(move.masked_count for move in told) == manager.stats().masked_turns
    assert caplog.text.count("the boundary moved at request") == len(told)


def test_a_move_is_told_with_the_context_that_first_has_it() -> None:
    told: list[BoundaryMove] = []
    manager = ObservationMaskingContextManager(3, on_move=told.append, **BREAK_EVEN)
    masked = 0
    for number in range(40):
        messages = manager.get_masked_messages("", "")
        now = sum(message["content"].startswith("[Observation omitted") for message in messages)
        assert (now > masked) == bool(told and told[-1].request == number)
        masked = now
        manager.add_turn("Think.", "act", LONG)


def test_the_first_context_and_the_moves_are_those_of_any_order() -> None:
    told: dict[bool, list[BoundaryMove]] = {True: [], False: []}
    for asks, moves in told.items():
        played(ObservationMaskingContextManager(2, on_move=moves.append, **BREAK_EVEN), 30, asks)
    assert told[True] == told[False]


def test_a_sliding_boundary_tells_of_nothing() -> None:
    told: list[BoundaryMove] = []
    played(ObservationMaskingContextManager(3, on_move=told.append), 20, True)
    assert told == []


def test_hybrids_tell_of_moves_between_summaries() -> None:
    told: list[BoundaryMove] = []
    summarizer = recede.summarizers.builtin()
    played(HybridContextManager(summarizer, 3, 25, 5, on_move=told.append, **BREAK_EVEN), 40, True)
    assert told
    agent = ProductionHybridContextManager(
        lambda context: ("Think.", "act"),
        summarizer,
        {"max_trajectory_length": 40, "masking_window": 3, "summarize_at": 25, "tail_window": 5},
        execute=lambda action: LONG,
        on_move=(again := []).append,
        **BREAK_EVEN,
    )
    agent.run_agent("Find the bug.")
    assert len(again) == len(told)
    preset = HybridContextManager.from_preset("swe-agent", summarizer, on_move=told.append, **BREAK_EVEN)
    assert preset._on_move is not None


def test_a_restart_tells_of_nothing_again(tmp_path: Path) -> None:
    path, told = tmp_path / "turns.store", list[BoundaryMove]()
    with recede.store.TurnStore(path, sync_every=1) as store:
        played(ObservationMaskingContextManager(3, on_move=told.append, store=store, **BREAK_EVEN), 300, True)
    before = list(told)
    with recede.store.TurnStore(path, sync_every=1) as store:
        manager = ObservationMaskingContextManager(3, on_move=told.append, store=store, **BREAK_EVEN)
        assert told == before
        played(manager, 100, True)
    requests = [move.request for move in told]
    assert len(told) > len(before) and requests == sorted(set(requests))


def test_what_it_raises_is_logged_and_it_may_only_read(caplog: pytest.LogCaptureFixture) -> None:
    manager: Any = None

    def on_move(move: BoundaryMove) -> None:
        assert len(manager) > 0
        manager.add_turn("no", "no", "no")

    manager = ObservationMaskingContextManager(3, on_move=on_move, **BREAK_EVEN)
    played(manager, 30, True)
    assert len(manager) == 30
    assert "of this manager has called it" in caplog.text
    with pytest.raises(TypeError, match="on_move must be callable or None"):
        ObservationMaskingContextManager(3, on_move=5)  # type: ignore[arg-type]
