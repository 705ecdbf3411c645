"""The bound on cost against caches that are played by the rules of their providers, which share no code with recede."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest
from caching_provider import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from played_sessions import Body, Row, Turn, automatic, blocks, bodies_of, chat, paid, responses

import recede
from recede._models import MODEL_ROWS
from recede.providers import PROVIDERS
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
    for provider in dict.fromkeys([*of_models, *PROVIDERS.values()]):
        assert provider is not None
        newer = " since GPT-5.6" if provider.cache == "entries" and provider.name == "openai" else ""
        rule = RULES.get(provider.name + newer)
        if rule is not None:
            yield Row(provider, rule._replace(least=provider.min_tokens or 0))
        elif provider.cache == "marks":
            yield Row(provider, None)


ROWS = list(table())
OF_PREFIXES = [row for row in ROWS if row.rule is not None]


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


class Client(NamedTuple):
    """A form of requests, the rows that it is played with, a door, and the most of a system prompt for it."""

    form: Callable[[list[Turn], int], Body]
    rows: list[Row]
    door: Door
    most_chars: int = 150_000


CLIENTS = {
    "RequestMasker": Client(chat, OF_PREFIXES, partial(by_request_masker, "/v1/chat/completions")),
    "RequestMasker, Responses": Client(responses, OF_PREFIXES, partial(by_request_masker, "/v1/responses")),
    "RequestMasker, Anthropic's form": Client(blocks, OF_PREFIXES, partial(by_request_masker, "/v1/messages")),
    "RequestMasker, automatic": Client(
        automatic, [row for row in ROWS if row.rule is None], partial(by_request_masker, "/v1/messages")
    ),
    "reduce": Client(chat, OF_PREFIXES, by_reduce, 38_000),
    "reduce, a body": Client(chat, OF_PREFIXES, by_body),
    "History": Client(chat, OF_PREFIXES, by_history, 38_000),
    "Masker": Client(chat, OF_PREFIXES, by_masker),
}


def shares_of_raw(client: Client, row: Row, turns: list[Turn], system_chars: int) -> list[float]:
    """What all requests so far have cost after each, as a share of what raw would have cost so far."""
    bodies = bodies_of(client.form(turns, system_chars))
    seconds = [1_700_000_000.0]
    for _, _, pause in turns[: len(bodies) - 1]:
        seconds.append(seconds[-1] + pause)
    views = client.door(row.provider, bodies, seconds)
    return [one / max(1.0, raw) for one, raw in zip(paid(row, views, seconds), paid(row, bodies, seconds), strict=True)]


@pytest.mark.parametrize("name", CLIENTS)
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data(), turns=TURNS, system_chars=st.sampled_from([0, 3_000, 12_000, 38_000, 150_000]))
def test_no_moment_of_a_played_cache_is_over_the_bound(
    name: str, data: st.DataObject, turns: list[Turn], system_chars: int
) -> None:
    client = CLIENTS[name]
    row = data.draw(st.sampled_from(client.rows))
    shares = shares_of_raw(client, row, turns, min(system_chars, client.most_chars))
    assert max(shares) <= 1.1 * (1 + 1e-9)


@pytest.mark.parametrize("name", CLIENTS)
def test_long_sessions_pay_for_their_moves(name: str) -> None:
    """The property above is not true because nothing is masked."""
    client = CLIENTS[name]
    turns: list[Turn] = [(20, [4_000], 10.0)] * 60
    rows = [row for row in client.rows if row.provider.read >= 0.1]
    assert min(shares_of_raw(client, row, turns, 3_000)[-1] for row in rows[:: len(rows) // 2 + 1]) < 0.95
