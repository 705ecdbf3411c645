"""Real transcripts at many budgets: their views degrade evenly."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import numbered
from even import task_of
from shared_data import CORPUS, corpus_files, need, sources
from test_corpus import history_of, name_of

import recede
import recede.transcripts
from support import built_engines, dumps, facts, findings, loads, using

FILES = corpus_files()
BUDGETS = 64
# A larger file is read at a quarter of them in the quick run.
QUICK_CHARS = 300_000
# What the mirror reads of one file in the quick run, and at how many budgets.
MIRROR_CHARS, MIRROR_BUDGETS = 120_000, 4

Recorder = Callable[[str, object], None]
History = list[dict[str, Any]]


def budgets_of(chars: int, count: int) -> list[int]:
    """From 300 characters to the whole history, each so many times the one before."""
    return sorted({int(300 * (max(chars, 301) / 300) ** (step / (count - 1))) for step in range(count)})


def failing(messages: list[Any], previous: str | None) -> str:
    raise ValueError("no summary")


def check_budgets(history: History, count: int, **options: Any) -> None:
    """The properties of tests/property/test_even_budgets.py, and that bytes give the same as dicts."""
    before = copy.deepcopy(history)
    orphans = {(kind, call_id) for kind, _, call_id in findings(history) if kind != "open_call"}
    rule: dict[str, Any] = {**options, "fill": None, "clip_results": None, "summarizer": failing}
    published = recede.reduce(history, max_input_chars=0, **rule)
    chars, newest_task = recede.count_chars(history), set(task_of(history)[-1:])
    smaller: set[int] = set()
    unchanged: set[int] = set()
    for budget in budgets_of(chars, count):
        view = recede.reduce(history, max_input_chars=budget, **options)
        assert view.within_budget is (view.chars_after <= budget)
        assert view.chars_after == recede.count_chars(view.messages)
        assert view.within_budget or published.chars_after + 220 > budget
        assert {(kind, i) for kind, _, i in findings(view.messages) if kind != "open_call"} <= orphans
        kept = {message["place"] for message in view.messages if "place" in message}
        whole = {message["place"] for message in view.messages if message is history[message.get("place", 0)]}
        assert smaller <= kept and unchanged <= whole, "a larger budget never keeps less"
        smaller, unchanged = kept, whole
        if view.reduced and chars > budget:
            assert newest_task <= kept
    assert history == before, "the input was changed"


def histories_of(path: Path) -> Iterator[History]:
    for source in sources(path):
        history = history_of(source.text)
        if all(isinstance(message, dict) for message in history):
            yield numbered(history)


@pytest.mark.parametrize("path", FILES or [None], ids=lambda path: name_of(path) if path else "absent")
def test_views_degrade_evenly(path: Path, record_property: Recorder) -> None:
    need(CORPUS)
    histories = list(histories_of(path))
    is_large = sum(map(recede.count_chars, histories)) > QUICK_CHARS
    for history in histories:
        with using(built_engines()[0]):
            check_budgets(history, BUDGETS // 4 if is_large else BUDGETS)
            check_budgets(history, BUDGETS // 8, fill=0.5, clip_results=1_000, keep_results=5, summarizer=failing)
        record_property("read: histories at many budgets", path.name)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("path", FILES or [None], ids=lambda path: name_of(path) if path else "absent")
def test_views_degrade_evenly_at_many_budgets(path: Path) -> None:
    need(CORPUS)
    for history in histories_of(path):
        with using(built_engines()[0]):
            check_budgets(history, BUDGETS)


def assert_engines_agree(history: History, count: int) -> None:
    raw = dumps(history)
    for budget in budgets_of(recede.count_chars(history), count):
        for options in ({}, {"fill": 0.5, "clip_results": 1_000}):
            answers = []
            for engine in built_engines():
                with using(engine):
                    serialized = recede.reduce_json(raw, max_input_chars=budget, **options)  # type: ignore[arg-type]
                    reduction = recede.reduce(history, max_input_chars=budget, **options)  # type: ignore[arg-type]
                assert loads(serialized.json) == reduction.messages
                assert facts(serialized) == facts(reduction)
                answers.append((serialized.json, facts(serialized)))
            assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("path", FILES or [None], ids=lambda path: name_of(path) if path else "absent")
def test_engines_agree(path: Path, record_property: Recorder) -> None:
    need(CORPUS)
    left = MIRROR_CHARS
    for history in histories_of(path):
        left -= recede.count_chars(history)
        if left >= 0:
            assert_engines_agree(history, MIRROR_BUDGETS)
            record_property("read: histories that both engines reduce", path.name)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("path", FILES or [None], ids=lambda path: name_of(path) if path else "absent")
def test_engines_agree_at_many_budgets(path: Path) -> None:
    need(CORPUS)
    for history in histories_of(path):
        assert_engines_agree(history, BUDGETS)


CODEX = [path for path in FILES if path.parent.name == "codex"]


@pytest.mark.parametrize("path", CODEX or [None], ids=lambda path: name_of(path) if path else "absent")
def test_the_task_of_codex_stays(path: Path) -> None:
    """Codex begins with a message about the environment; the task comes second."""
    need(CORPUS)
    history = numbered(recede.transcripts.read(path).messages)
    environment, task = task_of(history)
    assert "<environment_context>" in str(history[environment]["content"])
    chars = recede.count_chars([history[task]])
    for engine in built_engines():
        with using(engine):
            for budget in (5 * 4 * chars, 40_000, 100):
                shown = [
                    message
                    for message in recede.reduce(history, max_input_chars=budget).messages
                    if message.get("place") == task
                ]
                assert shown == [history[task]] or recede.count_chars(shown) >= 220
            view = recede.reduce(history, max_input_chars=60_000)
            assert {environment, task} <= {message.get("place") for message in view.messages}


@pytest.mark.parametrize("tokens", [8_000, 20_000])
@pytest.mark.parametrize("path", FILES or [None], ids=lambda path: name_of(path) if path else "absent")
def test_a_compacted_session_has_room_and_keeps_its_task(path: Path, tokens: int) -> None:
    need(CORPUS)
    if "rust" not in built_engines():
        pytest.skip("a session needs the core")
    for history in histories_of(path):
        summaries: list[int] = []

        def summarizer(messages: list[Any], previous: str | None, summaries: list[int] = summaries) -> str:
            summaries.append(len(messages))
            return f"Summary {len(summaries)}."

        session = recede.History(max_input_tokens=tokens, summarizer=summarizer)
        made, task = 0, task_of(history)[-1:]
        for place, message in enumerate(history):
            session.append(message)
            if place + 1 < len(history) and history[place + 1].get("role") not in ("assistant", "model"):
                continue
            view, view_tokens = session.view(), session.stats().view_tokens
            turns = recede.reduce(view, max_input_chars=0, enabled=False).turns
            assert view_tokens <= tokens or turns <= 1, "only the newest turn alone is over the budget"
            if len(summaries) > made:
                # Half of it, and where the window takes nearly that, an eighth each for task and summary.
                assert view_tokens <= 0.75 * tokens or turns <= 1, "the rest is for what comes"
                assert set(task) <= {message.get("place") for message in view}
            made = len(summaries)
        assert session.messages == history
