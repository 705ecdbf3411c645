"""What is LiteLLM's own: its kinds of calls, fallbacks, usage, messages that its hooks do not see."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("litellm", reason="litellm is not installed")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import case_litellm as case
import litellm
from interactions_server import serving_interactions
from sessions import as_dicts, session, shown

from provider_server import serving, text
from recede.integrations.litellm import RecedeCallback
from support import ROOT

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(autouse=True)
def no_callbacks_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("callbacks", "input_callback", "success_callback", "failure_callback"):  # LiteLLM copies the first
        monkeypatch.setattr(litellm, name, [])


def sent(request: dict[str, Any], kind: str, masking: Any = None) -> Any:
    """The request as the hook of the proxy leaves it."""
    masking = masking or RecedeCallback(keep=0, boundary="sliding")
    return asyncio.run(masking.async_pre_call_hook(None, None, request, kind))


def test_the_histories_of_other_calls_are_masked_in_their_own_field() -> None:
    blocks = sent({"messages": as_dicts(session(5)), "max_tokens": 9}, "anthropic_messages")
    assert blocks["max_tokens"] == 9
    assert blocks["messages"][2]["content"][0]["content"].startswith("[old tool output cleared")
    items = [
        {"type": "function_call", "call_id": "1", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "a line\n" * 90},
        {"role": "assistant", "content": "I see."},
        {"role": "user", "content": "Go on."},
    ]
    assert sent({"input": items}, "aresponses")["input"][1]["output"].startswith("[old tool output cleared")
    for request, kind in (
        ({"input": items, "previous_response_id": "r"}, "aresponses"),
        ({"input": "Find the bug."}, "aresponses"),
        ({"input": items, "agent": "deep-research"}, "acreate_interaction"),
        ({"input": ["a", "b"]}, "aembedding"),
    ):
        assert sent(request, kind) is None


@pytest.mark.parametrize("is_async", [True, False])
def test_interactions_are_masked_where_their_hook_runs(is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    interactions = pytest.importorskip("litellm.interactions", reason="this LiteLLM has no interactions")
    litellm.callbacks = [RecedeCallback(keep=2, boundary="sliding")]
    steps: list[Any] = [{"type": "user_input", "content": [{"type": "text", "text": "Find it."}]}]
    with serving_interactions(turns=8) as played:
        while True:
            given = {"model": "gemini/gemini-3-pro", "input": steps, "store": False}
            given |= {"api_base": played.url, "api_key": "key"}
            answer = asyncio.run(interactions.acreate(**given)) if is_async else interactions.create(**given)
            new = [step for step in answer.steps if step["type"] != "model_output"]
            if not new:
                break
            steps += new
            for one in new[1:]:
                result = {"call_id": one["id"], "name": one["name"], "result": "a line\n" * 90}
                steps.append({"type": "function_result", **result})
    assert not played.refusals and len(played.requests) == 9
    results = [step["result"] for step in played.requests[-1]["input"] if step["type"] == "function_result"]
    masked = [result.startswith("[old tool output cleared") for result in results]
    assert masked == [is_async] * 6 + [False] * 2
    assert ("litellm.interactions.create sends raw messages" in caplog.text) != is_async


def test_a_view_is_not_masked_again() -> None:
    masking = RecedeCallback(keep=1, boundary="sliding")
    first = sent({"messages": case.history(session(5))}, "acompletion", masking)
    assert sent(first, "acompletion", masking)["messages"] is first["messages"]
    assert masking.masker.stats().begun == 1


@pytest.mark.parametrize("way", ["sync", "async", "failing"])
def test_usage_is_reported_once_with_the_messages_that_were_given(way: str) -> None:
    heard: list[Any] = []
    masking: Any = RecedeCallback(keep=0, boundary="sliding")

    def reported(usage: Any, messages: list[Any]) -> None:
        assert "old tool output cleared" not in str(messages)
        heard.append((usage.prompt_tokens_details.cached_tokens, len(messages)))

    masking.masker.reported = reported
    case.run(masking, session(4), way)
    assert heard == [(8_900, length) for length in (1, 3, 5, 7, 11)]


def test_a_usage_that_cannot_be_read_costs_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    masking: Any = RecedeCallback(keep=4)
    masking._report(masking.view([{"role": "user", "content": "Go."}]), {"usage": 7})
    assert "what the provider counted is lost" in caplog.text


def test_positional_messages_are_sent_raw_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    provider = case.Scripted(session(1))
    litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": provider}]
    case.custom_llm_setup()
    litellm.callbacks = [RecedeCallback(keep=0)]
    try:
        for _ in range(2):
            asyncio.run(litellm.acompletion("scripted/m", [{"role": "user", "content": "Go."}]))
    finally:
        litellm.callbacks = []
    assert len(provider.requests) == 2
    assert caplog.text.count("sent raw, give them as messages=") == 1


def asking(url: str, way: str, masking: Any, messages: list[Any]) -> None:
    given: dict[str, Any] = {"model": "openai/m", "api_base": f"{url}/v1", "api_key": "none"}
    if way == "completion":
        litellm.completion(messages=messages, **given)
    elif way == "stream":
        list(litellm.completion(messages=messages, stream=True, **given))
    elif way == "positional":
        litellm.completion(given.pop("model"), messages, **given)
    elif way == "router":
        router = litellm.Router(model_list=[{"model_name": "m", "litellm_params": given}])
        router.completion(model="m", messages=messages)
    elif way == "responses":
        litellm.responses(input=messages, **given)
    elif way == "acompletion":
        asyncio.run(litellm.acompletion(messages=messages, **given))
    else:
        masking.completion(messages=messages, **given)


@pytest.mark.parametrize("way", ["completion", "stream", "positional", "router", "responses", "acompletion", "masking"])
def test_a_synchronous_call_that_is_sent_raw_is_said_once(way: str, caplog: pytest.LogCaptureFixture) -> None:
    items = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "I see."}]
    masking = RecedeCallback(keep=0, boundary="sliding")
    litellm.callbacks = [masking]
    try:
        with serving(*[text("Done.")] * 3) as server:
            asking(server.url, way, masking, masking.view(items))
            assert not said_by_recede(caplog)
            for _ in range(2):
                asking(server.url, way, masking, items)
    finally:
        litellm.callbacks = []
    kind = "responses" if way == "responses" else "completion"
    said = said_by_recede(caplog)
    assert len(said) == (way not in ("acompletion", "masking"))
    assert all(one.startswith(f"litellm.{kind} sends raw messages") for one in said)


def said_by_recede(caplog: pytest.LogCaptureFixture) -> list[str]:
    """LiteLLM's own warnings depend on the network: it fetches a table of prices while it is first used."""
    said = [one.getMessage() for one in caplog.records if one.name.partition(".")[0] == "recede"]
    return [one for one in said if not one.startswith("the prices of ")]  # a model of these tests is nobody's


def test_that_sync_calls_send_raw_is_said_once_in_a_process(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        RecedeCallback().log_pre_api_call("m", [{"role": "user"}], {"call_type": "completion"})
    assert caplog.text.count("litellm.completion sends raw messages") == 1


def test_histories_that_the_provider_keeps_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    masking = RecedeCallback(keep=0, boundary="sliding")
    for _ in range(2):
        assert (
            sent({"input": [{"role": "user", "content": "Go."}], "previous_response_id": "r"}, "aresponses", masking)
            is None
        )
    assert caplog.text.count("requests with 'previous_response_id' are sent as they are") == 1


@pytest.mark.parametrize(
    ("kind", "request_of", "said"),
    [
        ("pass_through_endpoint", lambda: {"messages": as_dicts(session(2))}, "calls of LiteLLM's kind 'pass_through"),
        ("agenerate_content", lambda: {"contents": [{"role": "user", "parts": [{"text": "Go."}]}]}, "calls of LiteLLM"),
        ("acreate_batch", lambda: {"input_file_id": "f"}, "batches are sent as they are"),
        ("aembedding", lambda: {"input": ["a", "b"]}, None),
        ("atext_completion", lambda: {"prompt": "Go."}, None),
    ],
)
def test_calls_of_other_kinds_that_have_a_history_are_said_once(
    kind: str, request_of: Any, said: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    masking = RecedeCallback(keep=0, boundary="sliding")
    for _ in range(2):
        assert sent(request_of(), kind, masking) is None
    assert [one.getMessage()[: len(said or "")] for one in caplog.records] == ([said] if said else [])


def test_a_tuple_of_messages_is_masked() -> None:
    messages = case.history(session(5))
    masked = sent({"messages": tuple(messages)}, "acompletion")["messages"]
    assert masked == sent({"messages": messages}, "acompletion")["messages"] != messages


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def asked(url: str, body: Any = None, seconds: float = 60) -> bytes:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=seconds) as answer:
        read: bytes = answer.read()
        return read


KEY = "sk-" + "0123456789abcdef" * 4  # of the proxy that the test starts, which wants one
STARTS_WITHIN = 150


@pytest.mark.timeout(STARTS_WITHIN + 100)
@pytest.mark.skipif(importlib.util.find_spec("fastapi") is None, reason="the proxy of litellm is not installed")
def test_a_proxy_with_the_files_of_the_page_sends_views(tmp_path: Path) -> None:
    """A request in the form of OpenAI, a stream, and one in the form of Anthropic."""
    page = (ROOT / "docs/integrations/litellm.md").read_text()
    module, config = re.findall(r"## The proxy.*?```python\n(.*?)```.*?```yaml\n(.*?)```", page, re.S)[0]
    (tmp_path / "masking.py").write_text(module)
    chat, blocks = case.history(session()), as_dicts(session())
    place = next(at for at, one in enumerate(chat) if isinstance(one["content"], list))
    chat[place]["content"] = chat[place]["content"][:1]  # OpenAI takes no image in a tool message
    with serving(*[text("Done.")] * 3) as provider:
        models = [
            {"model_name": kind, "litellm_params": {"model": f"{kind}/m", "api_base": base, "api_key": "none"}}
            for kind, base in (("openai", f"{provider.url}/v1"), ("anthropic", provider.url))
        ]
        # JSON is YAML too.
        (tmp_path / "config.yaml").write_text(f"model_list: {json.dumps(models)}\n{config}")
        port = free_port()
        command = [Path(sys.executable).with_name("litellm"), "--config", "config.yaml", "--host", "127.0.0.1"]
        paths = {"PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(tmp_path)])}
        with (tmp_path / "log").open("w") as log:
            proxy = subprocess.Popen(
                [*command, "--port", str(port)],
                cwd=tmp_path,
                env={**os.environ, **paths, "LITELLM_MASTER_KEY": KEY, "NO_PROXY": "127.0.0.1"},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(proxy, f"{url}/health/liveliness", tmp_path / "log")
            asked(f"{url}/chat/completions", {"model": "openai", "messages": chat})
            asked(f"{url}/chat/completions", {"model": "openai", "messages": chat, "stream": True})
            asked(f"{url}/v1/messages", {"model": "anthropic", "messages": blocks, "max_tokens": 9})
        finally:
            proxy.terminate()
            proxy.wait(30)
    first, streamed, last = [request["messages"] for request in provider.requests]
    masking = RecedeCallback(keep=10)
    assert provider.refusals == []
    assert case.results(first) == case.results(streamed) == case.results(masking.view(chat)) != case.results(chat)
    assert shown(last) == shown(masking.view(blocks)) != shown(blocks)


def wait_for(proxy: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + STARTS_WITHIN
    while True:
        try:
            asked(url, seconds=5)
        except OSError:
            assert proxy.poll() is None and time.monotonic() < end, log.read_text()[-3_000:]
            time.sleep(0.5)
        else:
            return
