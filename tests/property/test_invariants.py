"""What holds for every history and all options."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import published
import pytest
from answers import answers, numbered, torn
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import block_options, mask_options, reduce_options, spelled, stage_options

import recede
from oracle.walk import walk
from recede.testing import assert_pairs_valid
from support import ENGINES, assert_view_of, elements, facts, findings, loads, using

ENGINES = pytest.mark.parametrize("engine_name", ENGINES)
History = list[dict[str, Any]]


def violations(messages: History) -> Counter[tuple[str, Any]]:
    found = Counter((kind, call_id) for kind, _, call_id in findings(messages) if kind != "open_call")
    del found["other_kind", None]  # without ids others pair, where what stood between them is hidden
    return found


def written(history: History, options: dict[str, Any]) -> st.SearchStrategy[str]:
    """JSON texts of a history; only the compact one where handles are of JSON, as it is written."""
    names_handles = "{handle}" in (options.get("placeholder") or "")
    if names_handles and any(result.text.json for result in walk(history).results):
        return st.just(json.dumps(history, ensure_ascii=False, separators=(",", ":")))
    return spelled(history)


def check_view(history: History, before: History, reduction: recede.Reduction) -> None:
    assert history == before, "the input was changed"
    assert reduction.chars_after <= reduction.chars_before
    assert reduction.chars_before >= 0
    if not reduction.reduced:
        assert reduction.messages is history
        assert reduction.first_changed is None
    own = {id(message): index for index, message in enumerate(history)}
    places = [own.get(id(message)) for message in reduction.messages]
    kept = [place for place in places if place is not None]
    assert kept == sorted(set(kept)), "the caller's own messages, in order, each once"
    if reduction.first_changed is not None:
        first = reduction.first_changed
        assert places[:first] == list(range(first))
        assert first == len(places) or places[first] != first
    for place, message in zip(places, reduction.messages, strict=True):
        if place is None and message in history:
            # Equal but not the same: only where an equal message was masked into it, or a summary was written anew.
            assert "masked" in repr(message) or "summary" in repr(message) or reduction.masked_count


@ENGINES
@given(history=histories(), options=reduce_options())
def test_reduce(engine_name: str, history: History, options: dict[str, Any]) -> None:
    before = copy.deepcopy(history)
    with using(engine_name):
        reduction = published.reduce(history, **options)
        check_view(history, before, reduction)
        if options.get("image_chars") is None:
            assert reduction.chars_before == recede.count_chars(history)
            assert reduction.chars_after == recede.count_chars(reduction.messages)
        new = violations(reduction.messages) - violations(history)
        assert not new, "the reducer never creates a violation that was not there"
        if "max_input_chars" in options:
            assert reduction.within_limit is (reduction.chars_after <= options["max_input_chars"])
        if reduction.reduction_stage in ("masking", "summarization"):
            has_limit = not options.keys().isdisjoint(("max_input_chars", "max_input_tokens"))
            assert reduction.within_limit is (True if has_limit else None)
            if options.get("strict_pairs"):
                assert recede.check_pairs(reduction.messages).orphans == ()
        if reduction.reduction_stage in (None, "masking"):
            assert reduction.dropped_count == 0
            assert len(reduction.messages) == len(history)
        for message in history:
            if message.get("role") in ("system", "developer") and not str(message.get("content")).startswith(
                "Conversation summary:"
            ):
                assert any(message is other for other in reduction.messages), "system messages are never dropped"


@ENGINES
@given(history=histories(), options=mask_options())
def test_masking(engine_name: str, history: History, options: dict[str, Any]) -> None:
    before = copy.deepcopy(history)
    with using(engine_name):
        once = published.mask_observations(history, **options)
        check_view(history, before, once)
        assert findings(once.messages) == findings(history), "masking touches no pair"
        assert once.chars_before - once.chars_after == once.masked_chars + once.clipped_chars
        assert once.masked_chars == sum(tool.removed_chars for tool in once.tools.values())
        assert once.masked_count == sum(tool.masked for tool in once.tools.values())
        assert once.masked_chars >= options.get("min_masked_chars", 0) or once.masked_count == 0
        twice = published.mask_observations(once.messages, **options)
        assert twice.messages is once.messages, "masking twice changes nothing more"
        assert twice.masked_count == 0
        for message, other in zip(history, once.messages, strict=True):
            assert list(message) == list(other)
            same = {key for key in message if message[key] is other[key] or message[key] == other[key]}
            assert set(message) - same <= {"content", "output", "parts"}


@ENGINES
@given(history=histories(), options=block_options())
def test_block_masker(engine_name: str, history: History, options: dict[str, Any]) -> None:
    before = copy.deepcopy(history)
    with using(engine_name):
        once = recede.designs.mask_old_observations(history, **options)
        assert history == before
        assert recede.count_chars(once) <= recede.count_chars(history)
        assert recede.designs.mask_old_observations(once, **options) is once
        assert findings(once) == findings(history)


@ENGINES
@given(history=histories(), options=reduce_options(), data=st.data())
def test_bytes_and_dicts_give_the_same(engine_name: str, history: History, options: dict[str, Any], data: Any) -> None:
    text = data.draw(written(history, options))
    with using(engine_name):
        reduction = published.reduce(history, **options)
        for argument in (text, text.encode("utf-8", "surrogatepass") if text.isascii() else text):
            serialized = published.reduce_json(argument, **options)
            assert loads(serialized.json) == reduction.messages
            assert facts(serialized) == facts(reduction)


@ENGINES
@given(history=histories(), options=mask_options(), data=st.data())
def test_bytes_outside_of_the_edits_are_the_inputs(
    engine_name: str, history: History, options: dict[str, Any], data: Any
) -> None:
    text = data.draw(written(history, options))
    with using(engine_name):
        view = published.mask_observations_json(text, **options).json.decode("utf-8", "surrogatepass")
        assert_view_of(text, view)
        first, last = text[: text.index("[") + 1], text[text.rindex("]") :]
        assert view.startswith(first) and view.endswith(last)
        body = f' {{"model" : "m", "messages":{text}, "n":1.0}} '
        wrapped = published.mask_observations_json(body, **options).json.decode("utf-8", "surrogatepass")
        assert wrapped == f' {{"model" : "m", "messages":{view}, "n":1.0}} '


@ENGINES
@given(history=histories(), options=reduce_options(), data=st.data())
def test_messages_that_stay_keep_their_bytes(
    engine_name: str, history: History, options: dict[str, Any], data: Any
) -> None:
    text = data.draw(written(history, options))
    with using(engine_name):
        reduction = published.reduce(history, **options)
        view = published.reduce_json(text, **options).json.decode("utf-8", "surrogatepass")
    before = [text[start:end] for start, end in elements(text)]
    after = [view[start:end] for start, end in elements(view)]
    own = {id(message): index for index, message in enumerate(history)}
    for message, raw in zip(reduction.messages, after, strict=True):
        if id(message) in own:
            assert raw == before[own[id(message)]]


@ENGINES
@given(history=histories(), options=mask_options())
def test_what_is_masked_stays_masked_as_the_history_grows(
    engine_name: str, history: History, options: dict[str, Any]
) -> None:
    options.pop("min_masked_chars", None)
    with using(engine_name):
        boundary = 0
        for length in range(len(history) + 1):
            grown = published.mask_observations(history[:length], **options).boundary
            assert grown >= boundary
            boundary = grown


@ENGINES
@given(history=histories(), options=stage_options())
def test_stages_alone(engine_name: str, history: History, options: dict[str, Any]) -> None:
    before = copy.deepcopy(history)
    with using(engine_name):
        for stage in (recede.designs.truncate_history, recede.designs.summarize_history):
            reduction = stage(history, **options)
            check_view(history, before, reduction)
            assert not violations(reduction.messages) - violations(history)
            assert reduction.masked_count == 0 and reduction.within_limit is None


@ENGINES
@given(history=histories(), options=reduce_options(), stage=stage_options())
def test_an_answer_of_the_model_is_kept_or_dropped_whole(
    engine_name: str, history: History, options: dict[str, Any], stage: dict[str, Any]
) -> None:
    history = numbered(history)
    with using(engine_name):
        for view in (
            published.reduce(history, **options).messages,
            recede.designs.truncate_history(history, **stage).messages,
            recede.designs.summarize_history(history, **stage).messages,
        ):
            assert torn(history, view) == []
        # What a reduction leaves is a history like any other.
        again = numbered(recede.designs.summarize_history(history, **stage).messages)
        assert torn(again, recede.designs.truncate_history(again, **stage).messages) == []


@ENGINES
@given(
    history=histories(whole=True, max_turns=8),
    chars=st.integers(0, 3_000),
    window=st.integers(1, 5),
    slides=st.booleans(),
)
def test_no_view_of_a_session_splits_an_answer(
    engine_name: str, history: History, chars: int, window: int, slides: bool
) -> None:
    history = numbered(history)
    requests = {min(answer) for answer in answers(history)}
    boundary = "sliding" if slides else "break_even"
    with using(engine_name):
        session = published.History(max_input_chars=chars, preserve_recent_raw_turns=window, boundary=boundary)
        for count, message in enumerate(history):
            if count in requests:
                assert torn(history[:count], session.view()) == []
            session.append(message)


@ENGINES
@given(history=histories())
def test_repair(engine_name: str, history: History) -> None:
    before = copy.deepcopy(history)
    with using(engine_name):
        mended = recede.repair_pairs(history)
        assert history == before
        assert recede.repair_pairs(mended) is mended
        open_twice = {call_id for kind, _, call_id in findings(history) if kind == "id_open_twice"}
        orphans = recede.check_pairs(mended).orphans
        assert [orphan for orphan in orphans if orphan.id is not None and orphan.id not in open_twice] == []


@ENGINES
@given(history=histories(whole=True), options=reduce_options())
def test_whole_histories_stay_whole(engine_name: str, history: History, options: dict[str, Any]) -> None:
    with using(engine_name):
        assert_pairs_valid(history)
        assert_pairs_valid(published.reduce(history, **options).messages)
        assert recede.repair_pairs(history) is history


@given(history=histories())
def test_generated_histories_are_json(history: History) -> None:
    assert json.loads(json.dumps(history, allow_nan=False)) == history
