"""The tables of options in docs/options.md and docs/semantics.md against the declarations."""

from __future__ import annotations

import pytest

from recede.reduction._options import DESIGN_OPTIONS, OPTIONS, Option
from support import ROOT

FUNCTIONS = {
    "reduce": "`HistoryReducer`",
    "mask": "`mask_observations`",
    "summarize": "`summarize_history`",
    "truncate": "`truncate_history`",
    "block": "`mask_old_observations`",
}


def row(name: str, option: Option) -> str:
    functions = [", ".join(FUNCTIONS[goal] for goal in option.goals)] if option.goals else []
    return "| " + " | ".join([f"`{name}`", f"`{option.default!r}`", *functions, option.help]) + " |"


@pytest.mark.parametrize(("page", "table"), [("options", OPTIONS), ("semantics", DESIGN_OPTIONS)])
def test_the_table_of_options_is_the_declaration(page: str, table: dict[str, Option]) -> None:
    lines = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("| option | default |")) + 2
    shown = lines[begin : lines.index("", begin)]
    assert shown == [row(name, option) for name, option in table.items()]
