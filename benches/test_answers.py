"""Rivals answer as recede does, and what `make bench` runs does run: at small sizes, whatever the times."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import maskers
import pytest

import contenders
import histories
import jobs
import measuring
import table
import tuned
from claims import FULL, QUICK, Claim, Plan, Section, at_least


@pytest.mark.parametrize("size", [20, 1_000])
def test_answers_agree(size: int) -> None:
    contenders.compare_answers(contenders.make_case(size))


def test_another_answer_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned, "LEAST", 4_000)
    case = contenders.make_case(100)
    with pytest.raises(SystemExit, match="gives another answer than recede"):
        contenders.compare_answers(case)


def test_a_masker_answers_as_reduce() -> None:
    assert maskers.masker_calls(60)


def test_views_of_a_corpus_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import corpora

    corpus = corpora.generate(tmp_path / "corpus.parquet", 1.5)
    found = corpora.measure(corpus, tmp_path, threads=2)
    assert len(found) == 8
    assert all(ratio > 0 for _, ratio, *_ in found)


@pytest.mark.parametrize("shape", histories.SHAPES)
def test_answers_agree_in_every_shape(shape: histories.Shape) -> None:
    contenders.compare_answers(contenders.make_case(300, shape))
    contenders.compare_answers(contenders.make_case(300, shape, "ascii"))


def _plant(messages: list[histories.Message], shape: histories.Shape) -> None:
    """Change some old observations into the texts that masking treats in another way."""
    texts = [
        tuned.PLACEHOLDER,
        "x" * tuned.LEAST,
        "é" * (tuned.LEAST - 1),
        f"BEGIN_DISPATCH_RESULT{'x' * tuned.LEAST}END_DISPATCH_RESULT",
        "[observation masked — 5 chars]",
        "short",
        "",
    ]
    holders = [
        block
        for message in messages[:-8]
        for block in (message["content"] if isinstance(message.get("content"), list) else [message])
        if message.get("role") == "tool" or block.get("type") in ("tool_result", "function_call_output")
    ]
    for holder, text in zip(holders[3:], texts, strict=False):
        holder["output" if shape == "responses" else "content"] = text


@pytest.mark.parametrize("shape", tuned.TUNED)
@pytest.mark.parametrize("damage", ["none", "texts", "dropped_result", "dropped_call", "cut", "repeated_ids"])
def test_tuned_loops_answer_as_recede_on_odd_histories(shape: histories.Shape, damage: str) -> None:
    messages = histories.history(60, shape=shape, seed=7)
    if damage == "texts":
        _plant(messages, shape)
    elif damage in ("dropped_result", "dropped_call"):
        del messages[21 if messages[20].get("role") == "assistant" and damage == "dropped_result" else 20]
    elif damage == "cut":
        last_result = max(index for index, message in enumerate(messages) if message.get("role") == "assistant")
        del messages[last_result + 1 :]
    elif damage == "repeated_ids":
        ids: dict[str, str] = {}
        text = re.sub(
            "call_[0-9a-f]{16}", lambda found: ids.setdefault(found[0], f"call_{len(ids) % 3}"), json.dumps(messages)
        )
        messages = json.loads(text)
    ours = contenders.own_figures(contenders.reduced(messages))
    assert tuned.clear(messages) == ours
    assert tuned.TUNED[shape](messages) == ours


SHORT = 0.001
JOBS: dict[str, dict[str, Any]] = {
    "from_bytes": {"messages": 20, "shape": "openai", "style": "compact", "seconds": SHORT, "names": None},
    "from_dicts": {"messages": 20, "shape": "responses", "seconds": SHORT},
    "untouched": {"messages": 20, "seconds": SHORT},
    "two_threads": {"messages": 20, "seconds": SHORT},
    "against_copies": {"messages": 20, "seconds": SHORT},
    "hostile": {"scale": 0.001, "seconds": SHORT},
    "small": {"seconds": SHORT},
    "break_even": {"messages": 300, "seconds": SHORT},
    "turns": {"marks": [20, 210], "oracle_until": 100},
    "contexts": {"turns": 30, "rounds": 1},
    "start_times": {"codes": ["pass"], "rounds": 1},
    "store_appends": {"turns": 20, "together": 5, "rounds": 1},
    "store_reads": {"turns": 1_200, "gets": 50, "seconds": SHORT},
}


def _numbers(found: Any) -> list[float]:
    if isinstance(found, dict):
        found = list(found.values())
    return [number for inner in found for number in _numbers(inner)] if isinstance(found, list) else [found]


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_each_job_measures_something(name: str) -> None:
    numbers = _numbers(jobs.JOBS[name](**JOBS[name]))
    assert numbers and all(0 < number < float("inf") for number in numbers)


def test_no_job_is_left_out() -> None:
    in_child = {
        "write_history",
        "peak_memory",
        "write_messages",
        "session_memory",
        "stored_history",
        "core_times",
        "store_growth",
        "masker_calls",
        "masker_memory",
    }
    assert set(JOBS) | in_child == set(jobs.JOBS)


@pytest.mark.slow
def test_a_job_runs_in_a_child() -> None:
    found = measuring.in_child("from_bytes", **JOBS["from_bytes"], environment={"RECEDE_SCANNER": "word"})
    assert set(found["times"]) == set(contenders.bytes_contenders(contenders.make_case(20)))


@pytest.mark.parametrize("style", ["compact", "ascii"])
def test_a_history_in_pieces_is_one_and_its_records_are_counted(tmp_path: Path, style: histories.Style) -> None:
    path = tmp_path / "history.json"
    told = jobs.write_history(str(path), 2, 50, style)
    messages = json.loads(path.read_bytes())
    calls = sum(len(message.get("tool_calls") or ()) for message in messages)
    results = sum(message["role"] == "tool" for message in messages)
    assert told == {"records": 100 + calls + results}


@pytest.mark.skipif(not measuring.can_measure_memory(), reason="this system does not tell the peak of memory")
@pytest.mark.slow
@pytest.mark.parametrize("form", ["bytes", "str", "bytearray"])
def test_peak_memory_holds_input_and_output(tmp_path: Path, form: str) -> None:
    path = tmp_path / "history.json"
    jobs.write_history(str(path), 1, 12_000, "compact")  # much more than an interpreter may have free
    # In a child, as the table does: here the memory may have been there before.
    found = measuring.in_child("peak_memory", path=str(path), form=form)
    assert found["utf8"] == path.stat().st_size
    assert found["peak"] > 0.9 * (found["input"] + found["output"])


@pytest.mark.skipif(not measuring.can_measure_memory(), reason="this system does not tell the peak of memory")
@pytest.mark.slow
def test_a_session_holds_its_text(tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    raw = jobs.write_messages(str(path), 11_000)["bytes"]
    assert raw == sum(len(line) for line in path.read_bytes().splitlines())
    found = measuring.in_child("session_memory", path=str(path))
    assert found["messages"] == 11_000 and found["view"] < raw < 1.1 * found["held"]


@pytest.mark.skipif(not measuring.can_measure_memory(), reason="this system does not tell the peak of memory")
@pytest.mark.slow
def test_a_store_grows_by_its_marks() -> None:
    found = measuring.in_child("store_growth", marks=[1_000, 3_000])
    assert list(found["marks"]) == ["1000", "3000"] and found["peak"] >= found["before"]
    assert found["marks"]["1000"]["bytes"] < found["marks"]["3000"]["bytes"]


@pytest.mark.skipif(not measuring.can_measure_memory(), reason="this system does not tell the peak of memory")
@pytest.mark.slow
def test_sessions_with_a_store_are_measured(tmp_path: Path) -> None:
    found = measuring.in_child("stored_history", path=str(tmp_path / "session.store"), turns=3_000)
    assert found["peak"] > 0
    assert found["file"] > 3_000 * 40 * len("line 1 of the log\n")


# The table


def test_a_claim_is_judged_by_its_target() -> None:
    assert at_least("1", "this", 2.0, 2.0, "that").is_met
    missed = at_least("1", "this", 1.99, 2.0, "1 ms against 2 ms", ", hoped for 3x")
    assert missed == Claim("1", "this", "1.99x (1 ms against 2 ms)", "at least 2x, hoped for 3x", False)
    assert [table.verdict(missed), table.verdict(missed._replace(is_met=None))] == ["**missed**", ""]


def test_the_table_has_each_claim_and_what_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    def fast(plan: Plan) -> Section:
        return Section([Claim("2", "it", "1 ms", "at most 2 ms", True), Claim("2", "more", "3 ms")], "## Details")

    def slow(plan: Plan) -> Section:
        return Section([Claim("1", "that", "3 ms", "at most 2 ms", False)], "")

    monkeypatch.setattr(table, "SECTIONS", [fast, slow])
    text = table.report(QUICK, [])
    assert "1 of 2 met" in text and "## Details" in text and "A quick run" in text
    rows = [line for line in text.splitlines() if re.match(r"\| [0-9] ", line)]
    assert rows == [
        "| 1 | that | 3 ms | at most 2 ms | **missed** |",
        "| 2 | it | 1 ms | at most 2 ms | met |",
        "| 2 | more | 3 ms |  |  |",
    ]
    only = table.report(FULL, ["fast"])
    assert "that" not in only.split("## What to reach")[1].split("## To repeat it")[0]
    assert "A quick run" not in only
