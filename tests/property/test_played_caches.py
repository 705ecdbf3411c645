"""The bound on cost against caches that are played by the rules of their providers, which share no code with recede."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import anthropic
import openai
import pytest
from caching_provider import RULES, caching
from hypothesis import given, settings
from hypothesis import strategies as st
from played_sessions import Body, Row, Turn, automatic, blocks, bodies_of, chat, paid, responses
from proxied import answer_of, ask, proxying, recording

import recede
from recede._models import HOST_ROWS, MODEL_ROWS
from recede.providers import MARKED, PROVIDERS
from recede.proxy import RequestMasker

Door = Callable[[recede.Provider, list[Body], list[float]], list[Body]]
"""The views of the bodies of a session, which are sent at these seconds."""

SIZES = st.sampled_from([10, 300, 3_000, 9_000])
SECONDS = st.sampled_from([5.0, 5.0, 5.0, 200.0, 1_000.0, 1_700.0, 7_200.0])
TURNS = st.lists(
    st.tuples(SIZES, st.lists(SIZES, min_size=1, max_size=3), SECONDS), min_size=12, max_size=20
) | st.builds(lambda turn, count: [turn] * count, st.tuples(SIZES, st.lists(SIZES, max_size=1), SECONDS), st.just(40))


def table() -> Iterator[Row]:
    """What the package knows of models and makers, each rule and price once."""
    of_models = (recede.Provider.of_model(model) for model in MODEL_ROWS)
    at_hosts = (recede.Provider.of(host, model) for host, model in HOST_ROWS)
    for provider in dict.fromkeys([*of_models, *at_hosts, *PROVIDERS.values(), *(one for _, one in MARKED.values())]):
        assert provider is not None
        newer = " since GPT-5.6" if provider.cache == "entries" and provider.name == "openai" else ""
        rule = RULES.get(provider.name + newer)
        if provider.cache == "marks":
            yield Row(provider, None)
        elif rule is not None:
            yield Row(provider, rule._replace(least=provider.min_tokens or 0))


ROWS = list(table())
OF_PREFIXES = [row for row in ROWS if row.rule is not None]
OF_MARKS = [row for row in ROWS if row.rule is None]
MARK = {"cache_control": {"type": "ephemeral"}}


def marked(body: Body, count: int) -> Body:
    """A request in Anthropic's form with marks on its system prompt and its newest messages of the user."""
    body = copy.deepcopy(body)
    body["system"][-1] |= MARK
    for message in [one for one in body["messages"] if one["role"] == "user"][-count:]:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        message["content"][-1] |= MARK
    return body


def by_request_masker(path: str, provider: recede.Provider, bodies: list[Body], seconds: list[float]) -> list[Body]:
    now = [0.0]
    masker = RequestMasker(keep=2, clock=lambda: now[0], provider=provider)
    views = []
    for body, now[0] in zip(bodies, seconds, strict=True):
        views.append(json.loads(masker.mask("POST", path, {}, json.dumps(body).encode()).body))
    return views


def by_reduce(provider: recede.Provider, bodies: list[Body], seconds: list[float]) -> list[Body]:
    """The list of messages alone, and which requests were cold."""
    cold: list[int] = []
    views = []
    for place, body in enumerate(bodies):
        if place and seconds[place] - seconds[place - 1] > (provider.ttl_seconds or math.inf):
            cold.append(len(body["messages"]))
        kept = recede.reduce(body["messages"], keep=2, provider=provider, cold=cold)
        views.append({**body, "messages": kept.messages})
    return views


def by_body(provider: recede.Provider, bodies: list[Body], seconds: list[float]) -> list[Body]:
    """The whole request, and no word of pauses."""
    return [recede.reduce(body, keep=2, provider=provider).request for body in bodies]  # type: ignore[misc]


def by_history(provider: recede.Provider, bodies: list[Body], seconds: list[float]) -> list[Body]:
    history, views = recede.History(keep=2, provider=provider), []
    for place, body in enumerate(bodies):
        history.extend(body["messages"][len(history) :])
        if place and seconds[place] - seconds[place - 1] > (provider.ttl_seconds or math.inf):
            history.cache_is_cold()
        views.append({**body, "messages": history.view()})
    return views


def by_masker(provider: recede.Provider, bodies: list[Body], seconds: list[float]) -> list[Body]:
    masker = recede.masker.Masker[Any](keep=2, provider=provider)
    return [{**body, "messages": masker.view(body["messages"], request=body)} for body in bodies]


def by_marked_history(provider: recede.Provider, bodies: list[Body], seconds: list[float]) -> list[Body]:
    """Its messages have no marks: the client sets them in each view."""
    history, views = recede.History(keep=2, provider=provider), []
    for body in bodies:
        count = json.dumps(body["messages"]).count("cache_control")
        plain = json.loads(json.dumps(body["messages"]).replace(", " + json.dumps(MARK)[1:-1], ""))
        history.extend(plain[len(history) :])
        views.append(marked({**body, "messages": history.view()}, count))
    return views


def by_wrap(provider: recede.Provider, bodies: list[Body], seconds: list[float]) -> list[Body]:
    views = []
    with caching() as server:
        if bodies[0].get("model"):
            ours: Any = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
            send = recede.wrap(ours, keep=2, provider=provider).messages.create
        else:
            ours = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
            send = partial(recede.wrap(ours, keep=2, provider=provider).chat.completions.create, model="m")
        with ours:
            for body in bodies:
                send(**{**({"max_tokens": 9} if "model" in body else {}), **body})
                views.append(server.body)
    return views


def by_proxy(path: str, provider: recede.Provider, bodies: list[Body], seconds: list[float]) -> list[Body]:
    now = [0.0]
    masker = RequestMasker(keep=2, clock=lambda: now[0], provider=provider)
    json_body = [("Content-Type", "application/json")]
    with recording(lambda _: [answer_of(b"{}")]) as upstream, proxying(upstream.url, masker) as proxy:
        for body, now[0] in zip(bodies, seconds, strict=True):
            assert ask(proxy.url, "POST", path, json.dumps(body).encode(), json_body).status == 200
        return [json.loads(one.body) for one in upstream.requests]


class Client(NamedTuple):
    """A form of requests, the rows that it is played with, a door, and the most of a system prompt for it."""

    form: Callable[[list[Turn], int], Body]
    rows: list[Row]
    door: Door
    most_chars: int = 150_000
    has_marks: bool = False  # on the newest messages of each request


CLIENTS = {
    "RequestMasker": Client(chat, OF_PREFIXES, partial(by_request_masker, "/v1/chat/completions")),
    "RequestMasker, Responses": Client(responses, OF_PREFIXES, partial(by_request_masker, "/v1/responses")),
    "RequestMasker, Anthropic's form": Client(blocks, OF_PREFIXES, partial(by_request_masker, "/v1/messages")),
    "RequestMasker, automatic": Client(automatic, OF_MARKS, partial(by_request_masker, "/v1/messages")),
    "RequestMasker, marks": Client(blocks, OF_MARKS, partial(by_request_masker, "/v1/messages"), has_marks=True),
    "reduce": Client(chat, OF_PREFIXES, by_reduce, 38_000),
    "reduce, a body": Client(chat, OF_PREFIXES, by_body),
    "History": Client(chat, OF_PREFIXES, by_history, 38_000),
    "Masker": Client(chat, OF_PREFIXES, by_masker),
    "wrap": Client(chat, OF_PREFIXES, by_wrap),
    "proxy": Client(chat, OF_PREFIXES, partial(by_proxy, "/v1/chat/completions")),
    "reduce, marks": Client(blocks, OF_MARKS, by_body, has_marks=True),
    "History, marks": Client(blocks, OF_MARKS, by_marked_history, has_marks=True),
    "Masker, marks": Client(blocks, OF_MARKS, by_masker, has_marks=True),
    "wrap, marks": Client(blocks, OF_MARKS, by_wrap, has_marks=True),
    "proxy, marks": Client(blocks, OF_MARKS, partial(by_proxy, "/v1/messages"), has_marks=True),
}


def shares_of_raw(client: Client, row: Row, turns: list[Turn], system_chars: int, marks: int = 2) -> list[float]:
    """What all requests so far have cost after each, as a share of what raw would have cost so far."""
    bodies = bodies_of(client.form(turns, system_chars))
    if client.has_marks:
        bodies = [marked(body, marks) for body in bodies]
    seconds = [1_700_000_000.0]
    for _, _, pause in turns[: len(bodies) - 1]:
        seconds.append(seconds[-1] + pause)
    views = client.door(row.provider, bodies, seconds)
    return [one / max(1.0, raw) for one, raw in zip(paid(row, views, seconds), paid(row, bodies, seconds), strict=True)]


@pytest.mark.parametrize("name", CLIENTS)
@settings(max_examples=settings.default.max_examples // 4)
@given(
    data=st.data(),
    turns=TURNS,
    system_chars=st.sampled_from([0, 3_000, 12_000, 38_000, 150_000]),
    marks=st.integers(1, 2),
)
def test_no_moment_of_a_played_cache_is_over_the_bound(
    name: str, data: st.DataObject, turns: list[Turn], system_chars: int, marks: int
) -> None:
    client = CLIENTS[name]
    row = data.draw(st.sampled_from(client.rows))
    shares = shares_of_raw(client, row, turns, min(system_chars, client.most_chars), marks)
    assert max(shares) <= 1.1 * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CLIENTS)
def test_each_row_of_the_table_keeps_the_bound_at_each_door(name: str) -> None:
    client = CLIENTS[name]
    for row in client.rows:
        rng = random.Random(f"{name} {row.provider}")
        turns: list[Turn] = [
            (rng.choice((10, 300, 3_000)), rng.choices((300, 3_000, 9_000), k=rng.randint(1, 2)),
             rng.choice((5.0, 5.0, 5.0, 5.0, 200.0, 1_000.0, 7_200.0)))
            for _ in range(40)
        ]  # fmt: skip
        shares = shares_of_raw(client, row, turns, min(rng.choice((0, 12_000, 38_000)), client.most_chars))
        assert max(shares) <= 1.1 * (1 + 1e-9), row.provider


@pytest.mark.parametrize("name", CLIENTS)
def test_long_sessions_pay_for_their_moves(name: str) -> None:
    """The property above is not true because nothing is masked."""
    client = CLIENTS[name]
    turns: list[Turn] = [(20, [4_000], 10.0)] * 60
    rows = [row for row in client.rows if row.provider.read >= 0.1]
    assert min(shares_of_raw(client, row, turns, 3_000)[-1] for row in rows[:: len(rows) // 2 + 1]) < 0.95
