"""A manager of turns with a store is one without, at every turn, and goes on where it was last synced."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_turn_managers import PLACEHOLDERS, TEXTS

import recede
from recede.designs import HybridContextManager, ObservationMaskingContextManager, ProductionHybridContextManager
from recede.turns import Turn

TURNS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS | TEXTS.map(lambda text: text * 9)), min_size=1, max_size=30)
STEPS = st.lists(
    st.sampled_from(["add", "add", "add", "look", "look", "summarize", "sync", "mask", "restart", "crash"]), max_size=30
)


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
            return [manager.get_masked_context("S", "\ud83d"), manager.estimate_token_savings(), *seen]
        seen += [manager.get_context("S", "\ud83d"), manager.summaries, manager.phase]
        if isinstance(manager, ProductionHybridContextManager):
            seen += [manager.metrics, manager.get_efficiency_report()]
        return seen


@st.composite
def managers(draw: Any) -> tuple[str, dict[str, Any]]:
    kind = draw(st.sampled_from(["masking", "hybrid", "hybrid", "production"]))
    window, tail = draw(st.integers(0, 5)), draw(st.integers(0, 7))
    if kind == "masking":
        return kind, {"window_size_m": window, "placeholder": draw(PLACEHOLDERS)}
    at = tail + draw(st.integers(1, 9))
    if kind == "production":
        return kind, {"config": {"masking_window": window, "summarize_at": at, "tail_window": tail}}
    return kind, {"masking_window_w": window, "summarize_at_n": at, "tail_window_m": tail}


@given(
    manager=managers(),
    turns=TURNS,
    fails=st.sets(st.integers(1, 60)),
    steps=STEPS,
    burst=st.integers(1, 9),
    sync_every=st.sampled_from([None, None, 1]),
)
def test_it_is_as_without_a_store(
    manager: tuple[str, dict[str, Any]],
    turns: list[tuple[str, str, str]],
    fails: set[int],
    steps: list[str],
    burst: int,
    sync_every: int | None,
) -> None:
    kind, options = manager
    with tempfile.TemporaryDirectory() as folder:
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
                older = max(0, len(plain.manager) - plain.manager.window)
                assert store.stats().masked_turns == older or "mask" in steps
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
