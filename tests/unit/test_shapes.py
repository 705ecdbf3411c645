"""Which fields make a call, a result and an observation, in each shape of message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support import (
    Message,
    assistant,
    call,
    chat_call,
    chat_result,
    count,
    findings,
    function_call,
    function_call_output,
    mask,
    masked,
    result,
    tool_result,
    tool_use,
    user,
)

LONG = "x" * 100
PLACEHOLDER = masked(100)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def hides(message: Message) -> bool:
    """Whether the message holds an observation that masking replaces."""
    return mask([message], keep_results=0).masked_count == 1


def is_call(message: Message) -> bool:
    """Whether a result with the id 1 pairs with the message."""
    return findings([message, result("1", "ok")]) == []


# ChatMessage


def test_chat_message_call_and_result_pair_by_their_pair_id() -> None:
    history = [chat_call("1", "I look."), chat_result("1", LONG)]
    assert findings(history) == []
    assert mask(history, keep_results=0).messages == [history[0], {**history[1], "content": PLACEHOLDER}]


@pytest.mark.parametrize(
    "role", [*"system user assistant tool toolResult function developer".split(), "", None, 5, "absent"]
)
def test_chat_message_result_is_one_unless_its_role_talks(role: Any) -> None:
    message = {"role": role, "content": LONG, "pairRole": "result", "pairId": "1"}
    if role == "absent":
        del message["role"]
    assert hides(message) is (role not in ("system", "user", "assistant"))


def test_chat_message_call_has_no_name_and_no_arguments() -> None:
    assert count([chat_call("1", "abc")]) == 3 + 20
    assert list(mask([chat_call("1"), chat_result("1", LONG)], keep_results=0).tools) == [""]


def test_chat_message_call_may_have_any_role() -> None:
    assert is_call({"role": "user", "content": "x", "pairRole": "call", "pairId": "1"})
    assert is_call({"pairRole": "call", "pairId": "1"})


@pytest.mark.parametrize("pair_role", ["Call", "", None, 1, "results"])
def test_another_pair_role_leaves_the_message_to_the_next_row(pair_role: Any) -> None:
    assert is_call({**call("1"), "pairRole": pair_role, "pairId": "other"})


def test_the_first_row_that_fits_counts() -> None:
    both = {**call("1"), "pairRole": "call", "pairId": "2"}
    assert findings([both, chat_result("2", "ok")]) == []
    assert count([both]) == 20
    result_of_an_assistant = {**call("1"), "pairRole": "result", "pairId": "2"}
    assert is_call(result_of_an_assistant)
    tool_but_call = {"role": "tool", "tool_call_id": "1", "content": LONG, "pairRole": "call", "pairId": "2"}
    assert not hides(tool_but_call)


# OpenAI chat


def test_openai_calls_are_each_of_tool_calls() -> None:
    history = [call("1", "2", "3"), result("3", "c"), result("1", "a"), result("2", "b")]
    assert findings(history) == []


def test_openai_call_takes_function_or_custom() -> None:
    function = {"id": "1", "function": {"name": "run", "arguments": "12345"}}
    custom = {"id": "2", "type": "custom", "custom": {"name": "patch", "input": "1234567"}}
    assert count([assistant(None, tool_calls=[function])]) == 3 + 5 + 20
    assert count([assistant(None, tool_calls=[custom])]) == 5 + 7 + 20
    both = {**function, **custom, "id": "3"}
    assert count([assistant(None, tool_calls=[both])]) == 3 + 5 + 20
    assert count([assistant(None, tool_calls=[{**custom, "function": None}])]) == 5 + 7 + 20
    assert count([assistant(None, tool_calls=[{"id": "4"}])]) == 20


def test_openai_tools_are_named_by_function_or_custom() -> None:
    function = {"id": "1", "function": {"name": "run", "arguments": ""}}
    custom = {"id": "2", "custom": {"name": "patch", "input": ""}}
    history = [assistant(None, tool_calls=[function, custom]), result("1", LONG), result("2", LONG)]
    assert list(mask(history, keep_results=0).tools) == ["run", "patch"]


def test_openai_tool_calls_count_only_for_an_assistant() -> None:
    assert count([{**call("1"), "role": "user"}]) == 0
    assert findings([{**call("1"), "role": "user"}]) == []


@pytest.mark.parametrize("tool_calls", [None, [], {}, "no", [None, 5, "x"]])
def test_openai_without_an_object_in_tool_calls_the_next_row_is_tried(tool_calls: Any) -> None:
    message = {**tool_use("1"), "tool_calls": tool_calls}
    assert is_call(message)
    assert not is_call({"role": "assistant", "content": "x", "tool_calls": tool_calls})


def test_openai_elements_of_tool_calls_that_are_no_objects_are_passed_over() -> None:
    message = call("1")
    message["tool_calls"] = [None, *message["tool_calls"], "x"]
    assert is_call(message)
    assert count([message]) == 25


def test_openai_blocks_of_other_shapes_are_other_parts_there() -> None:
    message = {**call("1"), "content": [{"type": "text", "text": "abc"}, *tool_use("2")["content"]]}
    assert count([message]) == 3 + 25 + 52
    assert findings([message, result("1", "")]) == []


def test_openai_observation_is_a_string_or_text_parts_with_nothing_between() -> None:
    parts = [{"type": kind, "text": "x" * 30} for kind in ("text", "input_text", "output_text")]
    parts.insert(1, {"type": "thinking", "thinking": "y" * 50})
    view = mask([result("1", parts)], keep_results=0).messages
    assert view == [result("1", masked(90))]


@pytest.mark.parametrize("content", [{"content": None}, {"content": ""}, {"content": []}, {}], ids=str)
def test_openai_an_observation_without_content_is_empty_text(content: Message) -> None:
    message = {"role": "tool", "tool_call_id": "1", **content}
    assert count([message]) == 0
    assert findings([call("1"), message]) == []
    assert mask([message], keep_results=0).messages[0] is message


# Anthropic messages


def test_anthropic_calls_and_results_are_blocks() -> None:
    history = [
        tool_use("1", "2"),
        {"role": "user", "content": [tool_result("1", LONG), tool_result("2", [{"type": "text", "text": LONG}])]},
    ]
    assert findings(history) == []
    view = mask(history, keep_results=0).messages
    assert view[1]["content"] == [tool_result("1", PLACEHOLDER), tool_result("2", PLACEHOLDER)]


def test_anthropic_blocks_count_whatever_the_role() -> None:
    assert hides({"role": "assistant", "content": [tool_result("1", LONG)]})
    assert hides({"content": [tool_result("1", LONG)]})
    assert is_call({**tool_use("1"), "role": "user"})


def test_anthropic_error_is_true_only() -> None:
    for flag, stays in ((True, True), (False, False), (None, False), (1, False), ("true", False)):
        history = [{"role": "user", "content": [tool_result("1", LONG, is_error=flag)]}]
        assert (mask(history, keep_results=0, keep_errors=True).masked_count == 0) is stays


@pytest.mark.parametrize(
    "message",
    [
        result("1", LONG),
        {"role": "toolResult", "pairRole": "result", "pairId": "1", "content": LONG, "name": "run"},
        {"type": "apply_patch_call_output", "call_id": "1", "output": LONG},
    ],
)
def test_errors_of_messages_that_are_results_are_flagged_by_is_error_or_status(message: dict[str, Any]) -> None:
    flags: list[tuple[dict[str, Any], bool]] = [
        ({"is_error": True}, True),
        ({"status": "error"}, True),
        ({"status": "failed"}, True),
        ({"is_error": False, "status": "failed"}, True),
        ({"is_error": "true"}, False),
        ({"status": "completed", "is_error": None}, False),
        ({"status": 1}, False),
    ]
    for flag, stays in flags:
        history = [{**message, **flag}]
        assert (mask(history, keep_results=0, keep_errors=True).masked_count == 0) is stays, flag
        assert mask(history, keep_results=0).masked_count == 1


def test_anthropic_text_beside_results_is_text_of_the_message() -> None:
    blocks = [tool_result("1", LONG), {"type": "text", "text": "abc"}]
    history = [tool_use("1"), user(blocks)]
    assert count(history) == 25 + 100 + 3
    assert mask(history, keep_results=0).messages[1]["content"] == [tool_result("1", PLACEHOLDER), blocks[1]]


def test_anthropic_in_a_message_of_role_tool_are_other_parts() -> None:
    message = result("1", [tool_result("2", LONG), {"type": "text", "text": "x" * 90}])
    assert findings([call("1"), message]) == []
    chars = 90 + len(compact(tool_result("2", LONG)))
    assert mask([message], keep_results=0).messages == [result("1", masked(chars))]


# OpenAI Responses


@pytest.mark.parametrize(
    ("kind", "fields", "chars"),
    [
        ("function_call", {"name": "run", "arguments": "{}"}, 3 + 2 + 20),
        ("custom_tool_call", {"name": "patch", "input": "*** Begin"}, 5 + 9 + 20),
        ("local_shell_call", {"action": {"type": "exec"}}, 15 + 20),
        ("apply_patch_call", {"operation": {"type": "exec"}}, 15 + 20),
        ("any_new_call", {}, 20),
        ("_call", {"arguments": None, "input": "abc"}, 3 + 20),
        ("function_call", {"arguments": "", "input": "abc"}, 20),
        ("function_call", {"name": None, "action": "abcd", "input": None}, 4 + 20),
    ],
)
def test_responses_calls(kind: str, fields: Message, chars: int) -> None:
    item = {"type": kind, "call_id": "1", **fields}
    assert count([item]) == chars
    assert findings([item, {"type": f"{kind}_output", "call_id": "1", "output": "ok"}]) == []


@pytest.mark.parametrize("kind", ["function_calls", "call", "Function_Call", "function_call ", None, 5])
def test_responses_other_types_are_no_calls(kind: Any) -> None:
    assert findings([{"type": kind, "call_id": "1"}]) == []


@pytest.mark.parametrize("item", [{"type": "web_search_call"}, {"type": "web_search_call", "call_id": None}])
def test_responses_call_without_a_call_id_is_none(item: Message) -> None:
    assert findings([item]) == []
    item = {**item, "name": "abc", "arguments": "def"}
    assert count([item]) == len(compact(item)), "as JSON"


@pytest.mark.parametrize("kind", ["function_call_output", "custom_tool_call_output", "_call_output"])
def test_responses_results(kind: str) -> None:
    item = {"type": kind, "call_id": "1", "output": LONG}
    assert findings([{"type": kind.removesuffix("_output"), "call_id": "1"}, item]) == []
    assert mask([item], keep_results=0).messages == [{**item, "output": PLACEHOLDER}]


def test_responses_output_may_be_text_parts() -> None:
    item = function_call_output(
        "1", [{"type": "input_text", "text": "x" * 60}, {"type": "output_text", "text": "y" * 40}]
    )
    assert mask([item], keep_results=0).messages == [function_call_output("1", PLACEHOLDER)]


@pytest.mark.parametrize("output", [{"out": LONG}, [{"out": LONG}], 5000, True])
def test_responses_output_that_is_no_text_is_left_alone_and_counts_as_json(output: Any) -> None:
    history = [function_call_output("1", LONG), function_call_output("2", output), function_call_output("3", LONG)]
    assert count([history[1]]) == len(compact(output))
    reduction = mask(history, keep_results=0)
    assert reduction.messages[1] is history[1]
    assert reduction.boundary == 3, "it counts in the sequence of observations"
    assert reduction.masked_count == 2


def test_responses_content_of_an_item_is_text() -> None:
    item = {**function_call_output("1", "abc"), "content": "de"}
    assert count([item]) == 5


# All shapes


def test_shapes_may_be_mixed() -> None:
    history = [
        call("1"),
        result("1", LONG),
        tool_use("2"),
        user([tool_result("2", LONG)]),
        function_call("3"),
        function_call_output("3", LONG),
        chat_call("4"),
        chat_result("4", LONG),
    ]
    assert findings(history) == []
    reduction = mask(history, keep_results=0)
    assert reduction.masked_count == 4
    assert reduction.messages[1::2] == [
        result("1", PLACEHOLDER),
        user([tool_result("2", PLACEHOLDER)]),
        function_call_output("3", PLACEHOLDER),
        chat_result("4", PLACEHOLDER),
    ]


def test_pairs_may_cross_shapes() -> None:
    assert findings([call("1"), user([tool_result("1", "ok")])]) == []


def test_fields_that_are_not_named_are_carried_along() -> None:
    message = {"z": [1, {"content": LONG}], **result("1", LONG), "tool_calls": 7, "input": [LONG], "text": LONG}
    view = mask([message], keep_results=0).messages
    assert list(view[0].items()) == [
        (key, PLACEHOLDER if key == "content" else value) for key, value in message.items()
    ]


def test_a_message_without_any_known_field_is_carried_along_and_counts_as_json() -> None:
    history: list[Any] = [{}, {"foo": "bar"}, {"role": None, "type": 5, "content": None}]
    assert count(history) == len('{"foo":"bar"}')
    assert mask(history, keep_results=0).messages is history


def test_system_messages_are_those_of_system_and_developer() -> None:
    history = [result("1", LONG), {"role": "system", "content": ""}, {"role": "developer", "content": ""}]
    assert mask(history, keep_messages=1).masked_count == 0
    history[2]["role"] = "System"
    assert mask(history, keep_messages=1).masked_count == 1
