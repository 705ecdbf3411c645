"""Each row of docs/coming-from.md is typed by a test, and each test names a row that is there."""

from __future__ import annotations

import ast
from pathlib import Path

from support import ROOT

TESTS = sorted((ROOT / "tests" / "designs").glob("test_*.py"))


def rows_of_the_page() -> list[list[str]]:
    """The cells of the tables below "Row by row"."""
    page = (ROOT / "docs" / "coming-from.md").read_text().split("\n## Row by row\n")[1]
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines if not line.startswith("| the design |")]


def rows_of(path: Path) -> list[str]:
    """The arguments of `row` above the tests of a file."""
    tests = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    marks = [mark for test in tests for mark in test.decorator_list if isinstance(mark, ast.Call)]
    named = [mark for mark in marks if isinstance(mark.func, ast.Name) and mark.func.id == "row"]
    return [ast.literal_eval(argument) for mark in named for argument in mark.args]


def test_each_row_has_one_test() -> None:
    designs = [cells[0] for cells in rows_of_the_page()]
    typed = [row for path in TESTS for row in rows_of(path)]
    assert sorted(typed) == sorted(designs)
    assert len(designs) == len(set(designs)) == 168


def test_each_row_says_same_or_why_not() -> None:
    for cells in rows_of_the_page():
        assert len(cells) == 2 and cells[1].strip(), cells
