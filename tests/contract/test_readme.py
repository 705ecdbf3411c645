"""The picture of README.md is what the command prints."""

from __future__ import annotations

import runpy

from support import ROOT


def test_the_picture_of_the_report_is_what_the_command_prints() -> None:
    picture = runpy.run_path(str(ROOT / "scripts" / "report_picture.py"))["picture"]
    assert picture() == (ROOT / "docs" / "report.svg").read_text(encoding="utf-8")
