"""Errors that say what to type instead: another name of an option, the messages of an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import published
import pytest
from published import History

import recede
from recede import Reduction, transcripts
from recede.designs import Budget
from recede.masker import Masker
from support import turns, user

WINDOW = "there is no option '{}' here: the window is keep, a number of results"


@pytest.mark.parametrize(
    "call",
    [
        lambda **window: Budget(**window),
        lambda **window: recede.designs.mask_old_observations([], **window),
        lambda **window: recede.designs.Conversation(print, budget=Budget(**window)),
    ],
)
@pytest.mark.parametrize("name", ["keep_results", "keep_messages", "keep_turns"])
def test_the_window_of_results_is_keep(call: Callable[..., Any], name: str) -> None:
    with pytest.raises(TypeError, match=WINDOW.format(name)):
        call(**{name: 4})


def test_a_masker_has_one_window_of_results() -> None:
    with pytest.raises(TypeError, match="no option 'keep_results': did you mean 'keep'"):
        Masker(keep=10, keep_results=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "call",
    [
        lambda: published.reduce([], max_input_chars=9, keep=4),  # type: ignore[call-arg]
        lambda: published.mask_observations([], keep=4),  # type: ignore[call-arg]
        lambda: recede.designs.HistoryReducer(keep=4),  # type: ignore[call-arg]
    ],
)
def test_keep_has_three_names_where_it_could_be_each(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="no option 'keep' here: give keep_messages, keep_turns or keep_results"):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: recede.reduce([], max_input_chars=9),
            "max_input_chars': the limit is max_input_tokens, of about four",
        ),
        (lambda: Masker(max_input_chars=9), "max_input_chars': the limit is max_input_tokens, of about four"),
        (lambda: recede.reduce([], keep_messages=4), "keep_messages' here: it is one of recede.designs.HistoryReducer"),
        (lambda: recede.History(keep_turns=4), "keep_turns' here: it is one of recede.designs.HistoryReducer"),
        (lambda: recede.reduce([], 4), r"by name: reduce\(messages, keep=4\)"),
        (lambda: recede.reduce([], {"keep": 4}), r"recede.designs.HistoryReducer\(\).reduce\(messages, options\)"),
    ],
)
def test_an_option_of_a_design_is_told_from_that_of_a_door(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize("name", recede.designs.__all__)
def test_a_published_name_is_found_in_designs(name: str) -> None:
    with pytest.raises(ImportError, match=rf"published design, recede\.designs\.{name}"):
        exec(f"from recede import {name}")
    with pytest.raises(AttributeError, match=rf"published design, recede\.designs\.{name}"):
        getattr(recede, name)
    assert not hasattr(recede, name)


def messages_of(kind: str) -> Any:
    if kind == "Transcript":
        return transcripts.read(b'[{"role": "user", "content": "Go."}]')
    if kind == "History":
        history = History()
        history.append(user("Go."))
        return history
    return published.reduce(turns(3), max_input_chars=10_000)


@pytest.mark.parametrize("kind", ["Transcript", "History", "Reduction"])
@pytest.mark.parametrize(
    "call",
    [
        recede.costs.replay,
        recede.count_chars,
        recede.check_pairs,
        recede.repair_pairs,
        recede.designs.mask_old_observations,
        lambda messages: published.reduce(messages, max_input_chars=9),
        lambda messages: published.mask_observations(messages, keep_results=3),
    ],
)
def test_an_object_with_messages_is_named(call: Callable[[Any], Any], kind: str) -> None:
    given = messages_of(kind)
    with pytest.raises(TypeError, match=f"give the messages of the {kind}: its .messages"):
        call(given)
    call(list(given.messages))


def test_what_has_no_messages_is_no_history() -> None:
    for given in ({"role": "user"}, object(), 5, Reduction):
        with pytest.raises(recede.TranscriptError, match="not a history"):
            recede.check_pairs(given)  # type: ignore[arg-type]
