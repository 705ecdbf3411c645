"""What is Inspect's alone: a retry begins with the list as it was masked, and a notebook runs two arms."""

from __future__ import annotations

import json
import os
import runpy

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

import case_inspect_ai as case
from sessions import session
from test_recall import recall, recalled_of, recalling

from support import ROOT

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(os.environ.get("RECEDE_INTEGRATION") not in (None, "inspect_ai"), reason="of another framework"),
]


def test_what_was_masked_is_recalled_after_a_retry() -> None:
    turns = session(30)
    asked, text = recalled_of(turns, 2)
    _, stored = case.run(recalling(case), [*turns, recall(asked, text)], "failing")
    assert dict(case.results(stored))["again"] == text


@pytest.mark.timeout(900)
def test_the_notebook_of_two_arms_prints_what_it_shows() -> None:
    path = ROOT / "examples" / "notebooks" / "does_it_hurt_my_tasks.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    script = runpy.run_path(str(ROOT / "scripts" / "notebooks.py"))
    if absent := script["missing"](notebook):
        pytest.skip(f"not without {', '.join(absent)}")
    assert script["played"](notebook, path.parent) == notebook
