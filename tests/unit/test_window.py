"""The window, the boundary, and the options that say what is never masked."""

from __future__ import annotations

from typing import Any

import pytest

from support import (
    Message,
    assistant,
    block_mask,
    call,
    function_call,
    function_call_output,
    mask,
    reduce,
    result,
    system,
    tool_result,
    tool_use,
    turns,
    user,
)

# Results at 2, 4, 6; seven messages, three turns, three results.
HISTORY = [user("task"), *turns(3)]


def raw_left(view: list[Any]) -> list[int]:
    """Which results, counted from 0, are still raw."""
    results = [message for message in view if message["role"] == "tool"]
    return [number for number, message in enumerate(results) if set(message["content"]) == {"x"}]


def kept(history: list[Message], **options: Any) -> list[int]:
    return raw_left(mask(history, **options).messages)


@pytest.mark.parametrize(("newest", "expected"), [(0, []), (1, [2]), (2, [1, 2]), (3, [0, 1, 2]), (4, [0, 1, 2])])
def test_keep_results(newest: int, expected: list[int]) -> None:
    assert kept(HISTORY, keep_results=newest) == expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (0, []),
        (1, [2]),
        (2, [2]),
        (3, [1, 2]),
        (4, [1, 2]),
        (5, [0, 1, 2]),
        (6, [0, 1, 2]),
        (7, [0, 1, 2]),
        (8, [0, 1, 2]),
    ],
)
def test_keep_messages(last: int, expected: list[int]) -> None:
    assert kept(HISTORY, keep_messages=last) == expected


@pytest.mark.parametrize(("last", "expected"), [(0, []), (1, [2]), (2, [1, 2]), (3, [0, 1, 2]), (4, [0, 1, 2])])
def test_keep_turns(last: int, expected: list[int]) -> None:
    assert kept(HISTORY, keep_turns=last) == expected


def test_the_reducers_window_counts_messages_despite_its_name() -> None:
    for last, expected in ((0, [2]), (1, [2]), (3, [1, 2]), (4, [1, 2])):  # the last one is not yet shown
        view = reduce(HISTORY, max_input_chars=355, preserve_recent_raw_turns=last)
        assert view.reduction_stage == "masking"
        assert raw_left(view.messages) == expected


def test_the_reducers_window_is_4_by_default() -> None:
    assert raw_left(reduce(turns(6), max_input_chars=600).messages) == [4, 5]


def test_system_messages_are_not_counted() -> None:
    history = [*HISTORY[:5], system("a"), {"role": "developer", "content": "b"}, *HISTORY[5:], system("c")]
    for last, expected in ((0, []), (1, [2]), (2, [2]), (3, [1, 2]), (5, [0, 1, 2])):
        assert kept(history, keep_messages=last) == expected


def test_a_history_of_system_messages_has_an_empty_window() -> None:
    history = [system("a"), {**result("1", "x" * 100), "role": "developer", "pairRole": "result", "pairId": "1"}]
    assert mask(history, keep_messages=0).masked_count == 1
    assert mask(history, keep_messages=1).masked_count == 0, "more than there are: all"


def test_several_measures_keep_what_any_of_them_keeps() -> None:
    assert kept(HISTORY, keep_results=0, keep_turns=2) == [1, 2]
    assert kept(HISTORY, keep_results=3, keep_turns=1, keep_messages=1) == [0, 1, 2]
    assert kept(HISTORY, keep_results=1, keep_messages=3) == [1, 2]


def test_the_reducer_adds_the_measures_to_its_own() -> None:
    view = reduce(HISTORY, max_input_chars=355, preserve_recent_raw_turns=1, keep_results=2)
    assert raw_left(view.messages) == [1, 2]
    view = reduce(HISTORY, max_input_chars=355, preserve_recent_raw_turns=3, keep_messages=1)
    assert raw_left(view.messages) == [1, 2]


def test_parallel_calls_are_one_turn_and_user_messages_start_none() -> None:
    history = [
        call("a", "b"),
        result("a", "x" * 90),
        user("and?"),
        result("b", "x" * 90),
        assistant("now"),
        call("c"),
        result("c", "x" * 90),
    ]
    assert kept(history, keep_turns=1) == [2]
    assert kept(history, keep_turns=2) == [0, 1, 2]


def test_a_turn_begins_with_the_first_message_of_its_run() -> None:
    history = [call("a"), result("a", "x" * 90), {"type": "reasoning", "role": "r"}, assistant(""), call("b")]
    reduction = mask(history, keep_turns=1)
    assert (reduction.turns, reduction.masked_count) == (2, 1)


def test_responses_items_in_a_row_are_one_run() -> None:
    history = [
        {"type": "reasoning"},
        function_call("a"),
        {"type": "web_search_call"},
        function_call("b"),
        function_call_output("a", "x" * 90),
        function_call_output("b", "x" * 90),
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
    ]
    reduction = mask(history, keep_turns=1)
    assert (reduction.turns, reduction.masked_count) == (2, 2)
    assert mask(history, keep_turns=2).masked_count == 0


def test_pair_mates_do_not_widen_the_window() -> None:
    history = [call("a", "b"), result("a", "x" * 90), result("b", "x" * 90)]
    assert kept(history, keep_messages=1) == [1]


def test_results_within_one_message_are_counted_one_by_one() -> None:
    history = [tool_use(*"abc"), user([tool_result(call_id, "x" * 90) for call_id in "abc"])]
    for newest in range(5):
        reduction = mask(history, keep_results=newest)
        assert reduction.masked_count == reduction.boundary == max(0, 3 - newest)
    assert mask(history, keep_messages=1).masked_count == 0
    assert mask(history, keep_messages=0).masked_count == 3


# keep_by_tool, exclude_tools, keep_errors


def tools_history(*names: str) -> list[Message]:
    history: list[Message] = []
    for number, name in enumerate(names):
        history += [call(str(number), name=name), result(str(number), "x" * 100)]
    return history


MIXED = tools_history("read", "bash", "read", "bash", "read")


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ({}, [4]),
        ({"read": 0}, []),
        ({"read": 1}, [4]),
        ({"read": 2}, [2, 4]),
        ({"read": 3}, [0, 2, 4]),
        ({"read": 9}, [0, 2, 4]),
        ({"read": None}, [0, 2, 4]),
        ({"bash": 1}, [3, 4]),
        ({"bash": None, "read": 0}, [1, 3]),
        ({"re*": 2}, [2, 4]),
        ({"r??d": 2}, [2, 4]),
        ({"*": 1}, [3, 4]),
        ({"*": 0}, []),
        ({"r?d": 2}, [4]),
        ({"READ": 2}, [4]),
        ({"[r]ead": 2}, [4]),
        ({"*": 0, "read": 2}, [2, 4]),
        ({"r*": 0, "re*": 3}, []),
        ({"re*": 3, "r*": 0}, [0, 2, 4]),
    ],
)
def test_keep_by_tool_takes_the_place_of_the_measures(windows: dict[str, int | None], expected: list[int]) -> None:
    assert kept(MIXED, keep_results=1, keep_by_tool=windows) == expected


def test_each_tool_that_matches_a_pattern_keeps_its_own_newest() -> None:
    history = tools_history("read_a", "read_b", "read_a", "read_b", "bash")
    assert kept(history, keep_results=0, keep_by_tool={"read_*": 1}) == [2, 3]


def test_observations_without_a_tool_name_match_nothing() -> None:
    history = [result("nobody", "x" * 100), *MIXED]
    assert kept(history, keep_results=0, keep_by_tool={"*": None}) == [1, 2, 3, 4, 5]
    assert kept(history, keep_results=0, exclude_tools=["*"]) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (["read"], [0, 2, 4]),
        (("r*", "x"), [0, 2, 4]),
        ({"ba?h"}, [1, 3]),
        (frozenset({"*"}), [0, 1, 2, 3, 4]),
        ([], []),
    ],
)
def test_excluded_tools_are_never_masked(tools: Any, expected: list[int]) -> None:
    assert kept(MIXED, keep_results=0, exclude_tools=tools) == expected


def test_excluded_tools_stay_whatever_their_own_window() -> None:
    assert kept(MIXED, keep_results=0, exclude_tools=["read"], keep_by_tool={"read": 0}) == [0, 2, 4]


def test_patterns_know_only_star_and_question_mark() -> None:
    for name, pattern, fits in (
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        ("a[b]", "a[b]", True),
        ("ab", "a[b]", False),
        ("abc", "a*c", True),
        ("ac", "a*c", True),
        ("a\nc", "a*c", True),
        ("a\nc", "a?c", True),
        ("aébéc", "a?b?c", True),
        ("a😀", "a?", True),
        ("abab", "*ab", True),
        ("aba", "*ab", False),
        ("aXbXc", "a*b*c", True),
        ("x" * 40, "*x" * 20 + "y", False),
        ("**", "*", True),
        ("a\\", "a\\", True),
        ("abc!", "abc", False),
    ):
        assert (kept(tools_history(name), keep_results=0, exclude_tools=[pattern]) == [0]) is fits, (name, pattern)


def test_errors_are_kept() -> None:
    blocks = [tool_result("1", "x" * 90, is_error=True), tool_result("2", "x" * 90)]
    history = [tool_use("1", "2"), user(blocks)]
    view = mask(history, keep_results=0, keep_errors=True).messages
    assert view[1]["content"][0] is blocks[0]
    assert view[1]["content"][1] != blocks[1]
    assert mask(history, keep_results=0).masked_count == 2


# The boundary


@pytest.mark.parametrize(
    ("chunk", "boundary"), [(None, 5), (1, 5), (2, 4), (3, 3), (4, 4), (5, 5), (6, 0), (7, 0), (10**30, 0)]
)
def test_the_boundary_is_rounded_down_to_chunks(chunk: int | None, boundary: int) -> None:
    reduction = mask(turns(7), keep_results=2, mask_chunk=chunk)
    assert reduction.boundary == reduction.masked_count == boundary


def test_a_chunk_alone_means_stepped() -> None:
    stepped = mask(turns(7), keep_results=2, mask_chunk=3, boundary="stepped")
    assert stepped == mask(turns(7), keep_results=2, mask_chunk=3)
    assert stepped.boundary == 3


def test_the_boundary_counts_exempt_observations() -> None:
    reduction = mask(MIXED, keep_results=1, exclude_tools=["read"])
    assert (reduction.boundary, reduction.masked_count) == (4, 2)
    reduction = mask(MIXED, keep_results=1, exclude_tools=["read"], mask_chunk=3)
    assert (reduction.boundary, reduction.masked_count) == (3, 1)


def test_the_boundary_counts_observations_that_stay() -> None:
    history = turns(4)
    history[1]["content"] = "ok"
    history[3]["content"] = "[observation masked — 5 chars]"
    reduction = mask(history, keep_results=1)
    assert (reduction.boundary, reduction.masked_count) == (3, 1)


def test_the_boundary_follows_the_last_older_observation() -> None:
    assert mask(MIXED, keep_results=1, keep_by_tool={"read": 0}).boundary == 5
    assert mask(MIXED, keep_results=5, keep_by_tool={"bash": 1}).boundary == 2
    assert mask(MIXED, keep_results=0, keep_by_tool={"*": None}).boundary == 0
    assert mask(MIXED, keep_results=2, keep_by_tool={"read": None}).boundary == 2


def test_the_boundary_only_moves_forward_as_a_history_grows() -> None:
    history = tools_history(*["read", "bash", "bash", "grep"] * 6)
    for options in (
        {"keep_results": 3},
        {"keep_turns": 2, "mask_chunk": 4},
        {"keep_messages": 5, "keep_by_tool": {"bash": 2}},
    ):
        boundaries = [mask(history[:length], **options).boundary for length in range(len(history) + 1)]
        assert boundaries == sorted(boundaries)
        assert boundaries[-1] > 0


def test_nothing_is_unmasked_by_what_comes_later() -> None:
    history = tools_history(*["read", "bash"] * 8)
    masked_before: set[int] = set()
    for length in range(len(history) + 1):
        raw = kept(history[:length], keep_results=2, keep_by_tool={"bash": 1}, mask_chunk=2)
        masked_now = set(range(length // 2)) - set(raw)
        assert masked_before <= masked_now
        masked_before = masked_now


# min_masked_chars: each of the two older observations of 100 chars shrinks to a placeholder of 32.


@pytest.mark.parametrize(("least", "boundary"), [(0, 2), (135, 2), (136, 2), (137, 0), (10**30, 0)])
def test_min_masked_chars(least: int, boundary: int) -> None:
    reduction = mask(HISTORY, keep_results=1, min_masked_chars=least)
    assert (reduction.boundary, reduction.masked_count) == (boundary, boundary)
    if not boundary:
        assert reduction.messages is HISTORY
        assert not reduction.reduced and reduction.reduction_stage is None


def test_block_masker_counts_the_newest_results_in_any_shape() -> None:
    history: list[Message] = [
        tool_use("a"),
        user([tool_result("a", "x" * 90)]),
        function_call("b"),
        function_call_output("b", "x" * 90),
        *turns(2),
    ]
    view = block_mask(history, keep=3)
    assert view[1]["content"][0]["content"] == "[observation masked — 1 lines omitted]"
    assert view[2:] == history[2:]
