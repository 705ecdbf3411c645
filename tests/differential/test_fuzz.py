"""A short run of the fuzzing of core and oracle, and that it can find something."""

from __future__ import annotations

from typing import Any

import pytest

import fuzz
from support import ENGINES, engine_module

pytestmark = pytest.mark.skipif(len(ENGINES) < 2, reason="recede._core is not built: make build")


def test_a_short_run_finds_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "_corpus", list)  # the same cases on every machine
    found = fuzz.run(iter(range(600)))
    assert not found.differences, "\n".join(found.differences)
    # Neither must be rare, or the run means little.
    assert 60 < found.accepted < 540


def test_what_differs_is_told_with_its_seed_and_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = engine_module("oracle")
    mask = oracle.reduce_json

    def careless(raw: bytes, *arguments: Any) -> Any:
        answer = mask(raw, *arguments)
        return (b"", *answer[1:]) if b"dispatch" in raw else answer

    monkeypatch.setattr(fuzz, "_corpus", list)
    monkeypatch.setattr(oracle, "reduce_json", careless)
    found = fuzz.run(iter(range(100)))
    assert found.differences
    assert all(line.startswith("seed ") and "dispatch" in line for line in found.differences)
    shortest = min(found.differences, key=len)
    assert len(shortest.split("\n")[0]) < 300, shortest
