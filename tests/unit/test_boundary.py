"""The boundary that moves when it has paid for itself."""

from __future__ import annotations

from typing import Any

import published
import pytest

import recede
from recede import _engine
from recede.reduction import _policy
from recede.reduction._planning import reduced
from support import (
    OF_RULES,
    assistant,
    block_mask,
    call,
    loads,
    mask,
    masked,
    priced,
    reduce,
    result,
    tool_result,
    tool_use,
    turns,
    user,
)

LONG = "x" * 900
REMOVED = 900 - len("[observation masked — 900 chars]")
TURN = 25 + 900  # a call and its result
WINDOW = 6


def session(count: int) -> list[dict[str, Any]]:
    """A task and turns, each asked for by a request of its own; it ends before the next request."""
    return [user("Go."), *turns(count, chars=900)]


def moves(history: list[dict[str, Any]], **options: Any) -> list[tuple[int, ...]]:
    found = mask(history, boundary="break_even", **{"keep_results": WINDOW, **options})
    return [tuple(move[:4]) for move in found.boundary_moves]


def test_it_moves_when_the_waste_has_cost_half_of_what_the_move_costs() -> None:
    """What is written again costs 1.15 more than when it is read; what is masked is not read now."""
    waste = 0
    for number in range(WINDOW + 1, 40):
        older = number - WINDOW
        waste += older * REMOVED
        # Of what the request before had sent: the results from the first on, and the calls between them.
        written = older * 32 + (number - 1 - older) * 900 + (number - 2) * 25
        if waste * 0.1 >= 0.5 * (written * 1.15 - older * REMOVED * 0.1):
            assert moves(session(number), max_overcost=None) == [(number, older, older * REMOVED, written)]
            assert moves(session(number - 1), max_overcost=None) == []
            return
    raise AssertionError("it never moved")


def test_no_move_makes_all_dearer_than_the_cost_bound_permits() -> None:
    """At each number of turns the first move comes later, the less it may cost."""
    firsts = [moves(session(60), max_overcost=part)[0][0] for part in (None, 0.2, 0.1, 0.05)]
    assert firsts == sorted(firsts)
    assert firsts[0] < firsts[1] < firsts[3]
    assert all(move[0] > firsts[3] for move in moves(session(60), max_overcost=0))


def test_with_breakpoints_all_is_written_again_but_what_is_marked_at_the_boundary() -> None:
    """A turn is 925 chars, so an entry takes nine of them at least."""
    kept, pinned = (
        moves(session(90), provider="anthropic", cache_breakpoint=one, max_overcost=None)
        for one in ("keep", "boundary")
    )
    ideal = moves(session(90), max_overcost=None)
    assert kept[0] == pinned[0]
    assert kept[0][3] > ideal[0][3]
    assert len(kept) <= len(pinned)
    removed = [sum(move[2] for move in pinned[: count + 1]) for count in range(len(pinned))]
    whole = [3 + request * TURN - TURN for request, *_ in pinned]  # of the request before
    expected = [chars - gone for chars, gone in zip(whole, removed, strict=True)]
    # The first move finds no mark, nor one whose mark was too short for an entry.
    assert pinned[0][3] == expected[0]
    assert pinned[-1][3] < expected[-1]
    assert all(move[0] > 9 for move in moves(session(90), provider="anthropic"))


@pytest.mark.parametrize("blocks", [19, 20])
def test_a_mark_at_the_boundary_counts_where_a_request_brings_fewer_than_20_blocks(blocks: int) -> None:
    """Two requests find the cache cold: what the second move writes again does not include what is marked."""
    texts = [{"type": "text", "text": "hm"}] * (blocks - 2)
    history = [user("x" * 9_000)]
    for number in range(2):
        history += [tool_use(str(number)), user([tool_result(str(number), LONG)])]
    history += [{"role": "assistant", "content": [*texts, *tool_use("2")["content"]]}, user([tool_result("2", LONG)])]
    options: dict[str, Any] = {"keep_results": 0, "provider": "anthropic", "cold": [3, len(history)]}
    (_, kept), (_, pinned) = (moves(history, **options, cache_breakpoint=one) for one in ("keep", "boundary"))
    marked = recede.count_chars(mask(history, keep_results=0).messages[:3])
    assert kept[3] - pinned[3] == (marked if blocks < 20 else 0)


def test_what_is_too_short_for_a_cache_is_not_masked() -> None:
    for cache, chars in (("prefix", 4_096), ("breakpoints", 8_192)):
        options: dict[str, Any] = {"provider": OF_RULES[cache], "keep_results": 0, "cold": True}
        history = session(30)[:-1]
        history.append(result("30", "x" * 900))
        few = mask(history, boundary="break_even", **options)
        assert few.masked_count == 0
        long = [user("y" * chars), *history[1:]]
        assert mask(long, boundary="break_even", **options).masked_count > 0


@pytest.mark.parametrize(("saved", "count"), [(4_887, 0), (4_888, 1)])
def test_with_steps_a_move_must_save_what_they_may_leave_unserved(saved: int, count: int) -> None:
    """511 characters may be written instead of read: 0.11 of what is saved, and 50, make up for them."""
    history: list[dict[str, Any]] = [user(""), call("1"), result("1", "x" * (saved + len(masked(5_000))))]
    history[0]["content"] = "x" * (5_000 - mask(history, keep_results=0).chars_after)
    found = mask(history, keep_results=0, boundary="break_even", provider=priced("prefix"), cold=True)
    assert (found.chars_before, found.masked_count) == (5_000 + saved, count)


def test_min_masked_chars_counts_what_was_masked_before() -> None:
    """The first move waits for it; later ones remove less."""
    assert moves(session(40), max_overcost=None)[0][2] < 9_000
    first, *later = [removed for _, _, removed, _ in moves(session(40), min_masked_chars=9_000, max_overcost=None)]
    assert first >= 9_000 and later and max(later) < 9_000


def test_it_rests_in_between() -> None:
    found = moves(session(60))
    assert 2 < len(found) < 15
    views = [mask(session(count), keep_results=WINDOW, boundary="break_even") for count in range(61)]
    masked = [view.masked_count for view in views]
    assert masked == sorted(masked)
    assert len(set(masked)) == len(found) + 1
    assert sum(move[1] for move in found) == masked[-1]
    assert sum(move[2] for move in found) == masked[-1] * REMOVED


def test_no_later_message_changes_an_earlier_boundary() -> None:
    history = session(30)
    whole = moves(history)
    for length in range(len(history)):
        requests = sum(message["role"] == "assistant" for message in history[:length])
        is_made = length > 0 and history[length - 1]["role"] != "assistant"
        assert moves(history[:length]) == [move for move in whole if move[0] < requests + is_made]


def test_a_move_becomes_fixed_by_the_answer() -> None:
    history = session(30)
    request = moves(history)[-1][0]
    before_it = history[: 1 + 2 * request]
    assert moves(before_it) == moves([*before_it, assistant("Done.")])
    # The request is no longer the one being made, if its place is taken by another message.
    assert moves([*before_it, user("Wait."), assistant("Yes?")])[-1][0] == request


def test_parallel_calls_are_one_request() -> None:
    history = [user("Go.")]
    for number in range(12):
        history += [call(f"{number}a", f"{number}b"), result(f"{number}a", LONG), result(f"{number}b", LONG)]
    found = moves(history)
    assert found
    assert all(request <= 12 for request, *_ in found)


@pytest.mark.parametrize(("read", "write"), [(0.1, 0.1), (1, 1), (1, 0.5)])
def test_where_writing_costs_no_more_than_reading_it_slides(read: float, write: float) -> None:
    history = session(20)
    for length in range(1, len(history), 2):
        sliding = mask(history[:length], keep_results=3)
        paying = mask(history[:length], keep_results=3, boundary="break_even", provider=priced("ideal", read, write))
        assert paying.messages == sliding.messages


def test_where_writing_costs_without_end_it_never_moves() -> None:
    assert moves(session(60), provider=priced(write=1e12)) == []
    assert moves(session(60), provider=priced(read=0)) == []


def test_a_cold_cache_moves_it() -> None:
    history = session(9)
    assert moves(history) == []
    cold = mask(history, keep_results=WINDOW, boundary="break_even", cold=True)
    assert [move[:3] for move in cold.boundary_moves] == [(9, 3, 3 * REMOVED)]
    # Later requests name it by how many messages came before it, and so keep the move.
    grown = [*history, *turns(1, chars=900)]
    assert moves(grown) == []
    assert moves(grown, cold=[len(history)]) == [tuple(move[:4]) for move in cold.boundary_moves]
    assert moves(grown, cold=[3]) == []
    assert mask(history, keep_results=WINDOW, boundary="break_even", cold=False).boundary_moves == ()
    # It is a hint about requests; without one now, nothing moves.
    assert moves([*history, assistant("Done.")], cold=True) == []


def test_within_a_budget_it_masks_where_that_pays() -> None:
    history = session(40)
    options: dict[str, Any] = {"preserve_recent_raw_turns": 2, "boundary": "break_even"}
    rich = reduce(history, max_input_chars=10**6, **options)
    assert rich.reduction_stage == "masking"
    assert rich.messages == mask(history, keep_messages=2, boundary="break_even").messages
    assert reduce(session(1), max_input_chars=10**6, **options).reduction_stage is None
    assert reduce(history, max_input_chars=10**6, enabled=False, **options).reduced is False


def test_a_view_over_the_budget_forces_a_move() -> None:
    history = session(40)
    budget = 10 * TURN
    options: dict[str, Any] = {
        "preserve_recent_raw_turns": 12,
        "boundary": "break_even",
        "provider": priced(write=1e12),
    }
    forced = reduce(history, max_input_chars=budget, **options)
    assert (forced.reduction_stage, forced.within_limit) == ("masking", True)
    # It moves whenever the view is over the budget, though it never pays for itself.
    first = next(count for count in range(40) if recede.count_chars(session(count)) > budget)
    assert forced.boundary_moves[0][:2] == (first, first - 6)
    assert len(forced.boundary_moves) > 3
    assert reduce(session(first - 1), max_input_chars=budget, **options).boundary_moves == ()
    # What fits no more is summarized, with all masked that is old.
    tight = reduce(history, max_input_chars=7 * TURN, fill=None, **options)
    assert tight.reduction_stage == "summarization"
    assert tight.masked_count == 34


def test_with_a_token_counter_the_budget_is_in_its_tokens() -> None:
    # 9 tokens for a result, 5 for the constants of a call: 100 are passed by the eighth turn.
    options: dict[str, Any] = {"token_counter": lambda text: len(text) // 100, "preserve_recent_raw_turns": 2}
    options |= {"boundary": "break_even", "provider": priced(write=1e12), "max_input_tokens": 100}
    assert reduce(session(7), **options).reduction_stage is None
    forced = reduce(session(12), **options)
    assert (forced.reduction_stage, forced.boundary_moves[0].request) == ("masking", 8)


def test_orphans_under_strict_pairs_leave_a_history_that_fits_raw() -> None:
    history = [*session(40), result("never called", "x")]
    options: dict[str, Any] = {"preserve_recent_raw_turns": 2, "strict_pairs": True, "boundary": "break_even"}
    kept = reduce(history, max_input_chars=10**6, **options)
    assert (kept.reduced, kept.reduction_stage, kept.boundary_moves) == (False, None, ())


def test_exempt_observations_are_passed_over() -> None:
    history = [user("Go."), *turns(20, chars=900, name="read"), *turns(20, chars=900)]
    found = mask(history, keep_results=1, boundary="break_even", exclude_tools=["read"])
    assert found.boundary_moves[0].request > 20
    assert found.tools["read"].masked == 0
    assert found.tools["run"].masked > 10
    assert mask(history, keep_results=1, boundary="break_even", min_masked_chars=10**6).boundary_moves == ()


def test_the_block_masker_takes_it() -> None:
    history = session(30)
    assert block_mask(history, 4, boundary="break_even") != block_mask(history, 4)
    assert block_mask(session(6), 4, boundary="break_even") == session(6)


def test_a_masked_history_is_left_as_it_is() -> None:
    view = mask(session(40), keep_results=1, boundary="break_even").messages
    assert mask(view, keep_results=0, boundary="break_even", provider=priced(read=1, write=1)).masked_count <= 40
    assert loads(published.mask_observations_json(b"[]", keep_results=1, boundary="break_even").json) == []


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"mask_chunk": 4}, ValueError, "give mask_chunk or boundary='break_even', not both"),
        ({"provider": priced(read=-0.1)}, ValueError, "provider.read must be a number from 0 to 1e[+]300"),
        ({"provider": priced(write=float("inf"))}, ValueError, "provider.write must be a number from 0 to 1e[+]300"),
        ({"provider": priced(write=float("nan"))}, ValueError, "provider.write must be a number from 0"),
        ({"provider": priced(read="0.1")}, TypeError, "provider.read must be a number, not str"),
        ({"provider": priced(read=True)}, TypeError, "provider.read must be a number, not bool"),
        ({"provider": priced()._replace(ttl_seconds=-1)}, ValueError, "provider.ttl_seconds must be a number from 0"),
        ({"provider": priced()._replace(min_tokens=0.5)}, TypeError, "provider.min_tokens must be a whole number"),
        ({"provider": priced()._replace(most_marks=-1)}, ValueError, "provider.most_marks must be a number from 0 to"),
        ({"provider": priced()._replace(cache="lru")}, ValueError, "provider.cache must be one of 'marks', 'prefix'"),
        ({"provider": "opnai"}, ValueError, "there is no provider 'opnai'; did you mean 'openai'"),
        ({"provider": 5}, TypeError, "provider must be a name or a Provider, not int"),
        ({"cold": 5}, TypeError, "cold must be True, False or a list of numbers of messages, not int"),
        ({"cold": [1, -2]}, ValueError, r"cold\[1\] must be at least 0"),
        ({"cold": ["1"]}, TypeError, r"cold\[0\] must be a whole number"),
    ],
)
def test_options_that_are_wrong_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        published.mask_observations([], keep_results=1, boundary="break_even", **options)


@pytest.mark.parametrize(
    ("cache", "max_overcost", "task", "masked"),
    [("prefix", 0.2, 4_038, 1), ("prefix", 0.2, 4_037, 0), ("breakpoints", 9, 8_134, 1), ("breakpoints", 9, 8_133, 0)],
)
def test_a_cache_has_what_is_as_long_as_its_minimum(cache: Any, max_overcost: float, task: int, masked: int) -> None:
    """The view has 58 characters besides the task."""
    history = [user("t" * task), call("000"), result("000", "x" * 5_000)]
    # At these prices a move pays at once, so only the bound on cost decides.
    provider = priced(cache, 1.0, 1.0)
    options = {"provider": provider, "max_overcost": max_overcost, "boundary": "break_even", "keep_results": 0}
    policy = _policy._policy(_engine.engine, "mask", options, masks_unseen=True)
    view = reduced(history, policy)
    assert view.masked_count == masked
