"""kill -9 at random moments: nothing confirmed is lost, and no store holds half a commit. See tests/kill.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from support import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and killed by a signal")


def killed(rounds: int, seed: int) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "tests" / "kill.py"), "--rounds", str(rounds), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    tally: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0 and not done.stderr, (tally, done.stderr)
    assert (tally["lost"], tally["not_opened"], tally["mixtures"]) == ([], [], [])
    assert tally["rounds"] == rounds and tally["turns"] > rounds
    return tally


def test_fifty_rounds() -> None:
    tally = killed(50, seed=20)
    assert tally["inside_a_step"] >= 8  # an append that waits for no disk is soon over


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_five_hundred_rounds() -> None:
    tally = killed(500, seed=21)
    assert tally["inside_a_step"] >= 150
