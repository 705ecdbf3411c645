"""`trigger_tokens` and `max_input_tokens`: each view is that of a session that made all requests before it."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from generated import histories
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import words
from test_unseen_results import requests
from tokens_counted import tokens_of

import recede
from recede import _engine
from recede.masker import Masker
from recede.providers import tokenizers
from recede.proxy import RequestMasker
from recede.reduction import _policy
from recede.reduction._counting import static_cost
from recede.reduction._planning import reduce_messages
from support import ENGINES, outcome, unmarked, using

History = list[dict[str, Any]]
HISTORIES = histories(max_turns=6, max_parallel_calls=4)


def limits(*boundaries: Any) -> st.SearchStrategy[dict[str, Any]]:
    free: dict[str, st.SearchStrategy[Any]] = {
        "keep_by_tool": st.sampled_from([{"bash": 1}, {"*": 0}, {"read_file": None, "r*": 2}]),
        "exclude_tools": st.sampled_from([["bash"], ["r*"]]),
        "keep_errors": st.booleans(),
        "provider": st.sampled_from(["anthropic", "openai", "ideal", "none", "auto"]),
        "max_overcost": st.sampled_from([None, 0.0, 0.1]),
        "placeholder": st.sampled_from(["[gone]", "[{tool} {chars}]"]),
    }
    fixed = {
        "keep": st.integers(0, 3),
        "boundary": st.sampled_from(boundaries or ("break_even", "sliding", 2)),
        "max_input_tokens": st.integers(1, 60) | st.integers(1, 900),
        "trigger_tokens": st.sampled_from([0, 0, 1]) | st.integers(0, 400),
    }
    chosen = st.fixed_dictionaries(fixed, optional=free)
    return chosen.map(lambda one: {**one, "trigger_tokens": min(one["trigger_tokens"], one["max_input_tokens"])})


@contextmanager
def cut_to(chars: int) -> Iterator[None]:
    """Long results are those over so many characters; a policy of other options of this process has another number."""
    with patch.dict(_policy.SESSION_DEFAULTS, clip_results=chars), patch.object(_policy, "_cached", _uncached):
        yield


_uncached = _policy._cached.__wrapped__


CUTS = st.sampled_from([60, 90, 4_000])


def masked(history: History, options: dict[str, Any]) -> Any:
    """The view of a door that only masks."""
    return reduce_messages(_policy.own_policy(_engine.engine, options, reduces=False), history, options)


@pytest.mark.skipif(len(ENGINES) < 2, reason="recede._core is not built: make build")
@given(history=HISTORIES, options=limits(), cut=CUTS, counter=st.sampled_from([None, len, words]))
def test_core_and_oracle_agree(history: History, options: dict[str, Any], cut: int, counter: Any) -> None:
    options = options if counter is None else {**options, "token_counter": counter}
    data = json.dumps(history)
    for door in (masked, lambda given, chosen: recede.reduce(given, **chosen)):
        for given_history in (history, data) if door is not masked else (history,):
            with cut_to(cut), using("oracle"):
                expected = outcome(door, given_history, options)
            with cut_to(cut), using("core"):
                assert outcome(door, given_history, options) == expected


@given(history=HISTORIES, options=limits(), cut=CUTS)
def test_reduce_is_a_session_that_made_each_request(history: History, options: dict[str, Any], cut: int) -> None:
    with cut_to(cut):
        session = recede.History(**options)
        for sent, _ in requests(history):
            session.extend(sent[len(session) :])
            reduction = recede.reduce(sent, **options)
            assert unmarked(session.view()) == unmarked(reduction.messages)  # a session keeps the newest marks alone
            assert json.loads(recede.reduce(json.dumps(sent), **options).json) == reduction.messages


@given(history=HISTORIES, options=limits(), cut=CUTS)
def test_a_masker_is_the_plan_of_the_whole_list(history: History, options: dict[str, Any], cut: int) -> None:
    with cut_to(cut):
        masker = Masker(**options)
        for sent, _ in requests(history):
            view, planned = masker.view(sent), masked(sent, options)
            assert view == planned.messages
            assert len(view) == len(sent)
            assert masker.count_tokens(sent) * 4 in range(planned.chars_after, planned.chars_after + 4)


@given(history=HISTORIES, options=limits(), cut=CUTS, place=st.integers(0, 40))
def test_a_rewound_session_is_one_that_never_went_on(
    history: History, options: dict[str, Any], cut: int, place: int
) -> None:
    with cut_to(cut):
        session, masker = recede.History(**options), Masker(**options)
        sent = [one for one, _ in requests(history)]
        for one in sent:
            session.extend(one[len(session) :])
            session.view()
            masker.view(one)
        back = sent[place % len(sent)]
        session.rewind(len(back))
        fresh = recede.History(**options)
        for one, _ in requests(back):
            fresh.extend(one[len(fresh) :])
            fresh.view()
        assert session.view() == fresh.view()
        with tempfile.TemporaryDirectory() as folder:
            session.save(f"{folder}/session")
            assert recede.History.load(f"{folder}/session").view() == fresh.view()
        assert masker.view(back) == masked(back, options).messages


@given(history=HISTORIES, options=limits(), cut=CUTS)
def test_views_change_only_at_moves(history: History, options: dict[str, Any], cut: int) -> None:
    with cut_to(cut):
        before: History = []
        known: Any = ()
        for sent, new in requests(history):
            if not new:
                continue  # an answer of several messages has one request
            reduction = masked(sent, options)
            moves, view = reduction.boundary_moves, unmarked(reduction.messages)
            assert moves[: len(known)] == known
            assert (view[: len(before)] != before) == (len(moves) > len(known))
            before, known = view, moves


@given(history=HISTORIES, options=limits(), cut=CUTS)
def test_a_view_fits_or_says_that_it_does_not(history: History, options: dict[str, Any], cut: int) -> None:
    with cut_to(cut):
        for door in (masked, lambda given, chosen: recede.reduce(given, **chosen)):
            reduction = door(history, options)
            size = recede.count_chars(reduction.messages)
            assert reduction.chars_after == size
            assert reduction.within_limit == (size <= 4 * options["max_input_tokens"])


PATHS = {"messages": ("/v1/messages", "/v1/chat/completions"), "input": ("/v1/responses",)}


@given(
    history=HISTORIES,
    options=limits(),
    limit=st.sampled_from([1, 2, 10]) | st.integers(1, 900),
    prompt=st.integers(0, 400),
)
def test_doors_stand_any_limit(history: History, options: dict[str, Any], limit: int, prompt: int) -> None:
    """Below the newest turn, the task, the prompt or one token: pairs stay whole, and a view that is over says so."""
    options |= {"max_input_tokens": limit, "trigger_tokens": min(limit, options["trigger_tokens"])}
    proxies = {path: RequestMasker(**options) for paths in PATHS.values() for path in paths}
    masker, session, before = Masker(**options), recede.History(**options), copy.deepcopy(history)
    for sent, _ in requests(history):
        session.extend(sent[len(session) :])
        views = [masker.view(sent), session.view(), recede.reduce(sent, **options).messages]
        for field, paths in PATHS.items():
            request = {"instructions": "é" * prompt, field: sent}
            reduction = recede.reduce(request, **options)
            assert reduction.request is not None
            views.append(reduction.request[field])
            named = options.get("provider", "auto")
            tokens = tokens_of(views[-1], sent, provider=named)
            of_prompt = static_cost({"instructions": "é" * prompt}, None, tokenizers(named)) / 4
            assert reduction.within_limit == (tokens + of_prompt <= limit) or tokens == 0  # no text is never over
            for path in paths:
                done = proxies[path].mask("POST", path, {}, json.dumps(request).encode())
                assert done.fault is None
                views.append(json.loads(done.body)[field])
                assert len(views[-1]) == len(sent)
        if recede.check_pairs(sent).is_whole:
            assert all(recede.check_pairs(view).is_whole for view in views)
    assert history == before


@given(history=HISTORIES, options=limits(), more=st.integers(1, 300))
def test_a_larger_limit_never_forces_earlier(history: History, options: dict[str, Any], more: int) -> None:
    larger = {**options, "max_input_tokens": options["max_input_tokens"] + more}
    free = {**options, "max_input_tokens": 1 << 40}
    for sent, _ in requests(history):
        views = [masked(sent, one) for one in (options, larger)]
        is_forced = [view.messages != masked(sent, free).messages for view in views]
        if is_forced[0] or not views[0].within_limit:
            return  # at this request, and under the larger limit not before it; what helps nothing is not forced
        assert not is_forced[1]


@given(history=HISTORIES, options=limits())
def test_nothing_is_masked_up_to_the_trigger(history: History, options: dict[str, Any]) -> None:
    trigger = options["trigger_tokens"]
    free = {**options, "max_input_tokens": None}
    is_above = False
    for sent, _ in requests(history):
        is_above |= tokens_of(sent, provider=options.get("provider", "auto")) > trigger
        masker, reduction = masked(sent, free), recede.reduce(sent, **free)
        assert masker.messages == reduction.messages
        assert trigger == 0 or is_above or reduction.messages == sent


@given(history=HISTORIES, limit=st.integers(1, 10_000), more=st.integers(1, 10))
def test_a_trigger_above_the_limit_is_refused(history: History, limit: int, more: int) -> None:
    assume(history)
    with pytest.raises(ValueError, match="trigger_tokens must be at most max_input_tokens"):
        recede.reduce(history, max_input_tokens=limit, trigger_tokens=limit + more)
