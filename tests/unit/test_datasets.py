"""Shapes of datasets and traces: what becomes of each, where a path leads, and what is said where nothing was read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import published
import pytest
from children import recede_command
from dataset_files import (
    CHAT_PARTS,
    LANGSMITH,
    NEBIUS,
    OPENHANDS_V1,
    OPENINFERENCE,
    OTEL,
    OTEL_SPANS,
    SHAREGPT,
    said,
    sdk_event,
)

import recede
from recede import TranscriptError, transcripts
from support import assistant, call, dumps, result, system, user


def test_the_agent_of_nebius_works_in_text_mode() -> None:
    transcript = transcripts.read(dumps(NEBIUS))
    assert [message["role"] for message in transcript.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert transcript.messages[0]["content"] == "Be brief."
    assert recede.check_pairs(transcript.messages).is_whole
    masked = published.mask_observations(transcript.messages, keep_results=0, min_masked_chars=-0)
    assert masked.tools[""].observations == 1


def test_calls_that_parts_repeat_are_read_once_and_subagents_apart() -> None:
    main, other = transcripts.read_all(dumps(CHAT_PARTS))
    assert main.messages[1] == {"role": "assistant", "content": said("I look."), "tool_calls": call("1")["tool_calls"]}
    assert (main.context, other.context) == (None, "x")
    assert [message["role"] for message in other.messages] == ["assistant", "tool"]
    assert other.messages[0]["tool_calls"][0]["function"] == {"name": "run", "arguments": "{}"}
    assert main.unread.messages == other.unread.messages == 0
    assert recede.check_pairs(main.messages).is_whole and recede.check_pairs(other.messages).is_whole


_USAGE = {"prompt_tokens": 100, "completion_tokens": 5}
_CALLS = [call(str(number)) for number in range(3)]
_GROWING = [
    user("Go."),
    *(message for made in _CALLS for message in (made, result(made["tool_calls"][0]["id"], "a b"))),
]
_SENT = [{"model": "m", "messages": _GROWING[: 2 * number + 1]} for number in range(4)]
_ANSWERED = [{"usage": _USAGE, "choices": [{"message": made}]} for made in [*_CALLS, assistant("Done.")]]
LOGS = {
    "beside": [{**body, "response": answer} for body, answer in zip(_SENT, _ANSWERED, strict=True)],
    "between": [line for pair in zip(_SENT, _ANSWERED, strict=True) for line in pair],
    "in a record of their own": [
        line for body, answer in zip(_SENT, _ANSWERED, strict=True) for line in (body, {"at": 5, "response": answer})
    ],
    "marked": [
        {**body, "messages": [*body["messages"][:-1], {**body["messages"][-1], "cache_control": {"type": "ephemeral"}}]}
        | {"response": answer}
        for body, answer in zip(_SENT, _ANSWERED, strict=True)
    ],
}


@pytest.mark.parametrize("name", LOGS)
def test_a_body_that_begins_with_another_continues_it(name: str) -> None:
    [session] = transcripts.read_all(b"\n".join(map(dumps, LOGS[name])))
    messages = [{key: value for key, value in one.items() if key != "cache_control"} for one in session.messages]
    assert messages == [*_GROWING, assistant("Done.")]
    assert [request.messages for request in session.requests] == [1, 3, 5, 7]
    assert {request.usage.sent_tokens for request in session.requests if request.usage} == {100}
    assert session.skipped_lines == 0


def test_conversations_that_begin_with_one_prompt_are_not_mixed() -> None:
    other = [user("Go."), call("9"), result("9", "c")]
    bodies = [_SENT[0], _SENT[0], _SENT[1], {"messages": other}, _SENT[2]]
    found = [one.messages for one in transcripts.read_all(b"\n".join(map(dumps, bodies)))]
    assert found == [other, _GROWING[:5]]  # in the order of their last requests


@pytest.mark.parametrize(
    ("key", "said", "usage", "answer"),
    [
        ("messages", [user("Go.")], {"usage": {"input_tokens": 100}}, {"role": "assistant", "content": said("Done.")}),
        ("input", [user("Go.")], {"usage": {"input_tokens": 100}}, {"output": [{"type": "message", "content": []}]}),
        (
            "contents",
            [{"role": "user", "parts": [{"text": "Go."}]}],
            {"usageMetadata": {"promptTokenCount": 100}},
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]}}]},
        ),
    ],
    ids=["anthropic", "responses", "gemini"],
)
def test_the_last_answer_of_a_log_of_bodies_is_its_end(key: str, said: Any, usage: Any, answer: Any) -> None:
    [session] = transcripts.read_all(b"\n".join(map(dumps, [{key: said}, {**usage, **answer}])))
    assert len(session.messages) == 2
    assert [request.usage and request.usage.sent_tokens for request in session.requests] == [100]


def test_calls_of_sharegpt_are_calls_with_their_names() -> None:
    transcript = transcripts.read(dumps(SHAREGPT))
    assert transcript.messages[0] == system("Be brief.")
    assert transcript.messages[4]["tool_calls"][0]["function"] == {"name": "cat", "arguments": {"path": "a"}}
    assert recede.check_pairs(transcript.messages).is_whole


def test_a_second_result_of_sharegpt_has_an_empty_call() -> None:
    said = [("gpt", "two calls"), ("tool", "a"), ("tool", "b"), ("gpt", "Done.")]
    transcript = transcripts.read(dumps([{"from": name, "value": value} for name, value in said]))
    assert [message["content"] for message in transcript.messages] == ["two calls", "a", "", "b", "Done."]
    assert transcript.warnings == ("result after another kept with an empty call, since the calls are in one text",)
    assert recede.check_pairs(transcript.messages).is_whole


@pytest.mark.parametrize(("value", "input_tokens"), [(OPENINFERENCE, 8), (OTEL_SPANS, 8), (LANGSMITH, 8)])
def test_requests_of_a_trace_are_one_history_with_their_tokens(value: Any, input_tokens: int) -> None:
    [transcript] = transcripts.read_all(dumps(value))
    before = [request.messages for request in transcript.requests]
    roles = [transcript.messages[place]["role"] for place in before]
    assert roles == ["assistant", "assistant"]
    usage = transcript.requests[0].usage
    assert usage is not None and (usage.input_tokens, usage.cached_tokens) == (input_tokens, 4)


def test_other_traces_and_other_beginnings_are_histories_of_their_own() -> None:
    spans = json.loads(dumps(OPENINFERENCE[1:]))
    spans[1]["context"]["trace_id"] = "another"
    assert len(transcripts.read_all(dumps(spans))) == 2
    spans = json.loads(dumps(OPENINFERENCE[1:]))
    spans[1]["attributes"]["llm.input_messages.0.message.content"] = "Look elsewhere."
    assert len(transcripts.read_all(dumps(spans))) == 2
    for span in spans:
        del span["context"]
    assert len(transcripts.read_all(dumps([spans[0], spans[0]]))) == 2


def test_spans_out_of_order_are_read_by_their_time() -> None:
    spans = OTEL_SPANS["resourceSpans"][0]["scopeSpans"][0]["spans"]
    backwards = {"resourceSpans": [{"scopeSpans": [{"spans": spans[::-1]}]}]}
    assert transcripts.read(dumps(backwards)) == transcripts.read(dumps(OTEL_SPANS))


def test_a_response_of_otel_that_is_no_text_is_its_json() -> None:
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": {"exit": 0}}]}
    messages = transcripts.read(dumps([*OTEL[:2], told])).messages
    assert messages[-1] == {"role": "tool", "tool_call_id": "1", "content": '{"exit": 0}'}


def test_blocks_of_calls_that_langchain_has_twice_are_one_call() -> None:
    [_, answer, _, _] = transcripts.read(dumps(LANGSMITH)).messages
    assert answer["content"] == [{"type": "text", "text": "I look."}]
    assert [made["function"]["name"] for made in answer["tool_calls"]] == ["ls"]


def test_actions_of_one_answer_are_one_message_and_errors_are_results() -> None:
    messages = transcripts.read(dumps(OPENHANDS_V1)).messages
    assert [made["id"] for made in messages[2]["tool_calls"]] == ["1", "2"]
    assert messages[2]["content"] == "I look."
    assert recede.check_pairs(messages).is_whole


def test_a_condensation_replaces_what_it_forgets() -> None:
    event = sdk_event(
        8,
        "Condensation",
        "environment",
        forgotten_event_ids=["3", "4", "5", "6"],
        summary="It was looked.",
        summary_offset=2,
    )
    last = sdk_event(9, "MessageEvent", "user", llm_message={"role": "user", "content": "Again."})
    transcript = transcripts.read(dumps([*OPENHANDS_V1, event, last]))
    first, second = transcript.contexts
    assert len(first.messages) == 6
    assert [message["content"] for message in second.messages] == [
        "Be brief.",
        "Look.",
        "It was looked.",
        "Done.",
        "Again.",
    ]


def test_a_folder_of_events_of_either_version_is_a_session(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    for number, event in enumerate(OPENHANDS_V1):
        (folder / f"event-{number:05}-{event['id']}.json").write_bytes(dumps(event))
    for path in (folder, tmp_path):
        report = json.loads(recede_command("stats", "--json", path).stdout)
        assert [one["format"] for one in report["histories"]] == ["openhands_v1"]
        assert report["total"]["messages"] == 6


# A path, text mode


def test_a_path_leads_to_the_history_of_each_line() -> None:
    chat = [user("Look."), call("1"), result("1", "a b")]
    rows = [
        {"custom_id": "1", "body": {"messages": chat}},
        {"custom_id": "2", "body": {"messages": json.dumps(chat)}},  # as JSON in a string
        {"custom_id": "3", "body": json.dumps({"messages": SHAREGPT["conversations"]})},
    ]
    found = transcripts.read_all(b"\n".join(map(dumps, rows)), path="body.messages")
    assert [len(one.messages) for one in found] == [3, 3, 6]
    assert found[0].messages == found[1].messages == chat
    assert transcripts.read(dumps([0, {"a": chat}]), path="1.a").messages == chat


@pytest.mark.parametrize("row", [{"body": {}}, {"body": None}, {"body": {"messages": "{"}}, {"body": {"messages": 5}}])
def test_a_path_that_leads_nowhere_is_an_error_with_its_line(row: Any) -> None:
    good = dumps({"body": {"messages": [user("Look.")]}})
    with pytest.raises(TranscriptError) as caught:
        transcripts.read_all(good + b"\n" + dumps(row), path="body.messages")
    assert (caught.value.kind, caught.value.line, caught.value.field) == ("history", 2, "body.messages")


def test_text_mode_makes_results_of_user_messages_after_the_agent() -> None:
    blocks = user([{"type": "tool_result", "tool_use_id": "1", "content": "c"}])
    chat = [
        user("Look."),
        assistant("ls"),
        user("a b"),
        user("Go on."),
        call("1"),
        result("1", "c"),
        assistant("x"),
        blocks,
    ]
    plain = transcripts.read(dumps(chat))
    assert plain.messages == chat
    found = transcripts.read(dumps(chat), text_mode=True)
    assert [
        message["role"] for message in found.messages
    ] == "user assistant tool user assistant tool assistant user".split()
    assert found.messages[2]["content"] == "a b"
    assert (
        sum(tool.observations for tool in published.mask_observations(found.messages, keep_results=0).tools.values())
        == 3
    )


def test_the_command_line_takes_a_path_and_text_mode(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(dumps({"trajectory": [user("Look."), assistant("ls"), user("a b")]}) + b"\n")
    assert recede_command("stats", path).returncode == 1
    report = json.loads(recede_command("stats", path, "--path", "trajectory", "--text-mode", "--json").stdout)
    assert report["histories"][0]["tools"][""]["observations"] == 1
    report = json.loads(recede_command("stats", path, "--path", "trajectory", "--json").stdout)
    assert report["histories"][0]["tools"] == {}


# Nothing recognized

UNKNOWN = [{"speaker": "a", "utterance": "Look."}, {"speaker": "b", "utterance": "Done."}]


@pytest.mark.parametrize(
    "data", [dumps(UNKNOWN), dumps({"messages": UNKNOWN}), dumps({"role": "user", "said": "Look."}) + b"\n"]
)
def test_messages_in_which_nothing_is_recognized_are_a_warning_with_their_fields(data: bytes, tmp_path: Path) -> None:
    [warning] = transcripts.read(data).warnings
    fields = "speaker, utterance" if b"speaker" in data else "role, said"
    assert warning.startswith("nothing was recognized in ") and f"with the fields {fields}:" in warning
    path = tmp_path / "rows.json"
    path.write_bytes(data)
    for command in (["stats"], ["reduce", "--max-input-tokens", "99", "-o", tmp_path / "out"], ["replay"]):
        done = recede_command(command[0], path, *command[1:])
        assert done.returncode == 0
        assert f"recede: {path}: warning: {warning}" in done.stderr.decode()
    assert (tmp_path / "out").read_bytes() == data


@pytest.mark.parametrize("messages", [[], [user("")], [{"role": "user", "content": None}], [assistant("a")]])
def test_messages_that_say_nothing_are_no_warning(messages: list[Any]) -> None:
    assert transcripts.read(dumps(messages)).warnings == ()
