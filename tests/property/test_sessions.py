"""A session that grows against reducing everything again."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import block_options, reduce_options

import recede
from recede import History
from recede.testing import histories
from support import built_engines, using

ENGINES = pytest.mark.parametrize("engine_name", built_engines())
Messages = list[dict[str, Any]]


def without_counter(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a History, with the boundary said that it would take by itself."""
    options = {name: value for name, value in options.items() if name != "token_counter"}
    if options.get("mask_chunk") is None and "boundary" not in options:
        options["boundary"] = "break_even"
    return options


def dumps(message: Any) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def figures(history: History) -> recede.HistoryStats:
    """But for where the view changed: the core may say so though its bytes came out the same."""
    return history.stats()._replace(changed_message=None, changed_byte=None)


@ENGINES
@given(messages=histories(), options=(reduce_options() | block_options()).map(without_counter), data=st.data())
def test_what_stands_before_a_change_is_the_same(
    engine_name: str, messages: Messages, options: dict[str, Any], data: Any
) -> None:
    with using(engine_name):
        history = History(**options)
        before, stats_before = b"[]", history.stats()
        for message in messages:
            history.append(message)
            if not data.draw(st.booleans(), label="look"):
                continue
            view, stats = history.view_json(), history.stats()
            if stats.changed_byte is not None and stats[7:9] != stats_before[7:9]:
                assert view[: stats.changed_byte] == before[: stats.changed_byte]
            elif stats.changed_byte is None:
                assert view.startswith(before[:-1])
            before, stats_before = view, stats
            again = history.view_chunks()
            assert b"".join(again) == view
            assert all(one is other for one, other in zip(history.view_chunks(), again, strict=True))


@ENGINES
@given(messages=histories(), options=reduce_options().map(without_counter), data=st.data())
def test_until_the_first_summary_its_views_are_those_of_reduce(
    engine_name: str, messages: Messages, options: dict[str, Any], data: Any
) -> None:
    with using(engine_name):
        history = History(**options)
        for count, message in enumerate(messages, 1):
            history.append(message)
            if data.draw(st.booleans(), label="look"):
                expected = recede.reduce(messages[:count], **options)
                assert history.view() == expected.messages
                assert json.loads(history.view_json().decode("utf-8", "surrogatepass")) == expected.messages
                stats = history.stats()
                assert (stats.view_chars, stats.raw_chars) == (expected.chars_after, expected.chars_before)
                assert (stats.turns, stats.view_messages) == (expected.turns, len(expected.messages))
                if expected.reduction_stage in (None, "masking"):
                    assert stats.masked_count == expected.masked_count
                    assert stats.boundary_moves == expected.boundary_moves
                if expected.reduction_stage == "summarization":
                    return
        assert history.messages == messages


@ENGINES
@given(
    messages=histories(), options=block_options().map(without_counter), threshold=st.integers(0, 900), data=st.data()
)
def test_without_a_budget_its_views_are_those_of_the_block_masker(
    engine_name: str, messages: Messages, options: dict[str, Any], threshold: int, data: Any
) -> None:
    with using(engine_name):
        history = History(**options, threshold_tokens=threshold)
        for count, message in enumerate(messages, 1):
            history.append(message)
            if data.draw(st.booleans(), label="look"):
                is_small = recede.count_chars(messages[:count]) <= 4 * threshold
                expected = messages[:count] if is_small else recede.mask_old_observations(messages[:count], **options)
                assert history.view() == expected


@pytest.mark.skipif(len(built_engines()) < 2, reason="recede._core is not built: make build")
@given(messages=histories(), options=(reduce_options() | block_options()).map(without_counter), data=st.data())
def test_both_engines_give_the_same_views_also_after_summaries(
    messages: Messages, options: dict[str, Any], data: Any
) -> None:
    sessions: dict[str, History] = {}
    for name in ("rust", "python"):
        with using(name):
            sessions[name] = History(**options)
    core, mirror = sessions["rust"], sessions["python"]
    for message in messages:
        for session in sessions.values():
            if session is core and data.draw(st.booleans(), label="bytes"):
                session.append_json(dumps(message))
            else:
                session.append(message)
        match data.draw(st.sampled_from(["nothing", "view", "json", "chunks", "stats", "load"]), label="look"):
            case "view":
                assert core.view() == mirror.view()
            case "json":
                assert core.view_json() == mirror.view_json()
            case "chunks":
                assert b"".join(core.view_chunks()) == mirror.view_json()
            case "stats":
                assert figures(core) == figures(mirror)
            case "load":
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "session.json"
                    core.save(path)
                    core = sessions["rust"] = History.load(path, summarizer=options.get("summarizer"))
    assert core.view() == mirror.view()
    assert figures(core) == figures(mirror)
    assert core.to_json() == mirror.to_json()
    assert core.messages == mirror.messages == messages
    for number in range(1, 30):
        try:
            expected: Any = mirror.recall(number)
        except LookupError:
            with pytest.raises(LookupError):
                core.recall(number)
            break
        assert core.recall(number) == expected


@given(
    messages=histories(), cut=st.integers(0, 40), garbage=st.sampled_from([b"", b"{", b"[]", b'{"role": 5} x', b"5"])
)
def test_a_failed_append_changes_nothing(messages: Messages, cut: int, garbage: bytes) -> None:
    history, other = History(keep=3), History(keep=3)
    for place, message in enumerate(messages):
        history.append(message)
        other.append(message)
        if place == cut:
            for bad in (garbage, dumps(message)[:-1], dumps({**message, "content": 5})):
                with pytest.raises(recede.TranscriptError) as caught:
                    history.append_json(bad)
                assert caught.value.message_index == place + 1
    assert history.view() == other.view()
    assert history.stats() == other.stats()
    assert history.to_json() == other.to_json()
