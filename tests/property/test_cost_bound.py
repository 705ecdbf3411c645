"""The bound on cost of break-even in every model of a cache: a ledger of its own over the views that are sent."""

from __future__ import annotations

import json
import random
from typing import Any

import published
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import recede
from definitions.cache import Seen, Sent, served
from recede.costs import CACHES, Cache, Prices
from recede.costs._prices import cache_facts
from support import priced

History = list[dict[str, Any]]
Turn = tuple[int, list[int]]
"""Chars of an answer, and of the results of its calls."""

MODELS = {
    "ideal": (CACHES["ideal"], 0),
    "prefix": (CACHES["openai"], 1_024),
    "entries": (Cache("entries", ttl_seconds=1_800), 1_024),
    "shared": (CACHES["deepseek"], 64),
    "breakpoints": (CACHES["anthropic"], 2_048),
}
SIZES = st.sampled_from([0, 10, 300, 3_000, 9_000, 40_000])
TURNS = st.lists(st.tuples(SIZES, st.lists(SIZES, min_size=1, max_size=3)), min_size=1, max_size=24)
PAUSE_SECONDS = 7_200


def session(turns: list[Turn]) -> History:
    history: History = [{"role": "user", "content": "Go."}]
    for number, (said, observed) in enumerate(turns):
        ids = [f"{number}.{place}" for place in range(len(observed))]
        calls = [{"id": one, "type": "function", "function": {"name": "run", "arguments": "{}"}} for one in ids]
        history.append({"role": "assistant", "content": "y" * said, "tool_calls": calls})
        history += [
            {"role": "tool", "tool_call_id": one, "content": "x" * chars}
            for one, chars in zip(ids, observed, strict=True)
        ]
    return history


def shown(view: History, history: History) -> list[Seen]:
    """Each message as one block."""
    return [
        Seen(place, ((json.dumps(message), recede.count_chars([message])),), int(message != history[place]))
        for place, message in enumerate(view)
    ]


def worst_moment(
    turns: list[Turn], pauses: set[int], system_chars: int, prices: Prices, is_told: bool, **options: Any
) -> float:
    """The most that all requests so far have cost, as a share of what raw would have cost so far."""
    history = session(turns)
    ends = [at for at, message in enumerate(history) if message["role"] == "assistant"]
    if history[-1]["role"] == "tool":
        ends.append(len(history))
    rule = options.pop("cache")
    cache, min_tokens = MODELS[rule]
    seconds = {end: float(PAUSE_SECONDS * sum(pause <= turn for pause in pauses)) for turn, end in enumerate(ends)}
    facts = cache_facts(cache, prices._replace(min_cached_tokens=min_tokens), seconds, system_chars)
    if is_told and cache.ttl_seconds < PAUSE_SECONDS:  # else that would be false
        options["cold"] = [end for turn, end in enumerate(ends) if turn in pauses]
    options["provider"] = priced(rule, prices.cached, prices.write)

    def costs(views: list[History]) -> list[float]:
        sent = [Sent(shown(view, history), end) for view, end in zip(views, ends, strict=True)]
        is_pinned = options.get("cache_breakpoint") == "boundary"
        figures = served(facts, sent, is_pinned)
        return [
            read * prices.cached + written * prices.write + (chars - read - written) * prices.input
            for chars, read, written in figures
        ]

    raw = costs([history[:end] for end in ends])
    masked = costs(
        [published.mask_observations(history[:end], boundary="break_even", **options).messages for end in ends]
    )
    return max(sum(masked[: count + 1]) / sum(raw[: count + 1]) for count in range(len(ends)))


@pytest.mark.parametrize("cache", MODELS)
@pytest.mark.parametrize("breakpoint", ["keep", "boundary"])
@given(
    turns=TURNS,
    window=st.integers(0, 4),
    pauses=st.sets(st.integers(0, 24), max_size=3),
    is_told=st.booleans(),
    system_chars=st.sampled_from([0, 1_000, 4_000, 8_100, 12_000, 40_000]),  # a cache takes the last ones by itself
    prices=st.sampled_from([(0.1, 1.25), (0.1, 1), (0.3, 2), (0.05, 6)]),
    part=st.sampled_from([0, 0.02, 0.1, 0.5]),
)
@example(turns=[(0, [9_000])] * 12 + [(40_000, [10])], window=1, pauses=set(), is_told=False, system_chars=0,
         prices=(0.1, 1.25), part=0.1)  # fmt: skip
def test_no_request_makes_all_dearer_than_raw_by_more_than_the_cost_bound(
    cache: str,
    breakpoint: str,
    turns: list[Turn],
    window: int,
    pauses: set[int],
    is_told: bool,
    system_chars: int,
    prices: tuple[float, float],
    part: float,
) -> None:
    paid = Prices(input=1, cached=prices[0], write=prices[1], output=0)
    options: dict[str, Any] = {
        "cache": cache,
        "cache_breakpoint": breakpoint,
        "keep_results": window,
        "max_overcost": part,
    }
    assert worst_moment(turns, pauses, system_chars, paid, is_told, **options) <= (1 + part) * (1 + 1e-9)


@pytest.mark.parametrize("cache", MODELS)
@pytest.mark.parametrize("breakpoint", ["keep", "boundary"])
def test_sequences_that_climb_to_the_worst_moment_stay_within_it(cache: str, breakpoint: str) -> None:
    """Each sequence is changed a little, and kept where its worst moment is worse."""
    rng = random.Random(f"{cache} {breakpoint}")
    sizes = (0, 10, 300, 3_000, 9_000, 40_000)
    paid = Prices(input=1, output=0)
    options: dict[str, Any] = {"cache": cache, "cache_breakpoint": breakpoint, "keep_results": 1}

    def turn() -> Turn:
        return rng.choice(sizes), [rng.choice(sizes) for _ in range(rng.randint(1, 2))]

    for _ in range(settings.default.max_examples // 20):
        turns = [turn() for _ in range(12)]
        worst = worst_moment(turns, set(), 0, paid, False, **options)
        for _ in range(20):
            changed = list(turns)
            place = rng.randrange(len(changed) + 1)
            changed[place : place + rng.randint(0, 2)] = [turn() for _ in range(rng.randint(0, 2))]
            found = worst_moment(changed, set(), 0, paid, False, **options) if changed else 0.0
            assert found <= 1.1 * (1 + 1e-9)
            if found >= worst:
                turns, worst = changed, found


@pytest.mark.parametrize("cache", MODELS)
@given(
    turns=TURNS,
    breakpoint=st.sampled_from(["keep", "boundary"]),
    window=st.sampled_from([0, 1, 3, 99]),
    tail=st.integers(1, 4),
    system_chars=st.sampled_from([0, 4_000, 8_100, 12_000]),
    prices=st.sampled_from([(0.1, 1.25), (0.1, 1), (0.05, 6)]),
    call=st.sampled_from([(0, 0), (0.05, 0.2), (1, 5)]),
    summary_chars=st.sampled_from([0, 600, 4_000]),
    part=st.sampled_from(["0", "0.1", "0.5"]),
)
def test_neither_do_summaries_that_break_even_with_what_models_take_for_them(
    cache: str,
    turns: list[Turn],
    breakpoint: str,
    window: int,
    tail: int,
    system_chars: int,
    prices: tuple[float, float],
    call: tuple[float, float],
    summary_chars: int,
    part: str,
) -> None:
    rule, min_tokens = MODELS[cache]
    policy = f"hybrid:window={window},at=break_even,tail={tail},boundary=break_even"
    policy += f",cache_breakpoint={breakpoint},max_overcost={part}"
    replayed = recede.costs.replay(
        [*session(turns), {"role": "assistant", "content": "Done."}],
        [policy],
        prices=Prices(input=1, cached=prices[0], write=prices[1], output=0, min_cached_tokens=min_tokens),
        cache=rule,
        system_chars=system_chars,
        summary_prices=Prices(input=call[0], output=call[1]),
        summary_chars=summary_chars,
    )
    assert replayed.costs[1].worst_moment <= (1 + float(part)) * (1 + 1e-9)


def shared(text: str, other: str) -> int:
    """How many characters both begin with."""
    most = min(len(text), len(other))
    return next((place for place in range(most) if text[place] != other[place]), most)


def test_a_view_that_is_too_short_for_the_cache_is_not_made() -> None:
    turns: list[Turn] = [(6_500, [3_000]), *[(0, [3_000])] * 2, *[(0, [10])] * 44]
    paid, options = Prices(input=1, output=0), {"cache": "breakpoints", "keep_results": 0}
    assert worst_moment(turns, {4}, 0, paid, True, **options) <= 1.1, "after a pause a move would be cheap"


def test_a_move_assumes_a_system_prompt_that_is_not_cached_by_itself() -> None:
    turns: list[Turn] = [(9_000, [2_000]), *[(0, [2_000])] * 15]
    paid, options = Prices(input=1, output=0), {"cache": "breakpoints", "keep_results": 0, "max_overcost": 0.02}
    assert worst_moment(turns, set(), 8_100, paid, False, **options) <= 1.02
