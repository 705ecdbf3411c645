"""Recorded sessions under a budget: when they are compacted, and what room that leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import published
import pytest
from answers import numbered
from even import all_masked, task_of
from shared_data import CORPUS, corpus_files, each_file, need, sources
from test_corpus import history_of

import recede
import recede.transcripts
from oracle.walk import walk

History = list[dict[str, Any]]


def histories_of(path: Path) -> Iterator[History]:
    for source in sources(path):
        history = history_of(source.text)
        if all(isinstance(message, dict) for message in history):
            yield numbered(history)


def newest_of(history: History, outline: Sequence[Any]) -> tuple[float, float]:
    """Tokens of what is after the last answer, and of the newest turn with it: both stay whole."""
    last = max((index for index, message in enumerate(outline) if message.is_agent_made), default=-1)
    start = next((index + 1 for index in range(last, -1, -1) if outline[index].role == "user"), 0)
    return recede.count_chars(history[last + 1 :]) / 4, recede.count_chars(history[start:]) / 4


@pytest.mark.parametrize("tokens", [8_000, 20_000])
@each_file()
def test_a_compacted_session_has_room_and_keeps_its_task(path: Path, tokens: int) -> None:
    for history in histories_of(path):
        summaries: list[int] = []

        def summarizer(messages: list[Any], previous: str | None, summaries: list[int] = summaries) -> str:
            summaries.append(len(messages))
            return f"Summary {len(summaries)}."

        session = published.History(max_input_tokens=tokens, summarizer=summarizer)
        made, task, outline = 0, task_of(history)[-1:], walk(history).messages
        for place, message in enumerate(history):
            session.append(message)
            if place + 1 < len(history) and history[place + 1].get("role") not in ("assistant", "model"):
                continue
            view, view_tokens = session.view(), session.stats().view_tokens
            unseen, newest = newest_of(history[: place + 1], outline[: place + 1])
            assert view_tokens <= tokens or unseen > tokens, "only what no request has shown is over the budget"
            if len(summaries) > made:
                # Half of it, and where the window takes nearly that, an eighth each for task and summary.
                assert view_tokens <= 0.75 * tokens or newest > tokens / 4, "the rest is for what comes"
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
