"""`make demo`, as a newcomer runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT

DEMO = ROOT / "scripts" / "demo.py"


@pytest.mark.parametrize("arguments", [[], ["examples/bugfix.jsonl"]], ids=["session", "a file of one's own"])
def test_the_demo_shows_before_and_after(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, DEMO, *arguments], cwd=ROOT, text=True, capture_output=True, check=True)
    for word in ("before", "after", "Characters by tool", "[observation masked — ", "Budget", "Pairs   whole"):
        assert word in done.stdout


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, DEMO, tmp_path / "none.json"], text=True, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
