"""The table of defaults in docs/semantics.md against every entry point that it names."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import recede
from support import ROOT

_ROW = re.compile(r"^\| (`\w.*`) \| `(\w+)` \| (.*) \| (.*) \| (\d+) \|$", re.MULTILINE)
_PAGE = (
    (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8").partition("| entry point |")[2].partition("\n\n")[0]
)
# The options that an entry point is made with, beside a number of results to keep.
_MESSAGES: list[Any] = [{"role": "user", "content": "Go."}]
_GIVEN: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "mask_old_observations": ((_MESSAGES,), {}),
    "mask_old_observations_json": ((b"[]",), {}),
    "Budget": ((), {}),
}
ROWS = [
    (name, boundary, fill, clip, int(least))
    for names, boundary, fill, clip, least in _ROW.findall(_PAGE)
    for name in re.findall(r"`([^`]+)`", names)
]


def entry_point_of(name: str) -> Any:
    rooms = (recede, recede.designs, recede.masker)
    return next(getattr(room, name) for room in rooms if name in room.__all__)


def test_the_table_names_the_entry_points() -> None:
    assert len(ROWS) == 16 and {"reduce", "History", "Conversation", "HybridContextManager"} <= {row[0] for row in ROWS}


@pytest.mark.parametrize(("name", "boundary", "fill", "clip", "least"), ROWS, ids=[row[0] for row in ROWS])
def test_an_entry_point_has_these_defaults(name: str, boundary: str, fill: str, clip: str, least: int) -> None:
    if name == "recede reduce":  # it takes the options of `reduce`
        return
    entry_point = entry_point_of(name)
    parameters = inspect.signature(entry_point).parameters
    if name == "Conversation":
        made = recede.designs.Conversation(lambda **_: None)
        assert made.history._live.options.given["boundary"] == boundary
    else:
        assert parameters["boundary"].default == boundary
    for option, shown in (("fill", fill), ("clip_results", clip)):
        assert shown == (f"`{parameters[option].default}`" if option in parameters else "")
    if name in _GIVEN:
        arguments, options = _GIVEN[name]
        entry_point(*arguments, keep=least, **options)
        with pytest.raises(ValueError, match=f"keep must be at least {least}"):
            entry_point(*arguments, keep=least - 1, **options)


@pytest.mark.parametrize("name", [row[0] for row in ROWS if row[0] != "recede reduce"])
def test_the_first_line_of_its_docstring_says_its_boundary(name: str) -> None:
    first = (entry_point_of(name).__doc__ or "").strip().partition("\n")[0]
    [boundary] = [row[1] for row in ROWS if row[0] == name]
    assert {"sliding": "sliding boundary", "break_even": "break-even"}[boundary] in first
