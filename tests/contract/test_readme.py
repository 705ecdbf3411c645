"""README.md does what it says: its blocks can be pasted, and its picture is what the command prints."""

from __future__ import annotations

import runpy

import pytest

from support import ROOT


def test_the_picture_of_the_report_is_what_the_command_prints() -> None:
    picture = runpy.run_path(str(ROOT / "scripts" / "report_picture.py"))["picture"]
    assert picture() == (ROOT / "docs" / "report.svg").read_text(encoding="utf-8")


def test_the_blocks_of_python_pasted_print_what_they_say() -> None:
    """Here into this Python; `make newcomer` pastes them into the oldest one."""
    pasted = runpy.run_path(str(ROOT / "scripts" / "pasted.py"))["pasted"]
    assert pasted((ROOT / "README.md").read_text(encoding="utf-8")) > 0


@pytest.mark.parametrize(
    ("of", "to", "says"),
    [
        ("    total += number\n\n", "    total += number\n", "SyntaxError"),
        ("import math", ">>> import math", "SyntaxError"),
        ("# 3", "# 4", "prints\n3\n"),
        ("# 3\n", "", "prints\n3\n"),
        ("range(3)", "range(nobody)", "NameError"),
    ],
)
def test_a_block_that_cannot_be_pasted_is_an_error(of: str, to: str, says: str) -> None:
    pasted = runpy.run_path(str(ROOT / "scripts" / "pasted.py"))["pasted"]
    page = "```python\nimport math\n\ntotal = 0\nfor number in range(3):\n    total += number\n\ntotal\n# 3\n```\n"
    assert pasted(page) == page.count("\n") - 2
    with pytest.raises(AssertionError, match=says):
        pasted(page.replace(of, to))
