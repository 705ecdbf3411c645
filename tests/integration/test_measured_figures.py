"""The tables and listings of the documents are what their commands print, but for times."""

from __future__ import annotations

import sys

import pytest
from shared_data import CORPUS, need

from support import ROOT

sys.path.append(str(ROOT / "benches"))

import figures
import limits
from economy import every_session, long_sessions

from recede import costs
from recede.costs._misses import LONG_SESSION
from recede.costs._policies import MASKED
from recede.designs import mask_observations

# Of the others `make test-slow` takes care, but for one that takes minutes.
QUICK = ("replay.md", "transcripts.md", "benches/results.py", "benches/cluster.py", "economy.py --table")
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


ALL = slice(None)


@pytest.mark.parametrize(
    ("limit", "some"),
    [(8_000, slice(13, 17)), *(pytest.param(limit, ALL, marks=pytest.mark.slow) for limit in limits.LIMITS)],
)
def test_a_limit_costs_a_caller_without_a_session_what_it_costs_one(limit: int, some: slice) -> None:
    """And a door that masks no more than it would by other forced moves."""
    need(CORPUS)
    of_raw, changes = limits.played(limit, sorted(long_sessions(), key=len)[some])
    assert of_raw["reduce"] <= 1.05 * of_raw["History"]
    assert of_raw["masking"] <= 1.05 * min(cost for name, cost in of_raw.items() if name.startswith("free"))
    assert 0 < changes["History"] <= changes["reduce"]


def test_masking_begins_to_pay_after_as_many_requests_as_the_screen_says() -> None:
    need(CORPUS)
    saves: dict[bool, list[bool]] = {False: [], True: []}
    for messages in every_session():
        # Told one maker's prices, as all are: a door plans each shape by the rule of its own.
        played = costs.replay(messages, [MASKED], prices=costs.PRESETS["anthropic"]._replace(output=14.9))
        if played.policies[0].turns:
            results = sum(tool.observations for tool in mask_observations(messages, keep_results=0).tools.values())
            saves[results >= LONG_SESSION].append(played.costs[1].of_raw < 0.995)
    assert len(saves[False]) > 100 and not any(saves[False])
    assert sum(saves[True]) >= len(saves[True]) / 2
