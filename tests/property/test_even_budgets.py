"""`fill`: views that degrade evenly as the budget gets smaller."""

from __future__ import annotations

import copy
from typing import Any

import published
import pytest
from answers import numbered, torn
from even import check_budgets, failing, kept_at_least, summaries_of, task_of, unsummarized
from generated import histories
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import words

import recede
from support import ENGINES, findings, using

ENGINES = pytest.mark.parametrize("engine_name", ENGINES)
History = list[dict[str, Any]]

FILLS = st.sampled_from([0.9, 0.9, 0.5, 1.0, 0.1, 0.333_333, 0.51]) | st.floats(1e-7, 1)
BUDGETS = st.integers(0, 2_000) | st.integers(0, 12_000)


def _summarizer(messages: list[Any], previous: str | None) -> str:
    return f"{len(messages)} messages, before: {previous!r:.30} " * 3


def _useless(messages: list[Any], previous: str | None) -> str:
    return "too long " * 99_999


def options() -> st.SearchStrategy[dict[str, Any]]:
    """Options under which a larger budget never keeps less."""
    free: dict[str, st.SearchStrategy[Any]] = {
        "preserve_recent_raw_turns": st.integers(0, 7),
        "keep_turns": st.integers(0, 3),
        "keep_results": st.integers(0, 4),
        "keep_by_tool": st.sampled_from([{"bash": 1}, {"*": 0}, {"read_file": None}]),
        "exclude_tools": st.sampled_from([["bash"], ["r*"]]),
        "keep_errors": st.booleans(),
        "mask_chunk": st.integers(1, 4),
        "max_observation_chars": st.integers(0, 120),
        "min_masked_chars": st.sampled_from([1, 100, 1_000]),
        "observation_masking": st.booleans(),
        "clip_results": st.integers(60, 500),
        "image_chars": st.sampled_from([0, 35, 50, 6_400]),
        "summary_max_chars": st.sampled_from([30, 60, 200, 1_400]),
        "summarizer": st.sampled_from([_summarizer, failing, _useless]),
    }
    return st.fixed_dictionaries({"fill": FILLS}, optional=free)


def places(reduction: recede.Reduction) -> set[int]:
    """Which messages of a numbered history a view shows."""
    return {message["place"] for message in reduction.messages if "place" in message}


def texts_of(message: dict[str, Any]) -> list[str]:
    """All strings in a message."""
    found, waiting = [], [message]
    while waiting:
        value: Any = waiting.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, (dict, list)):
            waiting += list(value.values()) if isinstance(value, dict) else value
    return found


# The larger budget shows the first message of the task, cut, where the smaller one hides it.
_TWO_TASKS: History = [
    {"role": "user", "content": "line\n" * 47},
    {"role": "user", "content": "done."},
    {"role": "assistant", "content": "a " * 2_000},
]


@ENGINES
@given(history=histories(max_turns=9), options=options(), budget=BUDGETS, step=st.sampled_from([1, 1, 2, 100]))
@example(_TWO_TASKS, {"fill": 1.0, "preserve_recent_raw_turns": 0}, 259, 1)
def test_a_larger_budget_keeps_every_message_that_a_smaller_one_keeps(
    engine_name: str, history: History, options: dict[str, Any], budget: int, step: int
) -> None:
    history = numbered(history)
    replaced = summaries_of(history)
    with using(engine_name):
        smaller = published.reduce(history, max_input_chars=budget, **options)
        larger = published.reduce(history, max_input_chars=budget + step, **options)
        assert places(smaller) - replaced <= places(larger)
        assert larger.masked_count <= smaller.masked_count or "mask_chunk" in options
        appeared = places(larger) - places(smaller)
        assert larger.clipped_count <= smaller.clipped_count + len(appeared.intersection(task_of(history)))


@ENGINES
@given(history=histories(max_turns=9), options=options(), budget=BUDGETS, step=st.sampled_from([1, 1, 2, 100]))
def test_a_larger_budget_keeps_all_text_that_a_smaller_one_keeps(
    engine_name: str, history: History, options: dict[str, Any], budget: int, step: int
) -> None:
    history = numbered(history)
    replaced = summaries_of(history)
    with using(engine_name):
        smaller = published.reduce(history, max_input_chars=budget, **options).messages
        larger = published.reduce(history, max_input_chars=budget + step, **options).messages
    of_larger = {message["place"]: texts_of(message) for message in larger if "place" in message}
    for message in smaller:
        if message.get("place", next(iter(replaced), None)) in (*replaced, None):
            continue
        shown, original = of_larger[message["place"]], texts_of(history[message["place"]])
        for text in texts_of(message):
            if text in original:
                assert text in shown
            beginning, marker, rest = text.partition("[… ")
            if marker and " chars omitted …]" in rest:
                end = rest.partition(" chars omitted …]")[2]
                assert any(other.startswith(beginning) and other.endswith(end) for other in shown)


@ENGINES
@given(
    history=histories(max_turns=9), rule=st.sampled_from([{}, {"fill": 0.5, "clip_results": 100, "keep_results": 2}])
)
def test_the_views_of_64_budgets_degrade_evenly(engine_name: str, history: History, rule: dict[str, Any]) -> None:
    with using(engine_name):
        check_budgets(numbered(history), 64, **rule)


@ENGINES
@given(history=histories(max_turns=9), options=options(), budget=BUDGETS, counter=st.sampled_from([None, len, words]))
def test_a_view_fits_wherever_the_published_keep_set_fits(
    engine_name: str, history: History, options: dict[str, Any], budget: int, counter: Any
) -> None:
    """With the least that the task gets."""
    history = numbered(history)
    size: dict[str, Any] = {"max_input_chars": budget}
    if counter is not None:
        size = {"max_input_tokens": budget}
        options = {**options, "token_counter": counter}
    with using(engine_name):
        if counter is None and kept_at_least(history, max(0, budget - 220), options).within_limit:
            assert published.reduce(history, max_input_chars=budget, **options).within_limit
        reduction = published.reduce(history, **size, **options)
        if counter is None:
            assert reduction.within_limit is (
                recede.count_chars(reduction.messages, image_chars=options.get("image_chars", 6_400)) <= budget
            )
        if reduction.reduction_stage in ("masking", "summarization"):
            assert reduction.within_limit


@ENGINES
@given(history=histories(max_turns=9), options=options(), budget=BUDGETS, counter=st.sampled_from([None, len, words]))
def test_nothing_is_torn_and_nothing_of_the_caller_changes(
    engine_name: str, history: History, options: dict[str, Any], budget: int, counter: Any
) -> None:
    history = numbered(history)
    before = copy.deepcopy(history)
    with using(engine_name):
        reduction = published.reduce(history, max_input_tokens=budget // 4, token_counter=counter, **options)
    assert history == before
    assert torn(history, reduction.messages) == []
    orphans = {call_id for kind, _, call_id in findings(reduction.messages) if kind != "open_call"}
    # What is wrong with an id depends on what is between.
    assert orphans <= {call_id for _, _, call_id in findings(history)}
    own = {id(message) for message in history}
    shown = [message["place"] for message in reduction.messages if "place" in message]
    assert shown == sorted(set(shown))
    for message in reduction.messages:
        if "place" in message:
            assert id(message) in own or message != history[message["place"]]


@ENGINES
@given(history=histories(max_turns=9), options=options(), budget=BUDGETS)
def test_a_summarizer_that_fails_or_does_not_help_leaves_the_same_messages(
    engine_name: str, history: History, options: dict[str, Any], budget: int
) -> None:
    history = numbered(history)
    replaced = summaries_of(history)
    asked: list[History] = []

    def short(messages: list[Any], previous: str | None) -> str:
        asked.append(messages)
        return "s"

    with using(engine_name):
        helped, failed, useless = (
            published.reduce(history, max_input_chars=budget, **{**options, "summarizer": summarizer})
            for summarizer in (short, failing, _useless)
        )
    if not asked:
        assert helped.messages == failed.messages == useless.messages
        return
    assert isinstance(failed.summarizer_error, ValueError)
    assert failed.reduction_stage == "fallback" and failed.within_limit

    def messages_of(reduction: recede.Reduction) -> History:
        shown = [message for message in reduction.messages if message.get("place", -1) not in {-1, *replaced}]
        return [unsummarized(message) for message in shown]

    assert messages_of(helped) == messages_of(failed) == messages_of(useless)
    given = {message["place"] for message in asked[0]}
    assert given.isdisjoint(task_of(history)[-1:]), "the view has the newest of the task"
    assert given.isdisjoint(places(helped)), "and the summarizer gets what the view has not"
