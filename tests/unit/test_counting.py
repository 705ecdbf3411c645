"""What a message counts, in characters and in tokens."""

from __future__ import annotations

import json
from typing import Any

import published
import pytest

import recede
from support import (
    assistant,
    call,
    count,
    function_call,
    function_call_output,
    reduce,
    result,
    system,
    tool_result,
    tool_use,
    user,
)


@pytest.mark.parametrize(
    "text", ["", "hello", "naïve", "日本語", "😀👍🏽", "a\nb\r\n\t\x00", '"\\/', "\ud800", "a\udfffb", "e\u0301"]
)
def test_text_counts_as_len_does(text: str) -> None:
    assert count([user(text)]) == len(text)
    assert count([user([{"type": "text", "text": text}, {"type": "text", "text": text}])]) == 2 * len(text)
    assert count([result("1", text)]) == len(text)


def test_characters_are_decoded_ones_whatever_the_spelling() -> None:
    for content, chars in (
        (b"\\u00e9", 1),
        ("é".encode(), 1),
        (b"\\ud83d\\ude00", 1),
        ("😀".encode(), 1),
        (b"\\ud83d", 1),
        (b"\\ude00\\ud83d", 2),
        (b"\\ud83d\\ud83d\\ude00", 2),
        (b"\\ud83dx", 2),
        (b'\\n\\t\\\\\\/\\"', 5),
        (b"\\u0000", 1),
    ):
        raw = b'[{"role":"user","content":"' + content + b'"}]'
        assert published.reduce_json(raw, max_input_chars=100).chars_before == chars
        assert len(json.loads(raw)[0]["content"]) == chars


def test_a_lone_surrogate_in_a_str_counts_one() -> None:
    text = '[{"role":"user","content":"\ud800\ud800"}]'
    assert published.reduce_json(text, max_input_chars=100).chars_before == 2


@pytest.mark.parametrize("content", [None, [], ""])
def test_null_and_empty_content_count_nothing(content: Any) -> None:
    assert count([user(content)]) == 0
    assert count([{"role": "user"}]) == 0


def test_thinking_is_not_counted() -> None:
    blocks = [{"type": "thinking", "thinking": "x" * 99}, {"type": "redacted_thinking", "data": "y"}]
    assert count([assistant([*blocks, {"type": "text", "text": "abc"}])]) == 3


def test_parts_of_other_types_count_as_json() -> None:
    parts: list[Any] = [{"type": "sound", "text": "é"}, {"text": "yes"}, {"type": None, "text": "yes"}, {}]
    texts = [{"type": "text"}, {"type": "text", "text": None}, {"type": "text", "text": 5}]
    expected = sum(len(json.dumps(part, ensure_ascii=False, separators=(",", ":"))) for part in parts)
    assert count([user([*parts, *texts])]) == expected


def test_a_call_counts_name_arguments_and_20() -> None:
    assert count([call("1", name="run", arguments="{}")]) == 3 + 2 + 20
    assert count([call("1", "2", name="é", arguments='{"a": 1}')]) == 2 * (1 + 8 + 20)
    assert count([function_call("1", "", "")]) == 20
    assert count([{**call("1"), "content": "I look."}]) == 7 + 25


@pytest.mark.parametrize(
    ("arguments", "chars"),
    [
        ("as it is \n", 10),
        (None, 0),
        ({}, 2),
        ([], 2),
        ({"a": 1}, 1 + 3 + 1 + 4 + 1),
        ({"a": 123456, "b": -1.5e300}, 2 + (3 + 1 + 4) + 1 + (3 + 1 + 4)),
        ({"a": [True, False, None]}, 2 + 3 + 1 + (2 + 4 + 1 + 5 + 1 + 4)),
        ({"é": "naïve\n"}, 2 + 3 + 1 + 8),
        ({"a": {"b": {"c": []}}}, 2 + 4 + 2 + 4 + 2 + 4 + 2),
        ([[], {}, ""], 2 + 2 + 1 + 2 + 1 + 2),
        ({"": ""}, 2 + 2 + 1 + 2),
        ({"a": "\ud800"}, 2 + 3 + 1 + 3),
        (5, 4),
        (-0.0, 4),
        (True, 4),
        (False, 5),
        (["x" * 50], 2 + 52),
    ],
)
def test_arguments(arguments: Any, chars: int) -> None:
    assert count([call("1", name="", arguments=arguments)]) == 20 + chars
    assert count([function_call("1", "", arguments)]) == 20 + chars
    block = {"type": "tool_use", "id": "1", "name": "", "input": arguments}
    assert count([assistant([block])]) == 20 + chars


def test_arguments_without_numbers_count_as_their_compact_json() -> None:
    arguments = {"path": "src/é.py", "flags": [True, None, {"deep": ["x", {}]}], "": "no escapes"}
    compact = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
    assert count([tool_use("1", name="", value=arguments)]) == 20 + len(compact)


def test_white_space_and_number_spelling_in_arguments_do_not_count() -> None:
    raw = (
        b'[{"role":"assistant","content":[{"type":"tool_use","input": { "a" : [ 1.250e10 , "\\u00e9" ] }, "id":"1"}]}]'
    )
    chars = 2 + 3 + 1 + 2 + 4 + 1 + 3
    assert published.reduce_json(raw, max_input_chars=100).chars_before == 20 + chars


def test_every_repeated_member_of_arguments_counts() -> None:
    raw = b'[{"type":"function_call","call_id":"1","arguments":{"a":1,"a":1}}]'
    assert published.reduce_json(raw, max_input_chars=100).chars_before == 20 + 2 + 8 + 1 + 8


def test_missing_arguments_and_names_count_nothing() -> None:
    assert count([assistant(None, tool_calls=[{"id": "1", "function": {}}])]) == 20
    assert count([assistant(None, tool_calls=[{"id": "1", "function": {"name": None}}])]) == 20


@pytest.mark.parametrize("kind", ["image", "image_url", "input_image", "document", "file", "input_file"])
def test_images_and_documents_count_image_chars(kind: str) -> None:
    part = {"type": kind, "data": "x" * 99_999, "text": "not counted"}
    assert count([user([part, {"type": "text", "text": "abc"}])]) == 6_403
    assert count([user([part])], image_chars=7) == 7
    assert count([user([part, part])], image_chars=0) == 0
    assert count([result("1", [part])]) == 6_400
    assert count([user([tool_result("1", [part])])], image_chars=10) == 10
    assert count([function_call_output("1", [part])]) == 6_400


def test_messages_add_up() -> None:
    history = [system("abc"), user("de"), call("1"), result("1", "f" * 10), assistant("g")]
    assert count(history) == 3 + 2 + 25 + 10 + 1
    assert count([]) == 0


@pytest.mark.parametrize(("chars", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_tokens_are_a_quarter_rounded_up(chars: int, tokens: int) -> None:
    assert recede.designs.approx_tokens(chars) == tokens
    assert recede.designs.approx_tokens("é" * chars) == tokens
    assert recede.designs.approx_tokens([user("é" * chars)]) == tokens


def test_a_token_budget_is_met_exactly() -> None:
    history = [call("1"), result("1", "x" * 75), assistant("")]
    assert recede.designs.approx_tokens(history) == 25
    assert reduce(history, max_input_tokens=25, preserve_recent_raw_turns=0).reduction_stage is None
    history[1]["content"] += "x"
    assert recede.designs.approx_tokens(history) == 26
    assert reduce(history, max_input_tokens=25, preserve_recent_raw_turns=0).reduction_stage == "masking"


# The token counter. Words: 3 for the task, 1 for "run{}", 100 for the log, 5 for its placeholder, 4 for the answer.
TASK = [user("Fix the test."), call("1"), result("1", "FAILED " * 100), assistant("I see: an off-by-one.")]


def words(text: str) -> int:
    return len(text.split())


def test_token_counter_counts_texts_and_a_quarter_of_the_constants() -> None:
    raw = 3 + (1 + 5) + 100 + 4
    options: dict[str, Any] = {"token_counter": words, "preserve_recent_raw_turns": 1}
    assert reduce(TASK, max_input_tokens=raw, **options).reduction_stage is None
    assert reduce(TASK, max_input_tokens=raw - 1, **options).reduction_stage == "masking"
    view = 3 + (1 + 5) + 5 + 4
    assert reduce(TASK, max_input_tokens=view, **options).reduction_stage == "masking"
    assert reduce(TASK, max_input_tokens=view - 1, **options).reduction_stage == "fallback"


def test_token_counter_counts_images_at_a_quarter() -> None:
    history = [user([{"type": "image"}, {"type": "text", "text": "two words"}])]
    assert reduce(history, max_input_tokens=1_602, token_counter=words).within_limit
    assert not reduce(history, max_input_tokens=1_601, token_counter=words, fill=None).within_limit


def test_token_counter_counts_each_text_once() -> None:
    seen: list[str] = []

    def counter(text: str) -> int:
        seen.append(text)
        return len(text)

    published.reduce(TASK, max_input_tokens=1, token_counter=counter)
    for text in ("Fix the test.", "run{}", "FAILED " * 100, "I see: an off-by-one."):
        assert seen.count(text) == 1
    assert len(seen) <= 6, "four texts, a placeholder, a summary"


def test_token_counter_does_not_change_the_figures_in_chars() -> None:
    reduction = reduce(TASK, max_input_tokens=30, token_counter=words, preserve_recent_raw_turns=1)
    assert (reduction.chars_before, reduction.chars_after, reduction.masked_chars) == (759, 91, 668)


@pytest.mark.parametrize("answer", [1.5, "3", None, True, -1])
def test_token_counter_must_return_a_whole_number(answer: Any) -> None:
    for entrance, data in ((published.reduce, TASK), (published.reduce_json, json.dumps(TASK))):
        with pytest.raises(TypeError, match="token_counter"):
            entrance(data, max_input_tokens=1, token_counter=lambda text: answer)


def test_an_error_of_the_token_counter_is_the_callers() -> None:
    def counter(text: str) -> int:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        published.reduce(TASK, max_input_tokens=1, token_counter=counter)
