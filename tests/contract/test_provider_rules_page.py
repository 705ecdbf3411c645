"""docs/provider-rules.md has a row for each rule that the tests play, and says what is not kept as the marks do."""

from __future__ import annotations

import re
from datetime import date

import pytest

pytest.importorskip("aiohttp", reason="the rows are played through the proxy")
pytest.importorskip("anthropic", reason="the client is not installed")

from planted import anthropic_rows, interaction_rows, openai_rows, other_rows
from planted.known import KNOWN

from provider_rules import RULES
from support import ROOT

PAGE = (ROOT / "docs" / "provider-rules.md").read_text(encoding="utf-8")
_LINES = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
ROWS = {name.strip("` "): [cell.strip() for cell in cells] for name, *cells in _LINES}
PLAYED = {**anthropic_rows.ROWS, **openai_rows.ROWS, **other_rows.ROWS, **interaction_rows.ROWS}
# Played beside the rows: what is asked for summaries.
OF_SUMMARIES = {"anthropic.reasoning_is_not_shown_as_text", "anthropic.finished"}


def test_each_rule_has_a_row_and_each_row_a_rule() -> None:
    assert len(ROWS) == len(_LINES), "a rule has two rows"
    assert set(ROWS) == set(RULES)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_since_when_by_what_source_and_when_it_was_read(name: str) -> None:
    what, since, source, read_on, how = ROWS[name]
    assert what and source and how
    assert re.fullmatch(r"20\d\d(-\d\d)?(, 20\d\d(-\d\d)?)?", since), since
    assert date(2026, 1, 1) <= date.fromisoformat(read_on) <= date.today()


def test_what_is_not_kept_is_said_and_marked() -> None:
    said = {name for name, cells in ROWS.items() if "**not kept yet**" in cells[-1]}
    marked = {PLAYED[name].rule for rows in KNOWN.values() for name in rows} | OF_SUMMARIES
    assert said == marked
