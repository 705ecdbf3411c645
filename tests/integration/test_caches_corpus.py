"""What masks cost on recorded sessions, by the rules of the providers' caches: the figures of the documents."""

from __future__ import annotations

import pytest
from shared_data import CORPUS, need

import recede
from recede import transcripts

PINNED = ",cache_breakpoint=boundary"
MASKS = ("sliding:window=10", "stepped:window=10,chunk=10", "break_even:window=10")
PRICES = recede.costs.Prices(output=0)

# The cost as a share of raw in percent, with the client's breakpoints and with one more at the boundary, as measured by
# two other simulators; and how far from that these figures may be.
MEASURED = {
    "claude_code": (12, (453, 98, 64), (102, 62, 60)),
    "codex": (7, (269, 79, 57), (103, 56, 52)),
}
TOLERANCE = 4
SLIDING_TOLERANCE = 15


@pytest.fixture
def engine() -> str:
    """One engine is enough here."""
    return "core"


@pytest.mark.parametrize("name", MEASURED)
def test_costs_under_breakpoints_match_those_measured_before(name: str) -> None:
    need(CORPUS)
    count, *shares = MEASURED[name]
    histories = [found.messages for path in sorted((CORPUS / name).iterdir()) for found in transcripts.read_all(path)]
    long = [history for history in histories if _observations(history) >= 30]
    assert len(long) == count
    policies = [*MASKS, *(f"{mask}{PINNED}" for mask in MASKS), "optimum:window=10", f"optimum:window=10{PINNED}"]
    sessions = [recede.costs.replay(history, policies, prices=PRICES, cache="anthropic") for history in long]
    costs = {cost.policy: cost for cost in recede.costs.compare_costs(sessions)}
    for ending, measured in zip(("", PINNED), shares, strict=True):
        for mask, share in zip(MASKS, measured, strict=True):
            tolerance = SLIDING_TOLERANCE if share > 200 else TOLERANCE
            assert 100 * costs[f"{mask}{ending}"].of_raw == pytest.approx(share, abs=tolerance), mask + ending
            of_optimum = costs[f"{mask}{ending}"].of_optimum
            assert of_optimum is not None and of_optimum >= 1


def _observations(history: list[dict[str, object]]) -> int:
    return sum(tool.observations for tool in recede.reduce(history).tools.values())
