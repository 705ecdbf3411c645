"""Rows of docs/coming-from.md: the requirements of the reducer, typed as the design does."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import published
import pytest
from children import recede_command
from design_rows import row
from generated import histories
from hypothesis import given
from hypothesis import strategies as st

import recede
from recede import count_chars
from recede.designs import (
    HistoryReducer,
    mask_observation,
    mask_observations,
    mask_observations_json,
    summarize_history,
    truncate_history,
)
from support import ENGINES, using

ROUNDS, SEEN = 10, "FAILED " * 600  # 4,200 characters


def history_of(rounds: int = ROUNDS, seen: str = SEEN, before: str = "") -> list[dict[str, Any]]:
    history = [{"role": "system", "content": "You are careful."}, {"role": "user", "content": "Fix the test."}]
    for number in range(rounds):
        pair = {"pairId": f"p{number}", "toolCallId": f"t{number}"}
        history.append({"role": "assistant", "content": f"I run it. {before}", **pair, "pairRole": "call"})
        history.append({"role": "tool", "content": seen, **pair, "pairRole": "result"})
    return history


HISTORY = history_of()


def reduced(limit: int = 12_000, history: list[dict[str, Any]] = HISTORY, **options: Any) -> recede.Reduction:
    before = copy.deepcopy(history)
    result = HistoryReducer().reduce(history, {"max_input_chars": limit, **options})
    assert history == before, "pure"
    assert result.chars_after == count_chars(result.messages) <= result.chars_before
    assert recede.check_pairs(result.messages).orphans == ()
    return result


@pytest.fixture
def masked() -> recede.Reduction:
    """The history of ten rounds under a limit for which masking is enough."""
    return reduced()


def changed(result: recede.Reduction, history: list[dict[str, Any]] = HISTORY) -> list[tuple[Any, dict[str, Any]]]:
    """The messages of a view that are no longer those of the history, each with what it was."""
    return [(m, was) for m, was in zip(result.messages, history, strict=True) if m is not was]


def without_masking(limit: int, history: list[dict[str, Any]]) -> list[Any]:
    """The reducer that the design began with: a summary, and truncation if that is not enough."""
    views = (history, summarize_history(history).messages, truncate_history(history).messages)
    return next((view for view in views if count_chars(view) <= limit), views[-1])


# R1: results are masked first.


@row("results outside the window are masked before anything is dropped", "if masking is enough, nothing is dropped")
def test_r1_1_results_are_masked_before_anything_is_dropped(masked: recede.Reduction) -> None:
    assert [m["content"] != SEEN for m in masked.messages if m["role"] == "tool"] == [True] * 8 + [False] * 2
    assert (masked.dropped_count, len(masked.messages)) == (0, len(HISTORY))
    assert [m is was for m, was in zip(masked.messages, HISTORY, strict=True)][-4:] == [True] * 4
    exact = reduced(masked.chars_after)
    assert (exact.reduction_stage, exact.dropped_count) == ("masking", 0)
    assert reduced(masked.chars_after - 1).dropped_count > 0


@row(
    "`[observation masked — {n} chars]`; the message around it stays", "`pairId`, `pairRole`, `role`, `toolCallId` stay"
)
def test_r1_2_the_placeholder_has_the_characters_and_the_message_keeps_its_fields(masked: recede.Reduction) -> None:
    for message, was in changed(masked):
        assert message == {**was, "content": "[observation masked — 4200 chars]"}
        assert list(message) == list(was) and {"pairId", "pairRole", "role", "toolCallId"} <= message.keys()


@row("calls stay in full")
def test_r1_3_calls_stay_in_full(masked: recede.Reduction) -> None:
    assert {was["pairRole"] for _, was in changed(masked)} == {"result"}


@row("the reasoning of the assistant stays in full")
def test_r1_4_reasoning_stays_in_full() -> None:
    history = history_of(before="I think about it at length. " * 50)
    assert {was["role"] for _, was in changed(reduced(30_000, history), history)} == {"tool"}


@row("masking is on by default", "about half of the context")
def test_masking_enabled_keeps_every_message_where_the_reducer_without_it_drops_some(masked: recede.Reduction) -> None:
    assert masked == reduced(observation_masking=True)
    assert len(without_masking(12_000, HISTORY)) < len(masked.messages) == len(HISTORY)
    assert masked.chars_after < masked.chars_before / 2
    # Where masking is not enough, its view is that of the reducer without it.
    for limit in (8_000, 8_500, 8_700, masked.chars_after - 1):
        assert reduced(limit).messages == without_masking(limit, HISTORY)


@row("`observationMasking: false`")
@pytest.mark.parametrize("limit", [1_000, 8_400, 8_655, 8_656, 9_000, 12_000, 42_000, 50_000])
def test_masking_disabled_is_the_reducer_without_it(limit: int) -> None:
    result = reduced(limit, observation_masking=False)
    assert result.messages == without_masking(limit, HISTORY)
    assert result.masked_count == 0 and result.reduction_stage != "masking"


# R4 and R6: pairs, and what is counted.


@row("a masked result keeps its call", "no orphans are made", "the invariants hold after masking")
@pytest.mark.parametrize("limit", [1_000, 8_400, 9_000, 12_000, 30_000])
def test_r4_1_no_call_loses_its_result_at_any_stage(limit: int) -> None:
    messages = reduced(limit).messages
    calls = {m["pairId"] for m in messages if m.get("pairRole") == "call"}
    assert {m["pairId"] for m in messages if m.get("pairRole") == "result"} == calls
    assert reduced(limit).invariant_status == ("fallback" if limit < 8_656 else "ok")


@row("`maskedCount`", "`maskedChars`", "`reductionStage`", "`droppedCount`, `reduced`, `invariantStatus`")
def test_r6_the_result_counts_what_was_masked_and_names_the_stage(masked: recede.Reduction) -> None:
    assert (masked.masked_count, masked.masked_chars) == (8, 8 * (4_200 - len("[observation masked — 4200 chars]")))
    assert (masked.reduced, masked.reduction_stage, masked.dropped_count) == (True, "masking", 0)
    assert masked.invariant_status == "ok" and masked.within_limit


@row("`reduce(messages, options)` gives a result object", "pure: the input is not changed")
def test_reduce_gives_a_result_and_leaves_its_input(masked: recede.Reduction) -> None:
    assert history_of() == HISTORY
    assert masked[0] is masked.messages and "Reduction" in repr(masked)
    assert published.reduce(HISTORY, max_input_chars=12_000, fill=None).messages == masked.messages


@row("a view is never larger than its history")
def test_a_view_is_never_larger_than_its_history() -> None:
    short = history_of(30, "ok")
    for limit in range(100, 2_000, 100):
        assert count_chars(reduced(limit, short).messages) <= count_chars(short)


@row("user messages are never masked, nor those of role user or assistant with the pair role of a result")
def test_only_results_of_tools_are_masked() -> None:
    for role in ("user", "assistant"):
        said = [{"role": role, "content": SEEN, "pairRole": "result", "pairId": str(n)} for n in range(9)]
        masked = published.mask_observations(said, keep_messages=0, boundary="sliding")
        assert masked.masked_count == 0 and masked.messages == said


@row(
    "the order: mask, summarize, truncate",
    "no summary where masking is enough",
    'fallback, with `invariantStatus` "fallback"',
)
def test_r2_masks_then_summarizes_then_truncates() -> None:
    asked: list[int] = []

    def summarizer(messages: list[Any]) -> str:
        asked.append(len(messages))
        return "The test was run."

    enough = reduced(summarizer=summarizer).chars_after
    assert asked == []
    assert reduced(enough, summarizer=summarizer).reduction_stage == "masking"
    assert asked == []
    less = reduced(enough - 1, summarizer=summarizer)
    assert (less.reduction_stage, asked, less.invariant_status) == ("summarization", [17], "ok")
    stages = [reduced(limit, summarizer=summarizer).reduction_stage for limit in (50_000, 12_000, enough - 1, 8_400)]
    assert stages == [None, "masking", "summarization", "fallback"]
    fallback = reduced(1_000)
    assert (fallback.invariant_status, fallback.within_limit) == ("fallback", False)


@row(
    "messages that are neither recent nor of the system are summarized",
    "`buildSummary` works on the masked messages",
    "messages tagged `constraint` and `unresolved` reach the summary",
)
def test_r2_3_the_summary_replaces_what_is_neither_recent_nor_system() -> None:
    history = history_of(30, "result: all is well. " * 50)
    history.insert(2, {"role": "user", "content": "Do not touch the lock file.", "tags": ["constraint"]})
    history.insert(3, {"role": "user", "content": "Is the cache warm?", "tags": ["unresolved"]})
    result = reduced(3_000, history)
    assert result.reduction_stage == "summarization"
    assert result.messages[0] is history[0]
    [summary] = [m for m in result.messages if m["content"].startswith("Conversation summary:")]
    assert result.messages[1] is summary
    assert result.messages[-4:] == history[-4:] and len(result.messages) == 6
    assert "- constraint: Do not touch the lock file." in summary["content"]
    assert "- unresolved: Is the cache warm?" in summary["content"]
    assert "all is well" in summary["content"], "of the observations, not of their placeholders"
    assert len(summary["content"]) <= 1_400


@row("what the fallback keeps")
def test_r2_4_the_fallback_keeps_the_task_and_the_newest() -> None:
    view = reduced(1_000).messages
    assert view[:2] == HISTORY[:2] and view[-4:] == HISTORY[-4:]
    assert truncate_history(HISTORY).messages[:2] == HISTORY[:2]


@row("`enabled: false`", "nothing changes for who does not opt in")
def test_reducing_disabled_gives_the_history_back(tmp_path: Path) -> None:
    off = reduced(enabled=False)
    assert (off.messages, off.reduced, off.reduction_stage) == (HISTORY, False, None)
    assert off.messages is HISTORY
    path = tmp_path / "session.json"
    path.write_text(json.dumps(HISTORY))
    said = recede_command("reduce", "--design", "--max-input-chars", 9_000, "--no-mask", path)
    assert b"observation masked" not in said.stdout and said.returncode == 0


@row("`maxObservationChars` truncates", "`maxObservationChars` is 80 by default, for the placeholder")
def test_r3_3_max_observation_chars_bounds_what_stays_of_a_result() -> None:
    def texts(**options: Any) -> set[str]:
        seen = [*HISTORY, {"role": "assistant", "content": "Done."}]
        messages = published.mask_observations(seen, keep_messages=0, boundary="sliding", **options).messages
        return {message["content"] for message in messages if message["role"] == "tool"}

    placeholder = "[observation masked — 4200 chars]"
    assert texts() == texts(max_observation_chars=None) == {placeholder}
    for limit in (80, 500):
        [text] = texts(max_observation_chars=limit)
        assert len(text) == limit and text.startswith("FAILED ") and text.endswith(placeholder)
    assert texts(max_observation_chars=10) == {placeholder[:10]}
    assert len(placeholder) <= 80


@row("observations inside the window stay; 4 by default")
def test_r3_5_messages_inside_the_window_are_not_masked() -> None:
    masked = [reduced(42_400, preserve_recent_raw_turns=n, max_input_chars=20_000).masked_count for n in range(9)]
    assert masked == [10, 9, 9, 8, 8, 7, 7, 6, 6]
    assert reduced(20_000).masked_count == masked[4]


@row("`summaryMaxChars` is 1,400")
def test_summary_max_chars() -> None:
    tags = {"tags": ["constraint"]}
    constraints = [{"role": "user", "content": f"{n}: do not touch it. " * 9, **tags} for n in range(20)]
    history = [
        *constraints,
        *({**m, "content": f"{n} {m['content']}"} for n, m in enumerate(history_of(20, "ok " * 99))),
    ]
    for limit in (None, 100):
        options = {} if limit is None else {"summary_max_chars": limit}
        view = reduced(3_000, history, **options).messages
        [summary] = [m["content"] for m in view if m["content"].startswith("Conversation summary:")]
        assert len(summary) == (limit or 1_400)
    with pytest.raises(ValueError, match="summary_max_chars must be at least"):
        reduced(summary_max_chars=10)


@row("where pairs are violated, the fallback")
def test_r4_3_strict_pairs_fall_back_where_a_pair_is_violated() -> None:
    orphan = {"role": "tool", "content": SEEN, "pairId": "gone", "pairRole": "result"}
    old, recent = [HISTORY[0], orphan, *HISTORY[1:]], [*HISTORY, orphan]

    def stage(history: list[Any], **options: Any) -> str | None:
        return published.reduce(history, max_input_chars=18_000, fill=None, **options).reduction_stage

    assert [stage(old), stage(recent)] == ["masking", "masking"]
    assert stage(old, strict_pairs=True) == "summarization"
    assert stage(recent, strict_pairs=True) == "fallback"


BLOCK = 'BEGIN_DISPATCH_RESULT\n{"status": "completed", "files": ["a.py"]}\nEND_DISPATCH_RESULT'


@row(
    "a dispatch block is recognized",
    "its JSON stays",
    "`[dispatch output masked — n chars]` for the rest",
    "without delimiters, the standard placeholder",
    "several blocks, only a block, masking twice",
    "`maskDispatchObservation(content, maxChars)` gives text and count",
)
def test_r5_masking_keeps_the_json_of_dispatch_blocks() -> None:
    text = f"{'line of the log. ' * 40}\n{BLOCK}\n{'more. ' * 100}"
    shown = mask_observation(text)
    assert BLOCK in shown and len(shown) < len(text)
    outside = len(text) - len(BLOCK)
    assert shown.startswith(f"[dispatch output masked — {outside} chars]")
    assert mask_observation(shown) == shown
    two = mask_observation(f"{'word ' * 90}{BLOCK}{'word ' * 90}{BLOCK}")
    assert two.count(BLOCK) == 2 and mask_observation(two) == two
    assert mask_observation(BLOCK) == BLOCK
    unclosed = text.replace("END_DISPATCH_RESULT", "")
    assert mask_observation(unclosed) == f"[observation masked — {len(unclosed)} chars]"
    history = history_of(10, text)
    assert reduced(8_000, history).messages[3]["content"] == shown


@row("`HistoryReducer` with that method", "options in camelCase")
def test_the_class_takes_options_in_either_place() -> None:
    at_call = HistoryReducer().reduce(HISTORY, {"max_input_chars": 12_000, "preserve_recent_raw_turns": 6})
    by_name = HistoryReducer().reduce(HISTORY, max_input_chars=12_000, preserve_recent_raw_turns=6)
    at_both = HistoryReducer(preserve_recent_raw_turns=6).reduce(HISTORY, {"max_input_chars": 12_000})
    over = HistoryReducer(preserve_recent_raw_turns=2, max_input_chars=5).reduce(
        HISTORY, {"max_input_chars": 12_000, "preserve_recent_raw_turns": 6}
    )
    assert at_call == by_name == at_both == over
    with pytest.raises(ValueError, match="a budget is required"):
        HistoryReducer().reduce(HISTORY)
    for camel, snake in {
        "maxInputChars": "max_input_chars",
        "preserveRecentRawTurns": "preserve_recent_raw_turns",
        "summaryMaxChars": "summary_max_chars",
        "observationMasking": "observation_masking",
        "maxObservationChars": "max_observation_chars",
    }.items():
        with pytest.raises(TypeError, match=f"no option '{camel}'; did you mean '{snake}'"):
            HistoryReducer().reduce(HISTORY, {camel: 5})
        with pytest.raises(TypeError, match=f"no option '{camel}'; did you mean '{snake}'"):
            HistoryReducer(**{camel: 5})


@row("`maskObservations(messages, keepIndices, …)`", "each stage can be tested alone")
def test_each_stage_can_be_called_alone() -> None:
    for window in ({"keep_messages": 4}, {"keep_turns": 2}, {"keep_results": 2}):
        masked = mask_observations(HISTORY, **window)  # type: ignore[arg-type]
        assert (masked.masked_count, masked.masked_chars) == (8, 8 * 4_167)
    assert any(m["content"].startswith("Conversation summary:") for m in summarize_history(HISTORY).messages)
    assert len(truncate_history(HISTORY).messages) == 6
    assert mask_observation(SEEN) == "[observation masked — 4200 chars]"


@given(histories(), st.integers(0, 5))
def test_stage_1_alone_masks_what_the_reducer_masks(history: list[dict[str, Any]], keep: int) -> None:
    alone = mask_observations(history, keep_messages=keep)
    least = min(count_chars(history) - 1, alone.chars_after)
    if alone.masked_count and least == alone.chars_after:
        budget = {"max_input_chars": least, "preserve_recent_raw_turns": keep}
        assert HistoryReducer().reduce(history, budget).messages == alone.messages
    data = json.dumps(history).encode()
    assert json.loads(mask_observations_json(data, keep_messages=keep).json) == alone.messages


def test_stage_1_alone_masks_results_that_no_request_has_shown() -> None:
    calls = [{"id": str(n), "type": "function", "function": {"name": "read", "arguments": "{}"}} for n in range(9)]
    results = [{"role": "tool", "tool_call_id": str(n), "content": SEEN} for n in range(9)]
    history = [{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": calls}, *results]
    assert mask_observations(history, keep_messages=4).masked_count == 5
    assert mask_observations(history, keep_messages=4) == mask_observations(
        history, keep_messages=4, boundary="sliding"
    )


@row("within the budget nothing changes", "with nothing to mask, a summary")
def test_within_the_budget_nothing_changes() -> None:
    exact = reduced(count_chars(HISTORY))
    assert exact.messages is HISTORY and not exact.reduced
    talk = [{"role": "user" if n % 2 else "assistant", "content": "word " * 90} for n in range(30)]
    result = reduced(5_000, talk)
    assert (result.masked_count, result.reduction_stage) == (0, "summarization")


@row("linear in the number of messages", "a Rust core, a mirror in plain Python, thousands of turns")
@pytest.mark.parametrize("engine_name", ENGINES)
def test_thousands_of_turns(engine_name: str) -> None:
    """Its time is measured by `make bench`; here both engines answer the same."""
    history = history_of(2_000, "word " * 20)
    with using(engine_name):
        result = reduced(250_000, history)
    assert (result.reduction_stage, result.masked_count, len(result.messages)) == ("masking", 1_998, 4_002)


@row("the options on the command line")
def test_the_command_takes_the_options(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(HISTORY))
    limit = ["--design", "--max-input-chars", 30_000]
    by_results = json.loads(recede_command("reduce", *limit, "--keep", 3, path).stdout)
    assert [m["content"] == SEEN for m in by_results if m["role"] == "tool"] == [False] * 7 + [True] * 3
    options = ["--keep-messages", 2, "--max-observation-chars", 500, "--summary-max-chars", 900]
    by_messages = json.loads(recede_command("reduce", *limit, *options, path).stdout)
    assert by_messages == reduced(30_000, preserve_recent_raw_turns=2, max_observation_chars=500).messages
    refused = recede_command("reduce", *limit, "--summary-max-chars", 10, path)
    assert refused.returncode == 2 and b"x>=" in refused.stderr
