"""Replays of a budget send what a `History` sends."""

from __future__ import annotations

from typing import Any

from budgets import check_replay
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import spelled

import recede
from recede.costs import CACHES, Cache, Prices

# Not of several formats: a summary takes the form of the first message that names one, which a replay does not know.
SESSIONS = histories("openai", max_turns=14) | histories("anthropic", max_turns=14)
FILLS = st.sampled_from([0.1, 0.5, 0.9, 1])


@given(
    history=SESSIONS,
    unit=st.sampled_from(["chars", "tokens"]),
    budget=st.integers(1, 3_000),
    fill=FILLS,
    summary_chars=st.sampled_from([0, 0, 40, 80, 4_000]),
    cached=st.sampled_from([0.3, 0, 3]),
    min_cached_tokens=st.sampled_from([0, 0, 60, 300]),
    cache=st.sampled_from([Cache("prefix", step_tokens=7), Cache(lookback_blocks=4), *CACHES.values()]),
)
def test_each_request_is_that_of_a_history(
    history: Any, summary_chars: int, cached: float, min_cached_tokens: int, **options: Any
) -> None:
    prices = Prices(cached=cached, min_cached_tokens=min_cached_tokens)
    check_replay(history, summary_chars, prices, **options)


@given(history=SESSIONS | histories("mixed", max_turns=9), budget=st.integers(50, 2_000), data=st.data())
def test_bytes_and_dicts_are_replayed_alike(history: Any, budget: int, data: Any) -> None:
    policy = [f"budget:chars={budget}", f"budget:tokens={budget},fill=0.25"]
    assert recede.costs.replay_json(data.draw(spelled(history)), policy) == recede.costs.replay(history, policy)
