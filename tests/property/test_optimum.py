"""The optimum against every boundary that there could have been."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recede
from support import built_engines, using

ENGINES = pytest.mark.parametrize("engine_name", built_engines())


def least_cost(sizes: list[tuple[int, int]], window: int, prices: recede.costs.Prices) -> float:
    """Of turns whose answer and result have these sizes: the least that any sequence of boundaries costs."""
    masked = [min(size, len(recede.reduction.mask_observation("x" * size))) for _, size in sizes]
    calls = [25 + said for said, _ in sizes]

    def view(request: int, boundary: int) -> list[int]:
        results = [masked[turn] if turn < boundary else sizes[turn][1] for turn in range(request)]
        return [3, *itertools.chain(*zip(calls, results, strict=False))]

    def cost(boundaries: tuple[int, ...]) -> float:
        total, before = 0.0, []
        for request, boundary in enumerate(boundaries):
            now = view(request, boundary)
            same = next(
                (at for at, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), len(before)
            )
            total += prices.cached * sum(now[:same]) + prices.write * sum(now[same:])
            before = now
        return total

    choices = itertools.product(*(range(max(0, request - window) + 1) for request in range(len(sizes))))
    return min(cost(one) for one in choices if list(one) == sorted(one)) / 4e6


@ENGINES
@given(
    sizes=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 400)), min_size=1, max_size=6),
    window=st.integers(0, 3),
    read=st.sampled_from([0, 0.1, 0.5, 1]),
    write=st.sampled_from([0.5, 1, 1.25, 3]),
)
def test_no_boundary_costs_less(
    engine_name: str, sizes: list[tuple[int, int]], window: int, read: float, write: float
) -> None:
    prices = recede.costs.Prices(cached=read, write=write, output=0, min_cached_tokens=0)
    history: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for number, (said, observed) in enumerate(sizes):
        call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        history.append({"role": "assistant", "content": "y" * said, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": str(number), "content": "x" * observed})
    with using(engine_name):
        optimum = recede.costs.replay(history, [f"optimum:window={window}"], prices=prices, system_chars=0).costs[-1]
    assert optimum.cost == pytest.approx(least_cost(sizes, window, prices))
