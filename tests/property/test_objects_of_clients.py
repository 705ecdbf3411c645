"""A history with objects of a client in it against the same history of plain dicts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import count
from typing import Any

import published
import pytest
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from published import History
from pydantic import BaseModel, ConfigDict
from strategies import block_options, reduce_options

import recede
from recede._objects import plain
from support import (
    ENGINES,
    call,
    chat_call,
    chat_result,
    function_call,
    function_call_output,
    outcome,
    result,
    tool_result,
    tool_use,
    user,
    using,
)

ENGINES = pytest.mark.parametrize("engine_name", ENGINES)
Messages = list[Any]


class Thing(BaseModel):
    """An object as clients make them of what they receive."""

    model_config = ConfigDict(extra="allow")


def wrapped(value: Any, is_wrapped: Callable[[], bool], *, is_message: bool = False) -> Any:
    """The value, with objects for some of its dicts."""
    if isinstance(value, list):
        return [wrapped(element, is_wrapped) for element in value]
    if not isinstance(value, dict):
        return value
    fields = {name: wrapped(field, is_wrapped) for name, field in value.items()}
    may_be = fields.keys() & {"role", "type", "parts"} if is_message else "model_config" not in fields
    return Thing.model_construct(set(fields), **fields) if may_be and is_wrapped() else fields


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Messages, Messages]:
    """A history, and the same with objects in it."""
    history = draw(histories())
    share = draw(st.sampled_from([0.1, 0.5, 1.0]))
    chances = draw(st.randoms(use_true_random=False))
    return history, [wrapped(message, lambda: chances.random() < share, is_message=True) for message in history]


SAMPLES: list[Messages] = [
    [call("1"), result("1", "x" * 900), result("2", [{"type": "text", "text": "y" * 900}])],
    [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "custom": {"name": "run", "input": "patch"}}]},
        result("1", "x" * 900),
    ],
    [
        tool_use("1", value={"path": {"of": ["a", {"b": 1}]}}),
        user([tool_result("1", [{"type": "text", "text": "x" * 900}])]),
    ],
    [
        {"type": "computer_call", "call_id": "1", "action": {"type": "click", "x": 12}},
        {"type": "computer_call_output", "call_id": "1", "output": {"type": "image", "url": "data"}},
        function_call("2"),
        function_call_output("2", [{"type": "input_text", "text": "x" * 900}]),
    ],
    [chat_call("1", "Look."), chat_result("1", "x" * 900)],
    [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "run", "input": {"a": {"b": 1}}}}]},
        user([{"toolResult": {"toolUseId": "1", "content": [{"text": "x" * 900}]}}]),
        user([{"toolResult": {"toolUseId": "2", "content": [{"json": {"a": {"b": "x" * 900}}}]}}]),
    ],
    [
        {"role": "model", "parts": [{"functionCall": {"name": "run", "args": {"a": {"b": 1}}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "run", "response": {"output": "x" * 900}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "see", "response": {"a": {"b": "x" * 900}}}}]},
    ],
]


@ENGINES
@pytest.mark.parametrize("history", SAMPLES, ids=lambda history: str(history[0])[:40])
def test_one_object_anywhere_is_read(engine_name: str, history: Messages) -> None:
    for place in count():
        turn = count()
        objects = [wrapped(message, lambda turn=turn, place=place: next(turn) == place) for message in history]
        if next(turn) <= place:
            break
        with using(engine_name):
            assert recede.count_chars(objects) == recede.count_chars(history), objects
            assert recede.check_pairs(objects) == recede.check_pairs(history)
            view = published.mask_observations(objects, keep_results=0, boundary="sliding").messages
            assert plain(view) == published.mask_observations(history, keep_results=0, boundary="sliding").messages
            assert plain(recede.repair_pairs(objects)) == recede.repair_pairs(history)
            for message, mended in zip(objects, recede.repair_pairs(objects), strict=False):
                assert mended is message or plain(mended) != plain(message)
    assert place >= 2


def same(of_objects: Any, of_dicts: Any) -> None:
    """What came of both is the same, but for the kind of its messages."""
    if isinstance(of_dicts, tuple) and isinstance(of_dicts[0], list):  # a view and the facts of it
        assert of_objects[1:] == of_dicts[1:]
        of_objects, of_dicts = of_objects[0], of_dicts[0]
    assert plain(of_objects) == of_dicts


FUNCTIONS: dict[str, Callable[[Messages], Any]] = {
    "count_chars": recede.count_chars,
    "approx_tokens": recede.designs.approx_tokens,
    "check_pairs": lambda history: list(map(list, recede.check_pairs(history).findings)),
    "repair_pairs": recede.repair_pairs,
    "mask_old_observations": lambda history: recede.designs.mask_old_observations(history, keep=3),
    "summarize_history": lambda history: recede.designs.summarize_history(history, preserve_recent_raw_turns=1),
    "Budget": lambda history: recede.designs.Budget(0, keep=3, token_counter=len).view(history),
}


@ENGINES
@given(pair=pairs(), options=reduce_options())
def test_each_function_reads_objects_as_their_dicts(
    engine_name: str, pair: tuple[Messages, Messages], options: dict[str, Any]
) -> None:
    history, objects = pair
    before = copy.deepcopy(objects)
    functions = {**FUNCTIONS, "reduce": lambda messages: published.reduce(messages, **options)}
    with using(engine_name):
        for name, function in functions.items():
            expected, found = outcome(function, history), outcome(function, objects)
            same(found, expected)
            if expected is history:
                assert found is objects, name
    assert objects == before, "the input was changed"


@pytest.mark.parametrize("kind", ["web_search_call", "no_such_call"])
def test_an_item_of_an_unknown_type_counts_as_its_dict(kind: str) -> None:
    item = {"type": kind, "id": "ws_1", "status": "completed"}
    thing = Thing.model_construct(set(item), **item)
    assert recede.count_chars([thing]) == recede.count_chars([item]) > 0
    assert published.mask_observations([thing], keep_results=0).messages[0] is thing


@ENGINES
@given(pair=pairs())
def test_what_is_unchanged_is_the_callers_own(engine_name: str, pair: tuple[Messages, Messages]) -> None:
    history, objects = pair
    with using(engine_name):
        plain_view = published.mask_observations(history, keep_results=1, boundary="sliding").messages
        view = published.mask_observations(objects, keep_results=1, boundary="sliding").messages
        for dict_, dict_shown, object_, shown in zip(history, plain_view, objects, view, strict=True):
            assert (shown is object_) == (dict_shown is dict_)
            assert type(shown) is type(object_)
            parts, parts_shown = blocks(object_), blocks(shown)
            if len(parts) != len(parts_shown):  # one new text in the place of all of them
                assert len(parts_shown) <= 1
                continue
            for part, part_shown in zip(parts, parts_shown, strict=True):
                is_new = not plain(part).keys() <= plain(part_shown).keys()  # a text in the place of an image
                assert is_new or type(part) is type(part_shown)


def blocks(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, dict) else getattr(message, "content", None)
    return content if isinstance(content, list) else []


@given(pair=pairs(), options=reduce_options() | block_options())
def test_a_history_keeps_them(pair: tuple[Messages, Messages], options: dict[str, Any]) -> None:
    history, objects = pair
    expected, kept = History(**options), History(**options)
    for message, object_ in zip(history, objects, strict=True):
        expected.append(message)
        kept.append(object_)
        assert kept[-1] is object_
        for _ in range(2):
            view, plain_view = kept.view(), expected.view()
            assert without_nulls(plain(view)) == without_nulls(plain_view)
        for shown, dict_shown in zip(view, plain_view, strict=True):
            own = [place for place, one in enumerate(expected.messages) if one is dict_shown]
            assert not own or shown is kept[own[0]]


def without_nulls(messages: Messages) -> Messages:
    return [{name: field for name, field in message.items() if field is not None} for message in messages]
