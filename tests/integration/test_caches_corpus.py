"""What masks cost on recorded sessions, by the rules of the providers' caches: the figures of the documents."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shared_data import CORPUS, need

import recede
from definitions.cache import Sent, seen, served
from oracle.placeholder import Masked
from oracle.walk import walk
from recede import transcripts
from recede.costs import CACHES
from recede.costs._cache import cache_facts
from support import CLEARED

PINNED = ",cache_breakpoint=boundary"
MASKS = ("sliding:window=10", "stepped:window=10,chunk=10", "break_even:window=10")
PRICES = recede.costs.Prices(output=0)
IMAGE_CHARS = 6_400

# The cost as a share of raw in percent, with the client's breakpoints and with one more at the boundary, as measured by
# two other simulators; and how far from that these figures may be. They masked each result that is longer than the
# published placeholder. recede leaves results of up to 104 characters raw, so a sliding mask changes the prefix less
# often: what it costs then is measured by the slow test below.
MEASURED = {
    "claude_code": (12, (418, 98, 64), (98, 62, 60)),
    "codex": (7, (262, 79, 57), (103, 56, 52)),
}
MEASURED_AS_PUBLISHED = {"claude_code": (453, 102), "codex": (269, 103)}
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


def _own(chars: int) -> str | None:
    return CLEARED if chars - len(CLEARED) >= 64 else None


def _published(chars: int) -> str | None:
    placeholder = f"[observation masked — {chars} chars]"
    return placeholder if len(placeholder) < chars else None


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_pinned", [False, True])
@pytest.mark.parametrize("name", MEASURED)
def test_sliding_costs_what_a_simulation_of_each_request_says(name: str, is_pinned: bool) -> None:
    need(CORPUS)
    long = _long(name)
    before = _simulated(long, _published, is_pinned)
    assert before == pytest.approx(MEASURED_AS_PUBLISHED[name][is_pinned], abs=SLIDING_TOLERANCE if before > 200 else 4)
    policy = MASKS[0] + PINNED * is_pinned
    sessions = [recede.costs.replay(history, [policy], prices=PRICES, cache="anthropic") for history in long]
    share = 100 * recede.costs.compare_costs(sessions)[1].of_raw
    assert share == pytest.approx(_simulated(long, _own, is_pinned))
    assert share == pytest.approx(MEASURED[name][1 + is_pinned][0], abs=0.5)


def _simulated(histories: list[list[dict[str, object]]], mask: Callable[[int], str | None], is_pinned: bool) -> float:
    """The cost of a mask of all results but the newest 10, as a share of raw in percent: each request by itself."""
    facts = cache_facts(CACHES["anthropic"], PRICES, None, 12_000)
    costs = {10: 0.0, 1 << 60: 0.0}
    for history in histories:
        messages = walk(history).messages
        made = [message.is_agent_made for message in messages]
        starts = [at for at, is_made in enumerate(made) if is_made and not (at and made[at - 1])]
        for window in costs:
            sent = []
            for end in starts:
                results = [result for message in messages[:end] for result in message.results]
                older = results[: max(0, len(results) - window)]
                texts = {result.index: mask(result.text.chars(IMAGE_CHARS)) for result in older}
                masked = {index: Masked((), text) for index, text in texts.items() if text is not None}
                sent.append(Sent([seen(message, masked, IMAGE_CHARS) for message in messages[:end]], end))
            for chars, read, written in served(facts, sent, is_pinned):
                costs[window] += chars - read - written + read * float(PRICES.cached) + written * float(PRICES.write)
    masks, raw = costs.values()
    return 100 * masks / raw


def _long(name: str) -> list[list[dict[str, object]]]:
    """The sessions with 30 observations or more."""
    histories = [found.messages for path in sorted((CORPUS / name).iterdir()) for found in transcripts.read_all(path)]
    return [history for history in histories if _observations(history) >= 30]


def _observations(history: list[dict[str, object]]) -> int:
    return sum(tool.observations for tool in recede.reduce(history).tools.values())
