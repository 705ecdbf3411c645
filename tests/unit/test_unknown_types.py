"""What is of an unknown type is counted: `within_budget` is never true of text that nobody counted."""

from __future__ import annotations

from typing import Any

import published
import pytest

import recede
from recede.integrations._shared import content_facts
from support import call, dumps, loads, mask, mask_json, result, tool_result, tool_use, user

LONG = "x" * 20_000


def responses_call(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "call_id": "1", **fields}


HISTORIES: dict[str, list[dict[str, Any]]] = {
    "shell_call_output": [
        responses_call("shell_call", action={"commands": ["ls"]}),
        responses_call("shell_call_output", output=[{"stdout": LONG, "stderr": "", "outcome": {"type": "exit"}}]),
    ],
    "mcp_call": [{"type": "mcp_call", "id": "1", "name": "n", "arguments": "{}", "output": LONG}],
    "code_interpreter_call": [{"type": "code_interpreter_call", "id": "1", "code": LONG, "outputs": []}],
    "an unknown item": [{"type": "of_tomorrow", "text": LONG}],
    "an object output": [responses_call("x_call", arguments="{}"), responses_call("x_call_output", output={"a": LONG})],
    "search_result": [
        user([{"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": LONG}]}])
    ],
    "search_result in a result": [
        tool_use("1"),
        user([tool_result("1", [{"type": "search_result", "content": [{"type": "text", "text": LONG}]}])]),
    ],
    "mcp_tool_result": [
        {"role": "assistant", "content": [{"type": "mcp_tool_result", "content": [{"type": "text", "text": LONG}]}]}
    ],
    "an unknown part": [call("1"), result("1", [{"type": "text", "text": "y"}, {"type": "z", "z": LONG}])],
    "an unknown block of Converse": [user([{"text": "a"}, {"searchResult": {"content": [{"text": LONG}]}}])],
    "an unknown part of Converse": [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "n", "input": {}}}]},
        user([{"toolResult": {"toolUseId": "1", "content": [{"text": "a"}, {"searchResult": {"source": LONG}}]}}]),
    ],
    "an unknown part of Gemini": [{"role": "model", "parts": [{"codeExecutionResult": {"output": LONG}}]}],
}
IMAGES: dict[str, list[dict[str, Any]]] = {
    "computer_call_output": [
        responses_call("computer_call", action={"type": "screenshot"}),
        responses_call("computer_call_output", output={"type": "computer_screenshot", "image_url": LONG}),
    ],
    "image_generation_call": [{"type": "image_generation_call", "id": "1", "result": LONG}],
    "input_audio": [user([{"type": "input_audio", "input_audio": {"data": LONG, "format": "wav"}}])],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_text_of_an_unknown_type_is_counted(name: str) -> None:
    history = HISTORIES[name]
    assert 20_000 < recede.count_chars(history) < 20_300
    assert recede.count_chars(dumps(history)) == recede.count_chars(history)
    view = published.reduce([user("task"), *history], max_input_chars=15_000)
    assert recede.count_chars(view.messages) <= 15_000 or not view.within_budget


@pytest.mark.parametrize("name", IMAGES)
def test_binary_data_counts_as_an_image(name: str) -> None:
    assert 6_400 <= recede.count_chars(IMAGES[name]) < 6_500


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking"])
def test_thinking_is_not_counted(kind: str) -> None:
    assert recede.count_chars([{"role": "assistant", "content": [{"type": kind, "thinking": LONG}]}]) == 0


@pytest.mark.parametrize("name", ["search_result in a result", "an unknown part", "an unknown part of Converse"])
def test_a_result_with_a_part_of_an_unknown_type_is_masked_whole(name: str) -> None:
    history = [*HISTORIES[name], {"role": "assistant", "content": "done"}, call("2"), result("2", "new")]
    view = mask(history, keep_results=1)
    assert view.masked_count == 1
    assert recede.count_chars(view.messages) < 250
    assert mask_json(dumps(history), keep_results=1).masked_count == 1
    assert mask(view.messages, keep_results=1).messages == view.messages


@pytest.mark.parametrize("name", ["shell_call_output", "an object output"])
def test_an_output_of_an_unknown_form_stays(name: str) -> None:
    history = [*HISTORIES[name], {"role": "assistant", "content": "done"}, call("2"), result("2", "new")]
    assert mask(history, keep_results=1).messages == history


def test_an_unknown_part_of_the_task_goes_when_that_is_cut() -> None:
    task = user([{"type": "text", "text": "y" * 3_000}, {"type": "z", "z": LONG}])
    view = published.reduce([task, call("1"), result("1", "new")], max_input_chars=1_000)
    assert view.within_budget
    assert [part["type"] for part in view.messages[0]["content"]] == ["text"]
    in_bytes = published.reduce_json(dumps([task, call("1"), result("1", "new")]), max_input_chars=1_000)
    assert loads(in_bytes.json) == view.messages


def test_adapters_count_a_part_of_an_unknown_type() -> None:
    parts = [{"type": "text", "text": "abc"}, {"type": "z", "z": "q" * 90}, {"type": "thinking", "thinking": "x"}]
    assert content_facts(parts) == (recede.count_chars([user(parts)]), 0)


def test_a_result_with_references_to_tools_stays() -> None:
    found = [{"type": "text", "text": LONG}, {"type": "tool_reference", "tool_name": "read"}]
    history = [tool_use("1", "2"), user([tool_result("1", found), tool_result("2", LONG)])]
    view = mask(history, keep_results=0).messages
    assert view[1]["content"][0] == history[1]["content"][0]
    assert view[1]["content"][1]["content"].startswith("[observation masked")
    in_chat = [call("1"), result("1", found)]
    assert mask(in_chat, keep_results=0).messages is in_chat
    reduction = published.reduce([*history, user("Go on.")], max_input_chars=9_000, keep_messages=0)
    assert all(not isinstance(one.get("content"), str) or LONG not in one["content"] for one in reduction.messages)
    assert reduction.within_budget == (reduction.chars_after <= 9_000)
