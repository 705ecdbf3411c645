"""What README.md says of the package in a line, in place of badges: no badge shows what nobody has published or run."""

from __future__ import annotations

import re
import runpy
from typing import Any

import pytest

from support import ROOT

tomllib: Any = pytest.importorskip("tomllib")  # Python 3.11
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_line_of_facts_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    minors = [int(found[1]) for one in project["classifiers"] if (found := re.fullmatch(r".* :: 3\.(\d+)", one))]
    assert minors == list(range(min(minors), max(minors) + 1))
    assert project["requires-python"] == f">=3.{min(minors)}"
    assert project["dependencies"] == [] and project["license"] == "MIT"
    assert (ROOT / "python" / "recede" / "py.typed").exists()
    assert f"Python 3.{min(minors)} to 3.{max(minors)}, no dependencies, typed, MIT." in README
    assert "shields.io" not in README


def test_the_readme_stays_short() -> None:
    assert len(README.splitlines()) <= 100


def test_the_picture_of_the_report_is_what_the_command_prints() -> None:
    picture = runpy.run_path(str(ROOT / "scripts" / "report_picture.py"))["picture"]
    assert picture() == (ROOT / "docs" / "report.svg").read_text(encoding="utf-8")
    assert "](docs/report.svg)" in README
