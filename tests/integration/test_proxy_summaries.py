"""`recede proxy --summaries`: whole sessions of a played model, what a call has, and what may go wrong."""

from __future__ import annotations

import json
import logging
import signal
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

import anthropic
from proxied import Answer, Request, answer_of, ask, proxying, recording, stats
from test_proxy_command import running

import recede
from played import CORPUS_SIZES, PlayedModel
from recede import Provider
from recede._question import PROMPT
from recede.proxy import RequestMasker
from support import SUMMARY, unmarked

pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

CALLS = 250
KEY = "sk-ant-api03-none"
HEAD = "Conversation summary:\n"
MARK = {"type": "ephemeral"}
# Prices at which a summary pays within a few turns.
CHEAP = Provider("cheap", cache="ideal", read=0.9, write=1.0, min_tokens=0, output=0.1)
TOOL = {"name": "Bash", "description": "Run a command. " * 400, "input_schema": {"type": "object", "properties": {}}}


def play(url: str, messages: list[Any], calls: int = CALLS) -> None:
    """An agent with the client of Anthropic, until it has made so many calls; its marks move with each request.

    Its model reads from the cache at a tenth of its input: with the newest, at a twentieth, no summary pays here.
    """
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        while len(messages) < 2 * calls + 1:
            sent = json.loads(json.dumps(messages))
            for message in sent[-1:-4:-2]:
                message["content"][-1]["cache_control"] = MARK
            system: Any = [{"type": "text", "text": "You are an agent. " * 200, "cache_control": MARK}]
            answer = client.messages.create(
                model="claude-sonnet-4-6", max_tokens=999, system=system, tools=[TOOL], messages=sent
            )
            (block,) = answer.content
            if block.type != "tool_use":
                return
            messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True)]})
            first, last = map(int, block.input["command"].partition(";")[0].split()[-2:])
            said = " ".join(map(str, range(first, last + 1)))
            result = {"type": "tool_result", "tool_use_id": block.id, "content": said}
            messages.append({"role": "user", "content": [result]})


def played(turns: int) -> PlayedModel:
    """A model whose calls and results are as long as those of Claude Code's sessions in the corpus."""
    calls = {}
    for number in range(turns):
        first, chars = 10_000, CORPUS_SIZES[17 * number % len(CORPUS_SIZES)]
        command = f"seq -s ' ' {first} {first + chars // 6}; sleep 0.1"
        why = f"Step {number}. " + "What it is for. " * 40
        of_codex = {"cmd": f"{command}  # {why}"}
        calls[number] = {"Bash": {"command": command, "description": why}, "exec_command": of_codex}
    return PlayedModel(turns, calls=calls)


def begun() -> list[Any]:
    return [{"role": "user", "content": [{"type": "text", "text": "Do the work."}]}]


def history_of(body: Any) -> list[Any]:
    return next(body[key] for key in ("messages", "input", "contents") if key in body)


def summary_in(body: Any) -> str | None:
    texts = (message.get("content") for message in history_of(body))
    return next((text for text in texts if isinstance(text, str) and text.startswith(HEAD)), None)


def histories(bodies: list[Any]) -> list[Any]:
    return [unmarked(history_of(body)) for body in bodies]


def changed(bodies: list[Any]) -> list[int]:
    """The requests that do not begin with the one before."""
    pairs = pairwise(histories(bodies))
    return [number for number, (before, now) in enumerate(pairs, 1) if now[: len(before)] != before]


@pytest.mark.slow  # test_advice.py has shorter ones
@pytest.mark.timeout(300)
def test_a_session_costs_less_than_with_masks_alone() -> None:
    models, sentences = [], []
    for summaries in (True, False):
        model = played(CALLS + 1)
        masker = RequestMasker(summaries=summaries)
        with recording(model) as upstream, proxying(upstream.url, masker) as proxy:
            messages = begun()
            play(proxy.url, messages)
            sentences.append(proxy.totals.sentence())
            shown = stats(proxy)
        assert len(model.bodies) == CALLS and not model.refused
        assert not any(recede.check_pairs(body["messages"]).findings for body in model.bodies)
        assert json.dumps(shown).count("Bash") == 0
        models.append((model, shown["totals"]))
    (hybrid, sums), (alone, _) = models
    told = [summary_in(body) for body in hybrid.bodies]
    assert told[-1] is not None
    assert len(changed(hybrid.bodies)) <= sums["moves"]
    assert hybrid.usd <= 0.85 * alone.usd
    assert sums["summaries"] >= 1 and 0 < sums["summary_usd"] < sums["paid_usd"]
    assert f"; {sums['summaries']} call" in sentences[0] and "summaries" not in sentences[1]


@pytest.mark.timeout(300)
def test_a_kill_and_a_restart_change_nothing(tmp_path: Path) -> None:
    model = played(CALLS)
    messages = begun()
    with recording(model) as upstream:
        with running(upstream.url, tmp_path / "state", "--summaries") as proxy:
            play(proxy.url, messages, 160)
            proxy.end(signal.SIGKILL)
        before = len(model.bodies)
        assert summary_in(model.bodies[-1]) is not None
        del messages[-2:]
        with running(upstream.url, tmp_path / "state", "--summaries", "claude-haiku-4-5") as proxy:
            play(proxy.url, messages, 170)
            said = proxy.end(signal.SIGTERM)
    assert histories(model.bodies[before : before + 1]) == histories(model.bodies[before - 1 : before])
    assert before not in changed(model.bodies)
    assert "input tokens" in said
    assert (tmp_path / "state.summaries").stat().st_mode & 0o777 == 0o600


# One call


def turn(kind: str, number: int) -> list[Any]:
    """A call and its result."""
    name, value, text = f"call_{number}", {"command": "y" * 600}, f"{number} " + "x" * (1_000 * (1 + number % 7))
    if kind == "anthropic":
        use = {"type": "tool_use", "id": name, "name": "run", "input": value}
        result = {"type": "tool_result", "tool_use_id": name, "content": text}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    if kind == "gemini":
        response = {"functionResponse": {"name": "run", "response": {"output": text}}}
        made = {"functionCall": {"name": "run", "args": value}}
        return [{"role": "model", "parts": [made]}, {"role": "user", "parts": [response]}]
    function = {"name": "run", "arguments": json.dumps(value)}
    if kind == "responses":
        item = {"type": "function_call_output", "call_id": name, "output": text}
        return [{"type": "function_call", "call_id": name, **function}, item]
    call = {"id": name, "type": "function", "function": function}
    answer = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [answer, {"role": "tool", "tool_call_id": name, "content": text}]


def session(kind: str, turns: int) -> bytes:
    """The body of a request after so many turns."""
    first = {"parts": [{"text": "Go."}]} if kind == "gemini" else {"content": "Go."}
    messages = [{"role": "user", **first}, *(message for number in range(turns) for message in turn(kind, number))]
    key = {"responses": "input", "gemini": "contents"}.get(kind, "messages")
    rest = {} if kind == "gemini" else {"model": "m", "temperature": 0.5}
    return json.dumps({**rest, "tools": [], "stream": False, key: messages}).encode()


PATHS = {
    "anthropic": "/v1/messages?beta=true",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse&key=AIzaSecret",
}
HEADERS = {
    "anthropic": [("X-Api-Key", KEY), ("Anthropic-Version", "2023-06-01"), ("Anthropic-Beta", "b"), ("Cookie", "a=1")],
    "chat": [("Authorization", "Bearer sk-test"), ("OpenAI-Organization", "o")],
    "responses": [("Authorization", "Bearer sk-test"), ("Session-Id", "s")],
    "gemini": [("X-Other", "o")],
}
TOLD: dict[str, Any] = {
    "anthropic": {
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": SUMMARY}],
        "usage": {"input_tokens": 9, "output_tokens": 3},
    },
    "chat": {
        "choices": [{"message": {"content": SUMMARY}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3},
    },
    "responses": {
        "status": "completed",
        "output": [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": SUMMARY}]}],
        "usage": {"input_tokens": 9, "output_tokens": 3},
    },
    "gemini": {
        "candidates": [
            {"content": {"parts": [{"text": "Hm.", "thought": True}, {"text": SUMMARY}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
    },
}
JSON = "Content-Type: application/json"


def is_call(request: Request) -> bool:
    return PROMPT.partition("\n")[0].encode() in request.body


def sent_of(
    kind: str, answer: Callable[[Request], Answer], headers: Any = None, turns: int = 44, **options: Any
) -> tuple[list[Request], list[Request], Any]:
    """The requests of a session and the calls for summaries that an upstream gets; and the figures."""

    def answered(request: Request) -> Answer:
        return answer(request) if is_call(request) else [answer_of(b"{}", "200 OK", JSON)]

    masker = RequestMasker(keep=4, provider=CHEAP, summaries=True)
    with recording(answered) as upstream, proxying(upstream.url, masker, **options) as proxy:
        for number in range(1, turns):
            ask(proxy.url, "POST", PATHS[kind], session(kind, number), HEADERS[kind] if headers is None else headers)
            time.sleep(0.01)  # so that a text arrives
        shown = stats(proxy)
    calls = [request for request in upstream.requests if is_call(request)]
    return [request for request in upstream.requests if not is_call(request)], calls, shown


@pytest.mark.parametrize("name", ["", "other-model"])
@pytest.mark.parametrize("kind", PATHS)
def test_a_call_has_the_key_and_nothing_else(kind: str, name: str) -> None:
    answer = [answer_of(json.dumps(TOLD[kind]).encode(), "200 OK", JSON)]
    sent, calls, shown = sent_of(kind, lambda _: answer, summaries=name)
    assert calls and any(b"Conversation summary:\\nGoal: to find" in request.body for request in sent)
    call = calls[0]
    model = name or "m"
    paths = {
        "anthropic": "/v1/messages",
        "chat": "/v1/chat/completions",
        "responses": "/v1/responses",
        "gemini": f"/v1beta/models/{model}:generateContent?key=AIzaSecret",
    }
    assert (call.method, call.target) == ("POST", paths[kind])
    names = {name.lower() for name, _ in call.headers}
    keys = {"anthropic": {"x-api-key", "anthropic-version"}, "gemini": set()}.get(kind, {"authorization"})
    assert names == keys | {"host", "content-type", "content-length", "accept-encoding", "user-agent"}
    body = json.loads(call.body)
    assert body.get("model", model) == model
    fields = {
        "anthropic": {"model", "max_tokens", "system", "messages"},
        "chat": {"model", "max_completion_tokens", "messages"},
        "responses": {"model", "max_output_tokens", "instructions", "input", "store"},
        "gemini": {"systemInstruction", "contents", "generationConfig"},
    }
    assert body.keys() == fields[kind]
    assert "x" * 1_000 in call.body.decode()  # of the results
    assert shown["totals"]["summaries"] == len(calls)
    assert "to find the bug" not in json.dumps(shown)


def told(**fields: Any) -> Answer:
    return [answer_of(json.dumps({**TOLD["anthropic"], **fields}).encode(), "200 OK", JSON)]


GONE = threading.Event()  # which never is
WRONG: dict[str, Answer] = {
    "an error": [answer_of(b"{}", "500 Internal Server Error")],
    "a refusal": [answer_of(b'{"error": {"message": "secret text"}}', "403 Forbidden", JSON)],
    "no text": [answer_of(json.dumps({"content": []}).encode(), "200 OK", JSON)],
    "white space": [answer_of(json.dumps({"content": [{"type": "text", "text": " \n"}]}).encode(), "200 OK", JSON)],
    "a refusal of the model": told(stop_reason="refusal"),
    "a cut text": told(stop_reason="max_tokens"),
    "another text": told(content=[{"type": "text", "text": "So. " * 99}]),
    "no JSON": [answer_of(b"<html>", "200 OK", "Content-Type: text/html")],
    "a list": [answer_of(b"[1]", "200 OK", JSON)],
    "deep": [answer_of(b"[" * 100_000, "200 OK", JSON)],
    "numbers": [answer_of(b'{"content": [{"type": "text", "text": 3}]}', "200 OK", JSON)],
    "too long": [answer_of(b" " * (5 << 20), "200 OK", JSON)],
    "another encoding": [answer_of(b"\0\0", "200 OK", JSON, "Content-Encoding: gzip")],
    "half": [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"],
    "nothing": [],
    "slow": [GONE],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_whatever_goes_wrong_the_session_goes_on_masked(wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "recede.proxy"):
        sent, calls, _ = sent_of("anthropic", lambda _: WRONG[wrong])
    alone = RequestMasker(keep=4, provider=CHEAP)
    for number, request in enumerate(sent, 1):
        assert request.body == alone.mask("POST", "/v1/messages", {}, session("anthropic", number)).body
    assert 1 <= len(calls) <= 6
    assert len(sent) == 43
    if wrong != "slow":
        assert sum("no summary" in line for line in caplog.messages) == 1
        assert "secret text" not in caplog.text
    else:
        assert len(calls) == 1


def test_a_login_never_asks_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    login = [("Authorization", "Bearer sk-ant-oat01-x"), ("Anthropic-Version", "2023-06-01")]
    with caplog.at_level(logging.WARNING, "recede.proxy"):
        sent, calls, shown = sent_of("anthropic", lambda _: [], login)
    assert len(sent) == 43 and not calls and shown["totals"]["summaries"] == 0
    assert sum("login of a subscription" in line for line in caplog.messages) == 1
