"""Real transcripts at many budgets: their views degrade evenly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import published
import pytest
from answers import numbered
from asked import WAITS, Asked
from even import all_masked, budgets_of, check_budgets, failing, task_of
from shared_data import CORPUS, corpus_files, each_file, need, sources
from test_corpus import history_of

import recede
import recede.transcripts
from oracle.walk import walk
from support import ENGINES, dumps, facts, loads, using

BUDGETS = 64
# What the oracle reads of one file in the quick run, and at how many budgets.
MIRROR_CHARS, MIRROR_BUDGETS = 120_000, 4

Recorder = Callable[[str, object], None]
History = list[dict[str, Any]]


def histories_of(path: Path) -> Iterator[History]:
    for source in sources(path):
        history = history_of(source.text)
        if all(isinstance(message, dict) for message in history):
            yield numbered(history)


@each_file()
def test_views_degrade_evenly(path: Path, record_property: Recorder) -> None:
    need(CORPUS)
    for history in histories_of(path):
        with using("core"):
            check_budgets(history, BUDGETS // 4)
            check_budgets(history, BUDGETS // 8, fill=0.5, clip_results=1_000, keep_results=5, summarizer=failing)
        record_property("read: histories at many budgets", path.name)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@each_file()
def test_views_degrade_evenly_at_many_budgets(path: Path) -> None:
    need(CORPUS)
    for history in histories_of(path):
        with using("core"):
            check_budgets(history, BUDGETS)


def assert_engines_agree(history: History, count: int) -> None:
    raw = dumps(history)
    for budget in budgets_of(recede.count_chars(history), count):
        for options in ({}, {"fill": 0.5, "clip_results": 1_000}):
            answers = []
            for engine in ENGINES:
                with using(engine):
                    serialized = published.reduce_json(raw, max_input_chars=budget, **options)  # type: ignore[arg-type]
                    reduction = published.reduce(history, max_input_chars=budget, **options)  # type: ignore[arg-type]
                assert loads(serialized.json) == reduction.messages
                assert facts(serialized) == facts(reduction)
                answers.append((serialized.json, facts(serialized)))
            assert all(answer == answers[0] for answer in answers)


@each_file()
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
@each_file()
def test_engines_agree_at_many_budgets(path: Path) -> None:
    need(CORPUS)
    for history in histories_of(path):
        assert_engines_agree(history, BUDGETS)


@each_file("codex")
def test_the_task_of_codex_stays(path: Path) -> None:
    """Codex begins with a message about the environment; the task comes second."""
    need(CORPUS)
    history = numbered(recede.transcripts.read(path).messages)
    environment, task = task_of(history)
    assert "<environment_context>" in str(history[environment]["content"])
    chars = recede.count_chars([history[task]])
    for engine in ENGINES:
        with using(engine):
            for budget in (5 * 4 * chars, 40_000, 100):
                shown = [
                    message
                    for message in published.reduce(history, max_input_chars=budget).messages
                    if message.get("place") == task
                ]
                assert shown == [history[task]] or recede.count_chars(shown) >= 220
            view = published.reduce(history, max_input_chars=60_000)
            assert {environment, task} <= {message.get("place") for message in view.messages}


@pytest.mark.parametrize("tokens", [8_000, 20_000])
@each_file()
def test_a_compacted_session_has_room_and_keeps_its_task(path: Path, tokens: int) -> None:
    need(CORPUS)
    for history in histories_of(path):
        summaries: list[int] = []

        def summarizer(messages: list[Any], previous: str | None, summaries: list[int] = summaries) -> str:
            summaries.append(len(messages))
            return f"Summary {len(summaries)}."

        session = published.History(max_input_tokens=tokens, summarizer=summarizer)
        made, task = 0, task_of(history)[-1:]
        for place, message in enumerate(history):
            session.append(message)
            if place + 1 < len(history) and history[place + 1].get("role") not in ("assistant", "model"):
                continue
            view, view_tokens = session.view(), session.stats().view_tokens
            turns = published.reduce(view, max_input_chars=0, enabled=False).turns
            assert view_tokens <= tokens or turns <= 1, "only the newest turn alone is over the budget"
            if len(summaries) > made:
                # Half of it, and where the window takes nearly that, an eighth each for task and summary.
                assert view_tokens <= 0.75 * tokens or turns <= 1, "the rest is for what comes"
                assert set(task) <= {message.get("place") for message in view}
            made = len(summaries)
        assert session.messages == history


def _requests(history: History) -> Iterator[tuple[Any, bool]]:
    """Each message, and whether a request is made after it."""
    is_answer = [message.is_agent_made for message in walk(history).messages]
    for message, (is_now, is_next) in zip(history, pairwise([*is_answer, True]), strict=True):
        yield message, is_next and not is_now


@pytest.mark.parametrize("tokens", [8_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_session_is_compacted_once_for_what_the_view_before_has_left(tokens: int) -> None:
    need(CORPUS)
    budget, clipped, compactions = 4 * tokens, 4_000, 0
    for history in (history for path in corpus_files() for history in histories_of(path)):
        session = published.History(
            max_input_tokens=tokens, summarizer=lambda messages, previous: "It went well. " * 999
        )
        base: History = []  # the view that hid messages last
        new: History = []
        least: int | None = None
        for message, is_request in _requests(history):
            session.append(message)
            new.append(message)
            if not is_request or len(view := session.view()) == len(base) + len(new):
                continue
            masked = all_masked([*base, *new])
            added = published.mask_observations(masked[len(base) :], keep_turns=0, max_observation_chars=clipped)
            compactions += least is not None
            assert least is None or added.chars_after > least
            least = budget - recede.count_chars(view)
            base, new = view, []
    assert compactions > 10


@pytest.mark.parametrize(
    ("tokens", "answer"), [(8_000, "raises"), pytest.param(20_000, "empty", marks=pytest.mark.slow)]
)
def test_a_failing_summarizer_is_asked_after_enough_turns_and_a_quarter_of_the_budget(tokens: int, answer: str) -> None:
    need(CORPUS)
    most = 0
    for history in (history for path in corpus_files() for history in histories_of(path)):
        asked: list[int] = []  # after so many messages
        summarizer = Asked([answer])
        session = published.History(max_input_tokens=tokens, summarizer=summarizer)
        for message, is_request in _requests(history):
            session.append(message)
            if is_request:
                session.view()
                assert len(summarizer.calls) - len(asked) in (0, 1)
                asked += [len(session)] * (len(summarizer.calls) - len(asked))
        for wait, (before, after) in zip([*WAITS, *[WAITS[-1]] * len(asked)], pairwise(asked), strict=False):
            turns = [published.reduce(history[:end], max_input_chars=0, enabled=False).turns for end in (before, after)]
            assert turns[1] - turns[0] >= wait
            assert recede.count_chars(history[before:after]) >= tokens
        most = max(most, len(asked))
    assert most > 3
