"""Each notebook prints what it shows."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

import recede
from provider_rules import fault
from support import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
script = runpy.run_path(str(ROOT / "scripts" / "notebooks.py"))
missing, played = script["missing"], script["played"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_print_what_the_notebook_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view_of, refused = recede.History.view, []

    def view(history: recede.History) -> list[Any]:
        """A view, after a provider has had a look at it: their models are functions, which take all."""
        messages = view_of(history)
        refused.append(fault("chat", {"model": "gpt-5.4", "messages": messages}))
        return messages

    monkeypatch.setattr(recede.History, "view", view)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    if absent := missing(notebook):
        pytest.skip(f"not without {', '.join(absent)}: `make test-integrations ONLY=inspect_ai` has them")
    assert any(cell.get("outputs") for cell in notebook["cells"])
    assert played(notebook, path.parent) == notebook
    assert not any(refused)
