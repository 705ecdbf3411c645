"""`clip_results`: results in the window are cut in the middle before anything is dropped."""

from __future__ import annotations

import json
from typing import Any

import published
import pytest

import recede
from support import (
    Message,
    assistant,
    call,
    chat_call,
    chat_result,
    contents,
    function_call,
    function_call_output,
    handle_of,
    masked,
    reduce,
    result,
    tool_result,
    tool_use,
    turns,
    user,
)

# A turn of three results that are in the window of each test: 25 a call, and so many characters each.
TURN = call("1", "2", "3")


def three(*sizes: int) -> list[Message]:
    """The task, and the turn: 4 + 75 characters, and the results."""
    return [user("task"), TURN, *(result(str(n), "abc"[n - 1] * size) for n, size in enumerate(sizes, 1))]


def clipped(history: list[Message], budget: int, chars: int = 100, **options: Any) -> list[int]:
    """How long the results are in the view."""
    view = reduce(history, max_input_chars=budget, clip_results=chars, **options)
    return [len(message["content"]) for message in view.messages if message["role"] == "tool"]


# What a clip is


def test_a_clip_has_exactly_so_many_characters_its_beginning_and_its_end() -> None:
    text = "".join(f"{number} " for number in range(500))
    for chars in (60, 61, 100, 999):
        view = reduce([user("task"), call("1"), result("1", text)], max_input_chars=1_200, clip_results=chars)
        shown = view.messages[2]["content"]
        beginning, _, rest = shown.partition("[… ")
        count, _, end = rest.partition(" chars omitted …]")
        assert len(shown) == chars and text.startswith(beginning) and text.endswith(end)
        assert len(beginning) - len(end) in (0, 1)
        assert int(count) == len(text) - len(beginning) - len(end)


@pytest.mark.parametrize("chars", range(82, 132))
def test_the_count_of_a_clip_is_right_where_it_gets_a_digit_more(chars: int) -> None:
    view = reduce(three(chars, 0, 0), max_input_chars=79 + 80, clip_results=80)
    shown = view.messages[2]["content"]
    assert len(shown) == 80
    assert int(shown.partition("[… ")[2].partition(" ")[0]) == chars - shown.count("a") + "chars omitted".count("a")


def test_off_by_default() -> None:
    assert clipped(three(900, 0, 0), 300, chars=100) == [100, 0, 0]
    view = reduce(three(900, 0, 0), max_input_chars=300)
    assert (view.clipped_count, view.within_limit) == (0, False)


@pytest.mark.parametrize(("placeholder", "handles"), [("[{chars}, recall {handle}]", True), ("[{number}]", False)])
def test_a_clip_names_its_result_where_a_placeholder_does(placeholder: str, handles: bool) -> None:
    history = [user("task"), *turns(11, chars=500), call("1"), result("1", "x" * 900)]
    view = reduce(history, max_input_chars=1_000, clip_results=100, placeholder=placeholder)
    shown = view.messages[-1]["content"]
    marker = f"[… {{}} chars omitted, recall {handle_of('1', 'x' * 900)} …]" if handles else "[… {} chars omitted …]"
    assert len(shown) == 100 and shown.strip("x") == marker.format(900 - shown.count("x"))
    # What it was cut to is no longer than that, whoever cut it; a shorter cut names the same result.
    again = reduce(view.messages, max_input_chars=100, clip_results=100, fill=None)
    assert again.messages[-1] == view.messages[-1]
    again = reduce(view.messages, max_input_chars=100, clip_results=80, fill=None, placeholder=placeholder)
    assert len(again.messages[-1]["content"]) == 80
    assert (handle_of("1", "x" * 900) in again.messages[-1]["content"]) is handles


@pytest.mark.parametrize(
    ("marker", "is_named"),
    [
        ("[… 900 chars omitted, recall 3f9c2a1b07de …]", True),
        ("[… 900 chars omitted, recall 000000000000 …]", True),
        ("[… 900 chars omitted, recall 3f9c2a1b07d …]", False),
        ("[… 900 chars omitted, recall 3f9c2a1b07de0 …]", False),
        ("[… 900 chars omitted, recall 3F9C2A1B07DE …]", False),
        ("[… 900 chars omitted, recall 3f9c2a1b07d\u00e9 …]", False),
        ("[… 900 chars omitted, recall  …]", False),
        ("[… 900 chars omitted, recall 3f9c2a1b07de…]", False),
        ("[… 900 chars omitted, recall 3f9c2a1b07de …", False),
        ("[… chars omitted, recall 3f9c2a1b07de …]", False),
    ],
)
def test_a_handle_in_a_marker_is_that_of_the_next_cut(marker: str, is_named: bool) -> None:
    text = "y" * 200 + marker + "y" * 200
    history = [user("task"), call("1"), result("1", text)]
    view = reduce(history, max_input_chars=100, clip_results=100, placeholder="[{chars}, recall {handle}]")
    handle = marker.partition("recall ")[2][:12] if is_named else handle_of("1", text)
    shown = view.messages[-1]["content"]
    assert shown.strip("y") == f"[… {len(text) - shown.count('y')} chars omitted, recall {handle} …]"


# Which, and how many


def test_the_largest_are_cut_first_and_of_equal_ones_the_older() -> None:
    history = three(300, 500, 300)
    raw = recede.count_chars(history)
    assert clipped(history, raw) == [300, 500, 300]
    assert clipped(history, raw - 1) == [300, 100, 300]
    assert clipped(history, raw - 400) == [300, 100, 300]
    assert clipped(history, raw - 401) == [100, 100, 300]
    assert clipped(history, raw - 600) == [100, 100, 300]
    assert clipped(history, raw - 601) == [100, 100, 100]


def test_what_is_no_longer_than_a_clip_stays() -> None:
    assert clipped(three(100, 101, 60), 200) == [100, 100, 60]


def test_nothing_is_dropped_where_clips_are_enough() -> None:
    history = [user("task"), *turns(6, chars=1_000), call("1"), result("1", "x" * 3_000)]
    view = reduce(history, max_input_chars=1_000, clip_results=200, fill=None)
    assert (view.dropped_count, view.masked_count, view.clipped_count, view.clipped_chars) == (0, 5, 2, 3_600)
    assert (view.reduction_stage, view.within_limit) == ("masking", True)
    assert reduce(history, max_input_chars=1_000, fill=None).dropped_count > 0


def test_with_fill_the_window_is_masked_before_a_result_is_cut() -> None:
    history = [user("task"), *turns(6, chars=1_000), call("1"), result("1", "x" * 3_000)]
    view = reduce(history, max_input_chars=2_000, clip_results=200)
    assert (view.dropped_count, view.masked_count, view.clipped_count) == (0, 6, 1)
    assert contents(view.messages)[-3:] == [masked(1_000), None, view.messages[-1]["content"]]


def test_a_view_that_was_only_cut_has_no_stage() -> None:
    view = reduce(three(300, 0, 0), max_input_chars=200, clip_results=100)
    assert (view.reduction_stage, view.invariant_status, view.reduced) == (None, "ok", True)
    assert (view.masked_count, view.masked_chars, view.clipped_count, view.clipped_chars) == (0, 0, 1, 200)
    assert (view.first_changed, view.chars_after, view.tools["run"].masked) == (2, 179, 0)


def test_where_clips_are_not_enough_they_stay_in_what_a_later_stage_keeps() -> None:
    history = [user("task"), assistant("a" * 900), user("u"), *three(900, 900, 900)[1:]]
    view = reduce(history, max_input_chars=600, clip_results=100)
    assert (view.clipped_count, view.dropped_count) == (3, 1)
    assert view.within_limit


# What is not cut


def test_a_view_that_was_cut_to_as_much_is_not_cut_again() -> None:
    once = reduce(three(900, 900, 0), max_input_chars=400, clip_results=100).messages
    again = reduce(once, max_input_chars=150, clip_results=100)
    assert again.clipped_count == 0
    assert contents(again.messages)[-3:] == contents(once)[-3:]
    assert [len(text) for text in contents(reduce(once, max_input_chars=150, clip_results=60).messages)[-3:]] == [
        60,
        60,
        0,
    ]


LIKE_CUTS = [
    "It says [… 5 chars omitted …] there. " + "x" * 400_000,
    *(f"{'x' * before}[… 5 chars omitted …]{'x' * 200_000}" for before in range(199_998, 200_003)),
    "x" * 200_000 + f"[… {'9' * 20} chars omitted …]" + "x" * 200_000,
    "x" * 200_000 + "[… 5 chars omitted, recall 3f9c2a1b07de …]" + "x" * 200_000,
    "[… 5 chars omitted …]" * 19_001,
]
"""Texts that look like a cut, or nearly: with a marker in the middle."""


@pytest.mark.parametrize("text", LIKE_CUTS, ids=range(len(LIKE_CUTS)))
def test_a_text_that_looks_like_a_cut_is_cut(text: str) -> None:
    assert clipped([user("task"), call("1"), result("1", text)], 300) == [100]
    history = [user("task"), call("1"), result("1", text)]
    for options, most in (({"max_input_tokens": 2_000}, 4_000), ({"max_result_chars": 900}, 900)):
        for data in (history, json.dumps(history).encode()):
            view = recede.reduce(data, **options)
            messages = view.messages if isinstance(data, list) else json.loads(view.json)
            assert len(messages[-1]["content"]) == most
            assert view.within_limit is not False
            assert recede.reduce(messages, **options).messages == messages


def test_what_is_masked_to_a_longer_text_is_not_cut() -> None:
    history = [user("task"), *turns(2, chars=900)]
    view = reduce(history, max_input_chars=300, clip_results=100, max_observation_chars=200)
    assert [len(message["content"]) for message in view.messages if message["role"] == "tool"] == [200, 100]
    assert (view.masked_count, view.clipped_count) == (1, 1)


def test_results_that_are_never_masked_are_never_cut() -> None:
    results = [tool_result("1", "x" * 900, is_error=True), tool_result("2", "y" * 900)]
    history = [user("task"), tool_use("1", "2"), user(results)]
    for options, count in (({"keep_errors": True}, 1), ({"exclude_tools": ["r*"]}, 0)):
        assert reduce(history, max_input_chars=300, clip_results=100, **options).clipped_count == count


@pytest.mark.parametrize(
    "content",
    [
        "x" * 90 + "BEGIN_DISPATCH_RESULT ok END_DISPATCH_RESULT" + "x" * 90,
        "[dispatch output masked — 900 chars]\nBEGIN_DISPATCH_RESULT " + "x" * 200 + " END_DISPATCH_RESULT",
        [{"type": "text", "text": "x" * 900}, {"type": "image_url"}],
        None,
    ],
)
def test_dispatch_blocks_placeholders_and_images_are_not_cut(content: Any) -> None:
    history = [user("task"), call("1"), result("1", content)]
    assert reduce(history, max_input_chars=90, clip_results=60).clipped_count == 0


def test_a_placeholder_that_is_longer_than_a_cut_is_not_cut() -> None:
    placeholder = "[{chars} characters were here; run the tool again to see what it says now]"
    history = [user("task"), call("1"), result("1", placeholder.format(chars=900))]
    assert reduce(history, max_input_chars=70, clip_results=60, placeholder=placeholder).clipped_count == 0
    assert reduce(history, max_input_chars=70, clip_results=60).clipped_count == 1


def test_results_older_than_the_window_are_not_cut() -> None:
    history = [user("task"), call("1"), result("1", "x" * 900), *turns(1, chars=300)]
    options: dict[str, Any] = {"observation_masking": False, "preserve_recent_raw_turns": 2}
    assert clipped(history, 1_060, **options) == [900, 100]


# How it is written


@pytest.mark.parametrize(
    "history",
    [
        [call("1"), result("1", "é" * 900, name="n")],
        [tool_use("1"), user([tool_result("1", "é" * 900, is_error=False), {"type": "text", "text": "t"}])],
        [function_call("1"), function_call_output("1", [{"type": "input_text", "text": "é" * 900}])],
        [chat_call("1"), chat_result("1", "é" * 900)],
        [
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": "é" * 900}}}]},
        ],
        [
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "é" * 900}]}}]},
        ],
    ],
    ids=["openai", "anthropic", "responses", "chat_message", "gemini", "converse"],
)
def test_a_clip_is_written_as_its_shape_has_it(history: list[Message]) -> None:
    view = reduce([user("task"), *history], max_input_chars=200, clip_results=100)
    text = "é" * 39 + "[… 823 chars omitted …]" + "é" * 38
    assert view.clipped_count == 1
    plain = json.dumps(view.messages[-1], ensure_ascii=False)
    before = json.dumps(history[-1], ensure_ascii=False)
    if isinstance(history[-1].get("output"), list):
        assert view.messages[-1]["output"] == text
    else:
        assert plain == before.replace("é" * 900, text)


def test_bytes_of_a_clip_keep_their_escapes() -> None:
    raw = json.dumps([user("task"), call("1"), result("1", "é😀" * 400)]).replace('"content": "', '"content":  "')
    view = published.reduce_json(raw, max_input_chars=200, clip_results=101).json.decode()
    pair = "\\u00e9\\ud83d\\ude00"
    text = pair * 19 + "\\u00e9" + "[… 722 chars omitted …]" + "\\ud83d\\ude00" + pair * 19
    assert f'"content":  "{text}"' in view


# Token counters


def test_with_a_counter_clips_cost_what_it_says() -> None:
    history = [user("task"), call("1", "2"), result("1", "word " * 400), result("2", "word " * 500)]
    counted: list[str] = []

    def words(text: str) -> int:
        counted.append(text)
        return len(text.split())

    view = published.reduce(history, max_input_tokens=600, token_counter=words, clip_results=200)
    assert (view.clipped_count, view.within_limit) == (1, True)
    assert view.messages[3]["content"] in counted
    assert published.reduce(history, max_input_tokens=300, token_counter=words, clip_results=200).clipped_count == 2


def test_a_clip_that_costs_more_than_the_text_is_counted_as_it_is() -> None:
    history = [user("task"), call("1"), result("1", "x" * 900)]

    def odd(text: str) -> int:
        return 900 if "omitted" in text else 101

    assert not published.reduce(history, max_input_tokens=100, token_counter=odd, clip_results=60).within_limit


def test_what_is_cut_from_the_task_is_reported() -> None:
    history = [user("t" * 10_006), *turns(9, chars=900)]
    view = reduce(history, max_input_chars=3_000)
    (task,) = (message for message in view.messages if message["role"] == "user")
    assert "chars omitted" in task["content"]
    assert (view.clipped_count, view.clipped_chars) == (1, 10_006 - len(task["content"]))
