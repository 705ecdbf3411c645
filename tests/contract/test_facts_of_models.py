"""The table of models: each fact has its date and source, each family a version from which it verifies reasoning."""

from __future__ import annotations

import re
import runpy
from datetime import datetime, timezone

import pytest

from recede._model_names import FAMILIES, model_provider
from recede._models import EARLIER_ROWS, HOST_ROWS, LATER_ROWS, MODEL_ROWS, Model, model_row
from recede.providers import PROVIDERS
from support import ROOT

_MONTH = re.compile(r"20\d\d-(?:0[1-9]|1[0-2])")
_DATED = [(name, row) for rows in (EARLIER_ROWS, LATER_ROWS) for name, days in rows.items() for _, row in days]
_ROWS = [*MODEL_ROWS.items(), *_DATED, *((f"{name} at {host}", row) for (host, name), row in HOST_ROWS.items())]


@pytest.mark.parametrize(("name", "row"), _ROWS, ids=[name for name, _ in _ROWS])
def test_each_fact_of_a_row_has_its_date_and_source(name: str, row: Model) -> None:
    for date, source in ((row.date, row.source), (row.reasoning.date, row.reasoning.source)):
        assert _MONTH.fullmatch(date) and "." in source, (name, date, source)
    assert row.window_tokens > row.min_tokens and row.reasoning.kept in ("all", "last", "none")
    assert row.reasoning.lowest_effort in (None, "none", "minimal", "low") and 0 <= row.reasoning.share < 1
    assert (row.reasoning.share == 0) is (row.reasoning.lowest_effort in (None, "none"))


@pytest.mark.parametrize("name", MODEL_ROWS)
def test_the_small_sibling_of_a_row_is_cheaper_and_has_no_other(name: str) -> None:
    row = MODEL_ROWS[name]
    if row.small:
        small = MODEL_ROWS[row.small]
        assert small.small == "" and small.provider == row.provider
        assert small.input < row.input and small.output < row.output


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("claude-opus-4-5", "all"),
        ("claude-opus-4-1", "last"),
        ("claude-sonnet-4-6", "all"),
        ("claude-sonnet-4-5", "last"),
        ("claude-haiku-4-5", "last"),
        ("claude-haiku-5-5", "all"),
        ("claude-fable-5", "all"),
        ("gpt-5.5", "last"),
        ("gpt-5.6-sol", "all"),
        ("gpt-4o", "none"),
    ],
)
def test_reasoning_of_earlier_turns_is_kept_as_documented(model: str, kept: str) -> None:
    assert MODEL_ROWS[model].reasoning.kept == kept


def test_each_family_has_a_floor_with_date_and_source() -> None:
    assert {row.provider for row in MODEL_ROWS.values()} <= PROVIDERS.keys() > FAMILIES.keys()
    for family in FAMILIES.values():
        assert "" in family.verifies_from and _MONTH.fullmatch(family.date) and "." in family.source


def test_each_row_is_of_the_family_of_its_name() -> None:
    assert {name: model_provider(name) for name in MODEL_ROWS} == {n: row.provider for n, row in MODEL_ROWS.items()}


@pytest.mark.parametrize("model", ["gemini-3.6-flash", "gemini-3.7-flash", "gemini-3.8-flash"])
def test_a_price_that_is_announced_begins_with_its_day(model: str) -> None:
    first = datetime(2027, 1, 1, tzinfo=timezone.utc).timestamp()
    before, after = model_row(model, first - 1), model_row(model, first)
    assert before is not None and after is not None
    assert (before.input, before.cached, before.output) == (0.75, 0.075, 3.75)
    assert (after.input, after.cached, after.write, after.output) == (1.5, 0.15, 1.5, 7.5)


def test_no_row_differs_from_the_pinned_package() -> None:
    pytest.importorskip("genai_prices", reason="the development tools have it")
    script = runpy.run_path(str(ROOT / "scripts" / "prices.py"))
    day = datetime(2026, 11, 28, tzinfo=timezone.utc)
    agreed, lines = script["differences"](day)
    assert agreed >= 60 and all(line.endswith(": not in the package") for line in lines), lines
    _, later = script["differences"](datetime(2027, 1, 2, tzinfo=timezone.utc))
    assert later == lines
