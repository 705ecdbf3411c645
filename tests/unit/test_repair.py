"""Mending orphans."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import recede
from support import (
    Message,
    assistant,
    call,
    chat_call,
    chat_result,
    findings,
    function_call,
    function_call_output,
    result,
    tool_result,
    tool_use,
    turns,
    user,
)

NO_RESULT = "[no result recorded]"


def repaired(history: list[Message]) -> list[Message]:
    before = copy.deepcopy(history)
    view = recede.repair_pairs(history)
    assert history == before
    orphans = [f for f in recede.check_pairs(view).orphans if f.id is not None]
    assert orphans == [] or any(kind == "id_open_twice" for kind, *_ in findings(history))
    assert recede.repair_pairs(view) is view, "mending twice changes nothing"
    return view


def test_a_whole_history_comes_back_itself() -> None:
    for history in ([], [user("hi")], turns(3), [call("open")]):
        assert repaired(history) is history


def test_openai_call_without_a_result_gets_one_after_the_results_of_its_turn() -> None:
    history = [call("1", "2", "3"), result("2", "b"), user("go on")]
    assert repaired(history) == [
        history[0],
        history[1],
        result("1", NO_RESULT),
        result("3", NO_RESULT),
        history[2],
    ]


def test_openai_answer_stands_behind_the_run() -> None:
    history = [call("1"), assistant("same run"), user("go on")]
    assert repaired(history) == [*history[:2], result("1", NO_RESULT), history[2]]


def test_chat_message_call_gets_a_chat_message() -> None:
    history = [chat_call("1"), user("go on")]
    assert repaired(history) == [history[0], chat_result("1", NO_RESULT), history[1]]


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call", "local_shell_call"])
def test_responses_call_gets_the_output_of_its_type(kind: str) -> None:
    history: list[Message] = [{"type": kind, "call_id": "1"}, user("go on")]
    view = repaired(history)
    assert view[0] is history[0] and view[2] is history[1]
    assert view[1]["call_id"] == "1" and view[1]["output"] == NO_RESULT
    if kind == "function_call":
        assert view[1] == function_call_output("1", NO_RESULT)
    assert findings(view) == []


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("tool_search_call", {"type": "tool_search_output", "execution": "client", "tools": []}),
        (
            "shell_call",
            {
                "type": "shell_call_output",
                "output": [{"stdout": "", "stderr": NO_RESULT, "outcome": {"type": "timeout"}}],
            },
        ),
        ("apply_patch_call", {"type": "apply_patch_call_output", "status": "failed", "output": NO_RESULT}),
        ("computer_call", None),  # no screenshot can be made up
    ],
)
def test_an_output_that_is_no_text_is_as_its_call_wants_it(kind: str, output: Message | None) -> None:
    history: list[Message] = [{"type": kind, "call_id": "1"}, user("go on")]
    view = recede.repair_pairs(history)
    assert view[1:-1] == ([] if output is None else [{"call_id": "1", **output}])
    assert findings(view) == ([("call_without_result", 0, "1")] if output is None else [])


def test_a_half_of_a_tool_that_the_provider_of_converse_runs_is_dropped() -> None:
    asked = {"toolUse": {"toolUseId": "1", "name": "ground", "input": {}, "type": "server_tool_use"}}
    found = {"toolResult": {"toolUseId": "1", "content": [{"text": "x"}], "type": "ground_result"}}
    said, on = {"text": "Well."}, {"role": "user", "content": [{"text": "go on"}]}
    for blocks, left in (([asked, found, said], None), ([asked, said], [said]), ([said, found], [said])):
        history = [{"role": "assistant", "content": blocks}, on]
        assert repaired(history) == (history if left is None else [{"role": "assistant", "content": left}, on])
        assert (findings(history) == []) == (left is None)


def test_anthropic_call_is_answered_in_the_message_that_answers_its_siblings() -> None:
    text = {"type": "text", "text": "and now"}
    history = [tool_use("1", "2", "3"), user([tool_result("2", "b"), text]), assistant("ok")]
    view = repaired(history)
    assert len(view) == 3
    assert view[1]["role"] == "user"
    blocks = view[1]["content"]
    assert blocks[0] is history[1]["content"][0] and blocks[3] is text
    assert blocks[1:3] == [tool_result("1", NO_RESULT), tool_result("3", NO_RESULT)]


@pytest.mark.parametrize("run", [[tool_use("1", "2")], [tool_use("1"), tool_use("2")]], ids=["one_message", "two"])
def test_anthropic_calls_of_a_run_are_answered_in_one_message(run: list[Message]) -> None:
    results = user([tool_result("1", NO_RESULT), tool_result("2", NO_RESULT)])
    assert repaired([*run, user("go on")]) == [*run, results, user("go on")]


def test_a_result_without_a_call_is_left_out() -> None:
    for orphan in (result("9", "?"), chat_result("9", "?"), function_call_output("9", "?")):
        history = [user("hi"), orphan, assistant("ok")]
        assert repaired(history) == [history[0], history[2]]


def test_an_orphan_block_is_left_out_and_its_message_stays() -> None:
    text = {"type": "text", "text": "and"}
    history = [tool_use("1"), user([tool_result("9", "?"), tool_result("1", "ok"), text])]
    assert repaired(history) == [history[0], user([history[1]["content"][1], text])]


def test_a_message_that_becomes_empty_is_left_out() -> None:
    history = [user("hi"), user([tool_result("8", "?"), tool_result("9", "?")]), assistant("ok")]
    assert repaired(history) == [history[0], history[2]]
    text = {"type": "text", "text": "stays"}
    history[1]["content"].append(text)
    assert repaired(history) == [history[0], user([text]), history[2]]


def test_open_calls_stay() -> None:
    history = [*turns(1), call("a", "b"), result("a", "done")]
    assert repaired(history) is history
    history = [result("9", "?"), call("open")]
    assert repaired(history) == [history[1]]


def test_what_is_known_by_no_id_stays() -> None:
    unknown: list[Message] = [
        {"role": "tool", "content": "?"},
        {"role": "tool", "content": "?", "tool_name": "f"},
        user([tool_result(None, "?"), {"type": "text", "text": "and"}]),
        {"type": "function_call_output", "output": "?"},
        {"role": "tool", "pairRole": "result", "content": "?"},
    ]
    for one in (call(None, name=None), tool_use(None), function_call(7), *unknown):
        history = [user("hi"), one, user("go on")]
        assert repaired(history) is history
    assert repaired([user("hi"), *unknown, result("9", "?"), user("go on")]) == [user("hi"), *unknown, user("go on")]


def test_a_call_of_chat_without_an_id_is_answered_by_its_name() -> None:
    ask = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name}} for name in ("f", "g")]}
    first = {"role": "tool", "tool_name": "g", "content": "b"}
    history = [ask, first, user("go on")]
    assert repaired(history) == [ask, first, {"role": "tool", "tool_name": "f", "content": NO_RESULT}, history[2]]
    custom = {
        "role": "assistant",
        "tool_calls": [{"id": None, "function": None, "custom": {"name": "h", "input": "x"}}],
    }
    assert repaired([custom, user("")])[1] == {"role": "tool", "tool_name": "h", "content": NO_RESULT}


def test_calls_that_share_an_id_are_answered_each() -> None:
    history = [call("x", "x"), user("go on")]
    assert repaired(history) == [history[0], *[result("x", NO_RESULT)] * 2, history[1]]


def test_an_id_that_is_called_again_before_it_is_answered_is_left_as_it_is() -> None:
    # The answer would belong to the second call, which stands before the place of the first one's answer.
    again = user([*tool_use("x")["content"], tool_result("x", "a")])
    history = [tool_use("x"), again, user("go on")]
    assert recede.repair_pairs(history) == history


def test_an_id_that_is_called_again_right_after_its_place_is_answered() -> None:
    history = [call("x", "y"), result("y", "b"), call("x"), result("x", "later")]
    assert repaired(history) == [history[0], history[1], result("x", NO_RESULT), history[2], history[3]]


def test_untouched_messages_and_fields_are_the_callers_own() -> None:
    extra = user([tool_result("1", "ok"), tool_result("9", "?")], cache={"a": 1})
    history = [user("hi"), tool_use("1"), extra, assistant("ok")]
    view = repaired(history)
    assert view[0] is history[0] and view[1] is history[1] and view[3] is history[3]
    assert view[2] == {**extra, "content": [extra["content"][0]]}
    assert view[2]["cache"] is extra["cache"]


def test_the_last_result_of_a_call_takes_the_place_of_the_first() -> None:
    pending, approved = function_call_output("1", "pending"), function_call_output("1", "approved")
    history = [function_call("1"), pending, user("Is it?"), function_call_output("1", "asked"), user("on"), approved]
    assert repaired(history) == [history[0], approved, user("Is it?"), user("on")]
    text = {"type": "text", "text": "note"}
    history = [
        tool_use("1", "2"),
        user([tool_result("2", "x"), text, tool_result("1", "pending")]),
        assistant("I wait."),
        user([tool_result("1", "approved"), text]),
    ]
    view = repaired(history)
    assert view[1]["content"] == [tool_result("2", "x"), tool_result("1", "approved"), text]
    assert view[2:] == [assistant("I wait."), user([text])] and findings(view) == []


def test_results_go_before_other_blocks() -> None:
    text = {"type": "text", "text": "note"}
    history = [
        tool_use("1", "2", "3"),
        user([text, tool_result("2", "b"), text, tool_result("3", "c")]),
        assistant("ok"),
    ]
    view = repaired(history)
    blocks = history[1]["content"]
    assert view[1]["content"] == [blocks[1], blocks[3], tool_result("1", NO_RESULT), text, text]
    assert view[1]["content"][0] is blocks[1]
    assert findings(view) == []


def test_results_of_a_turn_go_into_one_message() -> None:
    def use(*ids: str) -> Message:
        return {"role": "assistant", "content": [{"toolUse": {"toolUseId": i, "name": "f", "input": {}}} for i in ids]}

    def used(*ids: str, text: str = "ok") -> list[Message]:
        return [{"toolResult": {"toolUseId": i, "content": [{"text": text}]}} for i in ids]

    note = {"text": "note"}
    history = [use("1", "2", "3", "4"), user(used("1")), user([*used("3"), note]), user(used("2")), assistant([note])]
    view = repaired(history)
    assert view == [history[0], user([*used("1", "3", "2"), *used("4", text=NO_RESULT)]), user([note]), history[4]]
    assert findings(view) == []
    text = {"type": "text", "text": "note"}
    history = [tool_use("1", "2"), user([tool_result("1", "a"), text]), user([tool_result("2", "b")]), assistant("ok")]
    assert repaired(history)[1:] == [user([tool_result("1", "a"), tool_result("2", "b"), text]), assistant("ok")]


def test_reasoning_alone_is_left_out() -> None:
    thought: Message = {"type": "reasoning", "id": "rs", "summary": []}
    history = [user("go"), thought, user("next"), thought, function_call("1"), function_call_output("1", "x"), thought]
    assert repaired(history) == [history[0], *history[2:6]]


def test_a_request_for_approval_is_answered_by_no() -> None:
    request = {"type": "mcp_approval_request", "id": "r", "name": "f", "arguments": "{}", "server_label": "s"}
    answer = {"type": "mcp_approval_response", "approval_request_id": "r", "approve": False, "reason": NO_RESULT}
    assert repaired([user("go"), request, user("on")]) == [user("go"), request, answer, user("on")]
    assert repaired([user("go"), {**answer, "approval_request_id": "other"}, user("on")]) == [user("go"), user("on")]


def test_several_wounds_at_once() -> None:
    history = [
        result("ghost", "?"),
        user("task"),
        call("1", "2"),
        result("1", "a"),
        assistant("next"),
        tool_use("3", "4"),
        user([tool_result("4", "d"), tool_result("ghost", "?")]),
        user("and"),
        function_call("5"),
        user("end"),
    ]
    assert repaired(history) == [
        history[1],
        history[2],
        history[3],
        result("2", NO_RESULT),
        history[4],
        history[5],
        user([tool_result("4", "d"), tool_result("3", NO_RESULT)]),
        history[7],
        history[8],
        function_call_output("5", NO_RESULT),
        history[9],
    ]
    assert findings(repaired(history)) == []


def test_wrong_shapes_are_refused() -> None:
    bad: Any = [user("hi"), 5]
    for function in (recede.repair_pairs, recede.check_pairs):
        with pytest.raises(recede.TranscriptError) as caught:
            function(bad)
        assert (caught.value.kind, caught.value.message_index) == ("message", 1)


def test_the_type_of_an_answer_keeps_lone_surrogates() -> None:
    history = [{"type": "\ud800_call", "call_id": "1", "name": "run"}, user("next")]
    assert repaired(history)[1] == {"type": "\ud800_call_output", "call_id": "1", "output": NO_RESULT}
