"""Errors that say what to type instead: another name of an option, the messages of an object."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import published
import pytest
from published import History

import recede
from recede import Reduction, transcripts
from recede.designs import Budget
from recede.masker import Masker
from recede.reduction._policy import DOORS
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


@pytest.mark.parametrize("place", ["masker.Masker", "proxy.RequestMasker", "store.TurnStore", "costs.replay"])
def test_a_name_of_another_module_is_found_there(place: str) -> None:
    name = place.partition(".")[2]
    with pytest.raises(ImportError, match=rf": it is recede\.{place}$"):
        exec(f"from recede import {name}")
    with pytest.raises(AttributeError, match=rf": it is recede\.{place}$"):
        getattr(recede, name)


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


@pytest.mark.parametrize(
    "given", ["session.json", "logs/a session.jsonl.gz", Path("session.json"), b"logs/session.json", bytearray(b"a.gz")]
)
def test_a_path_is_no_history(given: Any) -> None:
    with pytest.raises(TypeError, match=r"give what the file holds, not its path: .*Path\(.*\)\.read_bytes\(\)"):
        recede.reduce(given)


def test_a_string_that_only_ends_like_a_path_is_json() -> None:
    assert recede.reduce('[{"role":"user","content":"see a.json"}]').chars_before == len("see a.json")
    with pytest.raises(recede.TranscriptError):
        recede.transcripts.read(b"see a.json")
    with pytest.raises(recede.TranscriptError, match="malformed JSON at byte 0"):
        recede.reduce("session")


def test_a_view_is_made_of_the_history() -> None:
    history = [user("Go."), *turns(3)]
    with pytest.raises(TypeError, match="to reduce again give the history, not a view"):
        recede.reduce(recede.reduce(history))  # type: ignore[call-overload]


def test_a_price_that_does_not_exist_names_all_that_do() -> None:
    with pytest.raises(ValueError, match=r"there is no price 'opus'; there are input, .*anthropic"):
        recede.costs.Prices.parse("opus")


@pytest.mark.parametrize("given", [([user("Go.")],), (10,)])
def test_a_history_is_extended(given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"history = recede\.History\(\), then history\.extend\(messages\)"):
        recede.History(*given)
    with pytest.raises(TypeError, match=r"history\.extend\(messages\)"):
        recede.History(messages=given[0])  # type: ignore[call-arg]


@pytest.mark.parametrize("name", DOORS)
def test_an_option_of_other_doors_names_them(name: str) -> None:
    doors: dict[str, Callable[..., Any]] = {
        "reduce": recede.reduce,
        "History": recede.History,
        "wrap": recede.wrap,
        "masker.Masker": Masker,
        "proxy.RequestMasker": recede.proxy.RequestMasker,
    }
    assert {door for door in doors if name in inspect.signature(doors[door]).parameters} == set(DOORS[name])
    of_others = ("store", "state", "clock", "summaries", "upstream")
    refuses = Masker if name in of_others else recede.proxy.RequestMasker
    for door in DOORS[name]:
        with pytest.raises(TypeError, match=rf"no option '{name}' here: it is one of .*recede\.{door}\b"):
            refuses(**{name: None})


@pytest.mark.parametrize(
    "door",
    [
        lambda **options: recede.reduce([user("Go.")], **options),
        recede.History,
        Masker,
        recede.proxy.RequestMasker,
    ],
)
def test_no_limit_is_none(door: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="max_input_tokens must be at least 1, or None, not 0"):
        door(max_input_tokens=0)
    door(max_input_tokens=None)


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("import recede.integrations.openai", ImportError),
        ("from recede.integrations.openai import RecedeMiddleware", ImportError),
        ("from recede.integrations import openai", ImportError),
        ("recede.integrations.openai", AttributeError),
    ],
)
def test_clients_of_openai_are_wrapped(statement: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"use recede\.wrap\(client\)"):
        exec(statement, {"recede": recede})
    assert not hasattr(recede.integrations, "openai")
    assert not hasattr(recede.integrations, "nothing")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "but None: pass a list"),
        ((user("Go."),), r"but a tuple \(make a list of it\)"),
        (iter([user("Go.")]), r"but a list_iterator \(make a list of it\)"),
        ((one for one in [user("Go.")]), r"but a generator \(make a list of it\)"),
        (user("Go."), r"but one message \(put it in a list\)"),
        ({"message": [user("Go.")]}, "but a dict with the fields 'message'"),
        (io.StringIO("[]"), r"but an open file \(give what its \.read\(\) returns\)"),
        (SimpleNamespace(to_dict=list), r"\(its list is \.to_dict\('records'\)\)"),
        (SimpleNamespace(tolist=list), r"\(its list is \.tolist\(\)\)"),
    ],
)
def test_what_is_no_list_is_named(given: Any, said: str) -> None:
    with pytest.raises(recede.TranscriptError, match=f"^not a history, .*{said}"):
        recede.reduce(given)


def test_a_masker_names_what_is_no_list() -> None:
    with pytest.raises(recede.TranscriptError, match="not a history, but a str: pass a list"):
        Masker().masks("session")  # type: ignore[arg-type]


@pytest.mark.parametrize("data", ["\ufeff[]", b"\xef\xbb\xbf[]", "[]".encode("utf-16"), "Hello."])
def test_a_byte_order_mark_is_named(data: Any) -> None:
    with pytest.raises(recede.TranscriptError, match=r"at byte 0: .* in UTF-8 without a byte order mark"):
        recede.reduce(data)


@pytest.mark.parametrize(
    ("use", "error", "said"),
    [
        (lambda history: history.append([user("Go.")]), recede.TranscriptError, r"a list \(extend takes several\)"),
        (lambda history: history.extend(user("Go.")), TypeError, "not dict: append takes one message"),
        (lambda history: history.extend('{"role": "user"}'), TypeError, "not str: append_json takes one message"),
        (lambda history: history.recall(None), TypeError, "its number, its handle or the id of its call, not NoneType"),
        (lambda _: recede.History(store="a.store"), TypeError, r"recede\.store\.TurnStore\('a\.store'\) opens one"),
        (lambda _: recede.mask, AttributeError, "did you mean 'masker'"),
        (lambda _: recede.history, AttributeError, "did you mean 'History'"),
        (lambda _: recede.RecedeMiddleware, AttributeError, r"recede\.integrations\.langchain\.RecedeMiddleware"),
        (lambda _: recede.integrations.langchian, AttributeError, "did you mean 'langchain'"),
        (lambda _: recede.integrations.langgraph, AttributeError, "did you mean 'langchain'"),
    ],
)
def test_a_slip_of_a_newcomer_names_what_was_meant(
    use: Callable[[Any], Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        use(recede.History())
