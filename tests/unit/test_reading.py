"""Reading JSON: what is accepted, what is refused, and where the first offending byte stands."""

from __future__ import annotations

import json
from typing import Any

import json_cases as cases
import published
import pytest

import recede
from recede import TranscriptError
from support import MALFORMED


def read(data: Any) -> recede.types.JsonReduction:
    return published.reduce_json(data, max_input_chars=1 << 50)


def refusal(data: Any) -> TranscriptError:
    with pytest.raises(TranscriptError) as caught:
        read(data)
    return caught.value


def place(error: TranscriptError) -> tuple[str, int | None, int | None, str | None]:
    return error.kind, error.offset, error.message_index, error.field


def _name(case: Any) -> str:
    return f"{case.family}-{case.fragment[:24]!r}"


@pytest.mark.parametrize("case", cases.ACCEPTED, ids=_name)
def test_accepted_fragments_are_carried_byte_by_byte(case: Any) -> None:
    raw = cases.PREFIX + case.fragment + cases.SUFFIX
    for data in (raw, bytearray(raw), memoryview(raw), raw.decode()):
        assert read(data).json == raw


@pytest.mark.parametrize("case", cases.REFUSED, ids=_name)
def test_refused_fragments_name_the_first_offending_byte(case: Any) -> None:
    raw = cases.PREFIX + case.fragment + cases.SUFFIX
    offset = len(raw) if case.offset is None else len(cases.PREFIX) + case.offset
    for data in (raw, bytearray(raw), memoryview(raw)):
        assert place(refusal(data)) == (case.kind, offset, case.message_index, None)


@pytest.mark.parametrize("case", cases.REFUSED, ids=_name)
def test_a_fragment_that_is_refused_is_refused_in_arguments_and_in_text_too(case: Any) -> None:
    for prefix, suffix in (
        (b'[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":', b"}}]}]"),
        (b'[{"role":"user","content":', b"}]"),
        (b'[{"role":"user","content":[{"type":"text","text":', b"}]}]"),
        (b'[{"type":"function_call_output","call_id":"1","output":', b"}]"),
        (b'{"messages":[],"model":{"a":', b"}}"),
    ):
        assert refusal(prefix + case.fragment + suffix).kind in MALFORMED


@pytest.mark.parametrize(
    ("data", "kind", "offset", "message_index"),
    [
        (b"", "eof", 0, None),
        (b"  ", "eof", 2, None),
        (b"[", "eof", 1, 0),
        (b"[ ", "eof", 2, 0),
        (b"[{", "eof", 2, 0),
        (b'[{"a', "eof", 4, 0),
        (b'[{"a"', "eof", 5, 0),
        (b'[{"a":', "eof", 6, 0),
        (b'[{"a":1', "eof", 7, 0),
        (b'[{"a":1,', "eof", 8, 0),
        (b'[{"a":1}', "eof", 8, None),
        (b"[{}", "eof", 3, None),
        (b"[{},", "eof", 4, 1),
        (b"[{},]", "syntax", 4, 1),
        (b"[{},{},x]", "syntax", 7, 2),
        (b"[{} {}]", "syntax", 4, None),
        (b"[{}}", "syntax", 3, None),
        (b"[1}", "syntax", 2, None),
        (b"nul", "eof", 3, None),
        (b"nulx", "syntax", 3, None),
        (b"-", "eof", 1, None),
        (b"1.", "eof", 2, None),
        (b"1e+", "eof", 3, None),
        (b"01", "number", 1, None),
        (b'["', "eof", 2, 0),
        (b'["\\', "eof", 3, 0),
        (b'["\\u', "eof", 4, 0),
        (b'["\\u12', "eof", 6, 0),
        (b'["\\u12"', "escape", 2, 0),
        (b'["\xe2\x82', "utf8", 2, 0),
        (b'["a\xc3', "utf8", 3, 0),
        (b'[{"a":"\xf0\x9f\x98', "utf8", 7, 0),
        (b'["a\x01\xff"]', "control", 3, 0),
        (b'["a\xff\x01"]', "utf8", 3, 0),
        (b'["a\xff\\x"]', "utf8", 3, 0),
        (b"]", "syntax", 0, None),
        (b"}", "syntax", 0, None),
        (b"\xef\xbb\xbf[]", "syntax", 0, None),
        (b"\xff\xfe[\x00]\x00", "syntax", 0, None),
        (b"[\x00]", "syntax", 1, 0),
        (b"[] x", "trailing", 3, None),
        (b"[]]", "trailing", 2, None),
        (b"[],", "trailing", 2, None),
        (b"[]\x00", "trailing", 2, None),
        (b"[]\n[]", "trailing", 3, None),
        (b"[]\xef\xbb\xbf", "trailing", 2, None),
        (b"1 2", "trailing", 2, None),
        (b'{"messages":[{},]}', "syntax", 16, 1),
        (b'{"input":[{},]}', "syntax", 13, 1),
        (b'{"model":[1,]}', "syntax", 12, None),
        (b'{"messages":5,"input":[x]}', "syntax", 23, 0),
        (b'{"messages":[],"input":[x]}', "syntax", 24, None),
        (b'{"messages":[]', "eof", 14, None),
        (b'{"messages"', "eof", 11, None),
        (b'{"messages":[]}}', "trailing", 15, None),
    ],
)
def test_offsets_of_whole_inputs(data: bytes, kind: str, offset: int, message_index: int | None) -> None:
    assert place(refusal(data)) == (kind, offset, message_index, None)


def test_the_outermost_level_counts_for_the_depth() -> None:
    assert place(refusal(b"[" * 1_025)) == ("depth", 1_024, 0, None)
    assert refusal(b"[" * 1_024).kind == "eof"
    assert place(refusal(b'{"a":' + b"[" * 1_024)) == ("depth", 5 + 1_023, None, None)
    assert place(refusal(b"[" * 1_024 + b"]" * 1_024))[0] == "message"


def test_the_depth_is_counted_not_the_number_of_brackets() -> None:
    raw = b'[{"x":[' + b"[],{}," * 5_000 + b"1]}]"
    assert read(raw).json is raw


def test_malformed_json_anywhere_comes_before_wrong_shapes_anywhere() -> None:
    assert refusal(b'[5,{"content":5},]').kind == "syntax"
    assert refusal(b'{"messages":"no","x":nul}').kind == "syntax"
    assert refusal(b'[{"role":"a","role":"b"},01]').kind == "number"


def test_raw_surrogates_are_no_utf8_in_bytes_but_pass_in_a_str() -> None:
    text = '[{"x":"\ud800"}]'
    raw = text.encode("utf-8", "surrogatepass")
    assert place(refusal(raw)) == ("utf8", 7, 0, None)
    assert read(text).json == raw
    assert read('[{"\udfff":"a\udc80"}]').json == b'[{"\xed\xbf\xbf":"a\xed\xb2\x80"}]'


def test_offsets_of_a_str_count_bytes_of_its_utf8_form() -> None:
    assert place(refusal('[{"é—😀":x}]')) == ("syntax", 1 + 1 + 1 + 2 + 3 + 4 + 1 + 1, 0, None)
    assert place(refusal('[{"\ud800":x}]')) == ("syntax", 1 + 1 + 1 + 3 + 1 + 1, 0, None)


def test_a_memoryview_may_be_a_slice_with_steps() -> None:
    doubled = b"".join(bytes([byte, 0]) for byte in b'[{"role":"user","content":"hi"}]')
    assert read(memoryview(doubled)[::2]).json == b'[{"role":"user","content":"hi"}]'


def test_a_bytearray_is_left_as_it_was() -> None:
    data = bytearray(b'[{"role":"user","content":"hi"}]')
    output = read(data).json
    assert type(output) is bytes and output == data == b'[{"role":"user","content":"hi"}]'
    data.extend(b"not locked")


def test_accepts_what_the_standard_library_accepts_in_this_table() -> None:
    for case in cases.ACCEPTED:
        if case.fragment.count(b"[") > 900:
            continue  # the library has no limit of its own but that of recursion
        json.loads(case.fragment.decode(), parse_int=str)
    for refused in cases.REFUSED:
        if refused.kind != "depth":
            with pytest.raises(ValueError, match=r".*"):
                json.loads((cases.PREFIX + refused.fragment + cases.SUFFIX).decode(), parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise ValueError(name)
