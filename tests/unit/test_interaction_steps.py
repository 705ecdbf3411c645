"""Steps of Gemini's Interactions: read, masked, kept together and repaired; and what is of no known shape."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import published
import pytest

import recede
from recede._encodable import warn_once
from support import CLEARED, Message, assistant, findings, loads, mask, mask_json, user

NO_RESULT = "[no result recorded]"
LONG = "x" * 900


def said(*texts: str) -> Message:
    return {"type": "user_input", "content": [{"type": "text", "text": text} for text in texts]}


def output(text: str) -> Message:
    return {"type": "model_output", "content": [{"type": "text", "text": text}]}


def thought(signature: str = "c2ln") -> Message:
    return {"type": "thought", "signature": signature, "summary": [{"type": "text", "text": "hm " * 50}]}


def call(*ids: str, name: str = "read") -> list[Message]:
    return [{"type": "function_call", "id": i, "name": name, "arguments": {"p": "a"}, "signature": ""} for i in ids]


def result(call_id: str, value: Any = LONG, name: str = "read", **fields: Any) -> Message:
    return {"type": "function_result", "call_id": call_id, "name": name, "result": value, **fields}


def nested(*results: Message) -> Message:
    return {"type": "user_input", "content": list(results)}


def halves(name: str, used: str) -> list[Message]:
    return [
        {"type": f"{name}_call", "id": used, "arguments": {"query": "q"}, "signature": "s"},
        {"type": f"{name}_result", "call_id": used, "result": LONG, "signature": "s"},
    ]


def loop(turns: int, value: Any = LONG) -> list[Message]:
    history = [said("Find it.")]
    for number in range(turns):
        history += [thought(), *call(f"c{number}"), result(f"c{number}", value)]
    return history


def test_a_loop_is_counted_paired_and_belongs_to_google() -> None:
    history = loop(6)
    assert findings(history) == []
    # Thoughts count nothing; a call its name, its arguments and 20.
    assert recede.count_chars(history) == len("Find it.") + 6 * (len("read") + len('{"p":"a"}') + 20 + 900)
    assert recede.reduce(history).provider == "gemini"
    assert recede.reduce([said("hi")]).provider == "gemini"


@pytest.mark.parametrize(
    ("value", "is_text"),
    [
        (LONG, True),
        ([{"type": "text", "text": LONG}, {"type": "text", "text": "y"}], True),
        ([{"type": "text", "text": LONG}, {"type": "image", "data": LONG, "mime_type": "image/png"}], True),
        ({"rows": [LONG, 5], "more": None}, False),
        ([{"type": "text", "text": LONG}, {"type": "of_tomorrow", "data": LONG}], False),
    ],
    ids=["text", "texts", "image", "object", "unknown part"],
)
@pytest.mark.parametrize("place", ["step", "part"])
def test_a_result_becomes_a_string_wherever_and_whatever_it_is(place: str, value: Any, is_text: bool) -> None:
    answer = result("1", value, is_error=False)
    history = [said("Go."), thought(), *call("1"), answer if place == "step" else nested(answer), output("ok")]
    view = mask(history, keep_results=0)
    assert view.masked_count == 1
    shown = view.messages[3] if place == "step" else view.messages[3]["content"][0]
    assert isinstance(shown["result"], str) and shown["result"].startswith("[observation masked")
    assert shown == {**answer, "result": shown["result"]}
    assert [one for one in view.messages if one not in history] == [view.messages[3]]
    assert loads(mask_json(json.dumps(history), keep_results=0).json) == view.messages
    texts = recede.reduce(history, keep_matching=["x*"], keep=0, boundary="sliding").masked_count
    assert texts == (0 if is_text else 1), "what is no text has no beginning"


def test_a_result_without_id_answers_the_first_call_of_a_run_read_twice() -> None:
    # What is of the type of a call, and a result by its role, asks within the run for the calls before it.
    both = {"role": "tool", "type": "_call", "content": "x"}
    history = [*call("1"), both, *call("2"), {"type": "function_result", "result": "r"}, output("ok")]
    orphans = [(kind, place) for kind, place, _ in findings(history) if kind != "missing_id"]
    assert orphans == [("result_without_call", 1), ("call_without_result", 2)]
    assert recede.reduce(history).orphans == (1, 2)


@pytest.mark.parametrize("value", [None, "", [], 5, True])
def test_a_result_without_text_stays(value: Any) -> None:
    history = [said("Go."), thought(), *call("1"), result("1", value), output("ok")]
    assert mask(history, keep_results=0).messages is history


def test_errors_and_tools_are_known() -> None:
    history = [said("Go."), *call("1", "2"), result("1", is_error=True), result("2"), output("ok")]
    view = mask(history, keep_results=0, keep_errors=True)
    assert view.messages[3] is history[3] and view.messages[4] is not history[4]
    assert mask(history, keep_results=0, exclude_tools=["read"]).messages is history


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "id": "fc_1", "call_id": "1", "name": "f", "arguments": {}},
        {"type": "function_call", "id": "fc_1", "name": "f", "arguments": "{}"},
        {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "status": "completed", "results": None},
        {"type": "tool_search_call", "call_id": "1", "arguments": {}},
        {"type": "tool_search_call", "id": "ts", "call_id": None, "arguments": {}, "status": "completed"},
        {"role": "user", "type": "user_input", "content": "text with a role"},
        {"role": "assistant", "type": "thought", "content": "text with a role"},
    ],
    ids=str,
)
def test_items_of_responses_and_messages_with_a_role_are_no_steps(item: Message) -> None:
    history = [user("go"), item, user("on")]
    kinds = [kind for kind, *_ in findings(history)]
    assert kinds in ([], ["call_without_result"])
    assert recede.reduce(history).provider != "gemini"


def test_halves_of_what_google_runs_stay_together() -> None:
    whole = [said("Go."), thought(), *halves("google_search", "s1"), output("ok"), said("on")]
    assert findings(whole) == []
    assert mask(whole, keep_results=0).messages is whole
    for name in ("code_execution", "file_search", "mcp_server_tool", "tool_search"):
        asked, found = halves(name, "s1")
        assert findings([said("Go."), asked, output("ok"), said("on")]) == [("call_without_result", 1, "s1")]
        assert recede.repair_pairs([said("Go."), asked, output("ok"), said("on")]) == [
            said("Go."),
            output("ok"),
            said("on"),
        ]
        assert findings([said("Go."), found, said("on")]) == [("result_without_call", 1, "s1")]
    for budget in range(40, 3_000, 60):
        view = published.reduce([*whole, *loop(8)[1:]], max_input_chars=budget).messages
        shown = [step["type"] for step in view]
        assert shown.count("google_search_call") == shown.count("google_search_result")


@pytest.mark.parametrize("tokens", [100, 200, 400, 800])
def test_a_limit_keeps_the_task_whole_turns_and_definitions_of_tools(tokens: int) -> None:
    tools = [{"type": "text", "text": LONG}, {"type": "function", "name": "g", "description": LONG}]
    history = loop(12)
    history[4:4] = [thought(), *call("t"), result("t", tools), thought(), *halves("tool_search", "ts")]
    view = recede.reduce(history, max_input_tokens=tokens, boundary="sliding").messages
    assert view[0]["type"] == "user_input"
    assert findings(view) == []
    assert result("t", tools) in view and all(half in view for half in halves("tool_search", "ts"))
    for before, step in pairwise(view):
        if step["type"] == "function_call":  # what is kept of a turn begins with its thought
            assert before["type"] == "thought"


def test_a_summary_and_a_cut_task_are_steps() -> None:
    history = [said("Find it. " * 400), *loop(40)[1:]]
    view = recede.reduce(history, max_input_tokens=900, summarizer=lambda messages, previous: "told").messages
    told = [step for step in view if "told" in json.dumps(step)]
    assert told == [said("Conversation summary:\ntold")]
    [task] = [step for step in view if step["type"] == "user_input" and step not in told]
    assert "chars omitted" in task["content"][0]["text"]
    assert set(map(str, (step.get("role") for step in view))) == {"None"}
    pictures = {"type": "user_input", "content": [{"type": "image", "data": LONG, "mime_type": "image/png"}]}
    [cut] = [
        step
        for step in recede.reduce([pictures, *loop(9)[1:]], max_input_tokens=900).messages
        if step["type"] == "user_input"
    ][:1]
    assert cut["content"][0]["type"] in ("text", "image")
    # What an earlier reduction has left is carried on.
    again = recede.reduce(
        [*view, *loop(40)[1:]], max_input_tokens=900, summarizer=lambda messages, previous: f"{previous} more"
    )
    assert json.dumps(again.messages).count("Conversation summary:") == 1


def test_what_a_repair_adds_has_the_id_and_the_name_of_its_call() -> None:
    history = [said("Go."), thought(), *call("1", "2"), result("2"), said("on")]
    assert recede.repair_pairs(history) == [*history[:5], result("1", NO_RESULT), history[5]]
    inside = [*history[:4], nested(result("2"), {"type": "text", "text": "note"}), said("on")]
    mended = recede.repair_pairs(inside)
    assert mended[4]["content"] == [result("2"), result("1", NO_RESULT), {"type": "text", "text": "note"}]
    assert findings(mended) == []
    assert recede.repair_pairs([said("Go."), result("9"), said("on")]) == [said("Go."), said("on")]
    assert recede.repair_pairs([said("Go."), nested(result("9")), said("on")]) == [said("Go."), said("on")]
    lost = {name: field for name, field in result("1").items() if name != "call_id"}
    history = [said("Go."), thought(), *call("1"), lost, output("ok")]
    assert findings(history) == [("missing_id", 3, None)]
    assert recede.repair_pairs(history)[3] == {**lost, "call_id": "1"}


@pytest.mark.parametrize("ids", [("", ""), ("x", "x")])
@pytest.mark.parametrize("is_nested", [False, True])
def test_ids_that_distinguish_nothing_pair_by_place_and_name(ids: tuple[str, str], is_nested: bool) -> None:
    calls = [*call(ids[0], name="ask"), *call(ids[1])]
    results = [result(ids[0], name="ask"), result(ids[1])]
    for answers in (results, results[::-1]):
        told = [nested(*answers)] if is_nested else answers
        view = mask([said("Go."), thought(), *calls, *told, output("ok")], keep_results=0, exclude_tools=["ask"])
        shown = json.dumps(view.messages)
        assert view.masked_count == 1 and shown.count(LONG) == 1
        assert json.dumps(results[0]) in shown


# What is of no known shape


UNKNOWN: dict[str, list[Message]] = {
    "fields": [{"from": "human", "value": LONG}, {"from": "gpt", "value": LONG}],
    "types": [{"type": "of_tomorrow", "text": LONG}, {"type": "turn", "data": {"a": LONG}}],
    "roles without content": [{"role": "user", "text": LONG}, {"role": "ai", "text": LONG}],
}


@pytest.mark.parametrize("kind", UNKNOWN)
@pytest.mark.parametrize("door", ["reduce", "json", "History", "Masker", "RequestMasker"])
def test_a_list_without_a_known_shape_is_left_whole_and_said_once(
    door: str, kind: str, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    if engine == "oracle" and door not in ("reduce", "json"):
        pytest.skip("it has no oracle")
    warn_once.cache_clear()
    history = UNKNOWN[kind] * 20
    options: Any = {"max_input_tokens": 500, "keep": 1, "boundary": "sliding"}
    for _ in range(2):
        if door == "reduce":
            view = recede.reduce(history, **options).messages
        elif door == "json":
            view = loads(recede.reduce(json.dumps(history), **options).json)
        elif door == "History":
            growing = recede.History(**options)
            growing.extend(history)
            view = growing.view()
        elif door == "Masker":
            view = recede.masker.Masker(**options).view(history)
        else:
            body = json.dumps({"model": "m", "input": history}).encode()
            view = loads(recede.proxy.RequestMasker(**options).mask("POST", "/v1/interactions", {}, body).body)["input"]
        assert view == history
    told = [record.getMessage() for record in caplog.records if "nothing was recognized" in record.getMessage()]
    assert len(told) == 1 and "Interactions" in told[0]
    names = [name for message in UNKNOWN[kind] for name in (message.get("type"), *message) if isinstance(name, str)]
    assert all(name in told[0] for name in names)


def test_contents_of_one_message_are_no_unknown_shape(caplog: pytest.LogCaptureFixture) -> None:
    warn_once.cache_clear()
    contents: list[Message] = [
        {"type": "text", "text": LONG},
        {"type": "image", "data": "aa", "mime_type": "image/png"},
    ]
    assert recede.reduce(contents, max_input_tokens=9).messages == contents
    assert not caplog.records


@pytest.mark.parametrize("tokens", [60, 120, 500, 900])
def test_a_limit_never_hides_a_message_of_an_unknown_shape(tokens: int) -> None:
    strange: list[Message] = [
        {"type": "of_tomorrow", "text": LONG},
        {"role": "function", "name": "f", "content": LONG},
        {"from": "human", "value": LONG},
        {"type": "foo_result", "call_id": "1", "result": LONG},
    ]
    history = loop(12)
    for place, one in enumerate(strange):
        history.insert(1 + 9 * place, one)
    for options in ({}, {"summarizer": lambda messages, previous: "told"}):
        view = recede.reduce(history, max_input_tokens=tokens, boundary="sliding", **options).messages
        assert [one for one in view if one in strange] == strange
    assert len(recede.designs.truncate_history(history, keep_messages=1).messages) < len(history)
    assert all(one in recede.designs.truncate_history(history, keep_messages=1).messages for one in strange)
    assert assistant("x") not in view and CLEARED not in json.dumps(strange)
