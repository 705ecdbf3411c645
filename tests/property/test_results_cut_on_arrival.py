"""Results that are cut when they arrive: against the cut of each text; masked, saved, stored and rewound."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import published
import pytest
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import own_options

import recede
from oracle.clip import clip
from recede.masker import Masker
from recede.store import TurnStore
from support import call, handle_of, result, unmarked, user

LONG = st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=9), st.integers(1, 60))
TEXTS = st.one_of(LONG, LONG.map(lambda text: str(clip(text, 60).text)), st.text(max_size=5))


def session_of(texts: list[str]) -> list[Any]:
    messages: list[Any] = [user("Go.")]
    for number, text in enumerate(texts):
        messages += [call(str(number)), result(str(number), text)]
    return messages


def cut(text: str, max_chars: int, id: str | None = None) -> str:
    """The definition."""
    if len(text) <= max_chars or recede.designs.mask_observation(text) == text:
        return text
    return str(clip(text, max_chars, recall=None if id is None else handle_of(id, text)).text)


def views_of(history: recede.History, messages: list[Any]) -> list[list[Any]]:
    """The view before each message of the agent, and the last one."""
    views = []
    for message in messages:
        if message.get("role") == "assistant":
            views.append(history.view())
        history.append(message)
    return [*views, history.view()]


@given(texts=st.lists(TEXTS, max_size=6), max_chars=st.integers(60, 200), recall=st.booleans())
def test_each_long_result_keeps_its_ends(texts: list[str], max_chars: int, recall: bool) -> None:
    messages = session_of(texts)
    history = recede.History(max_result_chars=max_chars, recall=recall)
    views = views_of(history, messages)
    whole = session_of([cut(text, max_chars, str(number) if recall else None) for number, text in enumerate(texts)])
    assert views == [whole[: len(view)] for view in views]
    assert views[-1] == whole
    assert [history.recall(number) for number in range(1, len(texts) + 1)] == texts
    assert history.stats().masked_count == 0
    assert history.stats().raw_chars == recede.count_chars(messages)
    assert history.stats().view_chars == recede.count_chars(whole)


@given(history=histories(), options=own_options(), max_chars=st.integers(60, 120))
def test_every_other_rule_sees_the_cut_text(history: list[Any], options: dict[str, Any], max_chars: int) -> None:
    """Where nothing is masked all is cut; that cut history is masked as the given one is."""
    exempt = {
        name: options[name]
        for name in ("exclude_tools", "keep_errors", "keep_matching", "placeholder")
        if name in options
    }
    options |= {"max_result_chars": max_chars}
    cut_history = recede.reduce(history, keep=10**9, max_result_chars=max_chars, **exempt)
    both = recede.reduce(history, **options)
    assert both.messages == recede.reduce(cut_history.messages, **{**options, "max_result_chars": None}).messages
    assert cut_history.chars_before - cut_history.clipped_chars == cut_history.chars_after
    assert cut_history.chars_after == recede.count_chars(cut_history.messages)
    assert both.chars_before - both.clipped_chars - both.masked_chars == both.chars_after
    pairs = zip(history, both.messages, strict=True)
    assert all(recede.count_chars([new]) <= recede.count_chars([old]) for old, new in pairs)


@given(history=histories(), options=own_options(), max_chars=st.integers(60, 120), at=st.integers(0, 30))
def test_sessions_and_maskers_cut_like_reduce(
    history: list[Any], options: dict[str, Any], max_chars: int, at: int
) -> None:
    options |= {"max_result_chars": max_chars}
    options.pop("cold", None)
    made, masker = recede.History(**options), Masker(**options)
    for end, message in enumerate(history, 1):
        made.append(message)
        expected = recede.reduce(history[:end], **options).messages
        assert unmarked(made.view()) == unmarked(expected)  # of the marks a history sends the newest
        assert masker.view(history[:end]) == expected
    assert made.messages == history
    at = min(at, len(history))
    made.rewind(at)
    assert unmarked(made.view()) == unmarked(recede.reduce(history[:at], **options).messages)
    made.extend(history[at:])
    assert unmarked(made.view()) == unmarked(recede.reduce(history, **options).messages)


@given(history=histories(), max_chars=st.integers(60, 120))
def test_no_request_changes_what_an_earlier_one_sent(history: list[Any], max_chars: int) -> None:
    before: list[Any] = []
    for end in range(len(history) + 1):
        view = recede.reduce(history[:end], max_result_chars=max_chars, keep=10**9).messages
        assert view[: len(before)] == before
        before = view


@pytest.mark.parametrize("keep", [3, 10**6])
def test_a_saved_or_stored_history_goes_on_cutting(tmp_path: Path, keep: int) -> None:
    texts = [f"{number} a line of the output\n" * (number % 7 * 30) for number in range(1_400)]
    messages = session_of(texts)
    options: dict[str, Any] = {"max_result_chars": 400, "boundary": "sliding", "keep": keep}

    def view(end: int | None = None) -> list[Any]:
        return list(recede.reduce(messages[:end], **options).messages)

    path = tmp_path / "session.db"
    with TurnStore(path) as store:
        history = recede.History(**options, store=store)
        history.extend(messages[:2_001])
        assert history.view() == view(2_001)
    with TurnStore(path) as store:
        history = recede.History(**options, store=store)
        history.extend(messages[2_001:])
        assert history.view() == view()
        assert [history.recall(number) for number in (1, 500, 1_400)] == [texts[0], texts[499], texts[1_399]]
        history.rewind(1_501)
        assert history.view() == view(1_501)
        history.save(tmp_path / "saved")
    loaded = recede.History.load(tmp_path / "saved")
    loaded.extend(messages[1_501:])
    assert loaded.view() == view()
    assert loaded.recall(500) == texts[499]


def test_results_that_are_never_masked_are_never_cut() -> None:
    texts = ["x" * 500, "keep: " + "x" * 500]
    view = recede.reduce(session_of(texts), max_result_chars=60, keep_matching=["keep: "]).messages
    assert [len(message["content"]) for message in view if message["role"] == "tool"] == [60, *map(len, texts[1:])]
    excluded = recede.reduce(session_of(texts), max_result_chars=60, exclude_tools=["*"])
    assert excluded.messages == session_of(texts)
    assert not excluded.reduced


def test_a_summarizer_is_given_whole_texts_and_the_limit_counts_cut_ones() -> None:
    texts = [f"{number} " + "a line of the output\n" * 200 for number in range(40)]
    given: list[Any] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        given.extend(messages)
        return "All is well."

    messages = session_of(texts)
    options: dict[str, Any] = {"max_result_chars": 400, "keep": 50, "boundary": "sliding"}
    roomy = recede.reduce(messages, max_input_tokens=5_000, **options)
    assert roomy.within_limit
    assert (roomy.clipped_count, roomy.masked_count, roomy.dropped_count) == (40, 0, 0)
    tight = published.reduce(
        messages, max_input_tokens=500, max_result_chars=400, keep_results=5, fill=0.5, summarizer=summarizer
    )
    assert tight.dropped_count > 0
    assert given
    assert all(message in messages for message in given)
    history = recede.History(max_input_tokens=500, summarizer=summarizer, max_result_chars=400)
    given.clear()
    views_of(history, messages)
    assert given
    assert all(message in messages for message in given)


def test_recall_gives_the_whole_text_after_a_compaction_too() -> None:
    """A result that was cut keeps the handle of its whole text, also where a compaction made the cut the session's."""
    texts = [f"{number} " + f"word{number} " * (2_500 if number % 3 == 2 else 150) for number in range(40)]
    for cuts in ({}, {"max_result_chars": 6_000}):
        history = recede.History(max_input_tokens=2_500, recall=True, keep=3, boundary="sliding", **cuts)
        seen = set()
        for message in session_of(texts):
            history.append(message)
            for shown in history.view():
                handle = re.search("recall ([0-9a-f]{12})", shown.get("content") or "")
                if handle is not None:
                    seen.add(shown["tool_call_id"])
                    assert history.recall(handle[1]) == texts[int(shown["tool_call_id"])]
        assert len(seen) > 30


@pytest.mark.parametrize("exempt", [{}, {"exclude_tools": ["run"]}])
def test_a_token_counter_counts_the_cut_text(exempt: dict[str, Any]) -> None:
    """Five results fit when they are cut, and do not where they are exempt; only the session knows the tool of each."""
    messages = session_of(["a line of the output\n" * 200] * 5)
    options = {"max_input_tokens": 3_000, "token_counter": len, "max_result_chars": 400, "keep": 50, **exempt}
    reduced = recede.reduce(messages, **options)
    assert (reduced.clipped_count == 5) == (not exempt)
    assert reduced.within_limit == (not exempt)
    history = recede.History.from_messages(messages, **options)
    view = history.view()
    assert view == (messages[:1] + messages[-2:] if exempt else view), "the newest alone is over the limit"
    assert (len(view) == len(messages)) == (not exempt)
    assert history.stats().view_chars == recede.count_chars(history.view())


def test_the_built_in_summary_is_made_of_whole_texts(engine: str) -> None:
    texts = [f"{number} " + "x" * 50 + f" the middle of {number} " + "y" * 200 for number in range(8)]
    options = {"max_result_chars": 100, "max_input_chars": 600, "observation_masking": False}
    view = published.reduce_json(json.dumps(session_of(texts)), **options)
    (summary,) = re.findall(r'"(Conversation summary:[^"]*)"', view.json.decode())
    assert " the middle of " in summary and "omitted" not in summary
