"""`reduce` in a loop over a growing list: a summarizer is asked once for each summary, and remembered weakly."""

from __future__ import annotations

import functools
import gc
import json
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

import recede
from recede import _summarizer
from support import assistant, turns, user

LIMIT: dict[str, Any] = {"max_input_tokens": 500, "keep": 2}
SESSION = [user("Go."), *turns(60, chars=90)]


class Model:
    """A summarizer that counts its calls; it is compared by value, so it has no hash."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, str | None]] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model)

    def __call__(self, messages: list[Any], previous: str | None) -> str:
        self.calls.append((len(messages), previous))
        return f"{len(messages)} messages, told in call {len(self.calls)}"

    def other(self, messages: list[Any], previous: str | None) -> str:
        return self(messages, previous)


def plain_function(model: Model) -> Any:
    def summarizer(messages: list[Any], previous: str | None) -> str:
        return model(messages, previous)

    return summarizer


KINDS: dict[str, Any] = {
    "a function": plain_function,
    "an object without a hash": lambda model: model,
    "a bound method": lambda model: model.other,
    "a partial": functools.partial(functools.partial, Model.other),
}


def summary_in(view: list[Any]) -> str | None:
    said = [str(one["content"]) for one in view if str(one.get("content")).startswith("Conversation summary:")]
    assert len(said) <= 1
    return said[0] if said else None


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_asked_once_for_each_summary_of_a_list_that_grows(kind: str) -> None:
    model = Model()
    keeper = KINDS[kind](model)
    shown = []
    for count in range(1, len(SESSION) + 1):
        # A bound method is another object each time.
        summarizer = model.other if kind == "a bound method" else keeper
        shown.append(summary_in(recede.reduce(SESSION[:count], **LIMIT, summarizer=summarizer).messages))
        again = recede.reduce(json.dumps(SESSION[:count]).encode(), **LIMIT, summarizer=summarizer)
        assert summary_in(json.loads(again.json)) == shown[-1]
    different = list(dict.fromkeys(one for one in shown if one))
    assert len(model.calls) == len(different) > 2, "one call for each text that a view has"
    assert len(shown) - shown.count(None) > 2 * len(different), "which stands while the list grows"
    told = [messages for messages, previous in model.calls]
    assert told == sorted(set(told)), "each of all hidden messages"
    assert {previous for _, previous in model.calls} == {None}


CHANGES: dict[str, tuple[Any, Any]] = {
    "a text": ("more", "mor3"),
    "texts that are divided otherwise": (["ab", "c"], ["a", "bc"]),
    "numbers of one hash": (-1, -2),
    "a number and a flag": (1, True),
    "a number of another kind": (1, 1.0),
    "nothing": (None, "null"),
    "levels": ([["a"], "b"], [["a", "b"]]),
    "the name of a field": ({"a": 1}, {"b": 1}),
    "an empty list or object": ([], {}),
    "a lone surrogate": ("\ud800", "\udc00"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("written", [False, True])
def test_a_hidden_message_that_differs_is_told_anew(change: str, written: bool) -> None:
    model = Model()
    versions = [[*SESSION[:1], {**SESSION[1], "more": value}, *SESSION[2:]] for value in CHANGES[change]]
    for version in (*versions, *versions):
        recede.reduce(json.dumps(version).encode() if written else version, **LIMIT, summarizer=model)
    assert len(model.calls) == 2


def test_what_is_known_is_not_read_again_to_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    for history in (SESSION, json.dumps(SESSION).encode()):
        recede.reduce(history, **LIMIT, summarizer=model)
    monkeypatch.setattr(_summarizer.Texts, "key_of", None)
    for history in (SESSION, json.dumps(SESSION).encode()):
        assert recede.reduce(history, **LIMIT, summarizer=model).summarizer_error is None
    assert len(model.calls) == 1


def test_two_summarizers_do_not_share_texts() -> None:
    one, other = Model(), Model()
    for model in (one, other, one, other):
        recede.reduce(SESSION, **LIMIT, summarizer=model)
        recede.reduce(SESSION, **LIMIT, summarizer=model.other)
    assert len(one.calls) == len(other.calls) == 2, "a method is not the object that has it"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_remembered_keeps_no_summarizer_alive(kind: str) -> None:
    model = Model()
    summarizer = KINDS[kind](model)
    recede.reduce(SESSION, **LIMIT, summarizer=summarizer)
    alive, known = weakref.ref(model), len(_summarizer._known)
    del model, summarizer
    gc.collect()
    assert alive() is None and len(_summarizer._known) < known


def test_the_last_64_texts_are_remembered() -> None:
    model = Model()
    told = [[user(f"task {number}"), *SESSION[1:]] for number in range(65)]
    marked = [[*one[:1], assistant(str(number)), *one[1:]] for number, one in enumerate(told)]
    for messages in (*marked, marked[1], marked[64], marked[0]):
        recede.reduce(messages, **LIMIT, summarizer=model)
    assert len(model.calls) == 66, "that of the first one alone was forgotten"


@pytest.mark.parametrize("answer", [ValueError("no model"), "", 5])
def test_a_summary_that_failed_is_asked_for_again(answer: Any) -> None:
    answers: list[Any] = [answer, answer, "at last", "never asked for"]

    def summarizer(messages: list[Any], previous: str | None) -> Any:
        said = answers.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    for end in (-4, -4, -2, -2):
        given = SESSION[:end]
        reduction = recede.reduce(given, **LIMIT, summarizer=summarizer)
        assert reduction.messages == recede.reduce(given, **LIMIT).messages and reduction.summarizer_error is not None
    assert len(answers) == 2, "one view of one list"
    later = [*SESSION, *turns(4, chars=9)]
    for _ in range(2):
        reduction = recede.reduce(later, **LIMIT, summarizer=summarizer)
        assert summary_in(reduction.messages) == "Conversation summary:\nat last" and not reduction.summarizer_error
    assert answers == ["never asked for"]


class Slotted:
    """Nothing can refer to it weakly."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: list[Any], previous: str | None) -> str:
        self.calls += 1
        return "What was done."


def test_what_cannot_be_remembered_is_asked_each_time() -> None:
    slotted, model = Slotted(), Model()
    odd = [{**message, "made": object()} for message in SESSION]
    for _ in range(2):
        assert summary_in(recede.reduce(SESSION, **LIMIT, summarizer=slotted).messages)
        assert summary_in(recede.reduce(odd, **LIMIT, summarizer=model).messages)
    assert slotted.calls == len(model.calls) == 2


def test_threads_may_share_a_summarizer() -> None:
    model = Model()
    views = [[user(f"task {number % 9}"), assistant(str(number % 9)), *SESSION[1:]] for number in range(90)]
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda view: recede.reduce(view, **LIMIT, summarizer=model), views))
    assert all(summary_in(one.messages) and one.summarizer_error is None for one in given)
    before = len(model.calls)
    for view in views[:9]:
        recede.reduce(view, **LIMIT, summarizer=model)
    assert 9 <= before == len(model.calls) < 90


@pytest.mark.parametrize("is_json", [False, True])
def test_a_failure_is_remembered_until_the_history_has_waited(is_json: bool) -> None:
    asked: list[int] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        asked.append(end)
        if len(asked) < 5:
            raise OSError("no model")
        return "What was done."

    views = []
    for end in range(1, len(SESSION) + 1):
        given: Any = json.dumps(SESSION[:end]) if is_json else SESSION[:end]
        one, other = (recede.reduce(given, summarizer=summarizer, **LIMIT) for _ in range(2))
        assert one == other or repr(one.summarizer_error) == repr(other.summarizer_error) == "OSError('no model')"
        views.append(one.json if is_json else one.messages)
        assert views[-1] == (other.json if is_json else other.messages)
    assert [after - before for before, after in pairwise(asked[:4])] == [2, 4, 8], asked
