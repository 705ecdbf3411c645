"""Gemini's contents and Bedrock's Converse: blocks without a type, results without ids."""

from __future__ import annotations

import json
from typing import Any

import published
import pytest

import recede
from provider_rules import fault
from support import Message, count, findings, mask, mask_json, masked, user, using

LONG = "x" * 100
PLACEHOLDER = masked(100)


def said(role: str, *parts: dict[str, Any]) -> Message:
    return {"role": role, "parts": list(parts)}


def asked(name: str, field: str = "functionCall", **more: Any) -> dict[str, Any]:
    return {field: {"name": name, "args": {}, **more}}


def answered(name: str, response: Any, field: str = "functionResponse", **more: Any) -> dict[str, Any]:
    return {field: {"name": name, "response": response, **more}}


def use(call_id: str) -> Message:
    return {"role": "assistant", "content": [{"toolUse": {"toolUseId": call_id, "name": "bash", "input": {}}}]}


def used(call_id: str, *content: dict[str, Any], **more: Any) -> Message:
    result = {"toolUseId": call_id, "content": list(content), **more}
    return {"role": "user", "content": [{"toolResult": result}]}


def masked_alone(message: Message, **options: Any) -> Message:
    """The message with its observations masked, in both entrances."""
    view = mask([message], keep_results=0, **options).messages
    in_bytes = mask_json(json.dumps([message]), keep_results=0, **options)
    assert json.loads(in_bytes.json) == view
    assert mask(view, keep_results=0, **options).masked_count == 0, "masking twice changes nothing more"
    (only,) = view
    return only


# Gemini


def test_gemini_calls_without_ids_pair_in_order_with_results_of_their_name() -> None:
    history = [
        said("model", asked("f"), asked("g"), asked("f")),
        said("user", answered("f", {"output": "1"}), answered("f", {"output": "2"}), answered("g", {"output": "3"})),
    ]
    assert findings(history) == []
    short = [history[0], said("user", *history[1]["parts"][:1]), said("user", {"text": "go on"})]
    assert findings(short) == [("call_without_result", 0, None)] * 2


@pytest.mark.parametrize("call_ids", [("1", "2"), ("1", None), (None, "2"), (None, None)])
@pytest.mark.parametrize("result_ids", [("1", "2"), ("2", "1"), ("8", "9"), ("1", None), (None, "2"), (None, None)])
def test_gemini_calls_and_results_pair_by_their_place_unless_both_have_an_id(call_ids: Any, result_ids: Any) -> None:
    history = [
        said("model", *(asked("f", id=call_id) for call_id in call_ids)),
        said("user", *(answered("f", {"output": ""}, id=result_id) for result_id in result_ids)),
    ]
    strange = set(filter(None, result_ids)) - set(call_ids)
    without_id = call_ids.count(None)
    orphans = max(0, len(strange) - without_id)
    kinds = [kind for kind, *_ in findings(history)]
    assert kinds == ["open_call"] * orphans + ["result_without_call"] * orphans
    assert not recede.check_pairs(recede.repair_pairs(history)).orphans


def test_gemini_ids_go_before_places() -> None:
    history = [
        said("model", asked("f", id="1"), asked("f", id="2")),
        said("user", answered("f", {"output": "?"}), answered("f", {"output": "a"}, id="1")),
    ]
    assert findings(history) == []
    twice = [*history, said("user", answered("f", {"output": "b"}, id="2"))]
    assert findings(twice) == [("second_result", 2, "2")]
    history[1]["parts"].reverse()
    assert findings(history) == []


def test_gemini_results_answer_by_their_place_only_open_calls_of_their_name() -> None:
    ask, answer, text = said("model", asked("f", id="1")), said("user", answered("f", {})), said("user", {"text": ""})
    assert findings([ask, answer]) == []
    assert findings([ask, said("model", {"text": "of the same run"}), answer]) == []
    orphans = [("call_without_result", 0, "1"), ("result_without_call", 2, None)]
    assert findings([ask, text, answer]) == orphans
    assert findings([ask, said("user", answered("g", {})), answer, text]) == [("result_without_call", 1, None)]
    assert findings([ask, answer, ask, answer, answer]) == [("result_without_call", 4, None)]
    # A result without a name is of no tool.
    assert ("missing_id", 1, None) in findings([ask, said("user", {"functionResponse": {"response": {}}})])
    nameless = said("model", {"functionCall": {"args": {}}})
    assert findings([nameless, text]) == [("missing_id", 0, None), ("call_without_result", 0, None)]
    # The shapes must be the same.
    tool = {"role": "tool", "content": "", "name": "f"}
    assert ("result_without_call", 1, None) in findings([ask, tool])


def test_gemini_a_result_answers_the_last_message_that_asks() -> None:
    """A view may drop what was between two runs; its results belong to the same calls as before."""
    first, last = said("model", asked("f", id="1")), said("model", asked("f", id="2"))
    answer, text = said("user", answered("f", {})), said("user", {"text": ""})
    assert findings([first, text, last, answer, text]) == [("call_without_result", 0, "1")]
    assert findings([first, last, answer, text]) == [("call_without_result", 0, "1")]
    assert findings([first, last, answer, answer, text]) == [("split_results", 3, None)]


@pytest.mark.parametrize("field", ["functionResponse", "function_response"])
@pytest.mark.parametrize("key", ["output", "result", "error", "é"])
def test_gemini_response_of_one_string_is_replaced_in_place(field: str, key: str) -> None:
    message = said("user", {"text": "before"}, {**answered("f", {key: LONG}, field), "thoughtSignature": "s"})
    assert masked_alone(message) == said(
        "user", {"text": "before"}, {**answered("f", {key: PLACEHOLDER}, field), "thoughtSignature": "s"}
    )


def test_gemini_response_of_another_form_is_replaced_whole() -> None:
    message = said("user", answered("f", {"stdout": LONG, "code": 0}))
    chars = len('{"stdout":"","code":0000}') + 100
    assert count([message]) == chars
    assert masked_alone(message) == said("user", answered("f", {"output": masked(chars)}))
    assert masked_alone(message, max_observation_chars=60) == masked_alone(message)


def test_gemini_role_model_is_agent_made_and_thoughts_count_nothing() -> None:
    assert count([said("model", {"text": "abc"}, {"text": "hidden", "thought": True})]) == 3
    assert count([said("model", asked("f", "function_call"))]) == 1 + 2 + 20
    turns = [said("model", {"text": "a"}), said("model", {"text": "b"}), said("user", {"text": "c"})]
    assert mask(turns, keep_turns=1).masked_count == 0
    assert findings([said("model", asked("f")), said("model", {"text": "b"})]) == [("open_call", 0, None)]


@pytest.mark.parametrize("field", ["inlineData", "inline_data", "fileData", "file_data"])
def test_gemini_media_count_image_chars(field: str) -> None:
    assert recede.count_chars([said("user", {field: {"data": LONG}})]) == 6_400


def test_gemini_error_is_a_response_with_that_key_alone() -> None:
    def kept(response: Any) -> bool:
        return mask([said("user", answered("f", response))], keep_results=0, keep_errors=True).masked_count == 0

    assert kept({"error": LONG})
    assert kept({"error": {"code": 404, "message": LONG}})
    assert not kept({"error": LONG, "output": ""})
    assert not kept({"output": LONG})


def test_gemini_body_is_contents() -> None:
    body = {"systemInstruction": {"parts": []}, "contents": [said("user", answered("f", {"output": LONG}))], "x": 1}
    view = json.loads(mask_json(json.dumps(body), keep_results=0).json)
    assert view == {**body, "contents": [said("user", answered("f", {"output": PLACEHOLDER}))]}


def test_gemini_orphans_are_mended() -> None:
    history = [said("user", {"text": "go"}), said("model", asked("f"), asked("g", "function_call", id="7"))]
    mended = recede.repair_pairs([*history, said("user", {"text": "on"})])
    answer = said(
        "user",
        answered("f", {"output": "[no result recorded]"}),
        answered("g", {"output": "[no result recorded]"}, "function_response", id="7"),
    )
    assert mended == [*history, answer, said("user", {"text": "on"})]
    one = said("user", answered("f", {"output": "x"}))
    assert recede.repair_pairs([*history, one, said("user", {"text": "on"})])[2]["parts"][1:] == [answer["parts"][1]]


def test_gemini_an_answer_by_place_goes_after_the_others() -> None:
    ask, on = said("model", asked("f"), asked("f"), asked("f")), said("user", {"text": "on"})
    first = said("user", {"text": "see"}, answered("f", {"output": "1"}), {"text": "so"})
    second = said("user", answered("f", {"output": "2"}))
    added = answered("f", {"output": "[no result recorded]"})
    mended = recede.repair_pairs([ask, first, second, on])
    assert mended[1]["parts"] == [*first["parts"][:2], second["parts"][0], added, first["parts"][2]]
    assert mended[2:] == [on]
    assert recede.repair_pairs([ask, first, on])[1]["parts"] == [*first["parts"][:2], added, added, first["parts"][2]]


# Converse


@pytest.mark.parametrize(
    ("content", "chars"),
    [
        ([{"text": LONG}], 100),
        ([{"text": LONG}, {"text": "é"}], 101),
        ([{"json": {"a": LONG}}], 108),
        ([{"json": {"a": LONG}}, {"text": "abc"}], 111),
    ],
)
def test_converse_content_stays_a_list(content: list[Any], chars: int) -> None:
    assert count([used("1", *content)]) == chars
    assert masked_alone(used("1", *content, status="success")) == used("1", {"text": masked(chars)}, status="success")


def test_converse_calls_and_results_pair_by_tool_use_id() -> None:
    assert findings([use("1"), used("1", {"text": "ok"})]) == []
    assert count([use("1")]) == 4 + 2 + 20
    late = used("1", {"text": "ok"})
    late["content"].insert(0, {"text": "first"})
    assert findings([use("1"), late]) == [("not_leading", 1, "1")]


def test_converse_results_without_ids_answer_in_order() -> None:
    calls = {"role": "assistant", "content": use("1")["content"] + use("2")["content"]}
    nameless = {"role": "user", "content": [{"toolResult": {"content": []}}]}
    on = {"role": "user", "content": [{"text": "on"}]}
    assert findings([calls, used("1"), nameless, on]) == [("missing_id", 2, None), ("split_results", 2, None)]
    assert findings([calls, nameless, on]) == [("call_without_result", 0, "2"), ("missing_id", 1, None)]
    assert findings([calls, used("3"), on])[-1] == ("result_without_call", 1, "3")


def test_converse_error_is_its_status() -> None:
    for status, count_of_masked in (("error", 0), ("success", 1), (None, 1)):
        message = used("1", {"text": LONG}, status=status)
        assert mask([message], keep_results=0, keep_errors=True).masked_count == count_of_masked


@pytest.mark.parametrize("field", ["image", "document", "video"])
def test_converse_media_count_image_chars(field: str) -> None:
    assert recede.count_chars([{"role": "user", "content": [{"text": "a"}, {field: {"format": "x"}}]}]) == 6_401
    assert recede.count_chars([used("1", {field: {"format": "x"}})]) == 6_400


def test_converse_orphans_are_mended() -> None:
    ask: Message = {"role": "user", "content": [{"text": "on"}]}
    answer = used("1", {"text": "[no result recorded]"})
    assert recede.repair_pairs([use("1"), ask]) == [use("1"), answer, ask]
    assert recede.repair_pairs([ask, answer]) == [ask]


# Both


def test_answers_are_of_the_shape_of_their_calls() -> None:
    tool = {"type": "tool_use", "id": "7", "name": "f", "input": {}}
    asking = [said("model", asked("f")), use("1"), {"role": "assistant", "content": [tool]}]
    on = {"role": "user", "content": "on"}
    mended = recede.repair_pairs([*asking, on])
    gemini, converse, anthropic = mended[3:6]
    assert gemini == said("user", answered("f", {"output": "[no result recorded]"}))
    assert converse == used("1", {"text": "[no result recorded]"})
    assert anthropic["content"][0]["tool_use_id"] == "7"
    assert mended[6:] == [on] and findings(mended) == []
    assert recede.repair_pairs([*asking, converse, on]) == [*asking, converse, gemini, anthropic, on]


@pytest.mark.parametrize("field", ["parts", "content"])
def test_summaries_are_written_as_the_api_takes_them(field: str) -> None:
    history = [{"role": "user", field: [{"text": "task " + LONG}]} for _ in range(9)]
    view = published.reduce(history, max_input_chars=600, fill=None, preserve_recent_raw_turns=1)
    in_bytes = published.reduce_json(json.dumps(history), max_input_chars=600, fill=None, preserve_recent_raw_turns=1)
    assert view.reduction_stage == "summarization"
    assert json.loads(in_bytes.json) == view.messages
    (part,) = view.messages[0][field]
    assert view.messages[0]["role"] == "user" and part["text"].startswith("Conversation summary:\n")


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"parts": "x"}, "parts"),
        ({"parts": ["x"]}, "parts[0]"),
        (said("user", answered("f", "x")), "parts[0].functionResponse.response"),
        (said("user", answered("f", [], "function_response")), "parts[0].function_response.response"),
        ({"content": [{"toolResult": {"content": 5}}]}, "content[0].toolResult.content"),
        ({"content": [{"text": ""}, {"toolResult": {"content": [5]}}]}, "content[1].toolResult.content[0]"),
    ],
)
def test_wrong_types_are_errors_that_name_the_field(message: Message, field: str) -> None:
    for read in (lambda: count([message]), lambda: published.reduce_json(json.dumps([message]), max_input_chars=0)):
        with pytest.raises(recede.TranscriptError) as caught:
            read()
        assert (caught.value.message_index, caught.value.field) == (0, field)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ('{"parts":[],"parts":[]}', "parts"),
        ('{"parts":[{"functionCall":{"name":"f","name":"g"}}]}', "parts[0].functionCall.name"),
        ('{"parts":[{"functionResponse":{"response":{},"response":{}}}]}', "parts[0].functionResponse.response"),
        ('{"content":[{"toolUse":{"input":1,"input":2}}]}', "content[0].toolUse.input"),
        ('{"content":[{"toolResult":{"content":[{"text":"","text":""}]}}]}', "content[0].toolResult.content[0].text"),
    ],
)
def test_repeated_fields_are_errors(message: str, field: str) -> None:
    with pytest.raises(recede.TranscriptError) as caught:
        published.reduce_json(f"[{message}]", max_input_chars=0)
    assert (caught.value.kind, caught.value.field) == ("duplicate_key", field)


def test_a_response_with_a_repeated_key_is_replaced_whole() -> None:
    message = '[{"parts":[{"functionResponse":{"name":"f","response":{"output":"%s","output":"%s"}}}]}]' % (LONG, LONG)
    view = json.loads(mask_json(message, keep_results=0).json)
    assert LONG not in json.dumps(view)


def test_a_message_with_a_content_is_not_one_of_gemini() -> None:
    assert count([{"role": "user", "content": "abc", "parts": [{"text": LONG}]}]) == 3
    assert findings([{"role": "model", "content": None, **said("model", asked("f"))}]) == []


def _args(value: Any) -> Message:
    return said("model", {"functionCall": {"name": "f", "args": value}})


def _response(value: Any) -> Message:
    return said("user", answered("f", {"out": value}))


def _input(value: Any) -> Message:
    return {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": value}}]}


def _json(value: Any) -> Message:
    return used("1", {"json": value})


@pytest.mark.parametrize(("message", "around"), [(_args, 5), (_response, 6), (_input, 5), (_json, 7)])
def test_values_may_be_nested_as_deeply_in_dicts_as_in_bytes(message: Any, around: int) -> None:
    def nested(levels: int) -> list[Message]:
        value: list[Any] = []
        for _ in range(levels - 1):
            value = [value]
        return [message(value)]

    def in_bytes(levels: int) -> recede.types.JsonReduction:
        text = json.dumps([message("@")]).replace('"@"', "[" * levels + "]" * levels)
        return published.reduce_json(text, max_input_chars=10**6)

    deepest = 1_024 - around  # the history, the message, and what is around the value in it
    assert in_bytes(deepest).chars_before == recede.count_chars(nested(deepest))
    for read in (lambda levels: recede.count_chars(nested(levels)), in_bytes):
        with pytest.raises(recede.TranscriptError) as caught:
            read(deepest + 1)
        assert caught.value.kind == "depth"


def test_histories_take_them() -> None:
    history = published.History(keep=3, boundary="sliding")
    for number in range(6):
        history.append(said("model", asked("f")))
        history.append(said("user", answered("f", {"stdout": LONG, "n": number})))
    assert history.view()[1] == said("user", answered("f", {"output": "[observation masked — 1 lines omitted]"}))
    assert json.loads(history.recall(1) or "") == {"stdout": LONG, "n": 0}


def test_rewound_histories_pair_with_what_is_left() -> None:
    history = published.History()
    for message in (said("model", asked("f")), said("user", answered("f", {}))):
        history.append(message)
    assert history.stats().orphans == 0
    history.rewind(0)
    for message in (said("user", {"text": "on"}), said("user", answered("f", {}))):
        history.append(message)
    assert history.stats().orphans == 1


def conversation(tasks: int, calls: int) -> list[Any]:
    """Tasks, each with calls and an answer, in Converse."""
    history: list[Any] = []
    for task in range(tasks):
        history.append(user([{"text": f"Task {task}."}]))
        for name in (f"{task}-{call}" for call in range(calls)):
            use = {"toolUse": {"toolUseId": name, "name": "run", "input": {}}}
            history.append({"role": "assistant", "content": [{"text": "I think. " * 40}, use]})
            history.append(user([{"toolResult": {"toolUseId": name, "content": [{"text": f"{name} said " * 90}]}}]))
        history.append({"role": "assistant", "content": [{"text": f"Done {task}. " * 30}]})
    return [*history, user([{"text": "And now?"}])]


def test_in_converse_a_summary_is_a_block_of_the_message_beside_it() -> None:
    """The task here. Answers right before what the user says stay, or two messages of the user would be in a row."""
    history = conversation(tasks=3, calls=12)
    options: dict[str, Any] = {"keep": 4, "max_overcost": None, "summarizer": lambda hidden, previous: "So far."}
    options["provider"] = recede.Provider("free", cache="none", read=1.0, write=1.0, min_tokens=0, output=0.0)
    view = recede.reduce(history, **options)
    assert (
        view.dropped_count == 60 and view.first_changed == 0 and fault("converse", {"messages": view.messages}) is None
    )
    summary = {"text": "Conversation summary:\nSo far."}
    said = [history[at] for at in (25, 26, 51)]
    assert view.messages[:4] == [{**history[0], "content": [{"text": "Task 0."}, summary]}, *said]
    data = json.dumps(history, indent=1).replace('Task 0."\n   }\n  ]', 'Task 0." } , {"text": "\\u0041" } ] ')
    spliced = (recede.reduce(data, **options).json or b"").decode()
    assert spliced.startswith(data[: data.index(" ] ")])
    assert '{"text": "\\u0041" } ,{"text":"Conversation summary:\\nSo far."}] ' in spliced
    with using("core"):  # the other engine has no sessions of facts
        masker = recede.masker.Masker(**options)
        shown = masker.view(history)
        masks = masker.masks(history)
    assert shown == view.messages and history == conversation(tasks=3, calls=12)
    assert masks.summary == (25, summary["text"], 0) and masks.hidden == view.dropped
    over = recede.reduce(history, keep=2, max_input_tokens=2_000)
    assert over.reduction_stage == "summarization"
    assert over.messages[0]["content"][1]["text"].startswith("Conversation summary:")
