"""An agent with a hybrid that is killed, and goes on; and what a long one holds in memory."""

from __future__ import annotations

import os
import random
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from children import killed, kilobytes_of

import recede

CONFIG = {"masking_window": 3, "summarize_at": 12, "tail_window": 5, "max_trajectory_length": 1_000_000}


def agent_of(store: recede.store.TurnStore | None) -> recede.designs.ProductionHybridContextManager:
    """One whose turns follow from the context that it is shown."""

    def summarizer(turns: list[recede.turns.Turn], previous: str | None) -> str:
        return f"{(previous or '')[-60:]}; {turns[0].turn}-{turns[-1].turn}: {turns[-1].observation[:9]}"

    def think(context: str) -> tuple[str, str]:
        seen = sum(context.encode()) % 9_973
        return f"I saw {seen}.", f"cat {seen}"

    return recede.designs.ProductionHybridContextManager(
        think, summarizer, CONFIG, execute=lambda action: f"{action}: " + "a line\n" * (len(action) * 40), store=store
    )


def work(path: str, pipe: int) -> None:
    """Goes on with the run until it is killed, and tells each turn that is stored."""
    agent = agent_of(recede.store.TurnStore(path))
    agent.maybe_create_summary()  # if it was killed between a turn and its summary
    agent.run_agent("Find the bug.", on_turn=lambda turn: os.write(pipe, b"%d\n" % turn.turn))


def kill(folder: Path, rounds: int, seed: int) -> int:
    """Kills so many that go on with one store; how many turns there are then."""
    chance = random.Random(seed)
    path = str(folder / "session.store")
    plain = agent_of(None)
    for number in range(rounds):
        turns = chance.randrange(3, 15) if number % 3 else 0  # 0: killed while it opens the store, mostly
        confirmed = killed(partial(work, path), turns, chance.random() * 0.004)
        with recede.store.TurnStore(path) as store:
            stored = agent_of(store)
            stored.maybe_create_summary()
            assert len(stored) >= max(confirmed, len(plain))
            plain.run_agent("Find the bug.", len(stored) - len(plain))
            assert seen(stored) == seen(plain)
            assert store.verify().is_sound
    assert len(plain) > 16
    return len(plain)


def seen(agent: recede.designs.ProductionHybridContextManager) -> list[Any]:
    context = agent.get_context("", "Find the bug.")
    return [context, agent.metrics, agent.report(), agent.summaries, [turn[:4] for turn in agent.trajectory]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and killed by a signal")
def test_an_agent_goes_on_after_it_was_killed(tmp_path: Path) -> None:
    kill(tmp_path, rounds=12, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and killed by a signal")
@pytest.mark.parametrize("seed", range(2, 12))
def test_an_agent_goes_on_however_often_it_was_killed(tmp_path: Path, seed: int) -> None:
    kill(tmp_path, rounds=40, seed=seed)


# Memory

LONG = """
import random, sys, recede

path, turns, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
before = resident('VmRSS')
def manager(store):
    if kind == "masking":
        return recede.designs.ObservationMaskingContextManager(store=store)
    return recede.designs.HybridContextManager(recede.summarizers.builtin(), store=store)
with recede.store.TurnStore(path, sync_every=1_000) as store:
    session = manager(store)
    for number in range(1, turns + 1):
        session.add_turn("I must look at it again.", f"cat {number}.py", f"line {number} of the log\\n" * 40)
        if number % 997 == 0 and (kind == "hybrid" or number < 5_000):
            (session.get_masked_context if kind == "masking" else session.get_context)("S", "U")
with recede.store.TurnStore(path) as store:
    session = manager(store)
    for number in random.Random(1).sample(range(1, turns + 1), 1_000):
        assert session.recall(number).startswith(f"line {number} of the log")
    assert len(session) == turns and repr(session) and store.stats().turns == turns
    if kind == "masking":
        assert session.estimate_token_savings()["masked_turns"] == turns - 10
    else:
        assert "Turn 1:" not in session.get_context("S", "U")
print(resident('VmHWM') - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by /proc")
@pytest.mark.parametrize("kind", ["masking", "hybrid"])
def test_memory_is_bounded(tmp_path: Path, kind: str) -> None:
    assert kilobytes_of(LONG, tmp_path / "session.store", 20_000, kind) < 32 << 10
