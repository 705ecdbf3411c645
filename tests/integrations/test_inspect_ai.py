"""What is Inspect's alone: a retry begins with the list as it was masked, and a notebook runs two arms."""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

import case_inspect_ai as case
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import messages_to_openai
from sessions import session
from test_recall import recall, recalled_of, recalling

from provider_rules import fault
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
def test_the_notebook_of_two_arms_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "examples" / "notebooks" / "does_it_hurt_my_tasks.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    script = runpy.run_path(str(ROOT / "scripts" / "notebooks.py"))
    if absent := script["missing"](notebook):
        pytest.skip(f"not without {', '.join(absent)}")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert script["played"](notebook, path.parent) == notebook
    # Its model is a function, which takes all; a provider has a look at what it was asked.
    asked = [messages for log in list_eval_logs(str(tmp_path)) for messages in _asked(log)]
    assert len(asked) > 3_000 and any("old tool output cleared" in str(messages) for messages in asked)
    assert not any(map(refused, asked[::7]))


def _asked(log: Any) -> list[Any]:
    samples = read_eval_log(log, resolve_attachments=True).samples or ()
    return [event.input for sample in samples for event in sample.events if event.event == "model"]


def refused(messages: list[Any]) -> str | None:
    chat = asyncio.run(messages_to_openai(messages))
    return fault("chat", {"model": "gpt-5.4", "messages": chat})
