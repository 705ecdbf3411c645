"""The requests that a body implies, and their keys, against the rule taken literally."""

from __future__ import annotations

import json
from typing import Any

from generated import histories
from hypothesis import given
from hypothesis import strategies as st

from definitions.requests import points_of, said_before
from oracle.walk import walk
from recede import _engine

_NAMES = st.sampled_from(["f", "g", "é"])
_IDS = st.none() | st.sampled_from(["1", "2"])


def _gemini(name: str, id: str | None, said: str) -> list[dict[str, Any]]:
    named = {"name": name} if id is None else {"name": name, "id": id}
    return [
        {"role": "model", "parts": [{"functionCall": {**named, "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {**named, "response": {"output": said}}}]},
    ]


_TURNS = st.lists(st.builds(_gemini, _NAMES, _IDS, st.text(max_size=4)), max_size=6)
_GEMINI = _TURNS.map(lambda turns: [message for turn in turns for message in turn])


def asked(body: bytes) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = _engine.engine.Request(body, ()).points()
    return found


@given(histories() | _GEMINI)
def test_points_are_those_of_the_definition(messages: list[dict[str, Any]]) -> None:
    is_gemini = any("parts" in message for message in messages)
    body = json.dumps({"contents" if is_gemini else "messages": messages}).encode()
    points = asked(body)
    assert points == points_of(walk(messages))
    assert len({key for _, key in points}) == len(points)


@given(histories(), st.data())
def test_points_of_a_beginning_are_the_first_ones(messages: list[dict[str, Any]], data: st.DataObject) -> None:
    whole = asked(json.dumps({"messages": messages}).encode())
    ends = [end for end, _ in whole if end]  # an empty history asks for nothing
    if not ends:
        return
    end = data.draw(st.sampled_from(ends))
    beginning = asked(json.dumps({"messages": messages[:end]}).encode())
    assert beginning == [point for point in whole if point[0] <= end]


def test_keys_are_those_that_are_stored() -> None:
    """A ledger outlives the version that wrote it: these bytes never change."""
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a1", "name": "run", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a1", "content": "done"}]},
    ]
    found = [(end, key.hex()) for end, key in asked(json.dumps({"messages": messages}).encode())]
    assert found == [(1, "28984a4e702b9178af8c1a7b69cb28d2"), (3, "65a790e9425ec237f201b708c515fc86")]


_WORDS = st.sampled_from(
    [
        "",
        "a",
        "b",
        'a"',
        "a\\",
        'a\\"' * 40,
        "x" * 70,
        "x-anthropic-billing-header: 1",
        "x-anthropic-billing-header: 2",
        "é\n",
    ]
)
_MARKS = st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}, {"cache_control": None}])
_TEXT = st.builds(lambda text, mark: {"type": "text", "text": text, **mark}, _WORDS, _MARKS)
_CITED = st.builds(lambda text: {"type": "text", "text": text, "citations": []}, _WORDS)
_CONTENT = _WORDS | st.lists(_TEXT | _CITED, max_size=2)
_SAID = st.builds(lambda role, content: {"role": role, "content": content}, st.sampled_from(["user"]), _CONTENT)
_RESULT = st.builds(
    lambda content, mark: [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": [1, None, True]}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": content, **mark}]},
    ],
    _CONTENT,
    _MARKS,
)
_TOOL = st.builds(
    lambda name, deferred, mark: {"name": name, "input_schema": {"type": "object"}, **deferred, **mark},
    st.sampled_from(["f", "g", "h"]),
    st.sampled_from([{}, {"defer_loading": True}, {"defer_loading": False}]),
    _MARKS,
)
_BODY = st.builds(
    lambda system, tools, said, turns: {
        **({} if system is None else {"system": system}),
        "tools": tools,
        "messages": [*said, *(message for turn in turns for message in turn)],
    },
    st.none() | _CONTENT,
    st.lists(_TOOL, max_size=3),
    st.lists(_SAID, min_size=1, max_size=2),
    st.lists(_RESULT, max_size=2),
)


def _turned(value: Any) -> Any:
    """The same with the keys of each object the other way round."""
    if isinstance(value, dict):
        return {key: _turned(one) for key, one in reversed(value.items())}
    return [_turned(one) for one in value] if isinstance(value, list) else value


@given(_BODY, _BODY, st.booleans(), st.sampled_from([None, 1]))
def test_content_keys_are_equal_where_bodies_say_the_same(
    one: dict[str, Any], other: dict[str, Any], is_mixed: bool, indent: int | None
) -> None:
    if is_mixed:
        other = {**one, "system": other.get("system"), "tools": other["tools"]}
    keys, said = {}, {}
    for number, body in enumerate((one, _turned(one), other)):
        request = _engine.engine.Request(json.dumps(body, indent=indent if number == 1 else None).encode(), ())
        ends = [end for end, _ in request.points()]
        for end, key in zip(ends, request.content_keys(), strict=True):
            keys[number, end] = key
            said[number, end] = said_before(body, body["messages"], end)
    for first in keys:
        for second in keys:
            assert (keys[first] == keys[second]) == (said[first] == said[second]), (first, second)


def test_content_keys_are_those_that_are_stored() -> None:
    """A ledger outlives the version that wrote it: these bytes never change."""
    body = {
        "system": "You are an agent.",
        "tools": [{"name": "run", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a1", "name": "run", "input": {"n": 1.5}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a1", "content": "done \u00e9" * 9}]},
        ],
    }
    found = [key.hex() for key in _engine.engine.Request(json.dumps(body).encode(), ()).content_keys()]
    assert found == ["cfc6a548ac26f1da5f57d23c6d64f4d4", "e41509f3e2c433037050d17890a93d5e"]
