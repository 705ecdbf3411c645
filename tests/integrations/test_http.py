"""The transport, with the real clients of Anthropic and OpenAI, against a provider on this machine.

The contract of the other adapters asks for messages of a framework; here they are bytes, so its points are asked here.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="anthropic is not installed")
openai = pytest.importorskip("openai", reason="openai is not installed")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
if os.environ.get("RECEDE_INTEGRATION", "http") != "http":
    pytest.skip("another adapter is asked", allow_module_level=True)

from sessions import TASK, session

import recede
from provider_server import Failure, Server, serving, text
from recede.integrations.http import recede_client

pytestmark = pytest.mark.filterwarnings("default")

KINDS = ["anthropic", "openai", "async anthropic", "async openai"]
TURNS = session(40)


def history(kind: str, count: int = 40) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for turn in TURNS[:count]:
        if "openai" in kind:
            calls: list[Any] = [
                {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": json.dumps(one.args)}}
                for one in turn.calls
            ]
            messages.append({"role": "assistant", "content": turn.said or None, "tool_calls": calls})
            for result in turn.results.values():
                messages.append({"role": "tool", "tool_call_id": result.id, "content": result.text})
        else:
            calls = [{"type": "tool_use", "id": one.id, "name": one.name, "input": one.args} for one in turn.calls]
            messages.append({"role": "assistant", "content": calls})
            results = [
                {"type": "tool_result", "tool_use_id": one.id, "content": one.text, "is_error": one.is_error}
                for one in turn.results.values()
            ]
            messages.append({"role": "user", "content": results})
    return messages


def http_client(kind: str, **options: Any) -> Any:
    sdk = anthropic if "anthropic" in kind else openai
    return (sdk.DefaultAsyncHttpxClient if "async" in kind else sdk.DefaultHttpxClient)(**options)


async def ask(kind: str, client: Any, url: str, histories: list[list[Any]], **options: Any) -> None:
    """Send each history with the client of an SDK; with `stream` its answer is read to the end."""
    common: dict[str, Any] = {"api_key": "none", "http_client": client, "max_retries": 1}
    name = ("Async" if "async" in kind else "") + ("Anthropic" if "anthropic" in kind else "OpenAI")
    if "anthropic" in kind:
        sdk = getattr(anthropic, name)(base_url=url, **common)
        create, given = sdk.messages.create, {"model": "m", "max_tokens": 9, **options}
    else:
        sdk = getattr(openai, name)(base_url=f"{url}/v1", **common)
        create, given = sdk.chat.completions.create, {"model": "m", **options}
    for messages in histories:
        answer = create(messages=messages, **given)
        if "async" in kind:
            answer = await answer
            if options:
                async for _ in answer:
                    pass
        elif options:
            for _ in answer:
                pass
    await sdk.close() if "async" in kind else sdk.close()


def requests(kind: str, client: Any, histories: list[list[Any]], *script: Any, **options: Any) -> Server:
    with serving(*(script or [text("Done.") for _ in histories])) as server:
        asyncio.run(ask(kind, client, server.url, histories, **options))
    assert server.refusals == []
    return server


def masked(kind: str, body: dict[str, Any], **options: Any) -> Any:
    path = "/v1/messages" if "anthropic" in kind else "/v1/chat/completions"
    masker = recede.proxy.RequestMasker(upstream="http://127.0.0.1", **options)
    return json.loads(masker.mask("POST", path, {}, json.dumps(body).encode()).body)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_a_plain_client_of_each_library_that_the_sdk_takes_sends_masked_bodies(library: str, kind: str) -> None:
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    client = (module.AsyncClient if "async" in kind else module.Client)(timeout=60)
    if library == "httpx" and "anthropic" in kind and os.environ.get("RECEDE_RELEASE") == "newest":
        pytest.skip("Anthropic's newest SDK takes clients of httpx2 alone")
    sent = requests(kind, recede_client(client, keep=4, boundary="sliding"), [history(kind)]).requests
    assert "old tool output cleared" in json.dumps(sent[-1])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_body_is_that_of_a_request_masker_and_the_lists_stay(kind: str, stream: bool) -> None:
    histories = [history(kind, count) for count in range(0, 41, 4)]
    before = copy.deepcopy(histories)
    options = {"stream": True} if stream else {}
    raw = requests(kind, http_client(kind), histories, **options).requests
    sent = requests(kind, recede_client(http_client(kind), keep=4), histories, **options).requests
    assert sent == [masked(kind, body, keep=4) for body in raw]
    assert sent[-1] != raw[-1] and histories == before


@pytest.mark.parametrize("kind", KINDS[:2])
def test_requests_are_prefixes_of_the_next_but_at_moves(kind: str) -> None:
    histories = [history(kind, count) for count in range(41)]
    if "anthropic" in kind:  # without a mark there is no cache to spare
        task = {"type": "text", "text": TASK, "cache_control": {"type": "ephemeral"}}
        histories = [[{"role": "user", "content": [task]}, *messages[1:]] for messages in histories]
    sent = requests(kind, recede_client(http_client(kind), keep=4), histories).requests
    changes = sum(new["messages"][: len(old["messages"])] != old["messages"] for old, new in pairwise(sent))
    assert 0 < changes < 10


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "anthropic" in kind])
def test_a_history_that_the_provider_keeps_is_sent_as_it_is_and_said_once(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"extra_body": {"thread": {"type": "create"}}, "stream": True}
    server = requests(kind, recede_client(http_client(kind), keep=4), [history(kind)] * 2, **given)
    assert caplog.text.count("requests with 'thread' are sent as they are") == 1
    assert server.requests[0]["thread"] and server.requests[0]["messages"] == history(kind)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/v1/messages/batches", b'{"requests": []}', "batches are sent as they are"),
        ("/v1/batches", b'{"input_file_id": "f"}', "batches are sent as they are"),
        ("/v1/responses", b'{"input": [], "conversation": "c"}', "requests with 'conversation' are sent as they are"),
        ("/v1/responses", b'{"input": "Go."}', ""),
        ("/v1/responses", b"[]", ""),
        ("/v1/embeddings", b'{"input": "conversation"}', ""),
    ],
)
def test_what_is_sent_raw_is_said_once(path: str, body: bytes, said: str, caplog: pytest.LogCaptureFixture) -> None:
    client = recede_client(http_client("openai"))
    headers = {"content-type": "application/json"}
    for _ in range(2):
        request = client.build_request("POST", f"http://a{path}", content=body, headers=headers)
        assert client._transport._requests.masked(request) is request
    assert [one.getMessage()[: len(said)] for one in caplog.records if "sent as they" in one.getMessage()] == [said][
        : len(said)
    ]
    client.close()


def test_a_request_that_asks_to_be_sent_raw_is_not_said(caplog: pytest.LogCaptureFixture) -> None:
    given = {"extra_headers": {"x-recede": "off"}, "extra_body": {"thread": {"type": "create"}}, "stream": True}
    requests("anthropic", recede_client(http_client("anthropic")), [history("anthropic")], **given)
    assert caplog.text == ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_retry_sends_the_same(kind: str) -> None:
    failure = Failure(500, headers={"retry-after-ms": "1"})
    server = requests(kind, recede_client(http_client(kind), keep=4), [history(kind)], failure, text("Done."))
    first, second = server.requests
    assert first == second
    assert "old tool output cleared" in json.dumps(first)


@pytest.mark.parametrize("kind", KINDS)
def test_proxies_are_masked_too_and_the_timeout_stays(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    client = http_client(kind, timeout=7.0)
    proxies = [one for one in client._mounts.values() if one is not None]
    monkeypatch.delenv("HTTP_PROXY")
    recede_client(client, keep=4)
    assert proxies and [one._transport for one in client._mounts.values() if one is not None] == proxies
    for transport in (client._transport, *client._mounts.values()):
        if transport is None:
            continue
        body = json.dumps({"messages": history(kind)}).encode()
        path = "messages" if "anthropic" in kind else "chat/completions"
        request = client.build_request(
            "POST", f"http://a/v1/{path}", content=body, headers={"content-type": "application/json", "x-own": "1"}
        )
        result = transport._requests.masked(request)
        seen.append(result)
        assert result.headers["content-length"] == str(len(result.content)) and len(result.content) < len(body)
        assert (result.headers["x-own"], result.extensions["timeout"]["read"]) == ("1", 7.0)
        assert request.content == body
    assert len(seen) == 1 + len(proxies)


def test_with_recede_off_everything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECEDE_OFF", "1")
    for kind in KINDS:
        server = requests(kind, recede_client(http_client(kind), keep=0), [history(kind)])
        assert server.requests[0]["messages"] == history(kind)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="http_client must be a Client or AsyncClient of httpx2 or httpx, not OpenAI"):
        recede_client(openai.OpenAI(api_key="none"))
    client = recede_client(http_client("openai"))
    with pytest.raises(TypeError, match="http_client masks already"):
        recede_client(client)
    client.close()
    with pytest.raises((TypeError, ValueError), match="keep"):
        recede_client(http_client("openai"), keep=-1)
    with pytest.raises(TypeError, match=r"give the options to the masker: RequestMasker\(keep=...\)"):
        recede_client(http_client("openai"), recede.proxy.RequestMasker(), keep=4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fails", [False, True])
def test_a_summarizer_is_asked_before_the_request(kind: str, fails: bool) -> None:
    calls: list[int] = []

    def summarizer(hidden: list[Any], previous: str | None) -> str:
        calls.append(len(hidden))
        if fails:
            raise OSError("no model")
        return "Done."

    async def asynchronous(hidden: list[Any], previous: str | None) -> str:
        return summarizer(hidden, previous)

    free = recede.Provider("free", cache="none", read=1.0, write=1.0, min_tokens=0, output=0.0)
    asked: Any = asynchronous if "async" in kind else summarizer
    client = recede_client(http_client(kind), keep=2, provider=free, boundary=100, summarizer=asked)
    sent = requests(kind, client, [history(kind, count) for count in range(1, 41)]).requests
    assert calls
    assert any("Conversation summary:" in json.dumps(body) for body in sent) is not fails


def test_a_masker_with_summaries_needs_a_summarizer() -> None:
    for summaries, summarizer in ((True, None), (False, str)):
        masker = recede.proxy.RequestMasker(summaries=summaries)
        with pytest.raises(TypeError, match="needs a summarizer"):
            recede_client(http_client("openai"), masker, summarizer=summarizer)
