"""The provider that the kit is tested against: for each of its rules a request that it refuses, by the real clients."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from provider_rules import signed
from provider_server import Server, call, calls, serving, text, thought
from support import assistant, result, system, tool_result, tool_use, user
from support import call as openai_call

GO = user("Go.")
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": signed("hm")}
PAUSE = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}


@contextlib.contextmanager
def anthropic_client(server: Server) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as client:
        yield client


@contextlib.contextmanager
def openai_client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client:
        yield client


def said(block_text: str) -> dict[str, str]:
    return {"type": "text", "text": block_text}


ANTHROPIC_FAULTS: dict[str, tuple[list[Any], str]] = {
    "no message": ([], "at least one message"),
    "begins with the assistant": ([assistant("Hi."), GO], "first message must use"),
    "a role of another API": ([{"role": "developer", "content": "Be brief."}, GO], "Unexpected role"),
    "a system message first": ([system("Be brief."), GO], "use the top-level 'system' parameter"),
    "a field that is not theirs": ([user("Go.", tags=["x"])], "Extra inputs"),
    "a field of a block": ([user([{**said("x"), "id": "1"}])], "Extra inputs"),
    "empty content": ([user([])], "must have non-empty content"),
    "an empty string": ([GO, assistant(""), GO], "must have non-empty content"),
    "an empty text": ([user([said("")])], "must be non-empty"),
    "a blank text": ([user([said(" \n")])], "non-whitespace"),
    "no content": ([{"role": "user"}], "valid list"),
    "a block of another role": ([user([{"type": "tool_use", "id": "1", "name": "run", "input": {}}])], "Input tag"),
    "a call without result": ([GO, tool_use("1"), GO], "without `tool_result`"),
    "a call at the end": ([GO, tool_use("1")], "without `tool_result`"),
    "one of two results": ([GO, tool_use("1", "2"), user([tool_result("1", "x")])], "without `tool_result`"),
    "a result that comes later": (
        [GO, tool_use("1"), GO, assistant("."), user([tool_result("1", "x")])],
        "without `tool_result`",
    ),
    "a text before the result": (
        [GO, tool_use("1"), user([said("x"), tool_result("1", "x")])],
        "without `tool_result`",
    ),
    "a text message before the result": ([GO, tool_use("1"), GO, user([tool_result("1", "x")])], "without `tool_res"),
    "a result without call": ([user([tool_result("1", "x")])], "unexpected `tool_use_id`"),
    "two results of a call": (
        [GO, tool_use("1"), user([tool_result("1", "x"), tool_result("1", "y")])],
        "single result",
    ),
    "an id used again": ([GO, *[tool_use("1"), user([tool_result("1", "x")])] * 2], "must be unique"),
    "an id of other characters": ([GO, tool_use("a b"), user([tool_result("a b", "x")])], "should match pattern"),
    "a name of other characters": (
        [GO, assistant([call("a b", id="1")]), user([tool_result("1", "x")])],
        "should match pattern",
    ),
    "an input that is no object": ([GO, tool_use("1", value=[1]), user([tool_result("1", "x")])], "valid dictionary"),
    "a result of a wrong part": ([GO, tool_use("1"), user([tool_result("1", [{"type": "x"}])])], "does not match"),
    "a result of an empty part": ([GO, tool_use("1"), user([tool_result("1", [said("")])])], "must be non-empty"),
    "an error flag that is none": ([GO, tool_use("1"), user([tool_result("1", "x", is_error=None)])], "boolean"),
    "a changed thought": ([GO, assistant([{**THOUGHT, "thinking": "hmm"}, said("x")]), GO], "Invalid `signature`"),
    "no signature": ([GO, assistant([{"type": "thinking", "thinking": "hm"}, said("x")]), GO], "Invalid `signature`"),
    "a thought at the end": ([GO, assistant([PAUSE, THOUGHT])], "final block"),
    "white space at the end": ([GO, assistant([PAUSE, said("It is ")])], "trailing whitespace"),
    "an answer at the end": ([GO, assistant("It is")], "must end with a user message"),
}

OPENAI_FAULTS: dict[str, tuple[list[Any], str]] = {
    "no message": ([], "too short"),
    "an unknown role": ([{"role": "robot", "content": "x"}], "Supported values"),
    "a field that is not theirs": ([user("Go.", tags=["x"])], "Unknown parameter"),
    "no content": ([user(None)], "got null"),
    "an assistant without content": ([GO, assistant(None)], "got null"),
    "content of no part": ([user([])], "empty array"),
    "a part of another role": (
        [GO, openai_call("1"), result("1", [{"type": "image_url"}])],
        "Invalid value: 'image_url",
    ),
    "a text part without text": ([user([{"type": "text"}])], "Missing required parameter"),
    "a call without result": ([GO, openai_call("1"), GO], "did not have response messages"),
    "a call at the end": ([GO, openai_call("1")], "did not have response messages"),
    "one of two results": ([GO, openai_call("1", "2"), result("1", "x")], "did not have response messages"),
    "a result without call": ([GO, result("1", "x")], "must be a response"),
    "two results of a call": ([GO, openai_call("1"), result("1", "x"), result("1", "y")], "must be a response"),
    "a result that comes later": ([GO, openai_call("1"), GO, result("1", "x")], "did not have response messages"),
    "an empty list of calls": ([GO, assistant("x", tool_calls=[])], "empty array"),
    "a call without id": ([GO, openai_call(None)], "Missing required parameter"),
    "an id twice": ([GO, openai_call("1", "1"), result("1", "x")], "Duplicate value"),
    "a name of other characters": ([GO, openai_call("1", name="a b"), result("1", "x")], "does not match pattern"),
    "arguments as an object": ([GO, openai_call("1", arguments={}), result("1", "x")], "expected a string"),
    "a call of no type": ([GO, assistant(None, tool_calls=[{"id": "1", "type": "tool"}])], "Invalid value for"),
    "a call without function": ([GO, assistant(None, tool_calls=[{"id": "1", "type": "function"}])], "Missing param"),
}


def asked(call_id: str, name: str = "run", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}", **fields}


def output(call_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "x", **fields}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
RESPONSES_FAULTS: dict[str, tuple[list[Any], str]] = {
    "no item": ([], "Missing required parameter: 'input'"),
    "an unknown role": ([{"role": "tool", "content": "x"}], "Invalid value: 'tool'"),
    "an unknown type": ([{"type": "tool_use"}], "Invalid value: 'tool_use'"),
    "a field that is not theirs": ([asked("1", parsed_arguments={}), output("1")], "Unknown parameter"),
    "a field of a part": (
        [{"role": "assistant", "content": [{"type": "output_text", "text": "x", "parsed": None}]}],
        "Unknown parameter",
    ),
    "a part of another role": ([user([{"type": "output_text", "text": "x"}])], "Invalid value: 'output_text'"),
    "a part of chat": ([user([said("x")])], "Invalid value: 'text'"),
    "no content": ([user(None)], "Invalid type"),
    "a status that is null": ([{**REASONING, "status": None}, asked("1"), output("1")], "Invalid value for"),
    "reasoning alone": ([GO, REASONING], "without its required following item"),
    "reasoning before the user": ([REASONING, GO], "without its required following item"),
    "a call without output": ([GO, asked("1")], "No tool output found"),
    "an output without call": ([GO, output("1")], "No tool call found"),
    "arguments as an object": ([asked("1", arguments={}), output("1")], "Missing required parameter"),
    "a name of other characters": ([asked("1", "a b"), output("1")], "does not match pattern"),
    "an output that is none": ([asked("1"), output("1", output=None)], "Invalid type"),
}


# A request of each API, its faults, and the error of its client.
APIS: dict[str, tuple[Any, dict[str, Any], Any, Any]] = {
    "responses": (
        openai_client, RESPONSES_FAULTS, openai.BadRequestError,
        lambda client, items, stream: client.responses.create(model="m", input=items, stream=stream),
    ),
    "anthropic": (
        anthropic_client, ANTHROPIC_FAULTS, anthropic.BadRequestError,
        lambda client, messages, stream: client.messages.create(
            model="m", max_tokens=9, messages=messages, stream=stream
        ),
    ),
    "openai": (
        openai_client, OPENAI_FAULTS, openai.BadRequestError,
        lambda client, messages, stream: client.chat.completions.create(model="m", messages=messages, stream=stream),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("api", "name"), [(api, name) for api, (_, faults, *_) in APIS.items() for name in faults])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_faulty_requests_are_refused(api: str, name: str, stream: bool) -> None:
    client_of, faults, error, create = APIS[api]
    messages, words = faults[name]
    with serving() as server, client_of(server) as client:
        with pytest.raises(error, match=words):
            create(client, messages, stream)
        assert len(server.refusals) == 1


@pytest.mark.parametrize("field", ["messages", "max_tokens", "max_completion_tokens"])
def test_responses_refuses_what_only_chat_takes(field: str) -> None:
    refused = pytest.raises(openai.BadRequestError, match="Unsupported parameter")
    with serving() as server, openai_client(server) as client, refused:
        client.responses.create(model="m", input="Go.", extra_body={field: 5})


ANTHROPIC_SOUND: list[list[Any]] = [
    [GO],
    [GO, GO, assistant("Well."), assistant("Done."), user([said("x"), {"type": "image", "source": {}}])],
    [GO, tool_use("1", "2"), user([tool_result("2", "x"), tool_result("1", [said("y")], is_error=True), said("z")])],
    [GO, tool_use("1"), tool_use("2"), user([tool_result("1", "")]), user([tool_result("2", "x")]), GO],
    [GO, assistant([THOUGHT, said("x")]), GO, assistant([PAUSE])],
    [GO, assistant([said("x"), THOUGHT, said("y")]), GO],
    [GO, assistant([{**THOUGHT, "thinking": "", "signature": signed("")}, said("x")]), GO],
    [GO, system("Be brief."), assistant("Well."), GO, system("Be long.")],
]
OPENAI_SOUND: list[list[Any]] = [
    [{"role": "system", "content": "Be brief."}, GO],
    [GO, openai_call("1", "2"), result("2", "x"), result("1", [said("y")]), assistant("Done."), GO],
    [assistant("Hi."), GO, *[openai_call("1"), result("1", "")] * 2],
]

RESPONSES_SOUND: list[Any] = [
    "Go.",
    [GO, {"role": "assistant", "content": "Hi."}, user([{"type": "input_text", "text": "x"}])],
    [GO, REASONING, asked("1"), asked("2"), output("2"), output("1", output=[{"type": "input_text", "text": "x"}])],
]


def test_what_is_sound_is_answered() -> None:
    with serving() as server, anthropic_client(server) as client, openai_client(server) as other:
        for messages in ANTHROPIC_SOUND:
            server.script.append(text("Done."))
            answer = client.messages.create(model="m", max_tokens=9, messages=messages)
            assert answer.content[0].text == "Done."
        for messages in OPENAI_SOUND:
            server.script.append(text("Done."))
            completion = other.chat.completions.create(model="m", messages=messages)
            assert completion.choices[0].message.content == "Done."
        for items in RESPONSES_SOUND:
            server.script.append(text("Done."))
            assert other.responses.create(model="m", input=items).output_text == "Done."
        assert server.refusals == []


def test_a_stream_says_what_a_whole_answer_says() -> None:
    answer = calls(call("run", {"path": "é"}, id="1"), call("look", id="2"), say="A longer text, in several pieces.")
    answer.blocks.insert(0, thought("hm, let me see"))
    with serving(answer, answer, answer, answer) as server, anthropic_client(server) as client:
        request: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [GO]}
        whole = client.messages.create(**request)
        with client.messages.stream(**request) as stream:
            assert stream.get_final_message().to_dict()["content"] == whole.to_dict()["content"]
        with openai_client(server) as other:
            del request["max_tokens"]
            completion = other.chat.completions.create(**request).choices[0]
            with other.chat.completions.stream(**request) as chunks:
                streamed = chunks.get_final_completion().choices[0]
        assert streamed.message.content == completion.message.content
        assert [made.function.arguments for made in streamed.message.tool_calls] == ['{"path": "\\u00e9"}', "{}"]
        assert streamed.finish_reason == completion.finish_reason == "tool_calls"


@pytest.mark.parametrize("stop", ["end_turn", "max_tokens"])
def test_a_stream_of_responses_says_what_a_whole_one_says(stop: str) -> None:
    made = {**call("look", id="2"), **({"partial": '{"path": "a'} if stop == "max_tokens" else {})}
    answer = calls(call("run", {"path": "é"}, id="1"), made, say="A longer text, in several pieces.", stop=stop)
    answer.blocks.insert(0, thought("hm, let me see"))
    with serving(answer, answer, answer) as server, openai_client(server) as client:
        whole = client.responses.create(model="m", input="Go.", max_output_tokens=9)
        assert [item.type for item in whole.output] == ["reasoning", "message", "function_call", "function_call"]
        assert (whole.status, whole.output_text) == (
            "incomplete" if stop == "max_tokens" else "completed",
            "A longer text, in several pieces.",
        )
        assert (whole.incomplete_details is not None) == (stop == "max_tokens")
        events = list(client.responses.create(model="m", input="Go.", stream=True))
        assert events[-1].type == f"response.{whole.status}" and events[-1].response.output == whole.output
        for kind, said in (("output_text", whole.output_text), ("function_call_arguments", '{"path": "\\u00e9"}')):
            pieces = [event.delta for event in events if event.type == f"response.{kind}.delta"]
            assert "".join(pieces).startswith(said) and len(pieces) > 2
        if stop == "max_tokens":  # which it reports only at the end
            return
        with client.responses.stream(model="m", input="Go.") as stream:
            assert stream.get_final_response().output_text == whole.output_text
        assert server.refusals == []


def test_a_whole_answer_leaves_the_connection_open() -> None:
    """Also one that was to be dropped after more bytes than it has; else the next request may find it closed."""
    with serving(text("Done.", drop_after=1 << 20), text("Done.")) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
        for _ in range(2):
            connection.request("POST", "/v1/messages", json.dumps({"model": "m", "max_tokens": 9, "messages": [GO]}))
            sock = connection.sock
            assert json.loads(connection.getresponse().read())["content"] == [said("Done.")]
            assert connection.sock is sock is not None
        connection.close()
