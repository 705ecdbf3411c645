"""Sessions played again: policies and prices as people spell them, and figures that add up."""

from __future__ import annotations

from itertools import accumulate, pairwise
from operator import truediv
from typing import Any

import published
import pytest
from budgets import check_replay

import recede
from support import dumps, turns, user

HISTORY = [user("Fix the test."), *turns(30, chars=4_000)]
LONG = [user("Fix the test."), *turns(200, chars=600)]
FREE_ANSWERS = recede.costs.Prices(output=0)
ANY_LENGTH = recede.costs.Prices(min_cached_tokens=0)


OTHERS = {"sliding": "", "stepped": ",chunk=7", "break_even": "", "high_water": ",chars=40000"}


def policy(name: str, **options: Any) -> recede.costs.PolicyReplay:
    return recede.costs.replay(HISTORY, [name], **options).policies[-1]


def test_the_raw_history_is_always_played_and_comes_first() -> None:
    names = ["sliding:window=4", "raw", "stepped:window=4,chunk=2", "sliding:window=4"]
    found = [replayed.policy for replayed in recede.costs.replay(HISTORY, names).policies]
    assert found == ["raw", "sliding:window=4", "stepped:window=4,chunk=2"]


def test_a_request_is_made_before_each_answer() -> None:
    turns_of_raw = policy("raw").turns
    assert [turn.messages for turn in turns_of_raw] == [1 + 2 * number for number in range(30)]
    assert recede.costs.replay([user("hi")]).policies[0].turns == ()
    # An answer that is still to come was not paid for.
    assert len(recede.costs.replay(HISTORY[:-1], ["raw"]).policies[0].turns) == 30


def test_parallel_calls_are_one_answer() -> None:
    calls = [{"type": "function_call", "call_id": str(n), "name": "run", "arguments": "{}"} for n in range(3)]
    results = [{"type": "function_call_output", "call_id": str(n), "output": "x" * 90} for n in range(3)]
    replayed = recede.costs.replay([user("Look."), *calls, *results, {"role": "assistant", "content": "Done."}])
    assert [(turn.messages, turn.answer_chars) for turn in replayed.policies[0].turns] == [(1, 75), (7, 5)]


def test_the_cache_serves_all_that_raw_requests_repeat() -> None:
    raw = policy("raw", prices=ANY_LENGTH, system_chars=700).turns
    assert raw[0].cached_chars == 0
    assert [turn.cached_chars for turn in raw[1:]] == [turn.view_chars for turn in raw[:-1]]
    assert raw[0].view_chars == 700 + recede.count_chars(HISTORY[:1])


def test_a_sliding_mask_changes_the_middle_at_every_turn() -> None:
    sliding = policy("sliding:window=4", prices=ANY_LENGTH, system_chars=0).turns
    assert [turn.masked_count for turn in sliding[:8]] == [0, 0, 0, 0, 0, 1, 2, 3]
    # What stands before the newly masked observation is served: the answers, and the placeholders.
    last = sliding[-1]
    assert last.cached_chars < 60 * last.masked_count + 13 + 50
    assert last.view_chars - last.cached_chars > 4 * 4_000


def test_a_stepped_mask_rests_between_its_moves() -> None:
    stepped = policy("stepped:window=4,chunk=5", prices=ANY_LENGTH, system_chars=0).turns
    assert [turn.masked_count for turn in stepped[:15]] == [0] * 9 + [5] * 5 + [10]
    assert [turn.cached_chars for turn in stepped[10:14]] == [turn.view_chars for turn in stepped[9:13]]
    assert stepped[14].cached_chars < stepped[13].view_chars / 2


def test_keep_last_drops_what_is_older() -> None:
    kept = policy("keep_last:messages=4", prices=ANY_LENGTH, system_chars=0).turns
    assert max(turn.view_chars for turn in kept) < 3 * 4_100
    # The first user message stays; what follows it changes at every turn.
    assert kept[-1].cached_chars == recede.count_chars(HISTORY[:1])


def test_the_costs_are_those_of_the_figures() -> None:
    prices = recede.costs.Prices(input=2, cached=0.5, write=4, output=8, min_cached_tokens=0)
    session = recede.costs.replay(HISTORY, ["sliding:window=4"], prices=prices)
    for replayed, cost in zip(session.policies, session.costs, strict=True):
        sent = sum(turn.view_chars for turn in replayed.turns)
        cached = sum(turn.cached_chars for turn in replayed.turns)
        answers = sum(turn.answer_chars for turn in replayed.turns)
        assert cost.usage == replayed.usage == (30, sent, cached, sent - cached, answers, 0, 0, 0)
        assert cost.cost == pytest.approx((cached * 0.5 + (sent - cached) * 4 + answers * 8) / 4e6)
        assert cost.cost_uncached == pytest.approx((sent * 2 + answers * 8) / 4e6)
        assert cost.of_raw == cost.cost / session.costs[0].cost
        assert cost.of_raw_uncached == cost.cost_uncached / session.costs[0].cost_uncached
    assert session.cheapest.cost == min(cost.cost for cost in session.costs)


def test_a_request_that_is_too_short_is_not_cached() -> None:
    prices = recede.costs.Prices(input=2, cached=0.5, write=4, output=0, min_cached_tokens=4_000)
    [raw] = recede.costs.replay(HISTORY, ["raw"], prices=prices, system_chars=0).policies
    first = next(place for place, turn in enumerate(raw.turns) if turn.view_chars >= 16_000)
    assert [turn[2:4] for turn in raw.turns[:first]] == [(0, 0)] * first
    assert raw.turns[first][2:4] == (0, raw.turns[first].view_chars)
    assert raw.turns[first + 1].cached_chars == raw.turns[first].view_chars
    plain = sum(turn.view_chars for turn in raw.turns[:first])
    rest = sum(turn.cached_chars * 0.5 + turn.written_chars * 4 for turn in raw.turns)
    assert raw.usage.cost(prices) == pytest.approx((plain * 2 + rest) / 4e6)
    # A change so early that too little is left before it: the cache serves nothing.
    sliding = recede.costs.replay(HISTORY, ["sliding:window=5"], prices=prices, system_chars=0).policies[1]
    assert {turn.cached_chars for turn in sliding.turns[8:]} == {0}


def test_the_prices_decide_when_the_boundary_moves() -> None:
    def replayed(**prices: float) -> list[int]:
        turns = (
            recede.costs.replay(
                HISTORY, ["break_even:window=4,max_overcost=none"], prices=recede.costs.Prices(**prices)
            )
            .policies[1]
            .turns
        )
        return [turn.masked_count for turn in turns]

    sliding = [turn.masked_count for turn in policy("sliding:window=4").turns]
    assert replayed(cached=3, write=3) == sliding
    assert replayed(cached=0.3, write=1e9) == [0] * 30
    assert 2 < len(set(replayed())) < len(set(sliding)) / 2


def test_high_water_masks_when_the_view_is_larger() -> None:
    turns_of_it = policy("high_water:window=4,chars=30000", system_chars=0).turns
    masked = [turn.masked_count for turn in turns_of_it]
    first = next(place for place, count in enumerate(masked) if count)
    assert turns_of_it[first - 1].view_chars <= 30_000 < turns_of_it[first - 1].view_chars + 4_025
    assert masked[first] == first - 4
    assert all(turn.view_chars <= 30_000 for turn in turns_of_it)


def test_under_a_cache_a_sliding_mask_can_cost_more_than_none() -> None:
    raw, sliding, stepped = recede.costs.replay(
        HISTORY, ["sliding:window=10", "stepped:window=10,chunk=10"], prices=FREE_ANSWERS
    ).costs
    assert sliding.of_raw > 1 > sliding.of_raw_uncached
    assert stepped.of_raw < sliding.of_raw
    assert (raw.loss_count, sliding.loss_count) == (0, 1)
    # Where a cache costs as much as none, masking what is old always pays.
    flat = recede.costs.Prices(input=3, cached=3, write=3, output=0)
    assert recede.costs.replay(HISTORY, ["sliding:window=10"], prices=flat).costs[1].of_raw < 0.7


def test_a_budget_is_that_of_a_history() -> None:
    for unit, budget, fill in (("tokens", 900, 0.5), ("chars", 3_000, 0.9)):
        asked = [
            check_replay(LONG[:161], summary_chars, ANY_LENGTH, unit=unit, budget=budget, fill=fill)
            for summary_chars in (0, 300)
        ]
        assert asked[0] == 0 < asked[1], "the budget is too small for all, and only a model is asked"


def test_what_a_budget_costs() -> None:
    prices = recede.costs.Prices(output=0, min_cached_tokens=0)
    options: dict[str, Any] = {
        "prices": prices,
        "summary_prices": recede.costs.Prices(),
        "system_chars": 0,
        "cache": "ideal",
    }
    replayed = recede.costs.replay(LONG, ["budget:tokens=1500", "budget:chars=6000,fill=0.9"], **options)
    _, half, most = replayed.policies
    assert (half.policy, most.policy) == ("budget:tokens=1500,fill=0.5", "budget:chars=6000,fill=0.9")
    called = [turn for turn in half.turns if turn.summary_output_chars]
    assert [turn.summary_output_chars for turn in called] == [4_000] * half.usage.summary_calls
    assert 1 < len(called) < 8 and all(turn.view_chars <= 6_000 for turn in half.turns)
    # Between summaries and moves of the boundary all that was sent is served.
    assert sum(turn.cached_chars == before.view_chars for before, turn in pairwise(half.turns)) > 90
    assert half.turns != most.turns
    [_, cost] = recede.costs.replay(LONG, ["budget:chars=6000,fill=.50"], **options).costs
    assert (cost.policy, cost.usage) == ("budget:chars=6000,fill=0.5", half.usage)
    assert cost.summary_cost == half.usage.summary_cost(recede.costs.Prices()) > 0


def test_several_sessions_are_added_up() -> None:
    long, short = (recede.costs.replay(history, ["sliding:window=2"]) for history in (HISTORY, HISTORY[:9]))
    together = recede.costs.compare_costs([long, short])
    for place, cost in enumerate(together):
        parts = [session.costs[place] for session in (long, short)]
        assert cost.usage == recede.costs.Usage.total(part.usage for part in parts)
        assert cost.cost == pytest.approx(sum(part.cost for part in parts))
        assert cost.loss_count == sum(part.loss_count for part in parts)
    with pytest.raises(ValueError, match="no session"):
        recede.costs.compare_costs([])
    with pytest.raises(ValueError, match="same policies"):
        recede.costs.compare_costs([long, recede.costs.replay(HISTORY, ["sliding:window=3"])])
    cheap = recede.costs.replay(HISTORY, ["sliding:window=2"], prices=FREE_ANSWERS)
    for both, *parts in zip(recede.costs.compare_costs([long, cheap]), long.costs, cheap.costs, strict=True):
        assert both.cost == pytest.approx(parts[0].cost + parts[1].cost), "each at its own prices"


def test_bytes_and_dicts_are_played_alike() -> None:
    assert recede.costs.replay_json(dumps(HISTORY)) == recede.costs.replay(HISTORY)
    assert recede.costs.replay_json(dumps({"model": "any", "messages": HISTORY})) == recede.costs.replay(HISTORY)


def test_a_placeholder_and_a_short_observation_stay() -> None:
    history = [user("Go."), *turns(3, chars=5), *turns(1, chars=500)]
    assert recede.costs.replay(history, ["sliding:window=0"]).policies[1].turns[-1].masked_count == 0
    masked = published.mask_observations(HISTORY, keep_results=0).messages
    assert recede.costs.replay(masked, ["sliding:window=0"]).policies[1].turns[-1].masked_count == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("slidng:window=4", "there is no policy 'slidng'; did you mean 'sliding'"),
        (
            "mask",
            "there is no policy 'mask'; there are raw, sliding, stepped, break_even, high_water, ",
        ),
        ("sliding", "the policy 'sliding' needs 'window'"),
        ("stepped:window=3", "the policy 'stepped' needs 'chunk'"),
        ("sliding:windows=3", "no key 'windows'; did you mean 'window'"),
        ("raw:window=3", "no key 'window'; it has none"),
        ("sliding:window=", "'window' of the policy 'sliding' must be a whole number from 0, not ''"),
        ("sliding:window=-1", "a whole number from 0, not '-1'"),
        ("stepped:window=3,chunk=0", "'chunk' of the policy 'stepped' must be a whole number from 1"),
        ("sliding:window=٣", "a whole number from 0"),
        ("budget", "the policy 'budget' needs 'tokens' or 'chars', and not both: budget:tokens=20000,fill=0.5"),
        ("budget:tokens=1,chars=1", "'tokens' or 'chars', and not both"),
        ("budget:tokens=0", "'tokens' of the policy 'budget' must be a whole number from 1, not '0'"),
        (
            "budget:chars=9,fill=0",
            "'fill' of the policy 'budget' must be a number above 0 and up to 1, not '0'",
        ),
        ("budget:chars=9,fill=1.1", "must be a number above 0 and up to 1, not '1.1'"),
        ("budget:chars=9,fill=1e-1", "a number above 0 and up to 1"),
    ],
)
def test_a_policy_that_is_wrong_is_named(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        recede.costs.replay(HISTORY, [name])


def test_arguments_of_a_wrong_type_are_named() -> None:
    with pytest.raises(TypeError, match="a list of names, not one string"):
        recede.costs.replay(HISTORY, "raw")
    with pytest.raises(TypeError, match="a policy must be a string, not int"):
        recede.costs.replay(HISTORY, [5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"prices must be recede\.costs\.Prices, not dict"):
        recede.costs.replay(HISTORY, prices={})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the price 'cached' must be a number, not str"):
        recede.costs.replay(HISTORY, prices=recede.costs.Prices(cached="0.3"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the price 'input' must be a number from 0, not -1"):
        recede.costs.replay(HISTORY, prices=recede.costs.Prices(input=-1))
    with pytest.raises(TypeError, match="system_chars must be a whole number, not float"):
        recede.costs.replay(HISTORY, system_chars=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="system_chars must be at least 0"):
        recede.costs.replay(HISTORY, system_chars=-1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("in=3", "there is no price 'in'"),
        ("chached=1", "did you mean 'cached'"),
        ("input", "the price 'input' must be a number, not ''"),
        ("input=three", "the price 'input' must be a number, not 'three'"),
        ("write=inf", "the price 'write' must be a number from 0, not inf"),
        ("write=nan", "the price 'write' must be a number from 0, not nan"),
        ("output=-1", "the price 'output' must be a number from 0"),
    ],
)
def test_prices_that_are_wrong_are_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        recede.costs.Prices.parse(text)


def test_presets_are_named_and_changed() -> None:
    for name, prices in recede.costs.PRESETS.items():
        assert recede.costs.Prices.parse(name) == prices
        assert recede.costs.Prices.parse(f"{name},input=9") == prices._replace(input=9)
    with pytest.raises(ValueError, match="did you mean 'openai'"):
        recede.costs.Prices.parse("open_ai")
    for text in ("output=1,openai", "anthropic,openai"):
        with pytest.raises(ValueError, match="the name 'openai' must come first, as in openai,output=0"):
            recede.costs.Prices.parse(text)


def test_prices_that_are_left_out_keep_their_default() -> None:
    assert recede.costs.Prices.parse(" output = 0 ,") == recede.costs.Prices()._replace(output=0)
    assert recede.costs.Prices.parse("") == recede.costs.Prices()


def test_what_is_no_history_is_refused() -> None:
    with pytest.raises(recede.TranscriptError, match="message 1"):
        recede.costs.replay([user("hi"), 5])
    with pytest.raises(recede.TranscriptError) as caught:
        recede.costs.replay_json(b'[{"role": "user"; ')
    assert (caught.value.kind, caught.value.offset) == ("syntax", 16)


def test_the_history_is_left_as_it_was() -> None:
    before = dumps(HISTORY)
    recede.costs.replay(HISTORY)
    assert dumps(HISTORY) == before


def test_usage_and_the_worst_moment_are_those_of_the_turns() -> None:
    history = [user("Find the bug."), *turns(60, chars=3_000)]
    dear = recede.costs.Prices(input=30, output=90)
    policies = ["sliding:window=5", "hybrid:window=5,at=20,tail=5", "keep_last:messages=4"]
    replayed = recede.costs.replay(history, policies, summary_prices=dear)
    so_far = {}
    for policy in replayed.policies:
        assert policy.usage == recede.costs.Usage.total(turn.usage for turn in policy.turns)
        costs = (turn.usage.cost(replayed.prices, dear) for turn in policy.turns)
        so_far[policy.policy] = list(accumulate(costs))
    assert replayed.policies[2].usage.summary_calls > 0
    for cost in replayed.costs:
        worst = max(map(truediv, so_far[cost.policy], so_far["raw"]))
        assert cost.worst_moment == pytest.approx(worst, rel=1e-12)


def test_the_default_policies_are_the_grid() -> None:
    found = [replayed.policy for replayed in recede.costs.replay(HISTORY).policies]
    assert found == list(recede.costs.replay_policies())
    with pytest.raises(ValueError, match="no policy to choose from"):
        recede.costs.cheapest_policy([])


def test_reasoning_that_requests_send_back_counts_to_a_budget() -> None:
    def sent(**reasoning: str) -> int:
        history: list[Any] = [{"role": "user", "content": "Go."}]
        for number in range(20):
            call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
            history.append({"role": "assistant", "content": "Next. " * 100, "tool_calls": [call], **reasoning})
            history.append({"role": "tool", "tool_call_id": str(number), "content": "ok"})
        return sum(turn.view_chars for turn in recede.costs.replay(history, ["budget:tokens=4000"]).policies[1].turns)

    assert sent(reasoning_content="word " * 400) < 0.95 * sent()
