"""Solve rates of raw and masked tries, paired by task."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support import ROOT

sys.path.append(str(ROOT / "benches"))

import outcomes
from outcomes import Task

SOLVED, FAILED = Task(True, 1.0, 10), Task(False, 1.0, 10)


def test_tasks_that_one_run_alone_has_are_left_out() -> None:
    assert outcomes.paired({"a": SOLVED, "b": SOLVED}, {"b": FAILED, "c": SOLVED}) == [(SOLVED, FAILED)]


def test_what_one_run_alone_solved_is_the_difference() -> None:
    pairs = [(SOLVED, SOLVED)] * 4 + [(SOLVED, FAILED)] * 2 + [(FAILED, SOLVED)] * 5 + [(FAILED, FAILED)] * 89
    found = outcomes.compared(pairs)
    assert (found.tasks, found.solved, found.only) == (100, (6, 9), (2, 5))
    points, half = found.points()
    assert points == pytest.approx(3.0)
    assert half == pytest.approx(1.96 * (0.07 - 0.03**2) ** 0.5 / 100**0.5 * 100)  # Wald's, for paired shares


def test_longest_tasks_are_chosen_over_all_setups() -> None:
    short, middle, long = (Task(False, 1.0, turns) for turns in (10, 20, 90))
    first = {"a": long, "b": middle, "c": short, "d": short}, dict.fromkeys("abcd", SOLVED)
    second = {"a": short, "b": long, "c": short, "d": short}, dict.fromkeys("abcd", FAILED)
    assert outcomes.longest_quarter([first, second]) == [(middle, SOLVED), (long, FAILED)]


def test_a_file_that_is_not_there_cannot_be_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["outcomes.py", str(tmp_path / "absent.csv")])
    assert outcomes.main() == outcomes.NOT_HERE
