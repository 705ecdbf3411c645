"""Replays where a summary takes the place of old turns: sessions small enough to be estimated by hand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import recede
from support import assistant, dumps, masked, tool_result, tool_use, turns, user

HISTORY = [user("Fix the test."), *turns(100, chars=4_000)]
ANY_LENGTH = recede.costs.Prices(min_cached_tokens=0)
TASK, CALL, RESULT, SUMMARY = 13, 25, 4_000, 200


def played(name: str, history: list[Any] = HISTORY, **options: Any) -> tuple[recede.costs.ReplayedTurn, ...]:
    defaults = {"prices": ANY_LENGTH, "cache": "ideal", "system_chars": 0, "summary_chars": SUMMARY}
    return recede.costs.replay(history, [name], **{**defaults, **options}).policies[1].turns


def made(turns_of_it: tuple[recede.costs.ReplayedTurn, ...]) -> list[tuple[int, int]]:
    """After how many turns a summary was made, and of how many."""
    counts = [turn.summarized_turns for turn in turns_of_it]
    return [(at, now) for at, (before, now) in enumerate(pairwise([0, *counts])) if now != before]


def test_the_pieces_have_these_sizes() -> None:
    assert [recede.count_chars([message]) for message in HISTORY[:3]] == [TASK, CALL, RESULT]


def test_the_hybrid_makes_a_summary_at_each_multiple_and_leaves_the_tail() -> None:
    assert made(played("hybrid")) == [(43, 33), (86, 76)]
    assert made(played("hybrid:window=3,at=20,tail=5")) == [(20, 15), (40, 35), (60, 55), (80, 75)]
    assert made(played("hybrid:at=200")) == []


@pytest.mark.parametrize(("window", "at", "tail"), [(10, 43, 10), (4, 20, 8), (12, 9, 3)])
def test_a_replay_masks_and_summarizes_as_the_manager_does(window: int, at: int, tail: int) -> None:
    manager = recede.designs.HybridContextManager(lambda turns, previous: "A summary.", window, at, tail)
    for turn in played(f"hybrid:window={window},at={at},tail={tail}", summary_chars=10):
        end_turn = manager.summaries[-1].end_turn if manager.summaries else 0
        masked_count = manager.get_context("", "").count("[Observation omitted]")
        assert (turn.summarized_turns, turn.masked_count) == (end_turn, masked_count)
        manager.add_turn("Next.", "run", "x" * RESULT)


def test_summaries_alone_begin_when_as_many_turns_are_older_than_the_tail() -> None:
    assert made(played("summary")) == [(31, 21), (52, 42), (73, 63), (94, 84)]
    assert made(played("summary:every=10,tail=1"))[:2] == [(11, 10), (21, 20)]
    assert {turn.masked_count for turn in played("summary")} == {0}


def test_a_request_shows_the_task_the_summary_and_the_turns_behind_it() -> None:
    turns_of_it = played("hybrid:window=4,at=20,tail=8")
    placeholder = len(masked(RESULT))
    # Request 18 is made after 18 turns; of these 4 are raw, and 14 are masked.
    assert turns_of_it[18].view_chars == TASK + 18 * CALL + 14 * placeholder + 4 * RESULT
    # At 20 turns, 12 become a summary; of the 8 behind it 4 are raw.
    assert turns_of_it[20].view_chars == TASK + SUMMARY + 8 * CALL + 4 * placeholder + 4 * RESULT
    assert (turns_of_it[20].masked_count, turns_of_it[25].masked_count) == (4, 9)
    # Of the request before only the task is as it was: behind it stands another text.
    assert turns_of_it[20].cached_chars == TASK
    # A mask that slides changes the message behind the summary and the masked turns.
    assert turns_of_it[21].cached_chars == TASK + SUMMARY + 5 * CALL + 4 * placeholder


def test_a_call_is_given_the_unmasked_turns_the_summary_before_and_a_prompt() -> None:
    turns_of_it = played("hybrid:window=0,at=20,tail=8")
    calls = {at: (turn.summary_input_chars, turn.summary_output_chars) for at, turn in enumerate(turns_of_it)}
    assert calls[20] == (12 * (CALL + RESULT) + 1_200, SUMMARY)
    assert calls[40] == (20 * (CALL + RESULT) + SUMMARY + 1_200, SUMMARY)
    assert [at for at, call in calls.items() if call != (0, 0)] == [20, 40, 60, 80]


def test_the_calls_are_part_of_the_costs_at_prices_of_their_own() -> None:
    cheap = recede.costs.Prices(input=0.5, output=2)
    options: dict[str, Any] = {"prices": ANY_LENGTH, "system_chars": 0}
    same = recede.costs.replay(HISTORY, ["summary"], **options).costs[1]
    other = recede.costs.replay(HISTORY, ["summary"], summary_prices=cheap, **options).costs[1]
    usage = same.usage
    assert usage == other.usage
    assert usage.summary_calls == 4 and usage.summary_output_chars == 16_000, "4,000 each where nothing is said"
    assert same.summary_cost == pytest.approx((usage.summary_input_chars * 3 + 16_000 * 15) / 4e6)
    assert other.summary_cost == pytest.approx((usage.summary_input_chars * 0.5 + 16_000 * 2) / 4e6)
    for cost in (same, other):
        sent = usage.cached_chars * 0.3 + usage.written_chars * 3.75 + usage.answer_chars * 15
        assert cost.cost == pytest.approx(sent / 4e6 + cost.summary_cost)
        sent = usage.sent_chars * 3 + usage.answer_chars * 15
        assert cost.cost_uncached == pytest.approx(sent / 4e6 + cost.summary_cost)


def test_the_built_in_summary_is_that_of_stage_2_and_costs_nothing() -> None:
    history = [user("Fix the test."), *turns(12, chars=400)]
    turns_of_it = played("summary:every=4,tail=2", history, summary_chars=0)
    assert made(turns_of_it) == [(6, 4), (10, 8)]
    view = history[: 1 + 2 * 6]
    for at, later in ((6, history[13:21]), (10, [])):
        reduced = recede.designs.summarize_history(view, keep_turns=2, preserve_recent_raw_turns=0)
        # The reducer puts its summary before the task, which it drops.
        [summary] = [message for message in reduced.messages if message["role"] == "system"]
        told = [line for line in summary["content"].split("\n") if not line.startswith("- objective:")]
        summary = {**summary, "content": "\n".join(told)}  # the task stays
        tail = [message for message in reduced.messages if message["role"] != "system"]
        assert turns_of_it[at].view_chars == recede.count_chars([history[0], summary, *tail])
        view = [summary, history[0], *tail, *later]
    assert all(turn.summary_input_chars == turn.summary_output_chars == 0 for turn in turns_of_it)
    assert recede.costs.replay(history, ["summary:every=4,tail=2"], summary_chars=0).costs[1].summary_cost == 0


def test_what_the_user_said_in_between_stays() -> None:
    history = [user("Fix it."), *turns(5), user("Not so fast."), *turns(15)]
    first, *_, last = played("summary:every=10,tail=2", history, summary_chars=50)
    assert first.view_chars == 7
    assert last.summarized_turns == 10
    shown = [user("Fix it."), user("Not so fast."), *turns(9)]
    assert last.view_chars == 50 + recede.count_chars(shown)


def test_a_summary_that_is_no_shorter_is_not_made() -> None:
    sizes = 4 * (CALL + 100)
    history = [user("Fix the test."), *turns(9, chars=100)]
    assert made(played("summary:every=4,tail=2", history, summary_chars=sizes)) == []
    assert made(played("summary:every=4,tail=2", history, summary_chars=sizes - 1)) == [(6, 4)]


def answer(*results: tuple[str, str]) -> dict[str, Any]:
    return user([tool_result(*result) for result in results])


def anthropic(count: int, start: int = 0) -> list[Any]:
    numbers = map(str, range(start, start + count))
    return [message for number in numbers for message in (tool_use(number), answer((number, "x" * 300)))]


LATE = [tool_use("1", "late"), answer(("1", "x" * 300))]


def test_a_late_result_of_a_summarized_turn_withdraws_the_summary() -> None:
    # The call "late" of turn 2 is answered behind turn 9 alone.
    history = [user("Go."), *anthropic(1), *LATE, *anthropic(7, 2), answer(("late", "y" * 500)), *anthropic(9, 9)]
    turns_of_it = played("summary:every=4,tail=2", history, summary_chars=50)
    # It is made again of the one turn before, and later of all that the result ties.
    assert made(turns_of_it) == [(6, 4), (9, 1), (14, 12)]
    assert turns_of_it[9].view_chars == 3 + 50 + recede.count_chars(
        [*LATE, *anthropic(7, 2), answer(("late", "y" * 500))]
    )
    assert turns_of_it[14].summary_input_chars == recede.count_chars([*LATE, *anthropic(10)]) + 500 + 50 + 1_200


def test_a_message_that_would_break_a_pair_withdraws_the_summary() -> None:
    # One message answers a call of turn 2, which is in the summary, and one of turn 8.
    tied = [tool_use("7"), answer(("7", "x" * 300), ("late", "y" * 500))]
    history = [user("Go."), *anthropic(1), *LATE, *anthropic(5, 2), *tied, *anthropic(9, 8)]
    turns_of_it = played("summary:every=4,tail=2", history, summary_chars=50)
    # It is made again of the one turn before.
    assert made(turns_of_it) == [(6, 4), (8, 1), (10, 8), (14, 12)]
    assert turns_of_it[8].view_chars == 3 + 50 + recede.count_chars([*LATE, *anthropic(5, 2), *tied])
    assert turns_of_it[8].summary_input_chars == recede.count_chars(anthropic(1)) + 1_200
    assert turns_of_it[8].cached_chars == 3


@pytest.mark.parametrize("output", [0, 15, 400])
def test_a_summary_that_pays_is_made_when_its_waste_has_paid_for_it(output: float) -> None:
    prices = recede.costs.Prices(input=3, cached=0.3, write=3.75, output=output, min_cached_tokens=0)
    turns_of_it = played("summary:every=break_even,tail=10", prices=prices)
    summarized, waste = 0, 0
    expected = []
    for at in range(100):
        older = (at - 10 - summarized) * (CALL + RESULT)
        before = SUMMARY if summarized else 0
        if older + before <= SUMMARY or at <= 10:
            continue
        waste += older + before - SUMMARY
        written = SUMMARY + 9 * (CALL + RESULT)  # the turn before this request is new to the cache in any case
        if waste * 0.3 >= written * (3.75 - 0.3) + (older + before + 1_200) * 3 + SUMMARY * output:
            summarized, waste = at - 10, 0
            expected.append((at, summarized))
    assert made(turns_of_it) == expected
    assert len(expected) >= 2
    # What the calls cost decides.
    free = played(
        "summary:every=break_even,tail=10", prices=prices, summary_prices=recede.costs.Prices(input=0, output=0)
    )
    assert len(made(free)) > len(expected)


def test_with_the_summary_the_boundary_of_the_break_even_mask_moves() -> None:
    turns_of_it = played("hybrid:window=5,at=31,tail=20,boundary=break_even")
    assert made(turns_of_it)[0] == (31, 11)
    # Behind the summary all is written again in any case, so all that is old is masked: 15 of 20.
    assert turns_of_it[31].masked_count == 15
    assert turns_of_it[32].cached_chars == turns_of_it[31].view_chars


def test_the_view_of_the_hybrid_does_not_grow_with_the_session() -> None:
    long = [user("Fix the test."), *turns(220, chars=4_000)]
    hybrid, sliding = played("hybrid", long), played("sliding:window=10", long)
    largest = [max(turn.view_chars for turn in hybrid[start : start + 43]) for start in range(43, 177, 43)]
    assert max(largest) == min(largest)
    assert sliding[-1].view_chars > 1.2 * hybrid[-1].view_chars


def test_a_hybrid_without_summaries_is_a_mask_whose_window_counts_turns() -> None:
    """But for the placeholder, which is that of its design."""
    turn = [tool_use("1", "2"), answer(("1", "x" * 3_000), ("2", "y" * 3_000))]
    history = [user("Look."), *turn * 20]
    longer = len("[old tool output cleared to save context]") - len(masked(3_000))
    for hybrid, mask in (
        ("", "sliding:window=6"),
        (",boundary=break_even", "break_even:window=6"),
        (",chunk=4", "stepped:window=6,chunk=4"),
    ):
        found = played(f"hybrid:window=3,at=never{hybrid}", history)
        before = [0, *(turn.masked_count for turn in found)]
        of_mask = [
            turn._replace(
                view_chars=turn.view_chars + longer * turn.masked_count,
                cached_chars=turn.cached_chars + longer * count,
                written_chars=turn.written_chars + longer * (turn.masked_count - count),
            )
            for turn, count in zip(found, before, strict=False)
        ]
        assert of_mask == list(played(mask, history))
        assert 10 < found[-1].masked_count <= 32


def test_it_is_spelt_with_its_defaults() -> None:
    names = [
        "hybrid",
        "hybrid:tail=5,at=50",
        "hybrid:chunk=5",
        "hybrid:boundary=sliding",
        "summary",
        "summary: every = 9",
    ]
    found = [replayed.policy for replayed in recede.costs.replay([], names).policies[1:]]
    assert found == [
        "hybrid:window=10,at=43,tail=10",
        "hybrid:window=10,at=50,tail=5",
        "hybrid:window=10,at=43,tail=10,boundary=stepped,chunk=5",
        "summary:every=21,tail=10",
        "summary:every=9,tail=10",
    ]
    assert [replayed.policy for replayed in recede.costs.replay([], found).policies[1:]] == found
    assert recede.costs.replay_json(dumps(HISTORY), found) == recede.costs.replay(HISTORY, found)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hybrid:at=10", "'at' of the policy 'hybrid' must be more than 'tail' = 10, not 10"),
        (
            "hybrid:at=late",
            "'at' of the policy 'hybrid' must be a whole number from 1 or break_even or never, not 'late'",
        ),
        ("hybrid:tail=0", "'tail' of the policy 'hybrid' must be a whole number from 1, not '0'"),
        (
            "hybrid:boundary=high",
            "'boundary' of the policy 'hybrid' must be sliding or stepped or break_even, not 'high'",
        ),
        ("hybrid:boundary=stepped", "the policy 'hybrid' with boundary=stepped needs 'chunk'"),
        (
            "hybrid:boundary=break_even,chunk=3",
            "'chunk' of the policy 'hybrid' needs boundary=stepped, not break_even",
        ),
        ("summary:at=5", "the policy 'summary' has no key 'at'"),
        ("summary:every=0", "'every' of the policy 'summary' must be a whole number from 1 or break_even, not '0'"),
    ],
)
def test_a_policy_that_is_wrong_is_named(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        recede.costs.replay(HISTORY, [name])


def test_arguments_of_a_wrong_type_are_named() -> None:
    with pytest.raises(TypeError, match=r"summary_prices must be recede\.costs\.Prices, not dict"):
        recede.costs.replay(HISTORY, summary_prices={})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="summary_chars must be a whole number, not NoneType"):
        recede.costs.replay(HISTORY, summary_chars=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="summary_chars must be at least 0, not -1"):
        recede.costs.replay(HISTORY, summary_chars=-1)


def test_an_answer_without_calls_stays() -> None:
    talk = [message for _ in range(30) for message in (assistant("y" * 200), user("More."))]
    assert made(played("summary:every=10,tail=2", [user("Hello."), *talk], summary_chars=50)) == []
    mixed = [user("Hello."), *talk[:8], *anthropic(16), *talk[:2], *anthropic(16, 20)]
    last = played("summary:every=10,tail=2", mixed, summary_chars=50)[-1]
    assert last.summarized_turns == 30 - 5
    assert last.view_chars == recede.count_chars(mixed[:-2]) + 50 - recede.count_chars(anthropic(25))
