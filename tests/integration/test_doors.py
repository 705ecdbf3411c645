"""The same conversation through every door of one provider, request by request.

It is the same view, byte for byte where bytes are sent.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the sessions are those of the proxy's tests")
anthropic = pytest.importorskip("anthropic", reason="the client is not installed")
openai = pytest.importorskip("openai", reason="the client is not installed")

from shared_data import CORPUS, need
from test_proxy_corpus import Session, sessions
from test_wrap import client_of

import recede
from provider_server import serving
from provider_server import text as answer
from recede.masker import Masker
from recede.proxy import RequestMasker
from recede.reduction._input import marks_elsewhere

PATHS = {"/v1/messages": "anthropic", "/v1/responses": "openai"}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"keep": 3, "boundary": "sliding"},
    {"keep": 2, "boundary": 4},
    {"max_overcost": None},
    {"max_result_chars": 16_000},
    {"keep": 5, "max_result_chars": 4_000},
    {"trigger_tokens": 12_000},
    {"max_input_tokens": 8_000},
    {"keep": 3, "boundary": "sliding", "trigger_tokens": 9_000, "max_input_tokens": 14_000, "max_result_chars": 8_000},
]

# Only the proxy keeps an agent's refusals; those of this agent are in no session of Claude Code.
OTHER_AGENT = {"user-agent": "codex_cli_rs/1"}


def without_marks(value: Any) -> Any:
    """A value without cache marks, which a `History` places by itself."""
    if isinstance(value, dict):
        return {name: without_marks(one) for name, one in value.items() if name != "cache_control"}
    return [without_marks(one) for one in value] if isinstance(value, list) else value


@cache
def shortest(path: str) -> list[Session]:
    """The sessions of an API, by their length."""
    return sorted((one for one in sessions() if one.path == path), key=lambda one: len(json.dumps(one.history)))


def check(session: Session, options: dict[str, Any], model: str | None = None) -> int:
    """How many results the last view of the session masks; of bodies that name this model, if one is given."""
    proxy, masker, named = RequestMasker(**options), Masker(**options), {} if model is None else {"provider": model}
    history, told = recede.History(**options, **named), Masker(**{"provider": PATHS[session.path], **options, **named})
    masked, is_whole = 0, True
    for body in session.bodies():
        if model is not None:
            body = body.replace(b'"model":"claude"', b'"model":"%s"' % model.encode(), 1)
        request = json.loads(body)
        sent = proxy.mask("POST", session.path, OTHER_AGENT, body)
        view = json.loads(sent.body)
        messages, shown = request[session.field], view[session.field]
        for one in (masker, told):
            assert one.view(messages, marks_elsewhere=marks_elsewhere(request), request=request) == shown
        of_json, of_request = recede.reduce(body, **options), recede.reduce(request, **options)
        assert json.loads(of_json.json) == of_request.request
        # A door that masks drops nothing, and makes no move that leaves the view over its limit.
        is_whole = is_whole and not of_request.dropped_count and of_request.within_limit is not False
        assert (of_json.json == sent.body) or not is_whole
        history.extend(map(without_marks, messages[len(history) :]))
        reduction = recede.reduce(messages, **options, **named)
        assert without_marks(history.view()) == without_marks(reduction.messages)
        if not is_limited(options):  # else the prompt of the request counts, too
            assert without_marks(reduction.messages) == without_marks(shown)
        assert reduction.provider == history.stats().provider == PATHS[session.path] or not masked
        masked = sent.masked_count
    return masked


def is_limited(options: dict[str, Any]) -> bool:
    return not options.keys().isdisjoint(("max_input_tokens", "trigger_tokens"))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_door_of_a_provider_sends_the_same(options: dict[str, Any]) -> None:
    need(CORPUS)
    for path in PATHS:
        masked = next(session for session in shortest(path) if recede.reduce(session.history).masked_count)
        assert max(check(session, options) for session in (shortest(path)[0], masked)) > 0


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1/messages", "claude-opus-5-5"),
        ("/v1/messages", "us.anthropic.claude-fable-5-2-20261101-v1:0"),
        ("/v1/responses", "gpt-5.6-sol"),
        ("/v1/responses", "gpt-4o"),
    ],
)
def test_every_door_takes_the_facts_of_the_model_in_a_body(path: str, model: str) -> None:
    need(CORPUS)
    masked = next(session for session in shortest(path) if recede.reduce(session.history).masked_count)
    for session in (masked, *shortest(path)[len(shortest(path)) // 2 :][:2]):
        check(session, {}, model)
    assert check(masked, {"keep": 3, "max_overcost": None}, model) > 0


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_door_of_a_provider_sends_the_same_in_long_sessions(options: dict[str, Any]) -> None:
    need(CORPUS)
    for session in sessions():
        if session.path in PATHS:
            check(session, options)


@pytest.mark.parametrize(("path", "shape"), [("/v1/messages", "anthropic"), ("/v1/responses", "responses")])
def test_a_wrapped_client_sends_what_the_proxy_sends(path: str, shape: str) -> None:
    need(CORPUS)
    session = next(one for one in shortest(path) if len(one.ends) > 30)
    bodies = [json.loads(body) for body in session.bodies()]
    proxy = RequestMasker()
    with serving(*[answer("Done.")] * len(bodies)) as server:
        client = recede.wrap(client_of(shape, server))
        create = client.messages.create if shape == "anthropic" else client.responses.create
        for body in bodies:
            request = body if shape == "anthropic" else {"model": body["model"], "input": body["input"]}
            with suppress(anthropic.BadRequestError, openai.BadRequestError):  # of what the log itself lacks
                create(**request)
            wanted = proxy.mask("POST", path, {}, json.dumps(request).encode()).body
            assert server.requests[-1][session.field] == json.loads(wanted)[session.field]
