"""Replays where a summary takes the place of old turns, against their definition: each turn once, no pair broken."""

from __future__ import annotations

from typing import Any

import pytest
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import spelled
from summarized import PRICES, SUMMARY, SYSTEM, History, blocks, expected_turns

import recede
from support import ENGINES, using

BOTH = pytest.mark.parametrize("engine_name", ENGINES)


@st.composite
def tangled(draw: st.DrawFn) -> History:
    """Histories in which some results came late, in one message with those of a later turn."""
    history: History = draw(histories("anthropic", max_turns=9, max_parallel_calls=3))
    holders = [message for message in history if blocks(message, "tool_result")]
    for _ in range(draw(st.integers(0, 5)) if len(holders) > 1 else 0):
        first = draw(st.integers(0, len(holders) - 2))
        source, target = holders[first], holders[draw(st.integers(first + 1, len(holders) - 1))]
        late = blocks(source, "tool_result")[:1]
        source["content"] = [
            *(block for block in source["content"] if block not in late),
            {"type": "text", "text": "-"},
        ]
        target["content"] = [*target["content"], *late]
    return history


SESSIONS = tangled() | tangled() | histories("openai", max_turns=12, max_parallel_calls=2)


@BOTH
@given(
    history=SESSIONS, window=st.integers(0, 4), every=st.integers(1, 5), tail=st.integers(1, 3), chunk=st.integers(1, 4)
)
def test_each_request_shows_each_turn_once(
    engine_name: str, history: History, window: int, every: int, tail: int, chunk: int
) -> None:
    at = tail + every
    policies = {
        f"summary:every={every},tail={tail}": (at, every, {"keep_results": 10**6}),
        f"hybrid:window={window},at={at},tail={tail}": (at, at, {"keep_turns": window}),
        f"hybrid:window={window},at={at},tail={tail},chunk={chunk}": (
            at,
            at,
            {"keep_turns": window, "mask_chunk": chunk},
        ),
    }
    with using(engine_name):
        replayed = recede.costs.replay(
            history, policies, prices=PRICES, cache="ideal", system_chars=SYSTEM, summary_chars=SUMMARY
        )
        for policy, (first, again, mask) in zip(replayed.policies[1:], policies.values(), strict=True):
            assert list(map(tuple, policy.turns)) == expected_turns(history, first, again, tail, **mask)


@st.composite
def spellings(draw: st.DrawFn) -> list[str]:
    """Policies with summaries, with every sort of boundary and of occasion."""
    window, tail, more = draw(st.integers(0, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    boundaries = ["", ",boundary=break_even", f",chunk={draw(st.integers(1, 4))}"]
    hybrids = [f"hybrid:window={window},at={at},tail={tail}" for at in (tail + more, "break_even")]
    return [
        *(f"summary:every={every},tail={tail}" for every in (more, "break_even")),
        *(hybrid + boundary for hybrid in hybrids for boundary in boundaries),
    ]


@given(
    history=SESSIONS | histories("mixed", max_turns=9, max_parallel_calls=3),
    names=spellings(),
    read=st.sampled_from([0, 0.1, 1, 3]),
    price=st.sampled_from([0, 0.01, 0.3, 3]),
    chars=st.sampled_from([0, 1, 60, 300]),
    data=st.data(),
)
def test_both_engines_give_the_same(
    history: History, names: list[str], read: float, price: float, chars: int, data: Any
) -> None:
    prices = recede.costs.Prices(cached=read, write=max(read, 1), min_cached_tokens=0)
    options: dict[str, Any] = {"prices": prices, "system_chars": 0, "summary_chars": chars}
    options["summary_prices"] = recede.costs.Prices(input=price, output=price)
    found = []
    for engine_name in ENGINES:
        with using(engine_name):
            found.append(recede.costs.replay(history, names, **options))
            found.append(recede.costs.replay_json(data.draw(spelled(history)), names, **options))
    assert all(replayed == found[0] for replayed in found)
