"""Damaged files of every kind, given to the readers of recede. See tests/fuzz_readers.py."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import fuzz_readers
from support import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is of Linux")

CASES = {"saved_session": 60, "store_records": 20, "store_pages": 40}


def found(name: str, seed: int, cases: int | None, seconds: float) -> fuzz_readers.Found:
    found = fuzz_readers.run(name, seed, cases, seconds)
    assert not found.faults, "\n".join(found.faults)
    # Neither must be rare, or the run means little.
    assert 0.1 < found.accepted / found.cases < 0.9
    return found


@pytest.mark.parametrize("name", fuzz_readers.TARGETS)
def test_a_short_run_finds_no_fault(name: str) -> None:
    assert found(name, 1, CASES[name], seconds=100).cases == CASES[name]


@pytest.mark.parametrize("seed", [1351, 8483])
def test_a_saved_summary_with_a_field_more_is_passed_over_each_time(seed: int) -> None:
    """It was saved again as one that can be read, which gave another view."""
    assert not fuzz_readers.run("saved_session", seed, 1, 100).faults


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", fuzz_readers.TARGETS)
def test_a_minute_finds_no_fault(name: str) -> None:
    seed = random.SystemRandom().randrange(1 << 40)
    print(f"{name}: seed {seed}")
    assert found(name, seed, None, seconds=60).cases > 200


BROKEN = """
import os, random, sys, time
sys.path[:0] = [{tests!r}, {tests!r} + "/data", {tests!r} + "/integration"]
import fuzz_readers

def broken(rng, folder):
    case = next(seed for seed in range(7, 12) if random.Random(seed).getstate() == rng.getstate())
    if case == 8:
        raise KeyError("past")
    if case == 9:
        bytearray(8 << 30)
    if case == 10 and os.environ["HOW"] == "crash":
        os.abort()
    if case == 10:
        time.sleep(600)
    return True

fuzz_readers.TARGETS["broken"] = broken
fuzz_readers.MOST_SECONDS, fuzz_readers._stored = 1, list
fuzz_readers.SCRIPT = __file__
fuzz_readers.main()
"""


@pytest.mark.parametrize("how", ["crash", "hang"])
def test_each_fault_is_told_with_its_seed(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "broken.py"
    script.write_text(BROKEN.format(tests=str(ROOT / "tests")))
    monkeypatch.setenv("HOW", how)
    arguments = ["--target", "broken", "--seed", "7", "--cases", "5"]
    child = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True)
    assert child.returncode == 1, child.stderr
    told = child.stdout
    assert "broken: 5 cases from seed 7" in told and "3 faults" in told
    assert "seed 8" in told and "KeyError: 'past'" in told
    assert "seed 9" in told and "MemoryError" in told
    assert "seed 10: the process crashed, or went on without end" in told


def test_damage_is_of_every_kind() -> None:
    """JSON that stays JSON, numbers that stay as wide, and mere bytes."""
    rng, data = random.Random(5), json.dumps({"options": {"keep": 3}, "numbers": [1, 2], "past": []}).encode()
    damaged = {fuzz_readers._damaged(rng, data, [b"other"]) for _ in range(500)}
    parsed = 0
    for one in damaged:
        try:
            parsed += json.loads(one) is not None
        except (ValueError, RecursionError):
            continue
    assert len(damaged) > 250 and 0.2 < parsed / len(damaged) < 0.9
