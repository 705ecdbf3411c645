"""The reducer: its stages, its budget, and its keep set."""

from __future__ import annotations

from typing import Any

import published
import pytest

import recede
import support
from support import (
    Message,
    assistant,
    call,
    chat_call,
    chat_result,
    function_call,
    function_call_output,
    masked,
    result,
    system,
    tool_result,
    tool_use,
    turns,
    user,
)


def reduce(messages: list[Any], **options: Any) -> recede.Reduction:
    """By the published rule."""
    return support.reduce(messages, **{"fill": None, **options})


# 13 + (3 + 2 + 20) + 700 + 21 = 759 characters; masked, the result has 32 instead of 700.
TASK = [user("Fix the test."), call("1"), result("1", "FAILED " * 100), assistant("I see: an off-by-one.")]
RAW, MASKED = 759, 91


def short(messages: list[Any], previous: str | None) -> str:
    return "short"


# "Conversation summary:\nshort" has 27 characters; with the last message 48.
SUMMARIZED = 48
# The first user message and the last one.
FALLBACK = 13 + 21


@pytest.mark.parametrize(
    ("budget", "stage", "chars_after", "within"),
    [
        (RAW + 1, None, RAW, True),
        (RAW, None, RAW, True),
        (RAW - 1, "masking", MASKED, True),
        (MASKED, "masking", MASKED, True),
        (MASKED - 1, "summarization", SUMMARIZED, True),
        (SUMMARIZED, "summarization", SUMMARIZED, True),
        (SUMMARIZED - 1, "fallback", FALLBACK, True),
        (FALLBACK, "fallback", FALLBACK, True),
        (FALLBACK - 1, "fallback", FALLBACK, False),
        (0, "fallback", FALLBACK, False),
    ],
)
def test_each_stage_is_met_exactly_and_missed_by_one(
    budget: int, stage: str | None, chars_after: int, within: bool
) -> None:
    reduction = reduce(TASK, max_input_chars=budget, preserve_recent_raw_turns=1, summarizer=short)
    assert reduction.reduction_stage == stage
    assert (reduction.chars_before, reduction.chars_after) == (RAW, chars_after)
    assert reduction.within_limit is within
    assert reduction.invariant_status == ("fallback" if stage == "fallback" else "ok")


@pytest.mark.parametrize(("tokens", "stage"), [(190, None), (189, "masking"), (23, "masking"), (22, "summarization")])
def test_token_budgets(tokens: int, stage: str | None) -> None:
    # 759 characters are 190 tokens, 91 are 23.
    reduction = reduce(TASK, max_input_tokens=tokens, preserve_recent_raw_turns=1, summarizer=short)
    assert reduction.reduction_stage == stage


# Stage 0


def test_within_the_budget_the_input_comes_back() -> None:
    reduction = published.reduce(TASK, max_input_chars=RAW)
    assert reduction.messages is TASK
    assert not reduction.reduced
    assert reduction.reduction_stage is None
    assert (reduction.boundary, reduction.masked_count, reduction.first_changed) == (0, 0, None)
    assert reduction.tools == {"run": recede.reduction.ToolReport(1, 0, 700, 0)}


def test_disabled_the_input_comes_back_and_says_that_it_is_over() -> None:
    reduction = reduce(TASK, max_input_chars=1, enabled=False)
    assert reduction.messages is TASK
    assert (reduction.reduced, reduction.reduction_stage, reduction.within_limit) == (False, None, False)
    assert reduction.invariant_status == "ok"
    assert reduce(TASK, max_input_chars=RAW, enabled=False).within_limit


def test_an_empty_history_is_within_any_budget() -> None:
    history: list[Message] = []
    reduction = reduce(history, max_input_chars=0)
    assert reduction.messages is history
    assert (reduction.chars_before, reduction.within_limit) == (0, True)


# Stage 1


def test_masking_masks_every_observation_older_than_the_window() -> None:
    history = [user("task"), *turns(10)]
    reduction = reduce(history, max_input_chars=1_253, preserve_recent_raw_turns=2)
    assert reduction.masked_count == 9, "one would be enough for the budget"


def test_stepped_masking_tries_the_rounded_boundary_first() -> None:
    # 10 results of 100; 8 are older; chunks of 5 mask 5 (1250 - 5 * 68 = 910), without rounding 8 (706).
    options: dict[str, Any] = {"keep_results": 2, "preserve_recent_raw_turns": 0, "mask_chunk": 5}
    for budget, boundary in ((1_249, 5), (910, 5), (909, 8), (706, 8)):
        reduction = reduce(turns(10), max_input_chars=budget, **options)
        assert (reduction.reduction_stage, reduction.boundary) == ("masking", boundary)
    assert reduce(turns(10), max_input_chars=705, **options).reduction_stage != "masking"


def test_min_masked_chars_leaves_it_to_the_next_stage() -> None:
    options: dict[str, Any] = {"preserve_recent_raw_turns": 1, "summarizer": short}
    assert reduce(TASK, max_input_chars=100, min_masked_chars=668, **options).reduction_stage == "masking"
    reduction = reduce(TASK, max_input_chars=100, min_masked_chars=669, **options)
    assert reduction.reduction_stage == "summarization"
    assert (reduction.masked_count, reduction.boundary) == (0, 0)


def test_without_observation_masking_it_starts_with_stage_2() -> None:
    reduction = reduce(
        TASK, max_input_chars=200, preserve_recent_raw_turns=1, observation_masking=False, summarizer=short
    )
    assert reduction.reduction_stage == "summarization"
    assert (reduction.masked_count, reduction.masked_chars, reduction.boundary) == (0, 0, 0)
    assert reduction.tools["run"].masked == 0


def test_cut_observations_may_be_what_fits() -> None:
    # 759 - 700 + 200 = 259
    options: dict[str, Any] = {"preserve_recent_raw_turns": 1, "max_observation_chars": 200, "summarizer": short}
    reduction = reduce(TASK, max_input_chars=259, **options)
    assert reduction.reduction_stage == "masking"
    assert reduction.messages[2]["content"] == ("FAILED " * 100)[:168] + masked(700)
    assert reduce(TASK, max_input_chars=258, **options).reduction_stage == "summarization"


# The keep set


def dropped_by_truncation(history: list[Message], **options: Any) -> list[int]:
    view = recede.designs.truncate_history(history, **options).messages
    return [index for index, message in enumerate(history) if not any(message is other for other in view)]


def test_system_messages_are_kept_wherever_they_stand() -> None:
    history = [system("a"), user("b"), assistant("c"), {"role": "developer", "content": "d"}, user("e"), system("f")]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=0) == [2, 4]


def test_the_window_is_kept() -> None:
    history = [user(str(number)) for number in range(6)]
    for last, dropped in ((0, [1, 2, 3, 4, 5]), (1, [1, 2, 3, 4]), (5, []), (6, []), (7, [])):
        assert dropped_by_truncation(history, preserve_recent_raw_turns=last) == dropped
    assert dropped_by_truncation(history, preserve_recent_raw_turns=1, keep_messages=3) == [1, 2]


def test_the_measures_of_turns_and_results_widen_the_window() -> None:
    history = [user("task"), *turns(4)]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=0, keep_turns=1) == [1, 2, 3, 4, 5, 6]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=0, keep_results=2) == [1, 2, 3, 4]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=0, keep_results=0) == list(range(1, 9))


def test_the_other_half_of_a_pair_is_kept() -> None:
    history = [user("task"), call("1"), result("1", ""), call("2"), result("2", "")]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=1) == [1, 2]


def test_all_results_of_a_kept_call_are_kept() -> None:
    history = [user("task"), call("a", "b"), result("a", ""), user("x"), result("b", "")]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=1) == [3]
    history = [user("task"), call("a"), result("a", "one"), user("x"), result("a", "two")]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=1) == [3]


def test_a_message_with_results_of_two_turns_ties_them_together() -> None:
    history = [
        user("task"),
        user("noise"),
        tool_use("1"),
        user("noise"),
        tool_use("2"),
        user("noise"),
        user([tool_result("1", ""), tool_result("2", "")]),
        tool_use("3"),
        user([tool_result("2", "again"), tool_result("3", "")]),
    ]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=1) == [1, 3, 5]


def test_a_run_is_kept_or_dropped_whole_with_all_its_results() -> None:
    reasoning = {"type": "reasoning", "summary": []}
    history: list[Message] = [
        user("task"),
        dict(reasoning),
        function_call("1"),
        function_call_output("1", ""),
        dict(reasoning),
        function_call("2"),
        {"type": "message", "role": "assistant", "content": []},
        dict(reasoning),
        function_call_output("2", ""),
    ]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=1) == [1, 2, 3]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=0) == list(range(1, 9))


def test_parallel_calls_stay_together() -> None:
    for run, results in (
        ([function_call("1"), function_call("2")], [function_call_output("1", ""), function_call_output("2", "")]),
        ([chat_call("1"), chat_call("2")], [chat_result("1", ""), chat_result("2", "")]),
        ([tool_use("1"), assistant("and"), tool_use("2")], [user([tool_result(id, "")]) for id in ("1", "2")]),
        ([call("1"), call("2")], [result("1", ""), result("2", "")]),
    ):
        history: list[Message] = [user("task"), assistant("old"), user("between"), *run, *results]
        assert dropped_by_truncation(history, preserve_recent_raw_turns=1) == [1, 2]


def test_the_first_user_message_is_one_of_role_user_that_says_something_of_its_own() -> None:
    history = [
        assistant("hello"),
        user([tool_result("0", "an answer is no task")]),
        user("Conversation talk"),
        user("second"),
        assistant("x"),
    ]
    assert dropped_by_truncation(history, preserve_recent_raw_turns=0) == [0, 1, 3, 4]
    assert dropped_by_truncation([assistant("a"), result("nobody", "")], preserve_recent_raw_turns=1) == [0]
    odd = {"role": "user", "type": "reasoning"}
    assert dropped_by_truncation([odd, assistant("a"), user("b")], preserve_recent_raw_turns=1) == [0, 1]
    pair = [{**user("x"), "pairRole": "call", "pairId": "1"}, {"pairRole": "result", "pairId": "1", "content": ""}]
    assert dropped_by_truncation([*pair, user("task"), assistant("a")], preserve_recent_raw_turns=1) == [0, 1]


# Stage 3


def test_fallback_goes_over_the_budget_and_says_so() -> None:
    reduction = reduce(TASK, max_input_chars=5)
    assert reduction.messages is TASK, "the window holds everything"
    assert (reduction.reduction_stage, reduction.invariant_status) == ("fallback", "fallback")
    assert (reduction.reduced, reduction.within_limit, reduction.dropped_count) == (False, False, 0)


def test_fallback_is_made_of_masked_messages_as_they_stand() -> None:
    history = [user("task"), call("1", "2"), result("1", "x" * 300), user("noise " * 99), result("2", "x" * 300)]
    # With the summary "Conversation summary:\n- objective: task" of 39 characters: 39 + 50 + 32 + 300.
    options: dict[str, Any] = {"preserve_recent_raw_turns": 1}
    assert reduce(history, max_input_chars=421, **options).reduction_stage == "summarization"
    reduction = reduce(history, max_input_chars=420, **options)
    assert reduction.reduction_stage == "fallback"
    assert reduction.messages == [history[0], history[1], result("1", masked(300)), history[4]]
    assert (reduction.chars_after, reduction.within_limit, reduction.dropped_count) == (386, True, 1)


def test_figures_of_stage_1_stay_also_where_a_later_stage_gave_the_answer() -> None:
    reduction = reduce(TASK, max_input_chars=40, preserve_recent_raw_turns=1)
    assert reduction.reduction_stage == "fallback"
    assert (reduction.masked_count, reduction.masked_chars, reduction.boundary) == (1, 668, 1)
    assert reduction.tools == {"run": recede.reduction.ToolReport(1, 1, 700, 668)}
    assert reduction.dropped_count == 2


# strict_pairs


WOUNDED = [user("Fix the test."), result("lost", "x" * 200), *TASK[1:]]


def test_strict_pairs_goes_on_until_no_orphan_is_left() -> None:
    options: dict[str, Any] = {"preserve_recent_raw_turns": 1, "summarizer": short, "max_input_chars": 200}
    assert reduce(WOUNDED, **options).reduction_stage == "masking"
    strict = reduce(WOUNDED, **options, strict_pairs=True)
    assert strict.reduction_stage == "summarization"
    assert strict.orphans == (1,), "reported either way"


def test_strict_pairs_with_an_orphan_in_the_window_falls_back() -> None:
    history = [*TASK, result("lost", "x" * 20)]
    options: dict[str, Any] = {"preserve_recent_raw_turns": 1, "summarizer": short, "max_input_chars": 200}
    assert reduce(history, **options).reduction_stage == "masking"
    assert reduce(history, **options, strict_pairs=True).reduction_stage == "fallback"


def test_strict_pairs_does_not_mind_open_calls() -> None:
    history = [*TASK, call("open")]
    reduction = reduce(history, max_input_chars=200, preserve_recent_raw_turns=1, strict_pairs=True)
    assert reduction.reduction_stage == "masking"


def test_strict_pairs_within_the_budget_changes_nothing() -> None:
    assert reduce(WOUNDED, max_input_chars=99_999, strict_pairs=True).messages is WOUNDED
