"""`make demo`, as a newcomer runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT

DEMO = ROOT / "scripts" / "demo.py"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ("recede.reduce(history)", "By tool", "$1.98 masked", "One old turn before", "[old tool output")),
        (["examples/bugfix.jsonl"], ("3,467 characters before, 3,467 after", " masked when it pays")),
    ],
    ids=["session", "a file of one's own"],
)
def test_the_demo_shows_before_and_after(arguments: list[str], words: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, DEMO, *arguments], cwd=ROOT, text=True, capture_output=True, check=True)
    for word in (*words, "Next: "):
        assert word in done.stdout


def test_the_readme_names_the_two_commands_first() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert "`make demo`" in first
    assert "`make test`" in first


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, DEMO, tmp_path / "none.json"], text=True, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
