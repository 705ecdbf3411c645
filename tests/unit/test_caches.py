"""What a prompt cache serves of each request, by the rules that providers document; figures by hand."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

import recede
from recede.costs import CACHES, Cache, Prices
from support import turns, user

# A task of 13 characters; turns of a call (25) and a result (4,000), whose placeholder has 41.
HISTORY = [user("Fix the test."), *turns(30, chars=4_000)]
TASK, CALL, RESULT, MASKED, SYSTEM = 13, 25, 4_000, 41, 12_000
ANY_LENGTH = Prices(min_cached_tokens=0)
PINNED = ",cache_breakpoint=boundary"


def played(policy: str, history: list[Any] = HISTORY, **options: Any) -> tuple[recede.costs.ReplayedTurn, ...]:
    return recede.costs.replay(history, [policy], **{"prices": ANY_LENGTH, **options}).policies[-1].turns


def test_raw_requests_read_what_the_one_before_had_written() -> None:
    for cache in ("anthropic", "anthropic_1h", "gemini", "ideal"):
        raw = played("raw", cache=cache)
        assert [turn.cached_chars for turn in raw] == [0, *(turn.view_chars for turn in raw[:-1])]


def test_after_a_change_only_the_system_prompt_is_found_among_breakpoints() -> None:
    stepped = played("stepped:window=10,chunk=10")
    moves = [place for place in range(1, 30) if stepped[place].masked_count > stepped[place - 1].masked_count]
    assert moves == [20]
    for place, turn in enumerate(stepped[1:], 1):
        assert turn.cached_chars == (SYSTEM if place == 20 else stepped[place - 1].view_chars)
    # Under an ideal cache the same move finds all in front of the first result.
    assert played("stepped:window=10,chunk=10", cache="ideal")[20].cached_chars == SYSTEM + TASK + CALL


def test_a_breakpoint_at_the_boundary_is_found_at_the_next_move() -> None:
    stepped = played(f"stepped:window=5,chunk=5{PINNED}")
    moves = [place for place in range(1, 30) if stepped[place].masked_count > stepped[place - 1].masked_count]
    assert moves == [10, 15, 20, 25]
    # The first move finds what the first request had written, the others all up to the last masked result.
    cached = [stepped[place].cached_chars for place in moves]
    assert cached == [SYSTEM + TASK, *(SYSTEM + TASK + count * (CALL + MASKED) for count in (5, 10, 15))]


def test_a_breakpoint_within_a_message_is_found_where_its_other_results_change() -> None:
    def turn(number: int) -> list[dict[str, Any]]:
        ids = f"{number}a", f"{number}b"
        calls = [{"type": "tool_use", "id": one, "name": "run", "input": {}} for one in ids]
        results = [{"type": "tool_result", "tool_use_id": one, "content": "x" * RESULT} for one in ids]
        return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]

    history = [user("Fix the test."), *(message for number in range(8) for message in turn(number))]
    stepped = played(f"stepped:window=4,chunk=5{PINNED}", history)
    assert [turn.masked_count for turn in stepped] == [0, 0, 0, 0, 0, 5, 5, 10]
    # The fifth result is the first of two in its message, and the other one is masked by the last move.
    assert stepped[7].cached_chars == SYSTEM + TASK + 3 * 2 * CALL + 5 * MASKED


def test_an_entry_is_searched_a_few_blocks_before_a_breakpoint() -> None:
    # With a window of 1 the result that changes is the last but one; the request two before it ends in front of it.
    for lookback, found in ((20, True), (5, True), (3, True), (2, False), (0, False)):
        sliding = played("sliding:window=1", cache=Cache(lookback_blocks=lookback))
        last = SYSTEM + TASK + 26 * (CALL + MASKED) + CALL
        assert (sliding[28].cached_chars > SYSTEM) == found, lookback
        assert sliding[28].cached_chars <= last


def test_prefixes_are_served_in_steps_from_a_minimum_on() -> None:
    raw = played("raw", cache="openai", prices=Prices(min_cached_tokens=1_024), system_chars=0)
    for before, turn in pairwise(raw):
        tokens = before.view_chars // 4
        served = 0 if tokens < 1_024 else 1_024 + (tokens - 1_024) // 128 * 128
        assert turn.cached_chars == 4 * served
    assert [turn.cached_chars for turn in raw[:3]] == [0, 0, 4_096 - 4_096] and raw[3].cached_chars == 2 * 4_096 - 512


def test_a_pause_that_outlives_the_entries_makes_the_cache_cold() -> None:
    requests = [turn.messages for turn in played("raw")]
    pauses = [("anthropic", 301, [12]), ("anthropic", 300, []), ("anthropic_1h", 301, []), ("ideal", 9e9, [])]
    pauses += [("openai", 301, [12]), ("openai", 300, [])]
    for cache, pause, cold in pauses:
        times = {messages: float(pause * (place >= 12)) for place, messages in enumerate(requests)}
        raw = played("raw", cache=cache, times=times)
        assert [place for place, turn in enumerate(raw) if not turn.cached_chars] == [0, *cold]


def test_requests_without_a_time_follow_at_once() -> None:
    requests = [turn.messages for turn in played("raw")]
    raw = played("raw", times={requests[5]: 1_000.0, requests[9]: 2_000.0})
    assert [place for place, turn in enumerate(raw) if not turn.cached_chars] == [0, 9]
    assert played("raw", times={}) == played("raw", times=None) == played("raw")


def test_an_entry_is_renewed_by_each_use() -> None:
    requests = [turn.messages for turn in played("raw")]
    times = {messages: 200.0 * place for place, messages in enumerate(requests)}
    assert all(turn.cached_chars for turn in played("raw", times=times)[1:])


def test_an_entry_that_is_found_before_a_breakpoint_is_renewed_as_well() -> None:
    requests = [turn.messages for turn in played("raw")]
    times = {messages: 250.0 * max(0, place - 3) for place, messages in enumerate(requests[:7])}
    # Each changes an early result, and finds what the first request had written, which none marks again.
    sliding = played("sliding:window=3", times=times)
    assert [turn.cached_chars for turn in sliding[4:7]] == [SYSTEM + TASK] * 3


def test_the_name_of_a_policy_omits_breakpoints_as_the_client_sets_them() -> None:
    names = ["sliding:window=4,cache_breakpoint=keep", "hybrid:cache_breakpoint=boundary"]
    found = [replayed.policy for replayed in recede.costs.replay([], names).policies]
    assert found == ["raw", "sliding:window=4", "hybrid:window=10,at=43,tail=10,cache_breakpoint=boundary"]
    with pytest.raises(ValueError, match="'cache_breakpoint' of the policy 'sliding' must be keep or boundary, not"):
        recede.costs.replay([], ["sliding:window=4,cache_breakpoint=all"])


def test_each_format_has_a_cache() -> None:
    found = {name: recede.costs.cache_of_format(name) for name in recede.transcripts.FORMATS}
    assert found.pop("codex") == CACHES["openai"]
    assert found.pop("gemini") == CACHES["gemini"]
    assert set(found.values()) == {CACHES["anthropic"]}


def test_caches_that_are_wrong_are_named() -> None:
    with pytest.raises(ValueError, match=r"there is no cache 'opnai'; did you mean 'openai'\?"):
        recede.costs.replay([], cache="opnai")
    with pytest.raises(
        ValueError, match="the rule of a cache must be one of breakpoints, prefix, entries, ideal, not 'lru'"
    ):
        recede.costs.replay([], cache=Cache("lru"))
    with pytest.raises(TypeError, match=r"cache must be recede\.costs\.Cache or its name, not int"):
        recede.costs.replay([], cache=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="step_tokens of a cache must be a number, not float"):
        recede.costs.replay([], cache=Cache(step_tokens=1.5))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ttl_seconds of a cache must be a number from 0, not nan"):
        recede.costs.replay([], cache=Cache(ttl_seconds=math.nan))
    with pytest.raises(TypeError, match="times must be finite numbers of seconds, not 'noon' after 3 messages"):
        recede.costs.replay([], times={3: "noon"})  # type: ignore[dict-item]
