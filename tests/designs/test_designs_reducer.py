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

import recede
from recede import count_chars
from recede.designs import HistoryReducer, mask_observation, summarize_history, truncate_history
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


@row(
    "results outside the window are masked before anything is dropped",
    "`[observation masked — {n} chars]`; the message around it stays",
    "calls stay in full",
    "the reasoning of the assistant stays in full",
    "a masked result keeps its call",
    "no orphans are made",
    "`pairId`, `pairRole`, `role`, `toolCallId` stay",
    "pure: the input is not changed",
    "the invariants hold after masking",
    "a view is never larger than its history",
    "`maskedCount`",
    "`maskedChars`",
    "`reductionStage`",
    "`droppedCount`, `reduced`, `invariantStatus`",
    "`reduce(messages, options)` gives a result object",
    "masking is on by default",
    "about half of the context",
)
def test_stage_1() -> None:
    result = reduced()
    assert (result.reduced, result.reduction_stage, result.dropped_count) == (True, "masking", 0)
    assert (result.masked_count, result.masked_chars) == (8, 8 * (4_200 - len("[observation masked — 4200 chars]")))
    assert result.invariant_status == "ok" and result.within_budget
    assert len(result.messages) == len(HISTORY)
    for message, before in zip(result.messages, HISTORY, strict=True):
        if message is not before:
            assert before["role"] == "tool"
            assert message == {**before, "content": "[observation masked — 4200 chars]"}
            assert list(message) == list(before)
    assert [m is b for m, b in zip(result.messages, HISTORY, strict=True)][-4:] == [True] * 4
    assert result.chars_after < result.chars_before / 2
    assert result[0] is result.messages and "Reduction" in repr(result)
    assert published.reduce(HISTORY, max_input_chars=12_000, fill=None).messages == result.messages


@row("user messages are never masked, nor those of role user or assistant with the pair role of a result")
def test_only_results_of_tools_are_masked() -> None:
    for role in ("user", "assistant"):
        said = [{"role": role, "content": SEEN, "pairRole": "result", "pairId": str(n)} for n in range(9)]
        masked = published.mask_observations(said, keep_messages=0, boundary="sliding")
        assert masked.masked_count == 0 and masked.messages == said


@row(
    "if masking is enough, nothing is dropped",
    "the order: mask, summarize, truncate",
    "no summary where masking is enough",
    'fallback, with `invariantStatus` "fallback"',
)
def test_the_order_of_the_stages() -> None:
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
    assert (fallback.invariant_status, fallback.within_budget) == ("fallback", False)


@row(
    "messages that are neither recent nor of the system are summarized",
    "`buildSummary` works on the masked messages",
    "messages tagged `constraint` and `unresolved` reach the summary",
)
def test_the_summary() -> None:
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
def test_the_fallback_keeps_the_task() -> None:
    view = reduced(1_000).messages
    assert view[:2] == HISTORY[:2] and view[-4:] == HISTORY[-4:]
    assert truncate_history(HISTORY).messages[:2] == HISTORY[:2]


@row("`observationMasking: false`", "`enabled: false`", "nothing changes for who does not opt in")
def test_opting_out(tmp_path: Path) -> None:
    result = reduced(9_000, observation_masking=False)
    assert (result.reduction_stage, result.masked_count) == ("summarization", 0)
    off = reduced(enabled=False)
    assert (off.messages, off.reduced, off.reduction_stage) == (HISTORY, False, None)
    assert off.messages is HISTORY
    path = tmp_path / "session.json"
    path.write_text(json.dumps(HISTORY))
    said = recede_command("reduce", "--design", "--max-input-chars", 9_000, "--no-mask", path)
    assert b"observation masked" not in said.stdout and said.returncode == 0


@row("`maxObservationChars` truncates", "`maxObservationChars` is 80 by default, for the placeholder")
def test_max_observation_chars() -> None:
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
def test_the_window_counts_messages() -> None:
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
def test_orphans_of_the_input() -> None:
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
def test_dispatch() -> None:
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
def test_stages_alone() -> None:
    for window in ({"keep_messages": 4}, {"keep_turns": 2}, {"keep_results": 2}):
        masked = published.mask_observations(HISTORY, **window, boundary="sliding")  # type: ignore[arg-type]
        assert (masked.masked_count, masked.masked_chars) == (8, 8 * 4_167)
    assert any(m["content"].startswith("Conversation summary:") for m in summarize_history(HISTORY).messages)
    assert len(truncate_history(HISTORY).messages) == 6
    assert mask_observation(SEEN) == "[observation masked — 4200 chars]"


@row("within the budget nothing changes", "with nothing to mask, a summary")
def test_the_edges_of_the_budget() -> None:
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
