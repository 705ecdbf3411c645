"""Replays where a summary takes the place of old turns: the core gives what its definition gives."""

from __future__ import annotations

from typing import Any

from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import spelled

import recede
from support import ENGINES, using

History = list[dict[str, Any]]


def results_in(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if block.get("type") == "tool_result"] if isinstance(content, list) else []


@st.composite
def tangled(draw: st.DrawFn) -> History:
    """Histories in which some results came late, in one message with those of a later turn."""
    history: History = draw(histories("anthropic", max_turns=9, max_parallel_calls=3))
    holders = [message for message in history if results_in(message)]
    for _ in range(draw(st.integers(0, 5)) if len(holders) > 1 else 0):
        first = draw(st.integers(0, len(holders) - 2))
        source, target = holders[first], holders[draw(st.integers(first + 1, len(holders) - 1))]
        late = results_in(source)[:1]
        source["content"] = [
            *(block for block in source["content"] if block not in late),
            {"type": "text", "text": "-"},
        ]
        target["content"] = [*target["content"], *late]
    return history


SESSIONS = tangled() | tangled() | histories("openai", max_turns=12, max_parallel_calls=2)


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
