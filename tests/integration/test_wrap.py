"""`recede.wrap`: the real clients send the view, by every method that sends messages, and nothing else unseen."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import anthropic
import openai
import pydantic
import pytest

import recede
from provider_rules import NEW, PROVIDERS
from provider_server import Failure, Server, serving, text, thought
from recede.summarizers import PROMPT
from support import SUMMARY, call, function_call, function_call_output, priced, result, tool_result, tool_use, user

MANY = 40
ANTHROPIC = "https://api.anthropic.com"
NEWEST = PROVIDERS["anthropic"].NEWEST


_OPEN: list[Any] = []


@pytest.fixture(autouse=True)
def _closes_clients() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


def observed(number: int) -> str:
    return f"line {number} of the log\n" * 60


def messages_of(shape: str, turns: int = MANY) -> list[Any]:
    """A history as its provider takes it."""
    history: list[Any] = [user("Find the bug.")]
    for number in range(turns):
        if shape == "anthropic":
            one = f"toolu_{number}"
            history += [tool_use(one), user([tool_result(one, observed(number))])]
        elif shape == "chat":
            history += [call(f"call_{number}"), result(f"call_{number}", observed(number))]
        else:
            one = f"call_{number}"
            history += [function_call(one), function_call_output(one, observed(number))]
    return history


def expected(history: list[Any], **options: Any) -> list[Any]:
    view = recede.reduce(history, **{"keep": 4, "boundary": "sliding", **options}).messages
    assert view != history
    return view


class Recording(recede.masker.Masker[Any]):
    """A masker that remembers what was reported to it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"keep": 4, "boundary": "sliding", **options})
        self.heard: list[tuple[Any, int]] = []

    def reported(self, usage: Any, messages: list[Any] | None = None) -> None:
        assert messages is not None
        self.heard.append((usage, len(messages)))
        super().reported(usage, messages)


CLIENTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "anthropic": (anthropic.Anthropic, anthropic.AsyncAnthropic),
    "chat": (openai.OpenAI, openai.AsyncOpenAI),
    "responses": (openai.OpenAI, openai.AsyncOpenAI),
}


def reaching(shape: str, server: Server, is_async: bool) -> Any:
    """An HTTP client that sends what is for the maker of a client to this server: the host says whose cache it is."""

    def redirect(request: Any) -> None:
        place = type(request.url)(server.url)
        request.url = request.url.copy_with(scheme=place.scheme, host=place.host, port=place.port)
        request.headers["host"] = f"{place.host}:{place.port}"

    async def awaited(request: Any) -> None:
        redirect(request)

    package = anthropic if shape == "anthropic" else openai
    kind = package.DefaultAsyncHttpxClient if is_async else package.DefaultHttpxClient
    return kind(event_hooks={"request": [awaited if is_async else redirect]})


def client_of(shape: str, server: Server, is_async: bool = False, **options: Any) -> Any:
    http_client = reaching(shape, server, is_async)
    own = {"api_key": "none", "http_client": http_client, "max_retries": 0}
    client = CLIENTS[shape][is_async](**{**own, **options})
    if not is_async:
        _OPEN.append(client)
    return client


def request_of(shape: str, history: list[Any]) -> dict[str, Any]:
    if shape == "anthropic":
        return {"model": "m", "max_tokens": 99, "messages": history}
    return {"model": "m", "input" if shape == "responses" else "messages": history}


def sent(server: Server, shape: str) -> list[Any]:
    assert server.refusals == []
    return server.requests[-1]["input" if shape == "responses" else "messages"]


def asked(client: Any, ask: Callable[[Any], Any]) -> Any:
    """The answer, however it comes, read to its end."""

    async def in_loop() -> Any:
        try:
            return await _finished(ask(client))
        finally:
            closing = client.close()
            await closing if closing is not None else None

    return asyncio.run(in_loop())


def _if_there_is_such(ask: Callable[[Any], Any], client: Any) -> Any:
    try:
        return ask(client)
    except AttributeError as error:
        pytest.skip(f"{type(client).__module__} has no such method in this release: {error}")


async def _finished(given: Any) -> Any:
    value = await given if inspect.isawaitable(given) else given
    if hasattr(value, "__aenter__"):
        async with value as entered:
            return await _read(entered)
    if hasattr(value, "__enter__"):
        with value as entered:
            return await _read(entered)
    return await _read(value)


async def _read(value: Any) -> Any:
    if hasattr(value, "http_response"):
        parsed = value.parse()
        return await _read(await parsed if inspect.isawaitable(parsed) else parsed)
    if hasattr(value, "__anext__"):
        return [event async for event in value]
    return list(value) if hasattr(value, "__next__") else value


class Told(pydantic.BaseModel):
    text: str


Way = Callable[[Any, dict[str, Any]], Any]

WAYS: dict[str, tuple[str, Way]] = {
    "create": ("anthropic", lambda c, r: c.messages.create(**r)),
    "create, streamed": ("anthropic", lambda c, r: c.messages.create(**r, stream=True)),
    "stream": ("anthropic", lambda c, r: c.messages.stream(**r)),
    "beta": ("anthropic", lambda c, r: c.beta.messages.create(**r)),
    "beta, streamed": ("anthropic", lambda c, r: c.beta.messages.stream(**r)),
    "with options": ("anthropic", lambda c, r: c.with_options(timeout=9.0).messages.create(**r)),
    "copied twice": ("anthropic", lambda c, r: c.copy().copy(max_retries=0).messages.create(**r)),
    "raw": ("anthropic", lambda c, r: c.messages.with_raw_response.create(**r)),
    "raw, of the client": ("anthropic", lambda c, r: c.with_raw_response.messages.create(**r)),
    "raw, streamed": ("anthropic", lambda c, r: c.messages.with_streaming_response.create(**r)),
    "posted": ("anthropic", lambda c, r: c.post("/v1/messages", body=r, cast_to=anthropic.types.Message)),
    "chat": ("chat", lambda c, r: c.chat.completions.create(**r)),
    "chat, parsed": ("chat", lambda c, r: c.chat.completions.parse(**r)),
    "chat, with options": ("chat", lambda c, r: c.with_options(timeout=9.0).chat.completions.create(**r)),
    "chat, raw": ("chat", lambda c, r: c.chat.completions.with_raw_response.create(**r)),
    "chat, raw, streamed": ("chat", lambda c, r: c.chat.completions.with_streaming_response.create(**r)),
    "chat, posted": (
        "chat",
        lambda c, r: c.post("/chat/completions", body=r, cast_to=openai.types.chat.ChatCompletion),
    ),
    "responses": ("responses", lambda c, r: c.responses.create(**r)),
    "responses, streamed": ("responses", lambda c, r: c.responses.create(**r, stream=True)),
    "responses, stream": ("responses", lambda c, r: c.responses.stream(**r)),
    "responses, parsed": ("responses", lambda c, r: c.responses.parse(**r)),
    "responses, raw": ("responses", lambda c, r: c.responses.with_raw_response.create(**r)),
}


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_asking_sends_the_view_and_reports_usage(way: str, is_async: bool) -> None:
    shape, ask = WAYS[way]
    history = messages_of(shape)
    before = copy.deepcopy(history)
    masker = Recording()
    with serving(text("Done.")) as server:
        client = client_of(shape, server, is_async)
        wrapped = recede.wrap(client, masker)
        assert isinstance(wrapped, type(client)) and wrapped is not client
        asked(wrapped, lambda client: ask(client, request_of(shape, history)))
        assert sent(server, shape) == expected(history)
    assert history == before
    ((usage, length),) = masker.heard
    assert length == len(history)
    assert usage.get("output_tokens", usage.get("completion_tokens")) == 5
    assert usage.get("input_tokens", usage.get("prompt_tokens")) == 10


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("by_helper", [False, True], ids=["create", "stream"])
def test_streams_of_chat_completions_report_usage_where_it_is_asked_for(is_async: bool, by_helper: bool) -> None:
    def with_usage(events: list[Any]) -> list[Any]:
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        chunk = {
            "id": "1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [],
            "usage": usage,
        }
        return [*events[:-1], ("", chunk), ("", chunk), events[-1]]  # some providers repeat it

    history, masker = messages_of("chat"), Recording()
    with serving(text("Done.", damage=with_usage)) as server:
        client = recede.wrap(client_of("chat", server, is_async), masker)
        request = {**request_of("chat", history), "stream_options": {"include_usage": True}}
        if by_helper:
            asked(client, lambda client: client.chat.completions.stream(**request))
        else:
            asked(client, lambda client: client.chat.completions.create(**request, stream=True))
        assert sent(server, "chat") == expected(history)
    assert [(usage["prompt_tokens"], length) for usage, length in masker.heard] == [(10, len(history))]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("shape", ["anthropic", "responses"])
def test_counting_counts_the_view_and_reports_nothing(shape: str, is_async: bool) -> None:
    history, masker = messages_of(shape), Recording()
    request = request_of(shape, history)
    request.pop("max_tokens", None)
    with serving(text("")) as server:
        client = recede.wrap(client_of(shape, server, is_async), masker)
        of_responses = shape == "responses"
        counted = asked(
            client,
            lambda client: _if_there_is_such(
                lambda c: c.responses.input_tokens.count if of_responses else c.messages.count_tokens, client
            )(**request),
        )
        assert counted.input_tokens == 7
        assert sent(server, shape) == expected(history)
    assert masker.heard == []


COUNT: Way = lambda c, r: c.messages.count_tokens(**{name: r[name] for name in ("model", "messages")})  # noqa: E731
MENDED = {**{way: ask for way, (shape, ask) in WAYS.items() if shape == "anthropic"}, "counted": COUNT}


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("way", MENDED)
def test_refusal_of_reasoning_is_mended_before_an_answer_of_any_form(way: str, is_async: bool) -> None:
    history = [user("Find the bug.")]
    for number in range(3):
        body = request_of("anthropic", history)
        [thinking] = PROVIDERS["anthropic"].answered({**body, "model": NEWEST}, [thought(f"Part {number}.")], NEW)
        use, one = tool_use(f"toolu_{number}"), f"toolu_{number}"
        history += [{**use, "content": [thinking, *use["content"]]}, user([tool_result(one, observed(number))])]
    history[2] = user([tool_result("toolu_0", "cut by the agent")])
    with serving(text("Done.")) as server:
        server.account, server.aliases = NEW, {"m": NEWEST}  # a name that nobody knows to verify
        client = recede.wrap(client_of("anthropic", server, is_async))
        answer = asked(client, lambda client: MENDED[way](client, request_of("anthropic", history)))
        first, second = (json.dumps(request["messages"]) for request in server.requests)
        assert len(server.refusals) == 1
    assert (first.count('"signature"'), second.count('"signature"')) == (3, 0)
    assert answer and json.dumps(history).count('"signature"') == 3


def test_objects_of_the_client_are_masked_too() -> None:
    history = messages_of("anthropic")
    for number in range(1, len(history), 2):
        block = history[number]["content"][0]
        history[number] = {"role": "assistant", "content": [anthropic.types.ToolUseBlock(**block)]}
    with serving(text("Done.")) as server:
        client = recede.wrap(client_of("anthropic", server), keep=4, boundary="sliding")
        client.messages.create(**request_of("anthropic", history))
        plain = messages_of("anthropic")
        shown = [message["content"][0].get("content") for message in sent(server, "anthropic")[2::2]]
        assert shown == [message["content"][0]["content"] for message in expected(plain)[2::2]]


@pytest.mark.parametrize("shape", CLIENTS)
def test_by_default_the_boundary_breaks_even_under_the_cache_of_the_provider(shape: str) -> None:
    provider = "anthropic" if shape == "anthropic" else "openai"
    whole = messages_of(shape, 70)
    with serving(*[text("Done.")] * 70) as server:
        client = recede.wrap(client_of(shape, server))
        ask = {
            "anthropic": lambda **request: client.messages.create(**request, extra_body=MARK),
            "chat": lambda **request: client.chat.completions.create(**request),
            "responses": lambda **request: client.responses.create(**request),
        }[shape]
        moves = 0
        for turns in range(2, 71, 4):
            history = copy.deepcopy(whole[: 1 + 2 * turns])
            ask(**request_of(shape, history))
            marks = MARK if shape == "anthropic" else {}
            view = recede.reduce({**request_of(shape, history), **marks}, provider=provider)
            assert sent(server, shape) == (view.request or {})["input" if shape == "responses" else "messages"]
            moves = len(view.boundary_moves)
        assert moves > 1


def models_of(server: Server, history: list[Any], models: list[str], **options: Any) -> list[Any]:
    """The view at each fourth turn, of one conversation whose requests name these models."""
    client = recede.wrap(client_of("anthropic", server), **options)
    views = []
    for number, turns in enumerate(range(2, 71, 4)):
        model = models[min(number, len(models) - 1)]
        request = {**request_of("anthropic", history[: 1 + 2 * turns]), "model": model}
        client.messages.create(**request, extra_body=MARK)
        views.append(sent(server, "anthropic"))
    return views


def views_at(history: list[Any], read: float, least: int) -> list[Any]:
    provider = priced("breakpoints", read)._replace(min_tokens=least)
    bodies = ({"messages": history[: 1 + 2 * turns], **MARK} for turns in range(2, 71, 4))
    return [(recede.reduce(body, provider=provider).request or {})["messages"] for body in bodies]


@pytest.mark.parametrize(
    ("models", "options", "read", "least"),
    [
        (["claude-opus-5-5"], {}, 0.05, 512),
        (["claude-opus-5-5-20261001", "claude-opus-5"], {}, 0.05, 512),
        (["claude-opus-5", "claude-opus-5-5"], {}, 0.1, 512),
        (["no-such-model"], {}, 0.1, 2_048),
        (["claude-opus-5-5"], {"provider": "anthropic"}, 0.1, 2_048),
    ],
)
def test_prices_are_those_of_the_model_of_the_first_request(
    models: list[str], options: Any, read: float, least: int
) -> None:
    history = messages_of("anthropic", 70)
    assert len({str(views_at(history, *facts)) for facts in ((0.05, 512), (0.1, 512), (0.1, 2_048))}) == 3
    with serving(*[text("Done.")] * 20) as server:
        assert models_of(server, history, models, **options) == views_at(history, read, least)


def test_where_no_message_is_cached_views_are_those_without_a_cache() -> None:
    """Until one has a mark: then the conversation is planned for the cache."""
    whole = messages_of("anthropic", 70)
    with serving(*[text("Done.")] * 20) as server:
        client = recede.wrap(client_of("anthropic", server))
        for turns, marks, options in [
            (20, {}, {"provider": "none"}),
            (21, {}, {"provider": "none"}),
            (22, MARK, {"provider": "anthropic", "cold": [41, 43]}),
            (23, {}, {"provider": "anthropic", "cold": [41, 43]}),
        ]:
            history = whole[: 1 + 2 * turns]
            client.messages.create(**request_of("anthropic", history), extra_body=marks)
            without_pin = str(sent(server, "anthropic")).replace(f", {str(MARK)[1:-1]}", "")
            assert without_pin == str(recede.reduce(history, **options).messages)
        history = copy.deepcopy(whole[:41])
        history[0]["content"] = [{"type": "text", "text": "Another.", **MARK}]
        client.messages.create(**request_of("anthropic", history))
        assert str(sent(server, "anthropic")) == str(recede.reduce(history, provider="anthropic").messages)


def answering(requests: list[Any], usages: Iterator[dict[str, int]]) -> Any:
    """An HTTP client in place of a provider: it keeps the messages of requests, and answers with these usages."""
    httpx = pytest.importorskip("httpx2", reason="older releases of anthropic have httpx")

    def answer(request: Any) -> Any:
        requests.append(json.loads(request.content)["messages"])
        body = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Done."}]}
        return httpx.Response(200, json={**body, "usage": next(usages)})

    return httpx.Client(transport=httpx.MockTransport(answer))


def test_an_answer_that_was_served_ends_requests_without_a_cache() -> None:
    """The boundary stays, and no longer moves at each request; a request that is sent again keeps its bytes."""
    whole, views = messages_of("anthropic", 70), list[Any]()
    turns = [*range(20, 61), 60, *range(61, 70)]
    served = [{"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 9_000 * (one == 60)} for one in turns]
    http_client = answering(views, iter(served))
    client = recede.wrap(anthropic.Anthropic(api_key="none", base_url=ANTHROPIC, http_client=http_client))
    for one in turns:
        client.messages.create(**request_of("anthropic", whole[: 1 + 2 * one]))
    assert views[41] == views[40] == recede.reduce(whole[:121], provider="none").messages
    counts = [sum("old tool output" in str(message) for message in view) for view in views]
    assert counts[:41] == sorted(set(counts[:41])) and counts[42] == counts[41] and len(set(counts[41:])) < 3
    assert (
        views[-1]
        == recede.reduce(
            whole[:139],
            provider=recede.Provider.of("anthropic")._replace(cache="prefix"),
            cold=[1 + 2 * one for one in range(20, 61)],
        ).messages
    )


@pytest.mark.parametrize(("tokens", "is_served"), [(90, False), (5_001, True)])
def test_tokens_of_the_system_prompt_alone_show_no_cache(tokens: int, is_served: bool) -> None:
    whole, views = messages_of("anthropic", 40), list[Any]()
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": tokens}
    client = recede.wrap(
        anthropic.Anthropic(api_key="none", base_url=ANTHROPIC, http_client=answering(views, repeat(usage)))
    )
    for turns in range(20, 40):
        history = whole[: 1 + 2 * turns]
        client.messages.create(**request_of("anthropic", history), system="s" * 10_000)
    assert (views[-1] != recede.reduce(history, provider="none").messages) is is_served


@pytest.mark.parametrize(
    ("url", "name"),
    [(ANTHROPIC, "anthropic"), ("https://api.deepseek.com/anthropic", "deepseek"), ("http://127.0.0.1:4000", "zai")],
)
def test_the_middleware_of_a_client_knows_its_address(url: str, name: str) -> None:
    integration = pytest.importorskip("recede.integrations.anthropic", reason="anthropic is older than its middleware")
    masking, views = integration.RecedeMiddleware(keep=4), list[Any]()
    usage = {"input_tokens": 10, "output_tokens": 5}
    client = anthropic.Anthropic(
        api_key="none", base_url=url, http_client=answering(views, repeat(usage)), middleware=[masking]
    )
    history = messages_of("anthropic", 30)
    model = "glm-5.3" if name == "zai" else "claude-opus-4-8"
    client.messages.create(**{**request_of("anthropic", history), "model": model})
    (known,) = masking.masker._remembered.newest_first()
    assert known.options["provider"].name == ("none" if name == "anthropic" else name)
    assert views == [recede.reduce(history, keep=4, provider=known.options["provider"]).messages]


def test_a_model_without_prices_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with serving(*[text("Done.")] * 20) as server:
        models_of(server, messages_of("anthropic", 70), ["no-such-model", "claude-opus-5", "no-such-model"])
    assert [line for line in caplog.messages if "prices" in line] == [
        "the prices of 'no-such-model' are not known: its cache is taken to cost what is usual for anthropic"
    ]


def test_marks_of_the_cache_get_a_mark_at_the_boundary() -> None:
    history = messages_of("anthropic", 70)
    history[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    with serving(text("Done."), text("Done.")) as server:
        client = recede.wrap(client_of("anthropic", server))
        client.messages.create(**request_of("anthropic", history))
        marked = [number for number, message in enumerate(sent(server, "anthropic")) if "cache_control" in str(message)]
        assert len(marked) == 2 and marked[-1] == len(history) - 1
        recede.wrap(client_of("anthropic", server), provider="ideal").messages.create(
            **request_of("anthropic", history)
        )
        assert str(sent(server, "anthropic")).count("cache_control") == 1


MARK = {"cache_control": {"type": "ephemeral"}}
TOOL = {"name": "run", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("around", "marked", "kept"),
    [
        ({}, 3, 4),  # room for all three, and for the pin
        ({"extra_body": {"system": [{"type": "text", "text": "Be brief.", **MARK}]}}, 3, 3),
        ({"system": [{"type": "text", "text": "Be brief.", **MARK}], "tools": [{**TOOL, **MARK}]}, 1, 2),
        ({"system": [{"type": "text", "text": "Be brief.", **MARK}] * 2, "tools": [{**TOOL, **MARK}]}, 1, 1),
    ],
)
def test_a_request_has_four_marks_at_most_with_those_on_system_and_tools(
    around: dict[str, Any], marked: int, kept: int
) -> None:
    history = messages_of("anthropic", 70)
    for place in range(marked):
        history[-1 - 24 * place]["content"][0].update(MARK)
    with serving(text("Done.")) as server:
        client = recede.wrap(client_of("anthropic", server))
        client.messages.create(**request_of("anthropic", history), **around)
        assert sent(server, "anthropic")[2] != history[2]
        assert str(sent(server, "anthropic")).count("cache_control") == kept
        assert str(server.requests[-1]).count("cache_control") <= 4


@pytest.mark.parametrize("by_options", [True, False])
def test_moves_of_the_boundary_are_told_once(by_options: bool) -> None:
    moves: list[Any] = []
    history = messages_of("chat", 70)
    busy = Failure(529, headers={"retry-after-ms": "1"})
    with serving(text("Done."), busy, text("Done."), text("Done.")) as server:
        client: Any = client_of("chat", server, max_retries=2)
        options: dict[str, Any] = {"on_move": moves.append, "provider": "openai"}
        client = recede.wrap(client, **options) if by_options else recede.wrap(client, recede.masker.Masker(**options))
        for end in range(len(history) - 80, len(history) + 1, 40):
            client.chat.completions.create(**request_of("chat", history[:end]))
    whole = recede.reduce(history, provider="openai").boundary_moves
    first = recede.reduce(history[:61], provider="openai")
    past = [move for move in first.boundary_moves if move.request < first.turns]
    assert len(moves) > 1 and moves == list(whole[len(past) :])


def test_a_retry_sends_the_same_view_and_reports_once() -> None:
    history, masker = messages_of("chat"), Recording()
    busy = Failure(529, headers={"retry-after-ms": "1"})
    with serving(busy, busy, text("Done.")) as server:
        client = recede.wrap(client_of("chat", server, max_retries=2), masker)
        client.chat.completions.create(**request_of("chat", history))
        views = [request["messages"] for request in server.requests]
        assert views == [expected(history)] * 3
    assert len(masker.heard) == 1


def test_input_that_continues_a_stored_response_is_sent_as_it_is_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recede._encodable.warn_once.cache_clear()
    rest = messages_of("responses")[2:]
    with serving(*[text("Done.")] * 5) as server:
        client = recede.wrap(client_of("responses", server), keep=0, boundary="sliding")
        for stored in 2 * ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}):
            client.responses.create(model="m", input=rest, **stored)
            assert server.requests[-1]["input"] == rest
        client.responses.create(model="m", input="Hello.")
        assert server.requests[-1]["input"] == "Hello."
    for field in ("previous_response_id", "conversation"):
        assert caplog.text.count(f"requests with {field!r} are sent as they are") == 1


def test_messages_of_a_thread_that_anthropic_stores_are_sent_as_they_are() -> None:
    history = messages_of("anthropic")
    with serving(text("Done."), text("Done.")) as server:
        client = recede.wrap(client_of("anthropic", server), keep=0, boundary="sliding")
        given = {"model": "m", "max_tokens": 9, "messages": history}
        client.beta.messages.create(**given, extra_body={"thread": {"type": "create"}})
        client.beta.messages.create(**given)
        assert server.requests[0]["messages"] == history != server.requests[1]["messages"]


def test_a_request_that_is_not_masked_reports_nothing() -> None:
    history, masker = messages_of("responses"), Recording()
    with serving(text("Done."), text("Done.")) as server:
        client = recede.wrap(client_of("responses", server), masker)
        client.responses.create(model="m", input=history)
        client.responses.create(model="m", input="Hello.")
        assert server.requests[-1]["input"] == "Hello."
    assert [length for _, length in masker.heard] == [len(history)]


BATCH = {"requests": [{"custom_id": "1", "params": {"model": "m", "max_tokens": 9, "messages": [user("Go.")]}}]}

REFUSED: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "batches": ("anthropic", lambda c: c.messages.batches.create(**BATCH), "POST /messages/batches sends messages"),
    "beta batches": ("anthropic", lambda c: c.beta.messages.batches.create(**BATCH), "POST /messages/batches"),
    "a batch of a file": (
        "chat",
        lambda c: c.batches.create(input_file_id="f", endpoint="/v1/chat/completions", completion_window="24h"),
        "POST /batches",
    ),
    "compact": (
        "chat",
        lambda c: c.responses.compact(model="m", input=messages_of("responses")),
        "POST /responses/compact sends messages",
    ),
    "a conversation": ("chat", lambda c: c.conversations.create(items=[user("Go.")]), "POST /conversations"),
    "a thread": ("chat", lambda c: c.beta.threads.create(messages=[user("Go.")]), "POST /threads"),
    "a message of a thread": (
        "chat",
        lambda c: c.beta.threads.messages.create("t", role="user", content="Go."),
        "POST /threads/t/messages",
    ),
    "any path": (
        "chat",
        lambda c: c.post("/other", body={"deep": {"turns": [user("Go.")]}}, cast_to=object),
        "POST /other sends messages",
    ),
    "an extra body": (
        "chat",
        lambda c: c.chat.completions.create(model="m", messages=[], extra_body={"messages": [user("Go.")]}),
        "POST /chat/completions sends messages",
    ),
    "a WebSocket": ("chat", lambda c: c.responses.connect().enter(), "a WebSocket sends messages"),
    "realtime": ("chat", lambda c: c.realtime.connect(model="m").enter(), "a WebSocket sends messages"),
}


@pytest.mark.filterwarnings("ignore:The Assistants API is deprecated:DeprecationWarning")
@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_masked_is_refused(what: str) -> None:
    shape, ask, words = REFUSED[what]
    if "WebSocket" in words:
        pytest.importorskip("websockets", reason="openai opens WebSockets with it")
    with serving() as server:
        for client in (recede.wrap(client_of(shape, server)), recede.wrap(client_of(shape, server)).with_options()):
            with pytest.raises(TypeError, match=f"{words}.*recede.wrap does not mask.*client that was wrapped"):
                _if_there_is_such(ask, client)
        assert server.requests == []


def test_a_request_without_messages_is_sent() -> None:
    with serving(text("")) as server:
        client = recede.wrap(client_of("chat", server))
        with pytest.raises(openai.BadRequestError):  # the server knows no text completions
            client.completions.create(model="m", prompt="Once")
        assert server.requests == [{"model": "m", "prompt": "Once"}]


def test_with_recede_off_everything_is_sent_raw(monkeypatch: pytest.MonkeyPatch) -> None:
    history, masker = messages_of("anthropic"), Recording()
    with serving(text("Done."), text("Done.")) as server:
        client = recede.wrap(client_of("anthropic", server), masker)
        monkeypatch.setenv("RECEDE_OFF", "1")
        client.messages.create(**request_of("anthropic", history))
        assert sent(server, "anthropic") == history
        monkeypatch.setenv("RECEDE_OFF", "0")
        client.messages.create(**request_of("anthropic", history))
        assert sent(server, "anthropic") == expected(history)
    assert len(masker.heard) == 1


def test_the_original_client_sends_raw() -> None:
    history = messages_of("chat")
    with serving(text("Done.")) as server:
        client = client_of("chat", server)
        recede.wrap(client, keep=4)
        client.chat.completions.create(**request_of("chat", history))
        assert sent(server, "chat") == history


def test_an_odd_answer_is_handed_on() -> None:
    def odd(body: Any) -> Any:
        return {**body, "usage": {"prompt_tokens": "many"}}

    with serving(text("Done.", damage=odd)) as server:
        client = recede.wrap(client_of("chat", server))
        answer = client.chat.completions.create(**request_of("chat", messages_of("chat")))
        assert answer.choices[0].message.content == "Done."


def test_variants_of_the_clients_are_wrapped() -> None:
    history = messages_of("chat")
    with serving(text("Done.")) as server:
        azure = openai.AzureOpenAI(api_key="none", azure_endpoint=server.url, api_version="2025-01-01", max_retries=0)
        _OPEN.append(azure)
        wrapped = recede.wrap(azure, keep=4, boundary="sliding")
        assert type(wrapped).__name__ == "AzureOpenAI"
        wrapped.chat.completions.create(**request_of("chat", history))
        assert sent(server, "chat") == expected(history)


def cloud_client(cloud: str, is_async: bool, server: Server) -> Any:
    kind = getattr(anthropic, f"Async{cloud}" if is_async else cloud)
    options: dict[str, Any] = {
        "AnthropicBedrock": {"aws_region": "eu-west-1", "api_key": "none"},
        "AnthropicVertex": {"region": "europe-west1", "project_id": "p", "access_token": "none"},
    }[cloud]
    client = kind(base_url=server.url, max_retries=0, **options)
    if not is_async:
        _OPEN.append(client)
    return client


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("cloud", ["AnthropicBedrock", "AnthropicVertex"])
@pytest.mark.parametrize("way", ["create", "beta", "with options", "raw", "raw, streamed"])
def test_clients_of_clouds_send_the_view_and_report_usage(way: str, cloud: str, is_async: bool) -> None:
    history, masker = messages_of("anthropic"), Recording()
    with serving(text("Done.")) as server:
        client = recede.wrap(cloud_client(cloud, is_async, server), masker)
        assert type(client).__name__ == (f"Async{cloud}" if is_async else cloud)
        asked(client, lambda client: WAYS[way][1](client, request_of("anthropic", history)))
        assert sent(server, "anthropic") == expected(history)
        assert "model" not in server.requests[0]  # it is in the path
    assert [length for _, length in masker.heard] == [len(history)]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_streams_of_vertex_send_the_view(is_async: bool) -> None:
    history, masker = messages_of("anthropic"), Recording()
    with serving(text("Done."), text("Done.")) as server:
        for way in ("create, streamed", "stream"):
            client = recede.wrap(cloud_client("AnthropicVertex", is_async, server), masker)
            asked(client, lambda client, way=way: WAYS[way][1](client, request_of("anthropic", history)))
            assert sent(server, "anthropic") == expected(history)
    assert [length for _, length in masker.heard] == [len(history)] * 2


def test_streams_of_bedrock_send_the_view() -> None:
    pytest.importorskip("botocore", reason="anthropic reads streams of Bedrock with it")
    history = messages_of("anthropic")
    with serving(text("Done.")) as server:
        client = recede.wrap(cloud_client("AnthropicBedrock", False, server), Recording())
        with client.messages.stream(**request_of("anthropic", history)) as stream:
            stream.close()  # the server does not write the events of AWS
        assert sent(server, "anthropic") == expected(history)


@pytest.mark.parametrize("cloud", ["AnthropicBedrock", "AnthropicVertex"])
def test_what_clients_of_clouds_do_not_mask_is_refused(cloud: str) -> None:
    with serving() as server:
        client = recede.wrap(cloud_client(cloud, False, server))
        for path in ("/v1/messages/batches", "/model/m/invoke", "/projects/p/publishers/x/models/m:rawPredict"):
            with pytest.raises(TypeError, match=r"sends messages.*recede\.wrap does not mask"):
                client.post(path, body=BATCH, cast_to=object)
        assert server.requests == []


@pytest.mark.parametrize(
    ("wrap", "words"),
    [
        (lambda client: recede.wrap("client"), "must be one of Anthropic, OpenAI or google-genai"),
        (lambda client: recede.wrap(openai), "must be one of Anthropic, OpenAI or google-genai"),
        (lambda client: recede.wrap(client.messages), "must be one of Anthropic, OpenAI or google-genai"),
        (lambda client: recede.wrap(recede.wrap(client)), "wrapped already"),
        (lambda client: recede.wrap(client, keep="4"), "keep"),
        (lambda client: recede.wrap(client, window=4), "window"),
        (lambda client: recede.wrap(client, recede.masker.Masker(), keep=4), "to the masker"),
        (lambda client: recede.wrap(client, masker=dict), "must be a recede.masker.Masker"),
    ],
)
def test_wrong_arguments_are_refused_at_once(wrap: Callable[[Any], Any], words: str) -> None:
    client = anthropic.Anthropic(api_key="none")
    _OPEN.append(client)
    with pytest.raises((TypeError, ValueError), match=words):
        wrap(client)


def text_of(request: dict[str, Any]) -> str:
    """The system prompt of a request, wherever it is."""
    messages = request.get("messages", [])
    return str(request.get("system", "")) + "".join(str(one["content"]) for one in messages if one["role"] == "system")


FREE = recede.Provider("free", cache="none", read=1.0, write=1.0, min_tokens=0, output=0.0)


@pytest.mark.parametrize("shape", CLIENTS)
@pytest.mark.parametrize("is_async", [False, True])
def test_the_model_is_asked_for_a_summary_that_pays(shape: str, is_async: bool) -> None:
    options: dict[str, Any] = {"keep": 2, "boundary": 1_000, "provider": FREE, "max_overcost": None}
    history = messages_of(shape, 30)
    create = {
        "anthropic": lambda client, request: client.messages.create(**request),
        "chat": lambda client, request: client.chat.completions.create(**request),
        "responses": lambda client, request: client.responses.create(**request),
    }[shape]

    async def play(client: Any) -> None:
        for end in range(1, len(history) + 1, 2):
            answer = create(client, request_of(shape, history[:end]))
            if is_async:
                await answer
        if is_async:
            await client.close()

    with serving(*(text(SUMMARY) for _ in range(60))) as server:
        asyncio.run(play(recede.wrap(client_of(shape, server, is_async), summarizer="model", **options)))
        assert server.refusals == []
    summaries = [request for request in server.requests if PROMPT in text_of(request)]
    last = sent(server, shape)
    assert 0 < len(summaries) < 10 and {request["model"] for request in summaries} == {"m"}
    told = recede.reduce(history, **options, summarizer=lambda messages, previous: SUMMARY)
    assert last == told.messages and told.dropped_count > 20
