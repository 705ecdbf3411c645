"""The table of the designs' defaults in docs/semantics.md against every entry point that it names."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import recede
from recede.reduction._options import OPTIONS
from support import ROOT

_ROW = re.compile(r"^\| (`\w.*) \| `(\w+)` \| (\d+) \|$", re.MULTILINE)
_PAGE = (
    (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8").partition("| entry point |")[2].partition("\n\n")[0]
)
# What an entry point is made with, besides a number of results to keep.
_MADE_WITH: dict[str, tuple[Any, ...]] = {
    "mask_old_observations": ([{"role": "user", "content": "Go."}],),
    "mask_old_observations_json": (b"[]",),
    "Budget": (),
}
ROWS = [
    (name, boundary, int(least))
    for names, boundary, least in _ROW.findall(_PAGE)
    for name in re.findall(r"`([^`]+)`", names.replace(" without a `Budget`", ""))
]
DOORS: dict[str, Any] = {
    "reduce": recede.reduce,
    "History": recede.History,
    "wrap": recede.wrap,
    "Masker": recede.masker.Masker,
    "RequestMasker": recede.proxy.RequestMasker,
}


def test_the_table_names_the_entry_points() -> None:
    assert len(ROWS) == 10 and {"HistoryReducer", "Budget", "Conversation", "HybridContextManager"} <= {
        row[0] for row in ROWS
    }


@pytest.mark.parametrize(("name", "boundary", "least"), ROWS, ids=[row[0] for row in ROWS])
def test_an_entry_point_of_the_designs_has_these_defaults(name: str, boundary: str, least: int) -> None:
    entry_point = getattr(recede.designs, name)
    if name == "Conversation":
        made = recede.designs.Conversation(lambda **_: None)
        assert made.history._live.options.given["boundary"] == boundary
    elif name.endswith("ContextManager"):
        assert "boundary" not in inspect.signature(entry_point).parameters, "it slides"
    else:
        assert inspect.signature(entry_point).parameters["boundary"].default == boundary
    if name in _MADE_WITH:
        entry_point(*_MADE_WITH[name], keep=least)
        with pytest.raises(ValueError, match=f"keep must be at least {least}"):
            entry_point(*_MADE_WITH[name], keep=least - 1)


@pytest.mark.parametrize("name", DOORS)
def test_a_door_shows_the_one_set_with_its_defaults(name: str) -> None:
    parameters = inspect.signature(DOORS[name]).parameters
    assert {option: parameters[option].default for option in OPTIONS} == {
        option: declared.default for option, declared in OPTIONS.items()
    }
