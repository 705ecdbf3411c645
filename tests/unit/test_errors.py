"""Bad input: each row of the table in semantics.md, with the place that the error names."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import published
import pytest

import recede
from recede import TranscriptError
from support import dumps, turns, user

Place = tuple[str, int | None, str | None]

DICT_FUNCTIONS: list[Callable[[Any], object]] = [
    lambda data: published.reduce(data, max_input_chars=1),
    lambda data: published.reduce(data, max_input_chars=1, enabled=False),
    lambda data: published.mask_observations(data, keep_results=0),
    lambda data: recede.designs.mask_old_observations(data),
    recede.designs.summarize_history,
    recede.designs.truncate_history,
    recede.count_chars,
    recede.check_pairs,
    recede.repair_pairs,
]
EVERY_FORM = (recede.count_chars, recede.check_pairs, recede.repair_pairs)
JSON_FUNCTIONS: list[Callable[[Any], object]] = [
    lambda data: published.reduce_json(data, max_input_chars=1),
    lambda data: published.reduce_json(data, max_input_chars=1, enabled=False),
    lambda data: published.reduce_json(data, max_input_tokens=1, token_counter=len),
    lambda data: published.mask_observations_json(data, keep_results=0),
    lambda data: recede.designs.mask_old_observations_json(data),
]


def refusal(function: Callable[[Any], object], data: Any) -> TranscriptError:
    with pytest.raises(TranscriptError) as caught:
        function(data)
    return caught.value


def _type_name(value: object) -> str:
    return type(value).__name__


def place(error: TranscriptError) -> Place:
    return error.kind, error.message_index, error.field


# A shape that is wrong, where, and the text of the value whose first byte the error names.
WRONG_SHAPES: list[tuple[Any, Place, bytes]] = [
    ([5], ("message", 0, None), b"5"),
    ([{}, None], ("message", 1, None), b"null"),
    ([{}, {}, [{}]], ("message", 2, None), b"[{}]"),
    ([user("a"), "text"], ("message", 1, None), b'"text"'),
    ([{"content": 5}], ("content", 0, "content"), b"5"),
    ([{"content": True}], ("content", 0, "content"), b"true"),
    ([{}, {"content": {"a": 1}}], ("content", 1, "content"), b'{"a": 1}'),
    ([{"role": "system", "content": 1.5}], ("content", 0, "content"), b"1.5"),
    ([{"content": ["text"]}], ("part", 0, "content[0]"), b'"text"'),
    ([{"content": [{}, None]}], ("part", 0, "content[1]"), b"null"),
    ([{"content": [{}, {}, 7]}], ("part", 0, "content[2]"), b"7"),
    ([{"content": [{"type": "tool_result", "content": 7}]}], ("content", 0, "content[0].content"), b"7"),
    ([{"content": [{"type": "tool_result", "content": {}}]}], ("content", 0, "content[0].content"), b"{}"),
    ([{"content": [{}, {"type": "tool_result", "content": ["x"]}]}], ("part", 0, "content[1].content[0]"), b'"x"'),
    ([{"content": [{"type": "tool_result", "content": [{}, 1]}]}], ("part", 0, "content[0].content[1]"), b"1"),
    ([{"type": "function_call_output", "output": [1]}], ("part", 0, "output[0]"), b"1"),
    ([{"type": "function_call_output", "output": [{}, None]}], ("part", 0, "output[1]"), b"null"),
]


@pytest.mark.parametrize(("history", "expected", "value"), WRONG_SHAPES, ids=lambda case: str(case)[:40])
def test_wrong_shapes_name_message_and_field(history: list[Any], expected: Place, value: bytes) -> None:
    before = copy.deepcopy(history)
    for function in DICT_FUNCTIONS:
        error = refusal(function, history)
        assert (place(error), error.offset) == (expected, None)
    assert history == before
    raw = dumps(history)
    for data in (raw, b'{"model":"m","messages":' + raw + b"}"):
        for function in JSON_FUNCTIONS:
            error = refusal(function, data)
            assert place(error) == expected
            assert error.offset is not None and data[error.offset :].startswith(value)


@pytest.mark.parametrize(
    "history",
    [
        [{"content": None}],
        [{"content": [{"type": "tool_result", "content": None}]}],
        [{"content": [{"type": "tool_result"}]}],
        [{"content": [{"type": "text", "content": 5}]}],
        [{"role": "tool", "content": [{"type": "tool_result", "content": 5}]}],
        [{"type": "function_call_output", "output": 5}],
        [{"type": "message", "output": [5]}],
        [{"output": 5, "tool_calls": 5, "arguments": [5], "input": 5, "tags": 5, "role": 5, "type": []}],
        [{"role": "assistant", "tool_calls": ["x", 5]}],
        [{"role": "assistant", "tool_calls": [{"function": 5, "custom": "x", "id": {}}]}],
    ],
    ids=str,
)
def test_what_is_not_read_may_have_any_shape(history: list[Any]) -> None:
    for function in DICT_FUNCTIONS:
        function(history)
    for function in JSON_FUNCTIONS:
        function(dumps(history))


@pytest.mark.parametrize("data", [None, 5, "text", {"messages": []}, (), iter([]), b"[]"], ids=_type_name)
def test_a_history_is_a_list(data: Any) -> None:
    kind = "request" if isinstance(data, dict) else "history"
    for function in DICT_FUNCTIONS:
        if function in EVERY_FORM and isinstance(data, (dict, bytes, str)):
            continue
        assert place(refusal(function, data)) == (kind, None, None)


@pytest.mark.parametrize("message", [None, 5, "text", [], ("role", "user"), object()], ids=_type_name)
def test_a_message_is_a_dict(message: Any) -> None:
    for function in DICT_FUNCTIONS:
        assert place(refusal(function, [user("a"), message])) == ("message", 1, None)


@pytest.mark.parametrize("content", [5, b"bytes", ("a",), {"type": "text"}, object()], ids=_type_name)
def test_a_content_is_a_string_a_list_or_none(content: Any) -> None:
    for function in DICT_FUNCTIONS:
        assert place(refusal(function, [{"role": "user", "content": content}])) == ("content", 0, "content")


@pytest.mark.parametrize(
    ("data", "offset", "field"),
    [
        (b"null", 0, None),
        (b" 5", 1, None),
        (b'\n"text"', 1, None),
        (b"{}", 0, None),
        (b' {"a":[]}', 1, None),
        (b'{"messages":5}', 12, "messages"),
        (b'{"messages": {}}', 13, "messages"),
        (b'{"input":"hello"}', 9, "input"),
        (b'{"x":1,"input": null}', 16, "input"),
        (b'{"messages":5,"input":"s"}', 12, "messages"),
        (b'{"input":"s","messages":5}', 24, "messages"),
    ],
)
def test_a_body_without_a_history(data: bytes, offset: int, field: str | None) -> None:
    for function in JSON_FUNCTIONS:
        error = refusal(function, data)
        assert (error.kind, error.offset, error.message_index, error.field) == ("history", offset, None, field)


# The named fields twice. The second key's opening quote is marked with ^.
DUPLICATES: list[tuple[bytes, int | None, str]] = [
    *[
        (b'[{},{"%s":null,"a":1,^"%s":null}]' % (key.encode(), key.encode()), 1, key)
        for key in (
            "role",
            "content",
            "type",
            "tool_calls",
            "tool_call_id",
            "pairRole",
            "pairId",
            "call_id",
            "name",
            "arguments",
            "input",
            "action",
            "output",
            "tags",
            "is_error",
            "status",
        )
    ],
    (b'[{"role":"a",^"r\\u006fle":"b"}]', 0, "role"),
    *[
        (b'[{"content":[{},{"%s":null,^"%s":null}]}]' % (key.encode(), key.encode()), 0, f"content[1].{key}")
        for key in ("type", "text", "id", "name", "input", "tool_use_id", "content", "is_error")
    ],
    (
        b'[{"content":[{"type":"tool_result","content":[{"type":"text",^"type":"x"}]}]}]',
        0,
        "content[0].content[0].type",
    ),
    (
        b'[{"content":[{"type":"tool_result","content":[{},{"text":"","a":0,^"text":""}]}]}]',
        0,
        "content[0].content[1].text",
    ),
    (b'[{"type":"function_call_output","output":[{"text":"",^"text":""}]}]', 0, "output[0].text"),
    (b'[{"role":"assistant","tool_calls":[{"id":"1",^"id":"2"}]}]', 0, "tool_calls[0].id"),
    (b'[{"role":"assistant","tool_calls":[{"function":{},^"function":{}}]}]', 0, "tool_calls[0].function"),
    (b'[{"role":"assistant","tool_calls":[{},{"custom":1,^"custom":1}]}]', 0, "tool_calls[1].custom"),
    (b'[{"role":"assistant","tool_calls":[{"function":{"name":"",^"name":""}}]}]', 0, "tool_calls[0].function.name"),
    (
        b'[{"role":"assistant","tool_calls":[{"function":{"arguments":"",^"arguments":""}}]}]',
        0,
        "tool_calls[0].function.arguments",
    ),
    (b'[{"role":"assistant","tool_calls":[{"custom":{"input":"",^"input":""}}]}]', 0, "tool_calls[0].custom.input"),
    (b'{"messages":[],^"messages":[]}', None, "messages"),
    (b'{"messages":5,^"messages":[]}', None, "messages"),
    (b'{"messages":[],"input":[],^"input":[]}', None, "input"),
]


@pytest.mark.parametrize(("marked", "message_index", "field"), DUPLICATES, ids=[field for _, _, field in DUPLICATES])
def test_a_named_field_twice(marked: bytes, message_index: int | None, field: str) -> None:
    offset = marked.index(b"^")
    raw = marked.replace(b"^", b"")
    for function in JSON_FUNCTIONS:
        error = refusal(function, raw)
        assert (error.kind, error.offset, error.message_index, error.field) == (
            "duplicate_key",
            offset,
            message_index,
            field,
        )


@pytest.mark.parametrize(
    "raw",
    [
        b'[{"x":1,"x":2}]',
        b'[{"text":1,"text":2,"id":1,"id":2,"tool_use_id":1,"tool_use_id":2}]',
        b'[{"role":"user","x":{"role":1,"role":2}}]',
        b'[{"type":"function_call","call_id":"1","arguments":{"name":1,"name":2}}]',
        b'[{"content":[{"type":"tool_use","id":"1","input":{"id":1,"id":2}}]}]',
        b'[{"content":[{"type":"text","role":1,"role":2,"source":{"type":1,"type":2}}]}]',
        b'[{"role":"user","tool_calls":[{"id":1,"id":2}]}]',
        b'[{"type":"message","output":[{"type":1,"type":2}]}]',
        b'[{"content":[{"type":"text","content":[{"type":1,"type":2}]}]}]',
        b'{"model":1,"model":2,"messages":[]}',
    ],
)
def test_other_fields_twice_are_carried_along(raw: bytes) -> None:
    for function in JSON_FUNCTIONS:
        function(raw)
    assert published.reduce_json(raw, max_input_chars=1 << 40).json is raw


# Which of several errors is named


@pytest.mark.parametrize(
    ("raw", "kind", "message_index", "field"),
    [
        (b'[{"content":5},5]', "content", 0, "content"),
        (b'[5,{"role":1,"role":2}]', "message", 0, None),
        (b'[{"content":5,"role":1,"role":2}]', "duplicate_key", 0, "role"),
        (b'[{"content":[5,{"type":1,"type":2}]}]', "part", 0, "content[0]"),
        (b'[{"content":[{"type":1,"type":2},5]}]', "duplicate_key", 0, "content[0].type"),
        (b'[{"type":"a_call_output","output":[1],"content":[2]}]', "part", 0, "content[0]"),
        (b'{"messages":[5],"messages":[]}', "duplicate_key", None, "messages"),
        (b'{"input":[5],"input":[],"messages":7}', "duplicate_key", None, "input"),
    ],
)
def test_the_first_fault_is_named(raw: bytes, kind: str, message_index: int | None, field: str | None) -> None:
    for function in JSON_FUNCTIONS:
        assert place(refusal(function, raw)) == (kind, message_index, field)


def test_depth_of_python_objects() -> None:
    def nested(levels: int) -> Any:
        value: Any = []
        for _ in range(levels - 1):
            value = [value]
        return value

    # The history, the message, the list of blocks and the block are levels 1 to 4.
    def history(levels: int) -> list[Any]:
        return [user("a"), {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "input": nested(levels)}]}]

    assert recede.count_chars(history(1_020)) == 1 + 20 + 2 * 1_020
    error = refusal(recede.count_chars, history(1_021))
    assert (error.kind, error.offset, error.message_index) == ("depth", None, 1)
    refusal(recede.count_chars, history(50_000))


# The errors themselves


def test_a_transcript_error_is_a_value_error_and_says_what_where_and_what_to_do() -> None:
    error = refusal(lambda data: published.reduce_json(data, max_input_chars=1), b'[{},{"content":5}]')
    assert isinstance(error, ValueError)
    assert str(error) == (
        "a content of the wrong type at byte 15, message 1, field content: "
        "it must be a string, a list of parts, or null"
    )


def test_a_transcript_error_can_be_pickled_and_copied() -> None:
    error = TranscriptError("part", offset=3, message_index=1, field="content[0]")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is TranscriptError
        assert str(other) == str(error)
        assert (other.kind, other.offset, other.message_index, other.field) == ("part", 3, 1, "content[0]")


@pytest.mark.parametrize("data", [None, 5, [], {}, ["x"]])
def test_data_is_bytes_or_text(data: Any) -> None:
    for function in JSON_FUNCTIONS:
        with pytest.raises(TypeError, match="bytes, bytearray, memoryview or str"):
            function(data)


def test_nothing_is_half_done() -> None:
    history = [*turns(9), {"role": "user", "content": 5}]
    before = copy.deepcopy(history)
    data = bytearray(dumps(history))
    for function in DICT_FUNCTIONS:
        refusal(function, history)
    for function in JSON_FUNCTIONS:
        refusal(function, data)
    assert history == before
    assert data == dumps(history)


def test_after_an_error_the_engine_goes_on() -> None:
    for _ in range(3):
        refusal(JSON_FUNCTIONS[0], b"[{")
        assert published.reduce_json(b"[]", max_input_chars=1).json == b"[]"
