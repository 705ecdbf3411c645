"""Replays under a prompt cache: against one that is kept to the letter; the lower bound against every boundary."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import pytest
from generated import histories
from hypothesis import example, given
from hypothesis import strategies as st

import recede
from definitions.cache import Seen, Sent, served
from recede.costs import Cache, Prices
from recede.costs._prices import cache_facts
from support import ROOT, assistant, call, result, turns_of, user, using

sys.path.append(str(ROOT / "benches"))

from optimum import least_cost

History = list[dict[str, Any]]

CACHES = st.one_of(
    st.builds(Cache, st.just("breakpoints"), st.sampled_from([0, 10, 300]), st.just(0), st.sampled_from([0, 1, 4, 20])),
    st.builds(
        Cache,
        st.just("entries"),
        st.sampled_from([0, 10, 300]),
        st.just(0),
        st.sampled_from([0, 1, 4, 20]),
        st.booleans(),
    ),
    st.builds(Cache, st.just("prefix"), st.sampled_from([0, 10, 300]), st.sampled_from([0, 1, 7, 128]), st.just(20)),
    st.just(recede.costs.CACHES["ideal"]),
)
PRICES = st.builds(
    Prices,
    st.sampled_from([0, 1, 3]),
    st.sampled_from([0, 0.1, 1]),
    st.sampled_from([0.5, 1, 1.25, 3]),
    st.just(0),
    st.sampled_from([0, 10, 60, 300]),
)
TIMES = st.dictionaries(st.integers(0, 20), st.floats(0, 400, allow_nan=False), max_size=9)


def policies(window: int, chunk: int) -> list[str]:
    masks = [f"sliding:window={window}", f"stepped:window={window},chunk={chunk}", f"break_even:window={window}"]
    masks += [f"high_water:window={window},chars=300"]
    clearing = [f"clear_tool_uses:trigger={60 * chunk},keep={window},at_least={5 * chunk}"]
    clearing += [f"clip:chars={60 + 25 * chunk}"]
    hybrid = f"hybrid:window={window},at={chunk + 2},tail=2"
    pinned = [f"{policy},cache_breakpoint=boundary" for policy in (*masks, hybrid)]
    return [*masks, *pinned, *clearing, hybrid, f"keep_last:messages={window}", f"summary:every={chunk},tail=1"]


@example(  # the dropped result has a block, but no characters
    history=[user("task"), result("1", ""), assistant(""), call("2"), result("2", ""), result("2", "y"), call("3")],
    window=0,
    chunk=1,
    cache=recede.costs.CACHES["anthropic"],
    prices=Prices(),
    times={},
    system_chars=12_000,
)
@given(
    history=histories(),
    window=st.integers(0, 4),
    chunk=st.integers(1, 3),
    cache=CACHES,
    prices=PRICES,
    times=TIMES,
    system_chars=st.sampled_from([0, 90, 2_000]),
)
def test_replay_under_a_cache_equals_its_definition(
    history: History, window: int, chunk: int, cache: Cache, prices: Prices, times: dict[int, float], system_chars: int
) -> None:
    options: dict[str, Any] = {"prices": prices, "cache": cache, "times": times, "system_chars": system_chars}
    options["summary_chars"] = 50
    replayed = recede.costs.replay(history, policies(window, chunk), **options)
    with using("oracle"):
        assert recede.costs.replay(history, policies(window, chunk), **options) == replayed
    for policy in replayed.policies:
        for turn in policy.turns:
            assert 0 <= turn.cached_chars <= turn.cached_chars + turn.written_chars <= turn.view_chars


def cheapest(sizes: list[tuple[int, int]], window: int, prices: Prices) -> float:
    """Of turns whose answer and result have these sizes: the least that any sequence of boundaries costs."""
    placeholder = len("[old tool output cleared to save context]")
    masked = [placeholder if size - placeholder >= 64 else size for _, size in sizes]

    def seen(turn: int, boundary: int) -> list[Seen]:
        size, is_masked = sizes[turn][1], turn < boundary and masked[turn] < sizes[turn][1]
        answer = Seen(1 + 2 * turn, ((("answer", turn), 25 + sizes[turn][0]),))
        shown = ("result", turn, is_masked), masked[turn] if is_masked else size
        return [answer, Seen(2 + 2 * turn, (shown,), int(is_masked))]

    def cost(boundaries: tuple[int, ...]) -> float:
        sent = []
        for request, boundary in enumerate(boundaries):
            turns = [seen(turn, boundary) for turn in range(request)]
            sent.append(Sent([Seen(0, ((("task",), 3),)), *itertools.chain(*turns)], 1 + 2 * request))
        facts = cache_facts(recede.costs.CACHES["ideal"], prices, None, 12_000)
        paid = (read * prices.cached + written * prices.write for _, read, written in served(facts, sent, False))
        return sum(paid) / 4e6

    kept = max(window, 1)  # what no request has shown stays
    choices = itertools.product(*(range(max(0, request - kept) + 1) for request in range(len(sizes))))
    return min(cost(one) for one in choices if list(one) == sorted(one))


@given(
    sizes=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 400)), min_size=1, max_size=6),
    window=st.integers(0, 3),
    prices=PRICES.filter(lambda prices: prices.cached <= prices.write),
)
def test_no_boundary_costs_less_than_the_lower_bound(sizes: list[tuple[int, int]], window: int, prices: Prices) -> None:
    assert least_cost(turns_of(sizes), window, prices) == pytest.approx(cheapest(sizes, window, prices), abs=1e-12)
