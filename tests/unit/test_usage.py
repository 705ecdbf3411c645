"""Usage of sessions that adds up: comparisons that follow from it, and no session is kept."""

from __future__ import annotations

import json
import statistics

import pytest

from recede import costs
from support import assistant, call, result, user

HISTORY = [user("Fix it."), *(step for n in range(6) for step in (call(str(n)), result(str(n), "x" * 300)))]


def sessions(count: int) -> list[bytes]:
    return [json.dumps([*HISTORY * (n % 4 + 1), assistant("Done.")]).encode() for n in range(count)]


def added_up(compared: tuple[costs.PolicyCost, ...]) -> tuple[costs.PolicyCost, ...]:
    """Costs as sums of usage have them: they know no single request."""
    return tuple(one._replace(worst_moment=None) for one in compared)


def test_comparisons_of_usage_are_those_of_replays() -> None:
    policies = ["sliding:window=2", "break_even:window=2"]
    single = [costs.replay_json(row, policies) for row in sessions(9)]
    used = [one.usage for one in single]
    assert costs.compare_costs(used) == added_up(costs.compare_costs(single))
    # Prices can change afterwards.
    prices = costs.PRESETS["openai"]._replace(min_cached_tokens=2_048)
    cheap = costs.compare_costs(one._replace(prices=prices) for one in used)
    assert cheap == added_up(costs.compare_costs(one._replace(prices=prices) for one in single))


@pytest.mark.parametrize("count", [1, 2, 999, 4_001])
def test_the_shares_of_many_sessions_are_folded(count: int) -> None:
    raw = costs.Usage(1, 40_000, 0, 40_000, 0)
    used = [raw._replace(sent_chars=sent, written_chars=sent) for sent in (30_000 + 7 * n for n in range(count))]
    _, folded = costs.compare_costs(costs.ReplayUsage({"raw": raw, "sliding:window=3": one}) for one in used)
    shares = [one.sent_chars / raw.sent_chars for one in used]
    assert folded.median_of_raw == pytest.approx(statistics.median(shares), abs=1e-15)
    assert folded.mean_of_raw == pytest.approx(statistics.mean(shares))
    assert folded.worst_of_raw == pytest.approx(max(shares))
    assert folded.loss_count == sum(share > 1 for share in shares)
    assert folded.usage == costs.Usage.total(used)
