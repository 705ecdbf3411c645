"""Recorded sessions as the requests of their agents, against a provider that keeps its cache by the rules."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from caching_provider import CachingProvider, caching
from shared_data import CORPUS, need
from test_economy import MARK, PINNED, PRICES, SYSTEM, SYSTEM_CHARS, History, ends_of, long_sessions, marked, pay

import recede
from recede import RequestMasker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def sent(messages: History, provider: CachingProvider, pauses: frozenset[int]) -> list[History]:
    """The views of all requests; each is counted by the provider, which refuses what is wrong with marks."""
    clock = Clock()
    masker, views, before = RequestMasker(keep=10, clock=clock), [], 0
    for end in ends_of(messages):
        provider.seconds += 3_600.0 if end in pauses else 1.0
        clock.now = 1_700_000_000.0 + provider.seconds
        body = {"model": "claude", "max_tokens": 1, "system": SYSTEM, "messages": marked(messages[:end], before)}
        done = masker.mask("POST", "/v1/messages", {}, json.dumps(body).encode())
        assert done.fault is None
        view = json.loads(done.body)
        usage = provider.count(view)
        assert not isinstance(usage, str), usage
        assert view["system"] == SYSTEM and recede.check_pairs(view["messages"]) == recede.check_pairs(messages[:end])
        views.append((view["messages"], done.moved))
        before = end
    for (one, _), (two, moved) in pairwise(views):
        assert moved or unmarked(two[: len(one)]) == unmarked(one)
    return [view for view, _ in views]


def unmarked(messages: History) -> Any:
    return json.loads(json.dumps(messages).replace(f', "cache_control": {json.dumps(MARK["cache_control"])}', ""))


def check(messages: History, pauses: frozenset[int] = frozenset()) -> float:
    """A session costs what its replay says; returns that as a part of raw."""
    if messages[-1]["role"] == "user":
        messages = [*messages, {"role": "assistant", "content": [{"type": "text", "text": "."}]}]
    now, times = 0.0, {}
    for end in ends_of(messages):
        now += 3_600.0 if end in pauses else 1.0
        times[end] = now
    replayed = recede.costs.replay(
        messages, [PINNED], prices=PRICES, cache="anthropic", system_chars=SYSTEM_CHARS, times=times
    )
    raw, expected = (cost.cost for cost in replayed.costs)
    with caching() as provider:
        sent(messages, provider, pauses)
        paid = (provider.read * PRICES.cached + provider.written * PRICES.write + provider.plain * PRICES.input) / 1e6
    assert paid <= expected * 1.05
    assert pauses or paid >= expected * 0.95  # a replay does not know that a pause was noticed, which saves more
    return paid / raw


def with_pauses(messages: History) -> frozenset[int]:
    ends = ends_of(messages)
    return frozenset(ends[len(ends) // 3 :: max(1, len(ends) // 3)])


def test_short_sessions_through_the_masker_cost_what_their_replays_say() -> None:
    need(CORPUS)
    by_size = sorted(long_sessions(), key=lambda messages: len(json.dumps(messages)) * len(messages))
    for messages in by_size[:3]:
        check(messages)
        check(messages, with_pauses(messages))


def test_the_official_client_pays_through_the_proxy_what_the_replay_says() -> None:
    need(CORPUS)
    pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")
    from proxied import proxying

    messages = min(long_sessions(), key=lambda messages: len(json.dumps(messages)) * len(messages))
    replayed = recede.costs.replay(messages, [PINNED], prices=PRICES, cache="anthropic", system_chars=SYSTEM_CHARS)
    with caching() as provider:
        masker = RequestMasker(keep=10, clock=lambda: 1_700_000_000.0 + provider.seconds)
        with proxying(provider.url, masker) as proxy:
            provider.url = proxy.url
            paid = pay(provider, messages, lambda sent, before, _: marked(sent, before))
        assert proxy.totals.sums.cached_tokens == provider.read and proxy.totals.sums.written_tokens == provider.written
    assert paid == pytest.approx(replayed.costs[-1].cost, rel=0.05) and paid < replayed.costs[0].cost


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_all_sessions_through_the_masker_cost_what_their_replays_say() -> None:
    need(CORPUS)
    parts = [check(messages, pauses) for messages in long_sessions() for pauses in (frozenset(), with_pauses(messages))]
    assert len(parts) >= 40 and sum(parts) / len(parts) < 0.95
