"""A manager of turns with a store is one without, at every turn, and goes on where it was last synced."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_turn_managers import COUNTERS, PLACEHOLDERS, TEXTS

import recede
from recede.designs import HybridContextManager, ObservationMaskingContextManager, ProductionHybridContextManager
from recede.turns import Turn, _options
from recede.turns import _turns as stored_turns
from support import assert_canonical

TURNS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS | TEXTS.map(lambda text: text * 9)), min_size=1, max_size=30)
STEPS = st.lists(
    st.sampled_from(["add", "add", "add", "look", "look", "summarize", "sync", "mask", "restart", "crash"]), max_size=30
)
BOUNDARIES: list[dict[str, Any]] = [
    {},
    {"mask_chunk": 3},
    {"boundary": "break_even"},
    {"boundary": "break_even"},
]


class Summarizer:
    """Says what it was given, and fails after some turns, by their number alone."""

    def __init__(self, fails: set[int]) -> None:
        self.fails, self.turns = fails, 0

    def __call__(self, turns: list[Turn], previous: str | None) -> str:
        if self.turns in self.fails:
            raise OSError("no model")
        told = "".join(f"{turn.turn}{turn.observation[:2]}" for turn in turns)
        return f"{(previous or '')[-40:]}<{told}>"


class Run:
    """A manager, and what is done with it."""

    def __init__(
        self, kind: str, options: dict[str, Any], fails: set[int], store: recede.store.TurnStore | None
    ) -> None:
        self.summarizer = Summarizer(fails)
        self.manager: Any
        if kind == "masking":
            self.manager = ObservationMaskingContextManager(**options, store=store)
        elif kind == "hybrid":
            self.manager = HybridContextManager(self.summarizer, **options, store=store)
        else:
            self.manager = ProductionHybridContextManager(str, self.summarizer, **options, execute=str, store=store)

    def add(self, turn: tuple[str, str, str]) -> None:
        self.summarizer.turns = len(self.manager) + 1
        self.manager.add_turn(*turn)

    def summarize(self) -> None:
        """By hand, and it does not fail."""
        self.summarizer.turns = 0
        if isinstance(self.manager, HybridContextManager):
            self.manager.maybe_create_summary()

    def seen(self) -> list[Any]:
        manager = self.manager
        seen = [manager.report(), repr(manager), [turn[:4] for turn in manager.trajectory]]
        seen += [manager.recall(number) for number in range(1, len(manager) + 1)]
        if isinstance(manager, ObservationMaskingContextManager):
            contexts = manager.get_masked_context("S", "U"), manager.get_masked_messages("S", "\ud83d")
            return [contexts, manager.estimate_token_savings(), *seen]
        seen += [manager.get_context("S", "U"), manager.get_messages("S", "\ud83d"), manager.summaries, manager.phase]
        if isinstance(manager, ProductionHybridContextManager):
            seen += [manager.metrics, manager.get_efficiency_report()]
        return seen


@st.composite
def managers(draw: Any) -> tuple[str, dict[str, Any]]:
    kind = draw(st.sampled_from(["masking", "hybrid", "hybrid", "production"]))
    window, tail = draw(st.integers(0, 5)), draw(st.integers(0, 7))
    counter = {"token_counter": draw(COUNTERS)}
    if kind == "masking":
        placeholder = draw(PLACEHOLDERS)
        return kind, {
            "window_size_m": window,
            "placeholder": placeholder,
            **draw(st.sampled_from(BOUNDARIES)),
            **counter,
        }
    at: Any = tail + draw(st.integers(1, 9))
    if kind == "production":
        return kind, {"config": {"masking_window": window, "summarize_at": at, "tail_window": tail}, **counter}
    prices = recede.costs.Prices(input=0.001, output=0.001)  # a summary pays for itself soon
    at = draw(st.sampled_from([at, "break_even"]))
    options = {"masking_window_w": window, "summarize_at_n": at, "tail_window_m": tail, "prices": prices}
    return kind, {**options, **draw(st.sampled_from(BOUNDARIES)), **counter}


@given(
    manager=managers(),
    turns=TURNS,
    fails=st.sets(st.integers(1, 60)),
    steps=STEPS,
    burst=st.integers(1, 9),
    block=st.integers(1, 7),
    sync_every=st.sampled_from([None, None, 1]),
)
def test_it_is_as_without_a_store(
    manager: tuple[str, dict[str, Any]],
    turns: list[tuple[str, str, str]],
    fails: set[int],
    steps: list[str],
    burst: int,
    block: int,
    sync_every: int | None,
) -> None:
    kind, options = manager
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_turns, "_BLOCK", block)
        patch.setattr(_options, "SUMMARY_CHARS", 60)  # so that one can pay among turns as short as these
        patch.setattr(_options, "SUMMARY_PROMPT_CHARS", 10)
        path = Path(folder, "session.store")
        store = recede.store.TurnStore(path, sync_every=sync_every)
        plain, stored = Run(kind, options, fails, None), Run(kind, options, fails, store)
        done: list[str] = []  # what was done with the manager
        for step in ["add", *steps, "look", "restart", "look", "add", "look"]:
            if step in ("add", "summarize"):
                for _ in range(burst if step == "add" else 1):
                    done.append(step)
                    for run in (plain, stored):
                        run.add(turns[(len(run.manager)) % len(turns)]) if step == "add" else run.summarize()
            elif step == "look":
                seen = stored.seen()
                assert seen == plain.seen()
                assert_canonical(seen)
                masked = [number for number, _ in plain.manager._session.masked_turns(0)]
                older = max(0, len(plain.manager) - plain.manager.window)
                assert max(masked, default=0) <= store.stats().masked_turns
                assert "mask" in steps or store.stats().masked_turns <= older
            elif step == "sync":
                store.sync()
            elif step == "mask":
                store.mask_before(len(stored.manager))
            elif step == "restart":
                store.close()
            else:
                store._store.abandon()
            if step in ("restart", "crash"):
                store = recede.store.TurnStore(path, sync_every=sync_every)
                stored = Run(kind, options, fails, store)
                plain = Run(kind, options, fails, None)
                for deed in done:
                    plain.add(turns[len(plain.manager) % len(turns)]) if deed == "add" else plain.summarize()
                assert len(stored.manager) == len(plain.manager)
        assert store.verify().is_sound
        store.close()


def _summarized(manager: Any) -> int:
    return manager.summaries[-1].end_turn if manager.summaries else 0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("at", ["break_even", 25, None])
@pytest.mark.parametrize("boundary", ["break_even", "sliding"])
def test_it_is_as_without_a_store_where_prices_decide(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, boundary: str, at: Any, seed: int
) -> None:
    """Turns as long as those of agents, so that that the boundary and summaries come late, and blocks end between."""
    monkeypatch.setattr(stored_turns, "_BLOCK", 7)
    chance = random.Random(seed)
    prices = recede.costs.Prices(input=0.2, output=0.2)
    options: dict[str, Any] = {"boundary": boundary, "masking_window_w": 2, "tail_window_m": 4, "prices": prices}
    options["summarize_at_n"] = 1_000 if at is None else at
    fails = set(chance.sample(range(1, 121), 20))
    path = tmp_path / "session.store"
    store = recede.store.TurnStore(path)
    plain, stored = Run("hybrid", options, fails, None), Run("hybrid", options, fails, store)
    lag = 0  # of the boundary, behind the window
    for number in range(1, 121):
        turn = "think " * chance.randrange(60), "act", "a line\n" * chance.choice((1, 20, 90, 400))
        plain.add(turn), stored.add(turn)
        assert stored.manager.get_context("S", "U") == plain.manager.get_context("S", "U")
        if chance.random() < 0.15:
            store.sync(), store._store.abandon()
            store = recede.store.TurnStore(path)
            stored = Run("hybrid", options, fails, store)
        manager = stored.manager
        lag = max(lag, number - 2 - manager.get_context("", "").count("[Observation omitted]") - _summarized(manager))
    assert stored.seen() == plain.seen()
    assert lag > 5 or boundary == "sliding"
    assert len(stored.manager.summaries) >= (2 if at else 0)
    store.close()
