"""A replay against its definition: the view of each request is that of the messages before it."""

from __future__ import annotations

from typing import Any

import pytest
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import spelled

import recede
from support import ENGINES, priced, using

ENGINES = pytest.mark.parametrize("engine_name", ENGINES)
History = list[dict[str, Any]]

SYSTEM = 1_000
PRICES = recede.costs.Prices(min_cached_tokens=0)
OPTIONS: dict[str, Any] = {"prices": PRICES, "cache": "ideal", "system_chars": SYSTEM}


def is_agent_made(message: dict[str, Any]) -> bool:
    kind = message.get("type")
    kind = kind if isinstance(kind, str) else ""
    return message.get("role") in ("assistant", "model") or kind == "reasoning" or kind.endswith("_call")


def requests(history: History) -> list[tuple[int, int]]:
    """The messages before each request, and the first behind its answer."""
    made = [is_agent_made(message) for message in history]
    starts = [at for at, is_made in enumerate(made) if is_made and not (at and made[at - 1])]
    return [(start, next((at for at in range(start, len(made)) if not made[at]), len(made))) for start in starts]


def places(view: History, history: History) -> list[Any]:
    """Each message of a view as its place in the history, or with its text where it was masked."""
    place_of = {id(message): place for place, message in enumerate(history)}
    return [place_of.get(id(message), message) for message in view]


def expected_turns(history: History, view_of: Any) -> list[tuple[int, ...]]:
    turns: list[tuple[int, ...]] = []
    before: list[Any] = []
    for start, end in requests(history):
        view, masked = view_of(history[:start])
        seen = places(view, history)
        same = next((at for at, pair in enumerate(zip(before, seen, strict=False)) if pair[0] != pair[1]), None)
        same = min(len(before), len(seen)) if same is None else same
        sent = SYSTEM + recede.count_chars(view)
        cached = SYSTEM + recede.count_chars(view[:same]) if turns else 0
        answer = recede.count_chars(history[start:end])
        turns.append((start, sent, cached, sent - cached, answer, masked, 0, 0, 0, "", 0))
        before = seen
    return turns


@ENGINES
@given(
    history=histories(),
    window=st.integers(0, 6),
    chunk=st.integers(1, 4),
    messages=st.integers(0, 8),
    data=st.data(),
)
def test_each_turn_is_the_view_of_what_came_before(
    engine_name: str, history: History, window: int, chunk: int, messages: int, data: Any
) -> None:
    def masked(first: History, **options: Any) -> tuple[History, int]:
        result = recede.reduce(first, keep=window, **options)
        return result.messages, result.masked_count

    ideal = priced("ideal", float(PRICES.cached), float(PRICES.write))
    views = {
        "raw": lambda first: (first, 0),
        f"sliding:window={window}": lambda first: masked(first, boundary="sliding"),
        f"stepped:window={window},chunk={chunk}": lambda first: masked(first, boundary=chunk),
        f"break_even:window={window}": lambda first: masked(first, provider=ideal),
        f"keep_last:messages={messages}": lambda first: (
            recede.designs.truncate_history(first, preserve_recent_raw_turns=messages).messages,
            0,
        ),
    }
    with using(engine_name):
        replayed = recede.costs.replay(history, list(views), **OPTIONS)
        assert [policy.policy for policy in replayed.policies] == list(views)
        for policy, view_of in zip(replayed.policies, views.values(), strict=True):
            assert list(map(tuple, policy.turns)) == expected_turns(history, view_of)
        assert recede.costs.replay_json(data.draw(spelled(history)), list(views), **OPTIONS) == replayed
