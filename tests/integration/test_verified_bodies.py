"""Bodies for a model that verifies its reasoning, by an account of today: no request of a conversation is refused.

Whatever comes in its middle: another model, tools or system prompt, recede off, a restart with other options, a lost
ledger, requests that are sent again, branches, questions for a count.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")
anthropic = pytest.importorskip("anthropic", reason="the client is not installed")
httpx2 = pytest.importorskip("httpx2", reason="the client is not installed")

from planted.anthropic_rows import thinking_turn
from proxied import Answer, Request, answer_of, ask, proxying, recording

import recede
from provider_rules import NEW, PROVIDERS, Taken
from provider_rules.anthropic.reasoning import CONTROLS
from recede.integrations.http import recede_client
from recede.proxy import RequestMasker

Body = dict[str, Any]
Headers = dict[str, str]
RULES = PROVIDERS["anthropic"]
MODEL, OLDER = "claude-opus-5-5", "claude-opus-4-7"
PATH, COUNTING = "/v1/messages", "/v1/messages/count_tokens"
OPTIONS: Body = {"keep": 4, "boundary": 5}
TASK = {"role": "user", "content": "Find the bug in the parser, and fix it."}
TOOL: Body = {"name": "read", "input_schema": {"type": "object"}}
OFF = {"x-recede": "off"}
Send = Callable[..., Body]
"""Sends a body, with headers, and to a path, through a door: what the provider gets."""


class Wire:
    """An upstream that keeps the newest body, and answers with a dot, or refuses it as the provider does."""

    def __init__(self) -> None:
        self.asked = self.refused = 0
        self.of_branch: dict[str | None, Body] = {}  # the newest body with such a header
        self.fault: str | None = None  # with which every request is refused
        self.aliases: dict[str, str] = {}

    def __call__(self, request: Request) -> Answer:
        self.asked += 1
        body: Body = json.loads(request.body)
        self.body = self.of_branch[request.named("x-branch")] = body
        taken = RULES.take({"max_tokens": 1, **body, "model": self.aliases.get(body["model"], body["model"])}, NEW)
        if fault := self.fault or taken.fault:
            self.refused += 1
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": str(fault)}}
            return [answer_of(json.dumps(error).encode(), "400 Bad Request", "Content-Type: application/json")]
        if request.target == COUNTING:
            return [answer_of(b'{"input_tokens": 7}', "200 OK", "Content-Type: application/json")]
        said = {"content": [{"type": "text", "text": "."}], "usage": {"input_tokens": 9, "output_tokens": 1}}
        answer = {"id": "m", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": "end_turn", **said}
        return [answer_of(json.dumps(answer).encode(), "200 OK", "Content-Type: application/json")]


@contextlib.contextmanager
def of_masker(state: Path, wire: Wire, **options: Any) -> Iterator[Send]:
    masker = RequestMasker(state=state, **options)
    yield lambda body, headers, path=PATH: json.loads(
        masker.mask("POST", path, headers, json.dumps(body).encode()).body
    )
    masker.close()


@contextlib.contextmanager
def of_proxy(state: Path, wire: Wire, **options: Any) -> Iterator[Send]:
    masker = RequestMasker(state=state, **options)
    with recording(wire) as upstream, proxying(upstream.url, masker) as proxy:

        def send(body: Body, headers: Headers, path: str = PATH) -> Body:
            given = [("content-type", "application/json"), *headers.items()]
            ask(proxy.url, "POST", path, json.dumps(body).encode(), given)
            return wire.of_branch[headers.get("x-branch")]

        yield send
    masker.close()


@contextlib.contextmanager
def of_http(state: Path, wire: Wire, **options: Any) -> Iterator[Send]:
    masker = RequestMasker(state=state, **options)
    with recording(wire) as upstream, recede_client(httpx2.Client(), masker) as client:

        def send(body: Body, headers: Headers, path: str = PATH) -> Body:
            client.post(f"{upstream.url}{path}", json=body, headers=headers)
            return wire.of_branch[headers.get("x-branch")]

        yield send
    masker.close()


@contextlib.contextmanager
def of_wrap(state: Path, wire: Wire, **options: Any) -> Iterator[Send]:
    with recording(wire) as upstream:
        client = anthropic.Anthropic(api_key="none", base_url=upstream.url, max_retries=0)
        wrapped = recede.wrap(client, **options)

        def send(body: Body, headers: Headers, path: str = PATH) -> Body:
            ask = wrapped.messages.create if path == PATH else wrapped.messages.count_tokens
            ask(**body, extra_headers=headers)
            return wire.of_branch[headers.get("x-branch")]

        with client:
            yield send


@contextlib.contextmanager
def of_async_wrap(state: Path, wire: Wire, **options: Any) -> Iterator[Send]:
    loop = asyncio.new_event_loop()
    with recording(wire) as upstream, contextlib.closing(loop):
        client = anthropic.AsyncAnthropic(api_key="none", base_url=upstream.url, max_retries=0)
        wrapped = recede.wrap(client, **options)

        def send(body: Body, headers: Headers, path: str = PATH) -> Body:
            ask = wrapped.messages.create if path == PATH else wrapped.messages.count_tokens
            loop.run_until_complete(ask(**body, extra_headers=headers))
            return wire.body

        yield send
        loop.run_until_complete(client.close())


DOORS: dict[str, Callable[..., contextlib.AbstractContextManager[Send]]] = {
    "RequestMasker": of_masker,
    "proxy": of_proxy,
    "HTTP client": of_http,
    "wrap": of_wrap,
    "async wrap": of_async_wrap,
}


class Loop:
    """A conversation through a door that may be closed and opened again."""

    def __init__(self, door: Any, folder: Path) -> None:
        self._door, self._folder, self._open = door, folder, contextlib.ExitStack()
        self.ledgers = 0
        self.history: list[Body] = [TASK]
        self.around: Body = {"model": MODEL, "max_tokens": 99, "system": "You are an agent.", "tools": [TOOL]}
        self.headers: Headers = {}
        self.kept: list[int] = []  # thoughts in each request
        self.wire = Wire()
        self.open()

    def open(self, **options: Any) -> None:
        self._open.close()
        state = self._folder / f"state{self.ledgers}"
        self.send: Send = self._open.enter_context(self._door(state, self.wire, **{**OPTIONS, **options}))

    def lose(self) -> None:
        self.ledgers += 1
        self.open()

    def request(self, headers: Headers | None = None) -> Body:
        """Send the history; the body that the provider takes."""
        sent = self.send({**self.around, "messages": self.history}, self.headers if headers is None else headers)
        model = self.wire.aliases.get(sent["model"], sent["model"])
        taken: Taken = RULES.take({**sent, "model": model}, NEW)
        assert taken.fault is None, (len(self.kept), taken.fault)
        assert all(one["reason"] == "model_binding_mismatch" for one in taken.dropped), taken.dropped
        self.kept.append(json.dumps(sent["messages"]).count('"thinking": "Part'))
        return sent

    def answer(self, sent: Body, number: int) -> None:
        step = thinking_turn(number)
        model = self.wire.aliases.get(sent["model"], sent["model"])
        content = RULES.answered({**sent, "model": model}, step.answer[0]["content"], NEW)
        self.history = [*self.history, {"role": "assistant", "content": content}, *step.after]

    def turn(self, number: int) -> None:
        self.answer(self.request(), number)

    def close(self) -> None:
        self._open.close()


def test_provider_that_is_given_to_wrap_leaves_the_rule_to_the_model(tmp_path: Path) -> None:
    loop = Loop(of_wrap, tmp_path)
    loop.open(provider="openai")
    for number in range(30):
        loop.turn(number)
    loop.close()
    assert 4 <= max(loop.kept[12:]) < 25, loop.kept


def plain(loop: Loop, number: int) -> None:
    loop.turn(number)


def switched(loop: Loop, number: int) -> None:
    loop.around["model"] = OLDER if number in range(12, 22) or number == 31 else MODEL
    loop.turn(number)


def off_and_on(loop: Loop, number: int) -> None:
    loop.headers = OFF if number in (0, 1, 14, 25, 26) else {}
    loop.turn(number)


def begun_without(loop: Loop, number: int) -> None:
    if number >= 17:
        return loop.turn(number)
    loop.answer({**loop.around, "messages": loop.history}, number)


def lost(loop: Loop, number: int) -> None:
    if number in (13, 14, 29):
        loop.lose()
    loop.turn(number)


def restarted(loop: Loop, number: int) -> None:
    if number in (11, 19, 28):
        loop.open(**{11: {"keep": 9}, 19: {"placeholder": "[gone]"}, 28: {"max_input_tokens": 9_000}}[number])
    loop.turn(number)


def other_tools(loop: Loop, number: int) -> None:
    if number == 16:
        loop.around["tools"] = [{"name": "alone", "input_schema": {"type": "object"}}, TOOL]
    if number == 23:
        loop.around["tools"] = [TOOL, *loop.around["tools"][:1], {"name": "later", "defer_loading": True}]
    loop.turn(number)


def other_prompt(loop: Loop, number: int) -> None:
    loop.around["system"] = "You are an agent." if number < 18 else [{"type": "text", "text": "You are a bot."}]
    loop.turn(number)


def with_nonce(loop: Loop, number: int) -> None:
    nonce = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.170; cch={number}"}
    loop.around["system"] = [
        nonce,
        {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}},
    ]
    loop.turn(number)


def with_a_moving_mark(loop: Loop, number: int) -> None:
    """As mini-SWE-agent does: the text that is marked is a list of one block."""
    history = loop.history
    *others, last = history
    if isinstance(last["content"], str):
        content: Any = [{"type": "text", "text": last["content"], "cache_control": {"type": "ephemeral"}}]
    else:
        content = [*last["content"][:-1], {**last["content"][-1], "cache_control": {"type": "ephemeral"}}]
    loop.history = [*others, {**last, "content": content}]
    sent = loop.request()
    loop.history = history
    loop.answer(sent, number)


def sent_again(loop: Loop, number: int) -> None:
    first = loop.request()
    if number in (14, 22):
        loop.open(keep=7 + number)
    again = loop.request()
    loop.answer(first if number % 3 else again, number)


def branched(loop: Loop, number: int) -> None:
    """Two agents in turn, of whom the one goes on from an early place."""
    others: list[Body] = loop.__dict__.setdefault("others", [])
    if number == 15:
        others[:] = loop.history[:13]
    if number > 15 and number % 2:
        loop.history, others[:] = [*others], loop.history
    loop.turn(number)


def counted(loop: Loop, number: int) -> None:
    """With questions that name no tools, which the provider refuses: their prefix is another one."""
    with contextlib.suppress(anthropic.BadRequestError):
        loop.send({"model": MODEL, "messages": loop.history}, {}, COUNTING)
    loop.wire.refused = 0
    loop.turn(number)


WAYS: dict[str, Callable[[Loop, int], None]] = {
    one.__name__: one
    for one in (
        *(plain, switched, off_and_on, begun_without, lost, restarted, other_tools, other_prompt, with_nonce),
        *(with_a_moving_mark, sent_again, branched, counted),
    )
}
OF_MEMORY = (
    "plain",
    "switched",
    "other_tools",
    "other_prompt",
    "with_nonce",
    "with_a_moving_mark",
    "branched",
    "counted",
)
"""The ways of a door whose memory ends with it, and which takes what it does not remember as reduced."""
QUICK = ("lost", "other_tools")
REFUSED = {"lost": 2}
"""Requests that are sent again at most: a door that retries takes requests of a lost ledger as sent raw."""
ALL_DOORS = [
    pytest.param(door, way, marks=[] if door == "RequestMasker" or way in QUICK else [pytest.mark.slow])
    for door in DOORS
    for way in WAYS
    if "wrap" not in door or way in OF_MEMORY
]


def played(door: str, way: Callable[[Loop, int], None], folder: Path) -> Loop:
    """Play a conversation through a door, which is closed then."""
    with contextlib.closing(Loop(DOORS[door], folder)) as loop:
        for number in range(40):
            way(loop, number)
        loop.request()
        return loop


@pytest.mark.parametrize(("door", "way"), ALL_DOORS)
def test_request_that_verifies_is_taken_whatever_came_before(door: str, way: str, tmp_path: Path) -> None:
    loop = played(door, WAYS[way], tmp_path)
    assert max(loop.kept[20:]) >= 4, loop.kept
    assert loop.wire.refused <= REFUSED.get(way, 0) * (door != "RequestMasker"), loop.wire.refused


def edited_by_the_agent(loop: Loop, number: int) -> None:
    """As an agent does that cuts the second newest result."""
    if number in (3, 5, 22, 33):
        of_results = [at for at, one in enumerate(loop.history) if "tool_result" in json.dumps(one)]
        edited = json.loads(json.dumps(loop.history[of_results[-2]]))
        edited["content"][0]["content"] = f"cut by the agent, {number}"
        loop.history = [*loop.history[: of_results[-2]], edited, *loop.history[of_results[-2] + 1 :]]
    loop.turn(number)


def of_an_alias(loop: Loop, number: int) -> None:
    loop.wire.aliases, loop.around["model"] = {"our-coder": MODEL}, "our-coder"
    loop.turn(number)


def asking_for_refusals(loop: Loop) -> None:
    loop.wire.aliases, loop.around["model"] = {"our-coder": MODEL}, "our-coder"
    loop.around["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}


def with_another_fault(loop: Loop) -> None:
    loop.wire.fault = "prompt is too long: " + "9" * 100_000


RETRYING = [door for door in DOORS if door != "RequestMasker"]
REFUSALS = {one.__name__: one for one in (edited_by_the_agent, of_an_alias)}


@pytest.mark.parametrize("way", REFUSALS)
@pytest.mark.parametrize("door", RETRYING)
def test_refused_reasoning_is_left_out_and_the_request_sent_again(door: str, way: str, tmp_path: Path) -> None:
    loop = played(door, REFUSALS[way], tmp_path)
    assert loop.wire.refused == (2 if way == "edited_by_the_agent" else 1), (loop.wire.refused, loop.kept)
    is_over = way == "edited_by_the_agent"  # from the second refusal on nothing signed is sent
    assert (max(loop.kept[24:]) == 0) == is_over, loop.kept


def test_loop_of_bodies_keeps_what_reduce_would(tmp_path: Path) -> None:
    loop = Loop(of_masker, tmp_path)
    for number in range(40):
        loop.turn(number)
    assert loop.kept == of_reduce(40)


def of_reduce(turns: int) -> list[int]:
    """Thoughts in each request of a loop of `reduce`, which has no memory."""
    history: list[Body] = [TASK]
    kept: list[int] = []
    around = {"model": MODEL, "max_tokens": 99, "system": "You are an agent.", "tools": [TOOL]}
    for number in range(turns):
        sent = recede.reduce({**around, "messages": history}, **OPTIONS).request
        kept.append(json.dumps(sent["messages"]).count('"thinking": "Part'))
        step = thinking_turn(number)
        content = RULES.answered(sent, step.answer[0]["content"], NEW)
        history = [*history, {"role": "assistant", "content": content}, *step.after]
    return kept


@pytest.mark.parametrize("fault", [asking_for_refusals, with_another_fault])
@pytest.mark.parametrize("door", RETRYING)
def test_refusal_that_is_no_business_of_ours_is_passed_on(door: str, fault: Any, tmp_path: Path) -> None:
    with contextlib.closing(Loop(DOORS[door], tmp_path)) as loop:
        for number in range(4):
            loop.turn(number)
        fault(loop)
        if fault is asking_for_refusals:
            loop.history[2]["content"][0]["content"] = "cut by the agent"
        before = loop.wire.asked
        with contextlib.suppress(anthropic.BadRequestError):
            loop.send({**loop.around, "messages": loop.history}, {"anthropic-beta": CONTROLS})
        assert (loop.wire.asked, loop.wire.refused) == (before + 1, 1)


def test_refusal_that_the_proxy_passes_on_has_all_of_its_bytes(tmp_path: Path) -> None:
    wire, masker = Wire(), RequestMasker(state=tmp_path / "state")
    history = [TASK]
    for number in range(3):
        step = thinking_turn(number)
        answer = RULES.answered({"model": MODEL, "max_tokens": 9, "messages": history}, step.answer[0]["content"], NEW)
        history = [*history, {"role": "assistant", "content": answer}, *step.after]
    body = json.dumps({"model": MODEL, "max_tokens": 99, "messages": history}).encode()
    wire.fault = "a fault that is long" * 20_000
    with recording(wire) as upstream, proxying(upstream.url, masker) as proxy:
        answers = [
            ask(url, "POST", PATH, body, [("content-type", "application/json")]) for url in (upstream.url, proxy.url)
        ]
    assert answers[0].body == answers[1].body and len(answers[1].body) > 400_000


@pytest.mark.parametrize("observe", [False, True])
def test_stats_of_the_proxy_say_what_became_of_reasoning(observe: bool, tmp_path: Path) -> None:
    wire, history = Wire(), [TASK]
    wire.aliases = {} if observe else {"our-coder": MODEL}
    name = MODEL if observe else "our-coder"
    masker = RequestMasker(state=tmp_path / "state", **OPTIONS)
    with recording(wire) as upstream, proxying(upstream.url, masker, observe=observe) as proxy:
        for number in range(20):
            body = json.dumps({"model": name, "max_tokens": 99, "messages": history}).encode()
            ask(proxy.url, "POST", PATH, body, [("content-type", "application/json")])
            step = thinking_turn(number)
            answer = RULES.answered({**wire.body, "model": MODEL}, step.answer[0]["content"], NEW)
            history = [*history, {"role": "assistant", "content": answer}, *step.after]
        stats = json.loads(ask(proxy.url, "GET", "/recede/stats").body)
    sums = stats["totals"]
    assert (stats["refusals"], sums["requests"], sums["dropped_reasoning"]) == (wire.refused, 20, 0)
    assert wire.refused == (not observe) and 0 < sums["without_reasoning"] < 20
