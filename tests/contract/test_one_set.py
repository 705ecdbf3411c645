"""Each option of the one set, at every door: it changes the view there, to that of `reduce`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from children import recede_command

import recede
from recede import types
from recede.integrations.http import recede_client
from recede.masker import Masker
from recede.proxy import RequestMasker
from recede.reduction._options import DESIGN_OPTIONS, OPTIONS
from support import call, result, user

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
openai = pytest.importorskip("openai", reason="the client is not installed")

SLIDING: dict[str, Any] = {"keep": 4, "boundary": "sliding", "provider": "openai"}
PAYING: dict[str, Any] = {"keep": 4, "provider": "openai"}


def session() -> list[Any]:
    history: list[Any] = [user("Go.")]
    for number in range(57):
        name, error = ("read", {}) if number % 5 else ("todo", {"status": "error"})
        text = ("KEPT " if number % 7 == 0 else "") + "a line of the log\n" * (40 + 5 * (number % 3))
        history += [call(str(number), name=name), result(str(number), text, **error)]
    return history


HISTORY = session()
# Option -> options without and with it, of which the views differ.
CHANGES: dict[str, tuple[dict[str, Any], Any]] = {
    "keep": (SLIDING, 9),
    "keep_by_tool": (SLIDING, {"todo": 1, "re*": None}),
    "exclude_tools": (SLIDING, ["todo"]),
    "keep_errors": (SLIDING, True),
    "keep_matching": (SLIDING, ["KEPT"]),
    "provider": (PAYING, "none"),
    "boundary": (PAYING, 7),
    "max_overcost": (PAYING, 0.0),
    "cold": (PAYING, [21]),
    "trigger_tokens": (SLIDING, 100_000),
    "max_input_tokens": (SLIDING, 1_500),
    "max_result_chars": (SLIDING, 400),
    "placeholder": (SLIDING, "[{tool} said {chars}]"),
    "token_counter": ({**SLIDING, "max_input_tokens": 6_000}, len),
}


def by_reduce(**options: Any) -> Any:
    return recede.reduce(HISTORY, **options).messages


def by_request(**options: Any) -> Any:
    request = recede.reduce({"model": "m", "messages": HISTORY}, **options).request
    return request and request["messages"]


def by_bytes(**options: Any) -> Any:
    return recede.reduce(json.dumps(HISTORY), **options).messages


def by_history(**options: Any) -> Any:
    history = recede.History(**options)
    for message in HISTORY:
        if message["role"] == "assistant" and "max_input_tokens" in options:
            history.view()  # the request that it answers
        history.append(message)
    return history.view()


def by_masker(**options: Any) -> Any:
    return Masker(**options).view(HISTORY)


def by_wrap(**options: Any) -> Any:
    client: Any = recede.wrap(openai.OpenAI(api_key="none"), **options)
    return client._recede_masker.view(HISTORY)


def by_request_masker(**options: Any) -> Any:
    body = json.dumps({"model": "m", "messages": HISTORY}).encode()
    return json.loads(RequestMasker(**options).mask("POST", "/v1/chat/completions", {}, body).body)["messages"]


def by_column(**options: Any) -> Any:
    from recede.arrow import Reducer

    return json.loads(Reducer(**options)(pa.table({"messages": [json.dumps(HISTORY)]}))["messages"][0].as_py())


def by_command(**options: Any) -> Any:
    """`recede reduce`, in the words of the command line."""
    words = []
    for name, value in options.items():
        flag = "--exclude-tool" if name == "exclude_tools" else f"--{name.replace('_', '-')}"
        if isinstance(value, dict):
            value = [f"{tool}={'all' if count is None else count}" for tool, count in value.items()]
        for one in value if isinstance(value, list) else [value]:
            words += [flag] if one is True else [flag, str(one)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(HISTORY, file)
        file.flush()
        done = recede_command("reduce", file.name, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


MASKING: list[Callable[..., Any]] = [by_masker, by_wrap, by_request_masker]
DOORS = [by_request, by_bytes, by_history, by_column, by_command, *MASKING]
# What a function or a place of a request says.
NOT_TYPED = {"token_counter", "cold"}


def test_each_option_is_tried() -> None:
    assert CHANGES.keys() == OPTIONS.keys()


@pytest.mark.parametrize("name", CHANGES)
def test_an_option_changes_the_view(name: str) -> None:
    base, value = CHANGES[name]
    assert by_reduce(**{**base, name: value}) != by_reduce(**base)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("name", CHANGES)
def test_each_door_reads_it(door: Callable[..., Any], name: str) -> None:
    if door is by_command and name in NOT_TYPED:
        pytest.skip("a command line has no functions and no moments")
    base, value = CHANGES[name]
    options = {**base, name: value}
    if door in MASKING and "max_input_tokens" in options:  # it drops no message
        assert len(door(**options)) == len(HISTORY)
        assert door(**options) == by_masker(**options) != door(**base)
        return
    assert door(**options) == by_reduce(**options)


@pytest.mark.parametrize("door", [recede.reduce, recede.History, Masker, RequestMasker, recede.wrap])
def test_its_signature_shows_each_option(door: Any) -> None:
    import inspect

    parameters = inspect.signature(door).parameters
    shown = {name: parameters[name].default for name in OPTIONS}
    assert shown == {name: option.default for name, option in OPTIONS.items()}


def test_help_of_reduce_fits_a_screen_and_a_half() -> None:
    import pydoc

    assert len(pydoc.render_doc(recede.reduce, renderer=pydoc.plaintext).splitlines()) <= 60


@pytest.mark.parametrize(
    ("typed", "goal"),
    [
        ("ReducerOptions", "reduce"),
        ("MaskOptions", "mask"),
        ("SummaryOptions", "summarize"),
        ("TruncateOptions", "truncate"),
    ],
)
def test_type_checkers_see_the_options_of_a_design(typed: str, goal: str) -> None:
    declared = {name: quoted(one.kind.annotation) for name, one in DESIGN_OPTIONS.items() if goal in one.goals}
    assert annotations_of(getattr(types, typed)) == declared


def test_type_checkers_see_the_one_set() -> None:
    declared = {name: quoted(one.kind.annotation) for name, one in OPTIONS.items()}
    assert annotations_of(recede.types.Options) == declared


def quoted(annotation: str) -> str:
    return annotation.replace("'", '"')


def annotations_of(typed: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in reversed(typed.__orig_bases__ if hasattr(typed, "__orig_bases__") else ()):
        if hasattr(one, "__annotations__"):
            found |= annotations_of(one)
    hints = typed.__annotations__.items()
    return found | {name: quoted(getattr(hint, "__forward_arg__", hint)) for name, hint in hints}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("budget", "max_input_tokens"),
        ("max_input_chars", "max_input_tokens"),
        ("keep_results", "keep"),
        ("window", "keep"),
        ("n", "keep"),
        ("mask_chunk", "boundary=N"),
        ("keep_tools", "keep_by_tool|keep_errors"),
    ],
)
@pytest.mark.parametrize("door", [by_reduce, by_history, by_masker, by_wrap, by_request_masker, by_column])
def test_a_wrong_word_is_told_the_right_one(door: Callable[..., Any], wrong: str, right: str) -> None:
    with pytest.raises(TypeError, match=f"there is no option '{wrong}'.*(?:{right})"):
        door(**{wrong: 4})


def by_client(**options: Any) -> Any:
    return recede_client(openai.DefaultHttpxClient(), **options)


@pytest.mark.parametrize(
    ("door", "wrong", "right"),
    [
        (by_request_masker, "summarizer", "did you mean 'summaries'"),
        (by_client, "summaries", "did you mean 'summarizer'"),
        (by_client, "state", "it is one of recede.proxy.RequestMasker"),
        (by_history, "summaries", "did you mean 'summarizer'"),
        (by_masker, "summaries", "did you mean 'summarizer'"),
        (by_wrap, "summaries", "did you mean 'summarizer'"),
        *((by_wrap, name, "it is one of recede.masker.Masker") for name in ("adapter", "check", "most", "max_bytes")),
    ],
)
def test_an_option_of_another_door_is_told_its_own(door: Callable[..., Any], wrong: str, right: str) -> None:
    with pytest.raises(TypeError, match=f"there is no option '{wrong}'.*{right}"):
        door(**{wrong: True})
