"""What is Inspect's alone: a retry begins with the list as it was masked."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

import case_inspect_ai as case
from sessions import session
from test_recall import recall, recalled_of, recalling

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(os.environ.get("RECEDE_INTEGRATION") not in (None, "inspect_ai"), reason="of another framework"),
]


def test_what_was_masked_is_recalled_after_a_retry() -> None:
    turns = session(30)
    asked, text = recalled_of(turns, 2)
    _, stored = case.run(recalling(case), [*turns, recall(asked, text)], "failing")
    assert dict(case.results(stored))["again"] == text
