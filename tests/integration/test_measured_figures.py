"""The tables and listings of the documents are what their commands print, but for times."""

from __future__ import annotations

import sys

import pytest
from shared_data import CORPUS, need

from support import ROOT

sys.path.append(str(ROOT / "benches"))

import figures

# Of the others `make test-slow` takes care, but for one that takes minutes.
QUICK = ("replay.md", "transcripts.md", "benches/results.py", "benches/cluster.py", "benches/economy.py")
MARKED = [one for page in figures.PAGES for one in figures.figures(page)]
COUNTED = [one for one in MARKED if one.may_move is not None and not one.is_slow]


def name_of(one: figures.Figures) -> str:
    return f"{one.page.name}: {one.command}"


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(
            one, id=name_of(one)[:100], marks=[] if any(part in name_of(one) for part in QUICK) else [pytest.mark.slow]
        )
        for one in COUNTED
    ],
)
@pytest.mark.timeout(600)
def test_figures_have_not_moved_by_more_than_they_may(one: figures.Figures) -> None:
    need(CORPUS)
    assert one.may_move is not None
    assert figures.moved(one.shown, figures.printed(one), one.may_move) == []
