"""What is of an unknown type is counted: `within_limit` is never true of text that nobody counted."""

from __future__ import annotations

import json
from typing import Any

import published
import pytest

import recede
from recede._encodable import warn_once
from recede.integrations._shared import content_facts
from support import assistant, call, dumps, loads, mask, mask_json, result, tool_result, tool_use, user

LONG = "x" * 20_000


def compact(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":")))


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
    "audio": [user([{"type": "audio", "base64": LONG, "mime_type": "audio/wav"}])],
    "video": [user([{"type": "video", "base64": LONG, "mime_type": "video/mp4"}])],
    "video_url": [user([{"type": "video_url", "video_url": {"url": LONG}}])],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_text_of_an_unknown_type_is_counted(name: str) -> None:
    history = HISTORIES[name]
    assert 20_000 < recede.count_chars(history) < 20_300
    assert recede.count_chars(dumps(history)) == recede.count_chars(history)
    view = published.reduce([user("task"), *history], max_input_chars=15_000)
    assert recede.count_chars(view.messages) <= 15_000 or not view.within_limit


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


def test_an_output_of_an_unknown_form_stays_and_its_type_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    warn_once.cache_clear()
    done = {"role": "assistant", "content": "done"}
    history = [*HISTORIES["an object output"], done, call("2"), result("2", "new")]
    for _ in range(2):
        assert mask(history, keep_results=1).messages == history
        assert mask_json(dumps(history), keep_results=1).masked_count == 0
    assert [record.getMessage() for record in caplog.records] == [
        "results of type x_call_output stay as they are, and are counted: where their text is, is unknown"
    ]


def shell_output(*parts: tuple[str, str], outcome: int = 0) -> dict[str, Any]:
    ends = {"type": "exit", "exit_code": outcome}
    output = [{"outcome": ends, "stderr": stderr, "stdout": stdout} for stdout, stderr in parts]
    return responses_call("shell_call_output", output=output, max_output_length=9)


def test_what_a_shell_has_written_is_masked_as_one_text() -> None:
    raw = shell_output(("o" * 60, "\u0000e" * 20), ("p" * 30, ""), outcome=3)
    history = [HISTORIES["shell_call_output"][0], raw, assistant("done")]
    size = 60 + 40 + 30
    assert recede.check_pairs(history).findings == ()
    view = mask(history, keep_results=0)
    wanted = shell_output((f"[observation masked — {size} chars]", ""), ("", ""), outcome=3)
    assert view.messages == [history[0], wanted, history[2]]
    assert mask(view.messages, keep_results=0).messages is view.messages
    assert recede.count_chars(history) - recede.count_chars(view.messages) == size - len(
        "[observation masked — 130 chars]"
    )
    for text in (dumps(history), json.dumps(history, indent=2).encode()):
        in_bytes = mask_json(text, keep_results=0)
        assert loads(in_bytes.json) == view.messages
        assert in_bytes.json.count(b'"exit_code"') == text.count(b'"exit_code"')
    cut = mask(history, keep_results=0, max_observation_chars=80).messages[1]["output"][0]
    assert cut["stdout"].startswith("ooo") and len(cut["stdout"]) == 80 and cut["stderr"] == ""
    object_output = [history[0], responses_call("x_call_output", output={"stderr": LONG, "code": 1}), history[2]]
    masked = {"stderr": "[observation masked — 20000 chars]", "code": 1}
    assert mask(object_output, keep_results=0).messages[1]["output"] == masked


def test_a_repeated_text_of_a_shell_is_no_text() -> None:
    output = b'{"type":"x_call_output","call_id":"1","output":{"stdout":"%s","stdout":"b"}}' % (b"a" * 99)
    text = b'[%s,{"role":"assistant","content":"c"}]' % output
    assert mask_json(text, keep_results=0).json == text
    assert mask_json(text, keep_results=0).chars_before > 99


def test_an_unknown_part_of_the_task_goes_when_that_is_cut() -> None:
    task = user([{"type": "text", "text": "y" * 3_000}, {"type": "z", "z": LONG}])
    view = published.reduce([task, call("1"), result("1", "new")], max_input_chars=1_000)
    assert view.within_limit
    assert [part["type"] for part in view.messages[0]["content"]] == ["text"]
    in_bytes = published.reduce_json(dumps([task, call("1"), result("1", "new")]), max_input_chars=1_000)
    assert loads(in_bytes.json) == view.messages


def test_adapters_count_a_part_of_an_unknown_type_without_its_mark() -> None:
    parts = [
        {"type": "text", "text": "abc"},
        {"type": "z", "z": "q" * 90, "cache_control": {}},
        {"type": "thinking", "thinking": "x"},
    ]
    assert content_facts(parts) == (recede.count_chars([user(parts)]), 0)


REFERENCE = {"type": "tool_reference", "tool_name": "read"}
MARK = {"type": "ephemeral"}


def test_references_to_tools_stay_beside_the_placeholder() -> None:
    found = [{"type": "text", "text": LONG}, REFERENCE]
    history = [tool_use("1", "2"), user([tool_result("1", found), tool_result("2", LONG)]), assistant("c")]
    view = mask(history, keep_results=0)
    placeholder = {"type": "text", "text": "[observation masked — 20000 chars]"}
    assert view.messages[1]["content"] == [
        tool_result("1", [placeholder, REFERENCE]),
        tool_result("2", placeholder["text"]),
    ]
    assert loads(mask_json(dumps(history), keep_results=0).json) == view.messages
    assert mask(view.messages, keep_results=0).messages is view.messages
    in_chat = [call("1"), result("1", found), assistant("c")]
    assert mask(in_chat, keep_results=0).messages[1]["content"] == [placeholder, REFERENCE]
    only = [call("1"), result("1", [REFERENCE] * 9), assistant("c")]
    assert mask(only, keep_results=0).messages is only
    other = [{"type": "z", "z": LONG}, REFERENCE]
    view = mask([tool_use("1"), user([tool_result("1", other)]), assistant("c")], keep_results=0)
    placeholder["text"] = f"[observation masked — {20_000 + compact({'type': 'z', 'z': ''})} chars]"
    assert view.messages[1]["content"] == [tool_result("1", [placeholder, REFERENCE])]
    reduction = published.reduce([*history, user("Go on.")], max_input_chars=9_000, keep_messages=0)
    assert reduction.within_limit == (reduction.chars_after <= 9_000)


def test_the_newest_mark_beside_references_goes_on_the_block() -> None:
    newest = {**MARK, "ttl": "1h"}
    found = [{"type": "text", "text": LONG, "cache_control": MARK}, {**REFERENCE, "cache_control": newest}]
    view = mask([tool_use("1"), user([tool_result("1", found)]), assistant("c")], keep_results=0).messages
    placeholder = {"type": "text", "text": "[observation masked — 20000 chars]"}
    wanted = tool_result("1", [placeholder, REFERENCE])
    assert view[1]["content"] == [{**wanted, "cache_control": newest}]
    text = dumps([tool_use("1"), user([tool_result("1", found)]), assistant("c")])
    assert loads(mask_json(text, keep_results=0).json) == view
    chat = [call("1"), result("1", found), assistant("c")]
    view = mask(chat, keep_results=0).messages
    assert view[1]["content"] == [{**placeholder, "cache_control": newest}, REFERENCE]
    assert loads(mask_json(dumps(chat), keep_results=0).json) == view


@pytest.mark.parametrize(
    "place",
    [
        lambda part: [user([part])],
        lambda part: [tool_use("1"), user([tool_result("1", [{"type": "text", "text": "a"}, part])])],
        lambda part: [user([{"type": "search_result", "content": [part, {"type": "text", "text": "b"}]}])],
        lambda part: [user([{"type": "document", "source": {"type": "content", "content": [part]}}])],
    ],
    ids=["a block", "a part of a result", "a part of a search result", "a part of a document"],
)
@pytest.mark.parametrize("mark", [MARK, {**MARK, "ttl": "1h"}, None, "x"])
def test_marks_never_count(place: Any, mark: Any) -> None:
    bare, marked = place({"type": "z", "z": "y"}), place({"type": "z", "cache_control": mark, "z": "y"})
    assert recede.count_chars(marked) == recede.count_chars(bare)
    assert mask_json(dumps(marked), keep_results=0).chars_before == recede.count_chars(bare)


@pytest.mark.parametrize(
    "source",
    [{"type": "text", "media_type": "text/plain", "data": LONG}, {"type": "content", "content": LONG}],
)
def test_a_document_with_text_counts_its_text(source: dict[str, Any]) -> None:
    document = {"type": "document", "source": source, "title": "t"}
    for history in ([user([document])], [call("1"), result("1", [document])]):
        assert 20_000 < recede.count_chars(history) < 20_200
        assert mask_json(dumps(history), keep_results=0).chars_before == recede.count_chars(history)
    history = [call("1"), result("1", [document]), assistant("c")]
    assert mask(history, keep_results=0).masked_count == 1
    assert recede.count_chars([user([{"type": "document", "source": {"type": "url", "url": LONG}}])]) == 6_400
    converse = [user([{"text": "a"}, {"document": {"name": "n", "source": {"text": LONG}}}])]
    assert 20_000 < recede.count_chars(converse) < 20_200
    assert recede.count_chars([user([{"text": "a"}, {"document": {"source": {"bytes": LONG}}}])]) == 6_401


def test_an_image_in_a_document_counts_as_an_image() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": LONG}}
    source = {"type": "content", "content": [{"type": "text", "text": "abc"}, image]}
    history = [user([{"type": "document", "source": source}])]
    assert 6_400 < recede.count_chars(history) < 6_600
    assert mask_json(dumps(history), keep_results=0).chars_before == recede.count_chars(history)


def test_messages_of_an_unknown_shape_and_old_calls_of_chat_count_as_json() -> None:
    message = {"from": "human", "value": LONG}
    assert recede.count_chars([message]) == recede.count_chars([{"role": "user", **message}]) == compact(message)
    assert recede.count_chars([{}, {"role": "assistant"}]) == 0
    old = {"name": "run", "arguments": LONG}
    assert recede.count_chars([{**assistant("ab"), "function_call": old}]) == 2 + compact(old)
    assert recede.count_chars([{**assistant(None), "tool_calls": None, "function_call": old}]) == compact(old)
    assert recede.count_chars([{**assistant("ab"), "function_call": None}]) == 2
    history = [{**assistant("ab"), "function_call": old}]
    assert mask_json(dumps(history), keep_results=0).chars_before == 2 + compact(old)


@pytest.mark.parametrize("field", ["operation", "actions"])
def test_what_a_call_does_is_counted(field: str) -> None:
    item = responses_call("a_call", **{field: [{"diff": LONG}]})
    assert recede.count_chars([item]) == 20 + compact([{"diff": LONG}])


def test_tools_that_a_search_of_the_client_has_found_stay_and_pair_with_their_call() -> None:
    search = responses_call("tool_search_call", execution="client", arguments={"q": "x"})
    found = responses_call("tool_search_output", execution="client", tools=[{"name": LONG}])
    history = [search, found, assistant("c")]
    assert recede.check_pairs(history).findings == ()
    assert mask(history, keep_results=0).messages is history
    assert recede.count_chars([found]) == compact(found)
    by_provider = [{**search, "call_id": None}, {**found, "call_id": None}]
    assert recede.check_pairs(by_provider).findings == ()
    assert recede.count_chars(by_provider) == sum(compact(one) for one in by_provider)
