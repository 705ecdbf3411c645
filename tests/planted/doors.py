"""The doors, as functions from a body to the body that the provider gets."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
from paying import CHEAP
from proxied import Answer, Request, answer_of, ask, proxying, recording

import recede
from planted.playing import Api, Body, Counting, View
from provider_rules import PROVIDERS, Account
from recede._question import PROMPT
from recede.masker import Masker
from recede.proxy import RequestMasker
from recede.reduction import BoundaryMove

NAMES = {
    "gemini": "gemini",
    "interactions": "gemini",
    "converse": "bedrock",
    "anthropic": "anthropic",
    "responses": "openai",
    "chat": "openai",
}


def summarize(messages: Any, previous: str | None) -> str:
    return "## State\nThe parser was read, and the bug was found.\n## Open points\nTo fix it. " + "So. " * 50


def _whole(body: Body, field: str, view: Any) -> Body:
    return {**body, field: view}


@contextlib.contextmanager
def _reduce(api: Api, name: str, options: Body, answer: Upstream) -> Iterator[View]:
    done: Any = None

    def view(body: Body) -> Body:
        nonlocal done
        done = recede.reduce(body, **(_told(name, options, body) if "provider" in options else options))
        request: Body = done.request
        return request

    yield Counting(view, lambda: done.reasoning_dropped)


def _told(name: str, options: Body, body: Body) -> Body:
    """The options of a door that hears of no model, whose caller says whether that verifies its reasoning."""
    provider = options.get("provider", recede.Provider.of(name))
    verifies = recede.Provider.of(name, body.get("model")).verifies_reasoning
    return {**options, "provider": provider._replace(verifies_reasoning=verifies)}


@contextlib.contextmanager
def _history(api: Api, name: str, options: Body, answer: Upstream) -> Iterator[View]:
    history: Any = None

    def view(body: Body) -> Body:
        nonlocal history
        history = recede.History(**_told(name, options, body)) if history is None else history
        history.extend(body[api.field][len(history) :])
        return _whole(body, api.field, history.view())

    yield Counting(view, lambda: history.stats().reasoning_dropped)


@contextlib.contextmanager
def _masker(api: Api, name: str, options: Body, answer: Upstream) -> Iterator[View]:
    masker: Masker[Any] | None = None
    moves: list[BoundaryMove] = []

    def view(body: Body) -> Body:
        nonlocal masker
        if masker is None:
            told = options if "model" in body and "provider" not in options else _told(name, options, body)
            masker = Masker(**told, on_move=moves.append)
        return _whole(body, api.field, masker.view(body[api.field], request=body))

    yield Counting(view, lambda: sum(move.reasoning_dropped for move in moves))


@contextlib.contextmanager
def _request_masker(api: Api, name: str, options: Body, answer: Upstream) -> Iterator[View]:
    summarizer = options.pop("summarizer", None)
    masker = RequestMasker(summaries=summarizer is not None, **options)
    done: Any = None

    def view(body: Body) -> Body:
        nonlocal done
        done = masker.mask("POST", api.path, {"x-api-key": "sk-ant-api03-none"}, json.dumps(body).encode())
        if done.asked is not None:
            masker.give(done.asked, summarize([], None))
        sent: Body = json.loads(done.body)
        return sent

    yield Counting(view, lambda: done.reasoning_dropped)


Upstream = Callable[[Body], tuple[int, Body]]
"""What the provider answers to a body that comes over the wire: a status, and a body."""


class _Wire:
    """An upstream that keeps the body of the loop's newest request, which is no question for a summary."""

    def __init__(self, answer: Upstream) -> None:
        self.answer, self.body = answer, Body()

    def __call__(self, request: Request) -> Answer:
        body: Body = json.loads(request.body)
        if not is_question(body):
            self.body = body
        status, said = self.answer(body)
        return [answer_of(json.dumps(said).encode(), f"{status} OK", "Content-Type: application/json")]


def is_question(body: Body) -> bool:
    """Whether a request asks for a summary, in the words of recede's prompt."""
    return PROMPT.splitlines()[0] in json.dumps(body)


@contextlib.contextmanager
def _wrap(api: Api, name: str, options: Body, answer: Upstream) -> Iterator[View]:
    wire = _Wire(answer)
    with recording(wire) as upstream:
        if api.path == "/v1/messages":
            client: Any = anthropic.Anthropic(api_key="sk-ant-api03-none", base_url=upstream.url, max_retries=0)
        else:
            client = openai.OpenAI(api_key="none", base_url=f"{upstream.url}/v1", max_retries=0)
        moves: list[BoundaryMove] = []
        wrapped = recede.wrap(client, **options, on_move=moves.append)
        create = {
            "/v1/messages": lambda body: wrapped.messages.create(**_of_client(body)),
            "/v1/responses": lambda body: wrapped.responses.create(**_of_client(body)),
        }.get(api.path, lambda body: wrapped.chat.completions.create(**body))

        def view(body: Body) -> Body:
            with contextlib.suppress(anthropic.APIError, openai.OpenAIError):
                create(body)
            return wire.body

        with client:
            yield Counting(view, lambda: sum(move.reasoning_dropped for move in moves))


def _of_client(body: Body) -> Body:
    """Fields that the stable client does not know go into `extra_body`."""
    extra = {name: value for name, value in body.items() if name in ("cache_control", "thinking", "betas")}
    rest = {name: value for name, value in body.items() if name not in extra}
    return {**rest, **({"extra_body": extra} if extra else {})}


@contextlib.contextmanager
def _proxy(api: Api, name: str, options: Body, answer: Upstream) -> Iterator[View]:
    summarizer = options.pop("summarizer", None)
    wire = _Wire(answer)
    masker = RequestMasker(summaries=summarizer is not None, **options)
    with recording(wire) as upstream, proxying(upstream.url, masker) as proxy:

        def view(body: Body) -> Body:
            headers = [("x-api-key", "sk-ant-api03-none"), ("content-type", "application/json")]
            ask(proxy.url, "POST", api.path, json.dumps(body).encode(), headers)
            return wire.body

        def counted() -> int:
            told = json.loads(ask(proxy.url, "GET", "/recede/stats").body)["conversations"]  # the newest comes first
            return sum(one["reasoning_dropped"] for one in told[:1])

        yield Counting(view, counted)


DOORS: dict[str, Callable[..., contextlib.AbstractContextManager[View]]] = {
    "reduce": _reduce,
    "History": _history,
    "Masker": _masker,
    "RequestMasker": _request_masker,
    "wrap": _wrap,
    "proxy": _proxy,
}
POLICIES: dict[str, Body] = {
    "masks": {"keep": 5, "boundary": 8},
    "limit": {"keep": 5, "max_input_tokens": 12_000},
    "tight": {"keep": 2, "max_input_tokens": 4_000},
    "summarizer": {"keep": 4, "provider": CHEAP, "summarizer": summarize},
}


def doors_of(api: str) -> list[str]:
    """The doors that take the requests of an API."""
    missing = {"gemini": ("wrap",), "interactions": ("wrap",), "converse": ("RequestMasker", "wrap", "proxy")}.get(
        api, ()
    )
    return [door for door in DOORS if door not in missing]


def answering(account: Account, api: Api) -> Upstream:
    """A provider that refuses what its rules refuse, and else answers with a summary."""

    def answer(body: Body) -> tuple[int, Body]:
        words = PROVIDERS[api.rules].take(body, account).fault
        if words is not None:
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
        return 200, SAID[api.path if api.path in SAID else "gemini"]

    return answer


_USAGE = {"input_tokens": 9, "output_tokens": 1}
_SAID = summarize([], None)
_PART = {"type": "text", "text": _SAID}
SAID: dict[str, Body] = {
    "/v1/messages": {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [_PART], "usage": _USAGE,
    },
    "/v1/responses": {
        "id": "r", "object": "response", "status": "completed", "model": "m", "usage": None,
        "created_at": 0, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None,
        "output": [
            {"type": "message", "id": "m", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": _SAID, "annotations": []}]},
        ],
    },
    "/v1/chat/completions": {
        "id": "c", "object": "chat.completion", "created": 0, "model": "m", "usage": None,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": _SAID}}],
    },
    "/v1beta/interactions": {
        "id": "v1", "status": "completed", "steps": [{"type": "model_output", "content": [_PART]}],
    },
    "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": _SAID}]}, "finishReason": "STOP"}]},
}  # fmt: skip
"""What the provider answers by path: the text of a summary, also where none was asked for."""
