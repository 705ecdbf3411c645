"""Recorded sessions as the requests of their agents over HTTP, against providers that keep caches by the rules."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

from caching_provider import CachingProvider, caching, history_of
from proxied import proxying
from shared_data import CORPUS, corpus_files, need
from test_economy import MARK, PINNED, PLAIN, PRICES, SYSTEM, SYSTEM_CHARS, History, as_anthropic, long_sessions, pay
from test_economy import marked as marked_by_clients

import recede
from recede import transcripts
from recede._agents import USER_TOOLS, texts_of
from recede.costs import PRESETS
from recede.proxy import RequestMasker
from recede.proxy.server import Proxy

TEXTS = texts_of(None)
KNOWN = (*TEXTS.user_texts, *TEXTS.markers, *(text for _, text in TEXTS.stubs))
TOOLS = [{"name": "run", "description": "x" * SYSTEM_CHARS}]


@dataclass
class Session:
    """A recorded session as its agent sends it: where, in which field, and with which marks."""

    name: str
    history: History
    path: str = "/v1/messages"
    field: str = "messages"
    cache: str = "anthropic"
    pauses: frozenset[int] = frozenset()
    ends: tuple[int, ...] = ()  # how many messages each request has

    def __post_init__(self) -> None:
        if not is_of_agent(self.history[-1]):  # an answer to the last request
            self.history = [*self.history, {"role": "assistant", "content": [{"type": "text", "text": "."}]}]
        asked = [False, *map(is_of_agent, self.history)]
        self.ends = tuple(place for place, is_answer in enumerate(asked[1:]) if is_answer and not asked[place])

    def with_pauses(self) -> Session:
        step = max(1, len(self.ends) // 3)
        return Session(**{**vars(self), "pauses": frozenset(self.ends[step::step])})

    def bodies(self) -> Iterator[bytes]:
        """The bodies of all requests; each message is written once, and again with a mark."""
        is_marked, before = self.cache == "anthropic", 0
        fixed = {"system": SYSTEM} if is_marked else {"tools": TOOLS}
        head = orjson.dumps({"model": "claude", "max_tokens": 1, **fixed})[:-1] + f',"{self.field}":['.encode()
        written = [orjson.dumps(message) for message in self.history]
        for end in self.ends:
            sent = written[:end]
            if is_marked:
                for place in {before - 1, end - 1} - {-1}:
                    *others, last = self.history[place]["content"]
                    sent[place] = orjson.dumps({**self.history[place], "content": [*others, {**last, **MARK}]})
            yield head + b",".join(sent) + b"]}"
            before = end


def is_of_agent(message: dict[str, Any]) -> bool:
    kind = str(message.get("type") or "")
    return message.get("role") in ("assistant", "model") or kind == "reasoning" or kind.endswith("_call")


def as_gemini(history: History) -> History:
    """Messages of Anthropic as contents."""

    def part(block: dict[str, Any]) -> dict[str, Any]:
        if block["type"] == "tool_use":
            return {"functionCall": {"id": block["id"], "name": block["name"], "args": block["input"]}}
        if block["type"] == "tool_result":
            answer = {"id": block["tool_use_id"], "name": "run", "response": {"output": block["content"]}}
            return {"functionResponse": answer}
        return {"text": block["text"]}

    roles = {"user": "user", "assistant": "model"}
    return [{"role": roles[one["role"]], "parts": [part(block) for block in one["content"]]} for one in history]


def without_known_texts(history: History) -> History:
    """Messages of Anthropic without what the proxy alone knows: the user's own words, texts of agents."""

    def plain(block: dict[str, Any]) -> dict[str, Any]:
        is_known = str(block.get("content")).startswith(KNOWN)
        name = {"name": "run"} if block.get("name") in USER_TOOLS else {}
        return {**block, **name, **({"content": f"- {block['content']}"} if is_known else {})}

    return [{**one, "content": [plain(block) for block in one["content"]]} for one in history]


def sessions() -> Iterator[Session]:
    """All of the corpus, each by the API of its agent."""
    for path in corpus_files():
        for number, found in enumerate(transcripts.read_all(path)):
            history, name = found.messages, f"{path.name} {number}"
            if not history:
                continue
            if found.format in ("claude_code", "pi"):
                yield Session(name, without_known_texts(as_anthropic(history)))
            elif found.format == "gemini":
                contents = as_gemini(as_anthropic(history))
                yield Session(name, contents, "/v1beta/models/g:generateContent", "contents", "gemini")
            elif found.format == "codex":
                yield Session(name, history, "/v1/responses", "input", "openai")
            else:
                yield Session(name, history, "/v1/chat/completions", "messages", "openai")


@contextlib.contextmanager
def between() -> Iterator[tuple[Proxy, CachingProvider]]:
    """A proxy before a provider, with the same clock."""
    with caching() as provider:
        masker = RequestMasker(keep=10, clock=lambda: 1_700_000_000.0 + provider.seconds)
        with proxying(provider.url, masker) as proxy:
            yield proxy, provider


def check(session: Session, proxy: Proxy, provider: CachingProvider) -> tuple[float, float]:
    """A session costs what its replay says, and its requests are right; returns its cost, and that of the raw one."""
    provider.seconds += 3_600.0
    counts = counts_of(provider)
    times = {}
    shapes = [shape_of(message) for message in session.history]
    broken, digests = [], [0]
    connection = http.client.HTTPConnection(proxy.url.partition("://")[2], timeout=60)
    with contextlib.closing(connection):
        for number, (end, body) in enumerate(zip(session.ends, session.bodies(), strict=True)):
            provider.seconds += 3_600.0 if end in session.pauses else 1.0
            times[end] = provider.seconds
            connection.request("POST", session.path, body, {"Content-Type": "application/json"})
            with connection.getresponse() as answer:
                assert answer.status == 200, answer.read()
                answer.read()
            view = history_of(provider.body)
            assert [shape_of(message) for message in view] == shapes[:end]
            before, digests = digests, chained(view)
            if before[-1] != digests[len(before) - 1]:
                broken.append(number)
        connection.request("GET", "/recede/stats")
        told = json.loads(connection.getresponse().read())["totals"]
    assert recede.check_pairs(view) == recede.check_pairs(session.history[:end])
    policy = PINNED if session.cache == "anthropic" else PLAIN
    prices = PRESETS[session.cache]._replace(output=0)
    replayed = recede.costs.replay(
        session.history, [policy], prices=prices, cache=session.cache, system_chars=SYSTEM_CHARS, times=times
    )
    turns = replayed.policies[-1].turns
    assert tuple(turn.messages for turn in turns) == session.ends
    masked = [0, *(turn.masked_count for turn in turns)]
    assert broken == [place for place in range(len(turns)) if masked[place] != masked[place + 1]]
    raw, expected = (cost.cost for cost in replayed.costs)
    sent = [now - then for now, then in zip(counts_of(provider), counts, strict=True)]
    paid = (sent[1] * prices.cached + sent[2] * prices.write + sent[3] * prices.input) / 1e6
    assert sent[0] == len(turns) and paid == pytest.approx(expected, rel=0.05), session.name
    assert sum(sent[1:]) * 4 == pytest.approx(sum(turn.view_chars for turn in turns), rel=0.05)
    sums = (told["requests"], told["cached_tokens"], told["written_tokens"], told["sent_tokens"])
    assert sums == (*counts_of(provider)[:3], sum(counts_of(provider)[1:]))
    return paid, raw


def counts_of(provider: CachingProvider) -> tuple[int, int, int, int]:
    return provider.requests, provider.read, provider.written, provider.plain


def shape_of(message: dict[str, Any]) -> Any:
    """What masking leaves as it is: who speaks, the kinds of blocks, calls and results and their ids."""
    names = ("role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "name")
    parts = [message, *(message.get("tool_calls") or ())]
    parts += next((value for name in ("content", "parts") if isinstance(value := message.get(name), list)), [])
    parts += [value for part in parts for name in ("functionCall", "functionResponse") if (value := part.get(name))]
    return [[part.get(name) for name in names] for part in parts]


def chained(view: History) -> list[int]:
    """A hash of what precedes each message without its marks, and one of all."""
    digests = [0]
    for message in view:
        content = message.get("content")
        if isinstance(content, list) and any("cache_control" in block for block in content):
            content = [{name: value for name, value in block.items() if name != "cache_control"} for block in content]
            message = {**message, "content": content}
        digests.append(hash((digests[-1], orjson.dumps(message))))
    return digests


def test_short_sessions_through_the_proxy_cost_what_their_replays_say() -> None:
    need(CORPUS)
    options: dict[str, Any] = {"boundary": "break_even", "provider": "anthropic"}
    long = [one for one in sessions() if recede.reduce(one.history, **options).masked_count]
    long.sort(key=lambda one: len(one.ends) * len(json.dumps(one.history)))
    for cache in ("anthropic", "openai"):
        for session in [one for one in long if one.cache == cache][:2]:
            for played in (session, session.with_pauses()):
                with between() as (proxy, provider):
                    check(played, proxy, provider)


def test_the_official_client_pays_through_the_proxy_what_the_replay_says() -> None:
    need(CORPUS)
    messages = min(long_sessions(), key=lambda messages: len(json.dumps(messages)) * len(messages))
    replayed = recede.costs.replay(messages, [PINNED], prices=PRICES, cache="anthropic", system_chars=SYSTEM_CHARS)
    with between() as (proxy, provider):
        provider.url = proxy.url
        paid = pay(provider, messages, lambda sent, before, _: marked_by_clients(sent, before))
    sums = proxy.totals.sums  # whole when the proxy has ended: it counts an answer after it has passed
    assert sums.cached_tokens == provider.read and sums.written_tokens == provider.written
    assert paid == pytest.approx(replayed.costs[-1].cost, rel=0.05) and paid < replayed.costs[0].cost


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("has_pauses", [False, True])
def test_all_sessions_through_one_proxy_cost_what_their_replays_say(has_pauses: bool) -> None:
    need(CORPUS)
    with between() as (proxy, provider):
        costs = [check(session.with_pauses() if has_pauses else session, proxy, provider) for session in sessions()]
    paid, raw = (sum(column) for column in zip(*costs, strict=True))
    assert len(costs) > 190 and paid < 0.7 * raw
