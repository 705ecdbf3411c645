"""The requests that a body implies, and their keys, against the rule taken literally."""

from __future__ import annotations

import json
from typing import Any

from generated import histories
from hypothesis import given
from hypothesis import strategies as st

from definitions.requests import points_of
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
