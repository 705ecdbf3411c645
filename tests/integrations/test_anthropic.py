"""What is the own of Anthropic's client: its kinds of requests, streams, usage, marks of the cache, threads."""

from __future__ import annotations

import asyncio
import copy
import importlib
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="anthropic is not installed")
if not hasattr(anthropic, "Middleware"):
    pytest.skip("anthropic is older than its middleware", allow_module_level=True)
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import case_anthropic as case
from anthropic import Anthropic, AsyncAnthropic
from sessions import Call, Result, Turn, session

import recede
from provider_server import Failure, Server, serving, text
from recede.integrations.anthropic import RecedeMiddleware
from support import handle_of

pytestmark = pytest.mark.filterwarnings("default")

GIVEN: dict[str, Any] = {"model": "m", "max_tokens": 9}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(text("Done."), text("Done.")) as served:
        yield served
        assert served.refusals == []


def client_of(server: Server, *middleware: Any) -> Any:
    return Anthropic(api_key="none", base_url=server.url, middleware=middleware, max_retries=1)


def listening(masking: Any) -> list[tuple[int, int, int]]:
    """The tokens of input and output that are reported, and the length of the history."""
    heard: list[tuple[int, int, int]] = []

    def reported(usage: Any, messages: list[Any]) -> None:
        heard.append((usage["input_tokens"], usage["output_tokens"], len(messages)))

    masking.masker.reported = reported
    return heard


def asked(client: Any, way: str, messages: list[Any]) -> None:
    if way == "whole":
        client.messages.create(messages=messages, **GIVEN)
    elif way == "beta":
        client.beta.messages.create(messages=messages, **GIVEN)
    elif way == "raw":
        answer = client.messages.with_raw_response.create(messages=messages, **GIVEN)
        assert answer.parse().content[0].text == "Done."
    elif way == "events":
        kinds = [event.type for event in client.messages.create(messages=messages, stream=True, **GIVEN)]
        assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    else:
        with client.messages.stream(messages=messages, **GIVEN) as stream:
            assert stream.get_final_text() == "Done."


@pytest.mark.parametrize("way", ["whole", "beta", "raw", "events", "stream"])
def test_each_way_to_ask_sends_the_view_and_reports_usage_once(server: Server, way: str) -> None:
    masking = RecedeMiddleware(keep=4)
    heard = listening(masking)
    messages = case.history(session())
    before = copy.deepcopy(messages)
    with client_of(server, masking) as client:
        asked(client, way, messages)
    assert server.requests[0]["messages"] == case.view(masking, messages) != messages == before
    assert heard == [(10, 5, len(messages))]


@pytest.mark.parametrize("way", ["whole", "events", "stream"])
def test_the_async_client_sends_the_view_and_reports_usage_once(server: Server, way: str) -> None:
    masking = RecedeMiddleware(keep=4)
    heard = listening(masking)
    messages = case.history(session())

    async def ask() -> None:
        async with AsyncAnthropic(api_key="none", base_url=server.url, middleware=[masking]) as client:
            if way == "whole":
                await client.messages.create(messages=messages, **GIVEN)
            elif way == "events":
                async for _ in await client.messages.create(messages=messages, stream=True, **GIVEN):
                    pass
            else:
                async with client.messages.stream(messages=messages, **GIVEN) as stream:
                    assert await stream.get_final_text() == "Done."

    asyncio.run(ask())
    assert server.requests[0]["messages"] == case.view(masking, messages) != messages
    assert heard == [(10, 5, len(messages))]


def test_an_answer_that_its_caller_reads_piece_by_piece_is_not_read(server: Server) -> None:
    masking = RecedeMiddleware(keep=4)
    heard = listening(masking)
    given = {**GIVEN, "messages": case.history(session())}
    with client_of(server, masking) as client, client.messages.with_streaming_response.create(**given) as answer:
        assert not answer.http_response.is_closed
        assert json.loads(b"".join(answer.iter_bytes()))["content"][0]["text"] == "Done."
    assert heard == []


def test_marks_of_the_cache_are_counted_and_one_is_at_the_boundary(server: Server) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [{"type": "text", "text": "Be brief.", **mark}]
    tools = [{"name": "run", "description": "d", "input_schema": {"type": "object"}, **mark}]
    messages = case.history(session())
    for message in messages[-3::2]:  # two more: with one at the boundary there would be five
        message["content"][-1] |= mark
    with client_of(server, RecedeMiddleware(keep=4)) as client:
        client.messages.create(messages=messages, system=system, tools=tools, **GIVEN)
    marked = [
        block.get("content", "")
        for message in server.requests[0]["messages"]
        for block in message["content"]
        if isinstance(block, dict) and "cache_control" in block
    ]
    assert len(marked) == 2 and "old tool output cleared" in str(marked[0])


def test_what_is_no_history_of_its_own_is_sent_as_it_is(server: Server) -> None:
    masking = RecedeMiddleware(keep=0, boundary="sliding")
    seen: list[Any] = []

    def last(request: Any, call_next: Any) -> Any:
        seen.append(request.json)
        return call_next(request)

    messages = case.history(session(5))
    with client_of(server, masking, last) as client:
        client.beta.messages.create(messages=messages, extra_body={"thread": {"type": "create"}}, **GIVEN)
        batch = [{"custom_id": "1", "params": {**GIVEN, "messages": messages}}]
        with pytest.raises(anthropic.APIConnectionError):  # the provider here makes no batches
            client.messages.batches.create(requests=batch)
    assert seen and all("old tool output cleared" not in json.dumps(body) for body in seen)


def test_a_tool_runner_that_keeps_its_history_with_anthropic_is_said_once(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with client_of(server, RecedeMiddleware(keep=0, boundary="sliding")) as client:
        for _ in range(2):
            client.beta.messages.tool_runner(tools=[], messages=case.history([]), **GIVEN).until_done()
    has_threads = "thread" in server.requests[0]  # older releases have none
    said = (
        "requests with 'thread' are sent as they are, since the provider keeps their history: a tool runner sends all"
    )
    assert caplog.text.count("sent as they are") == caplog.text.count(said) == has_threads


def test_batches_that_are_sent_raw_are_said_once(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    batch: Any = [{"custom_id": "1", "params": {**GIVEN, "messages": case.history(session(3))}}]
    with client_of(server, RecedeMiddleware()) as client:
        for _ in range(2):
            with pytest.raises(anthropic.APIConnectionError):  # the provider here makes no batches
                client.messages.batches.create(requests=batch)
    assert caplog.text.count("batches are sent as they are") == 1


def test_a_failed_request_reports_nothing(server: Server) -> None:
    server.script.insert(0, Failure(400))
    masking = RecedeMiddleware(keep=4)
    heard = listening(masking)
    with client_of(server, masking) as client, pytest.raises(anthropic.BadRequestError):
        client.messages.create(messages=case.history(session(3)), stream=True, **GIVEN)
    assert heard == []


def test_a_usage_that_cannot_be_read_costs_no_answer(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    masking: Any = RecedeMiddleware(keep=4)
    masking.masker.reported = lambda usage, messages: 1 / 0
    with client_of(server, masking) as client, caplog.at_level(logging.WARNING, "recede"):
        asked(client, "whole", case.history(session(3)))
        asked(client, "stream", case.history(session(3)))
    assert caplog.text.count("what the provider counted is lost") == 2


def test_a_loop_of_ones_own_recalls_by_the_dict_of_the_tool() -> None:
    turns = session(30)
    masking = RecedeMiddleware(keep=4, boundary="sliding", recall=True)
    view = case.view(masking, case.history(turns))
    (asked,) = turns[2].results
    handle = handle_of(asked, turns[2].results[asked].text)
    assert dict(case.results(view))[asked].endswith(f"recall {handle}]")
    described: Any = masking.recall_tool.to_dict()
    assert (described["name"], described["input_schema"]["required"]) == ("recall", ["handle"])
    assert masking.recall_tool.call({"handle": handle}) == turns[2].results[asked].text
    for unknown in ("call_x", asked, "000000000000"):  # an id may be that of another conversation
        answer = masking.recall_tool.call({"handle": unknown})
        assert answer == f"there is no observation {unknown!r}: call the tool again"


def test_recall_finds_each_of_the_conversations_that_began_alike_and_forgets_the_oldest() -> None:
    masking = RecedeMiddleware(keep=1, boundary="sliding", recall=True, most=3)
    sessions = [
        [Turn("", [Call(id, "run", {})], {id: Result(id, f"{seed} {id}\n" * 40)}) for id in ("a", "b", "c", "d")]
        for seed in range(5)
    ]
    for count in range(1, 5):
        for turns in sessions[:3]:
            case.view(masking, case.history(turns[:count]))
    for turns in sessions[3:]:
        case.view(masking, case.history(turns))
    for seed, turns in enumerate(sessions):
        for turn in turns[:-1]:
            (result,) = turn.results.values()
            answer = masking.recall_tool.call({"handle": handle_of(result.id, result.text)})
            assert answer == result.text if seed > 1 else "call the tool again" in str(answer)


def test_without_the_middleware_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(anthropic, "Middleware")
    monkeypatch.delitem(sys.modules, "recede.integrations.anthropic")
    with pytest.raises(ImportError, match=r'needs anthropic 0.109 or newer: pip install "recede\[anthropic\]"'):
        importlib.import_module("recede.integrations.anthropic")


@pytest.mark.parametrize(
    ("models", "options", "facts"),
    [
        (["claude-opus-5-5", "claude-opus-5"], {}, {"read": 0.05, "min_tokens": 512}),
        (["claude-opus-5", "claude-opus-5-5"], {}, {"min_tokens": 512}),
        (["claude-opus-5-5"], {"provider": "anthropic"}, {}),
    ],
)
def test_prices_are_those_of_the_model_of_the_first_request(models: list[str], options: Any, facts: Any) -> None:
    messages = case.history(session(70))
    ends = [end for end in range(3, len(messages) + 1, 2) if messages[end - 1]["role"] == "user"]
    with serving(*[text("Done.")] * len(ends)) as server:
        client = client_of(server, RecedeMiddleware(keep=4, **options))
        for number, end in enumerate(ends):
            model = models[min(number, len(models) - 1)]
            client.messages.create(messages=messages[:end], **{**GIVEN, "model": model})
        views = [request["messages"] for request in server.requests]
    provider = recede.Provider.of("anthropic")._replace(**facts)
    assert views == [recede.reduce(messages[:end], keep=4, provider=provider).messages for end in ends]
    other = recede.Provider.of("anthropic")._replace(read=0.07)
    assert views != [recede.reduce(messages[:end], keep=4, provider=other).messages for end in ends]
