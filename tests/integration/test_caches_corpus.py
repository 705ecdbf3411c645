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
# two other simulators; and how far from that these figures may be. They masked each result that is longer than the
# published placeholder. recede leaves results of up to 104 characters raw, so a sliding mask changes the prefix less
# often.
MEASURED = {
    "claude_code": (12, (418, 98, 64), (98, 62, 60)),
    "codex": (7, (262, 79, 57), (103, 56, 52)),
}
TOLERANCE = 4
SLIDING_TOLERANCE = 15


@pytest.mark.parametrize("name", MEASURED)
def test_costs_under_breakpoints_match_those_measured_before(name: str) -> None:
    need(CORPUS)
    count, *shares = MEASURED[name]
    long = _long(name)
    assert len(long) == count
    policies = [*MASKS, *(f"{mask}{PINNED}" for mask in MASKS)]
    sessions = [recede.costs.replay(history, policies, prices=PRICES, cache="anthropic") for history in long]
    costs = {cost.policy: cost for cost in recede.costs.compare_costs(sessions)}
    for ending, measured in zip(("", PINNED), shares, strict=True):
        for mask, share in zip(MASKS, measured, strict=True):
            tolerance = SLIDING_TOLERANCE if share > 200 else TOLERANCE
            assert 100 * costs[f"{mask}{ending}"].of_raw == pytest.approx(share, abs=tolerance), mask + ending


def _long(name: str) -> list[list[dict[str, object]]]:
    """The sessions with 30 observations or more."""
    histories = [found.messages for path in sorted((CORPUS / name).iterdir()) for found in transcripts.read_all(path)]
    return [history for history in histories if _observations(history) >= 30]


def _observations(history: list[dict[str, object]]) -> int:
    return sum(tool.observations for tool in recede.reduce(history).tools.values())
