"""Bytes in, bytes out: every byte that is not replaced is the input's own."""

from __future__ import annotations

import json
from typing import Any

import published
import pytest

import recede
from support import assert_view_of, dumps, loads, mask_json, masked

X = b"x" * 90


def mask(data: Any, **options: Any) -> bytes:
    return mask_json(data, **{"keep_results": 0, **options}).json


def truncate(data: Any, keep: int, **options: Any) -> bytes:
    """What stage 3 leaves: the budget is met by nothing, and stage 2 fails."""

    def no_summary(messages: list[Any], previous: str | None) -> str:
        raise ValueError("none")

    reduction = published.reduce_json(
        data, max_input_chars=0, fill=None, preserve_recent_raw_turns=keep, summarizer=no_summary, **options
    )
    assert reduction.reduction_stage == "fallback"
    return reduction.json


def test_only_the_observation_is_replaced() -> None:
    raw = (
        b'\n[ {"z":1.50e+1 , "role" : "tool","tool_call_id":"\\u0031",\t"content" : "'
        + X
        + b'" , "u":"\\/\\u00e9"} ]\r\n'
    )
    expected = raw.replace(X, masked(90).encode())
    assert mask(raw) == expected


def test_a_list_of_parts_is_replaced_as_a_whole() -> None:
    raw = b'[{"type":"function_call_output","output": [ {"type":"input_text","text":"' + X + b'"} ] ,"call_id":"1"}]'
    assert mask(raw) == b'[{"type":"function_call_output","output": "%s" ,"call_id":"1"}]' % masked(90).encode()


def test_blocks_are_replaced_one_by_one() -> None:
    block = b'{"content":"%s" ,"type":"tool_result","tool_use_id":"%d", "cache_control":{"type":"ephemeral"}}'
    raw = b'[{"content":[ %s , {"type":"text","text":"hi"},%s],"role":"user"}]' % (block % (X, 1), block % (X, 2))
    place = masked(90).encode()
    assert mask(raw) == b'[{"content":[ %s , {"type":"text","text":"hi"},%s],"role":"user"}]' % (
        block % (place, 1),
        block % (place, 2),
    )
    assert mask(raw, keep_results=1) == raw.replace(X, place, 1)


def test_keys_may_come_in_any_order_and_spelling() -> None:
    raw = b'[{"c\\u006fntent":"' + X + b'","tool_call_id":"1","\\u0072ole":"t\\u006fol"}]'
    assert mask(raw) == raw.replace(X, masked(90).encode())


def test_the_rest_of_a_body_is_carried_along() -> None:
    for key in (b"messages", b"input"):
        raw = b' { "model" : "m", "%s":[{"role":"tool","content":"%s"}] ,"n":1.0,"messages2":null } ' % (key, X)
        assert mask(raw) == raw.replace(X, masked(90).encode())


def test_messages_comes_before_input() -> None:
    raw = b'{"input":[{"role":"tool","content":"%s"}],"messages":[{"role":"tool","content":"%s"}]}' % (X, X)
    place = masked(90).encode()
    assert mask(raw) == b'{"input":[{"role":"tool","content":"%s"}],"messages":[{"role":"tool","content":"%s"}]}' % (
        X,
        place,
    )
    raw = b'{"messages":null,"input":[{"role":"tool","content":"%s"}]}' % X
    assert mask(raw) == raw.replace(X, place)


def test_where_nothing_changed_the_same_bytes_come_back() -> None:
    for raw in (
        b"[]",
        b" [ ] ",
        b'{"messages":[]}',
        b'[{"role":"user","content":"\\u00e9"}]',
        b'{"x":[1],"input":[ ]}',
    ):
        assert mask(raw) is raw
        assert published.reduce_json(raw, max_input_chars=1).json is raw
        assert recede.designs.mask_old_observations_json(raw) is raw
        for data in (bytearray(raw), memoryview(raw), raw.decode()):
            output = mask(data)
            assert type(output) is bytes and output == raw


# Text that stays is copied as it was


def test_a_cut_copies_the_beginning_with_its_escapes() -> None:
    # 40 - 32 = 8 characters stay.
    raw = b'[{"role":"tool","content":"%s"}]'
    assert mask(raw % (b"\\u0041" * 100), max_observation_chars=40) == raw % (b"\\u0041" * 8 + masked(100).encode())
    assert mask(raw % (b"\\ud83d\\ude00" * 100), max_observation_chars=40) == raw % (
        b"\\ud83d\\ude00" * 8 + masked(100).encode()
    )
    assert mask(raw % ("é—😀".encode() * 50), max_observation_chars=40) == raw % (("é—😀é—😀é—" + masked(150)).encode())
    assert mask(raw % (b"\\ud83d" * 100), max_observation_chars=40) == raw % (b"\\ud83d" * 8 + masked(100).encode())
    assert mask(raw % (b'\\"\\\\\\/\\b' * 25), max_observation_chars=37) == raw % (
        b'\\"\\\\\\/\\b\\"' + masked(100).encode()
    )


def test_a_cut_runs_over_parts() -> None:
    raw = (
        b'[{"role":"tool","content":[{"type":"text","text":"\\u0061b"},{"type":"thinking"},'
        b'{"text":"' + b"c" * 98 + b'","type":"text"}]}]'
    )
    assert mask(raw, max_observation_chars=37) == b'[{"role":"tool","content":"\\u0061bccc%s"}]' % masked(100).encode()


def test_dispatch_blocks_are_copied_with_their_escapes() -> None:
    block = b"BEGIN_DISPATCH_RESULT\\n\\u00e9 \\ud83d\\ude00 \xc3\xa9\\/END_DISPATCH_RESULT"
    raw = b'[{"role":"tool","content":"%s"}]'
    expected = "[dispatch output masked — 180 chars]\\n".encode() + block
    assert mask(raw % (X + block + X)) == raw % expected


def test_dispatch_delimiters_may_be_written_with_escapes() -> None:
    block = b"\\u0042EGIN_DISPATCH_RESULT ok END_DISPATCH\\u005fRESULT"
    raw = b'[{"role":"tool","content":"%s"}]'
    assert mask(raw % (X + block)) == raw % ("[dispatch output masked — 90 chars]\\n".encode() + block)


def test_a_placeholder_written_with_escapes_is_known() -> None:
    raw = b'[{"role":"tool","content":"[observation masked \\u2014 \\u0034200 chars]"}]'
    assert mask(raw) is raw


def test_a_placeholder_is_written_as_json_dumps_does() -> None:
    raw = b'[{"role":"tool","content":"%s"}]' % X
    template = 'é"\\\n\t\x00\x1f\x7f\u2028/😀'
    expected = json.dumps(template, ensure_ascii=False).encode()
    assert mask(raw, placeholder=template) == b'[{"role":"tool","content":%s}]' % expected


def test_a_tool_name_with_a_lone_surrogate_in_a_placeholder_is_escaped() -> None:
    raw = (
        b'[{"type":"function_call","call_id":"1","name":"\\uD800x"},'
        b'{"type":"function_call_output","call_id":"1","output":"%s"}]' % X
    )
    assert mask(raw, placeholder="<{tool}>") == raw.replace(X, b"<\\ud800x>")


def test_raw_surrogates_of_a_str_pass_through() -> None:
    text = '[{"role":"tool","content":"' + "\ud800" * 100 + '"}]'
    output = mask(text, max_observation_chars=40)
    assert loads(output) == [{"role": "tool", "content": "\ud800" * 8 + masked(100)}]


# Dropped messages


@pytest.mark.parametrize(
    ("raw", "keep", "expected"),
    [
        ("user,model,user", 1, "user,user"),
        ("model,tool,model", 1, "model"),
        ("model,tool,model", 2, "tool,model"),
        ("user,tool,model", 0, "user"),
        ("model,tool", 0, ""),
        ("model,user,tool,model", 1, "user,model"),
        ("user,model,system,tool,model", 1, "user,system,model"),
    ],
)
def test_dropped_messages_leave_with_one_comma(raw: str, keep: int, expected: str) -> None:
    # Each message says something, so that a budget of 0 is missed.
    history, view = (
        b"[%s]" % b",".join(b'{"role":"%s","content":"x"}' % role.encode() for role in roles.split(",") if role)
        for roles in (raw, expected)
    )
    truncated = recede.designs.truncate_history(json.loads(history), preserve_recent_raw_turns=keep)
    assert truncated.messages == json.loads(view)
    assert truncate(history, keep) == view


@pytest.mark.parametrize("indent", [None, 0, 2, "\t"])
@pytest.mark.parametrize("keep", [0, 1, 2, 3])
def test_dropped_messages_with_white_space_leave_whole_messages(indent: Any, keep: int) -> None:
    history = [{"role": "user", "content": "task"}] + [{"role": "user", "content": f"é{n}"} for n in range(4)]
    raw = json.dumps(history, indent=indent, ensure_ascii=False).encode()
    view = truncate(raw, keep)
    reference = recede.designs.truncate_history(history, preserve_recent_raw_turns=keep).messages
    assert json.loads(view) == reference
    assert view.decode() == json.dumps(reference, indent=indent, ensure_ascii=False)


def test_a_summary_takes_the_white_space_of_the_message_it_stands_before() -> None:
    history = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "x" * 500},
        {"role": "user", "content": "last"},
    ]
    for separator in (b",", b",\n  ", b" ,\t"):
        raw = b"[" + separator.join(dumps(message) for message in history) + b"]"
        reduction = published.reduce_json(
            raw,
            max_input_chars=60,
            fill=None,
            preserve_recent_raw_turns=1,
            summarizer=lambda messages, previous: 'é"\n',
        )
        assert reduction.reduction_stage == "summarization"
        summary = '{"role":"system","content":"Conversation summary:\\né\\"\\n"}'.encode()
        assert json.loads(reduction.json)[1] == json.loads(summary)
        assert summary in reduction.json
        if separator != b" ,\t":
            assert reduction.json == b"[" + separator.join([dumps(history[0]), summary, dumps(history[2])]) + b"]"


def test_a_summary_may_be_the_last_or_the_only_message() -> None:
    for history, count in (
        ([{"role": "system", "content": "s"}, {"role": "user", "content": "x" * 500}], 2),
        ([{"role": "user", "content": "x" * 500}], 1),
    ):
        for indent in (None, 2):
            raw = json.dumps(history, indent=indent).encode()
            reduction = published.reduce_json(
                raw,
                max_input_chars=60,
                fill=None,
                preserve_recent_raw_turns=0,
                summarizer=lambda messages, previous: "done",
            )
            assert reduction.reduction_stage == "summarization"
            view = json.loads(reduction.json)
            assert len(view) == count
            assert view[-1] == {"role": "system", "content": "Conversation summary:\ndone"}
            assert view[:-1] == history[:-1]


def test_dropping_in_a_body_leaves_the_rest() -> None:
    raw = b'{"a":[1, 2],"messages": [ {"role":"user","content":"x"} , {"role":"model"}, {"role":"user"} ] , "z":{}}'
    view = truncate(raw, 1)
    assert view.startswith(b'{"a":[1, 2],"messages": [') and view.endswith(b'] , "z":{}}')
    assert json.loads(view)["messages"] == [{"role": "user", "content": "x"}, {"role": "user"}]


def test_every_format_of_the_same_history_gives_the_same_view() -> None:
    history = [
        {"role": "user", "content": "task é"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "run", "input": {"a": [1, "é"]}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "é\n" * 90}]}],
        },
        {"role": "assistant", "content": "done"},
    ]
    expected = published.mask_observations(history, keep_results=0, boundary="sliding").messages
    for options in (
        {},
        {"indent": 3},
        {"ensure_ascii": False},
        {"separators": (",", ":")},
        {"separators": (" ,\n", "\t: ")},
    ):
        text = json.dumps(history, **options)
        view = mask(text).decode()
        assert json.loads(view) == expected
        assert_view_of(text, view)
