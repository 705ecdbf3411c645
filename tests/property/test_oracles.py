"""Naive oracles, written from the page alone: slow, short, and independent of both engines."""

from __future__ import annotations

import json
from typing import Any

import published
import pytest
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values, mutated, spelled

import recede
from support import ENGINES, MALFORMED, using

ENGINES = pytest.mark.parametrize("engine_name", ENGINES)


def compact(value: Any) -> int:
    """The length of the compact JSON, with every number four and no escapes."""
    if value is None or isinstance(value, str):
        return len(value or "")
    return len(_written(value))


def _written(value: Any) -> str:
    if isinstance(value, str):
        return '"' + "s" * len(value) + '"'
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_written(key)}:{_written(inner)}" for key, inner in value.items()) + "}"
    return "1234"


@ENGINES
@given(value=json_values())
def test_arguments_of_any_kind(engine_name: str, value: Any) -> None:
    item = {"type": "function_call", "call_id": "1", "arguments": value}
    with using(engine_name):
        assert recede.count_chars([item]) == 20 + compact(value)
        raw = json.dumps([item])
        assert published.reduce_json(raw, max_input_chars=1 << 40).chars_before == 20 + compact(value)


# Acceptance, held to the standard library's json


def _refuse(name: str) -> None:
    raise ValueError(name)


def library_accepts(data: bytes) -> bool:
    try:
        json.loads(data.decode(), parse_constant=_refuse, parse_int=str)
    except ValueError:
        return False
    return True


def kind_of(data: Any) -> str | None:
    try:
        published.reduce_json(data, max_input_chars=1 << 40)
    except recede.TranscriptError as error:
        if error.offset is None or not 0 <= error.offset <= len(data):
            raise
        return error.kind
    return None


@ENGINES
@given(data=st.data())
def test_acceptance_is_that_of_the_standard_library(engine_name: str, data: Any) -> None:
    value = data.draw(json_values() | histories(max_turns=2, max_parallel_calls=2))
    raw = data.draw(spelled([{"x": value}, value])).encode("utf-8", "backslashreplace")
    raw = data.draw(mutated(raw))
    with using(engine_name):
        assert (kind_of(raw) not in MALFORMED) is library_accepts(raw), raw


@ENGINES
@given(
    raw=st.binary(max_size=30) | st.text(alphabet='[]{}",:\\u0123456789-+.eEtrufalsn \n', max_size=30).map(str.encode)
)
def test_acceptance_of_random_bytes(engine_name: str, raw: bytes) -> None:
    with using(engine_name):
        assert (kind_of(raw) not in MALFORMED) is library_accepts(raw)


@ENGINES
@given(value=st.text(max_size=60) | st.text(alphabet="\ud800\udbff\udc00\udfffaé😀", max_size=9))
def test_strings_are_decoded_as_the_standard_library_does(engine_name: str, value: str) -> None:
    raw = json.dumps([{"role": "user", "content": value}])
    decoded = json.loads(raw)[0]["content"]
    with using(engine_name):
        assert published.reduce_json(raw, max_input_chars=1 << 40).chars_before == len(decoded)
        text = json.dumps([{"role": "user", "content": decoded}], ensure_ascii=False)
        assert published.reduce_json(text, max_input_chars=1 << 40).chars_before == len(decoded)
