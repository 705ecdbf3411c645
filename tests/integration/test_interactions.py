"""Interactions of Gemini: google-genai and a provider that refuses what Google does, by `wrap` and the proxy."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

genai = pytest.importorskip("google.genai", reason="these need google-genai")

from interactions_server import Interactions, serving_interactions

import recede
from provider_rules.interactions import signature_of
from recede._encodable import warn_once

TURNS = 80
CHARS = 4_000
SLIDING: dict[str, Any] = {"boundary": "sliding", "keep": 4}
POLICIES: dict[str, dict[str, Any]] = {
    "masks": SLIDING,
    "limit": {**SLIDING, "max_input_tokens": 9_000},
    "tight": {**SLIDING, "max_input_tokens": 3_000},
    "summarizer": {"keep": 1, "max_input_tokens": 3_300, "summarizer": lambda messages, previous: "It went on."},
}


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):  # the client takes an empty one for a file
        monkeypatch.delenv(name, raising=False)
    warn_once.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def client_of(url: str, **options: Any) -> Any:
    return genai.Client(api_key="key", http_options={"base_url": url, **options})


def user_input(text: str) -> dict[str, Any]:
    return {"type": "user_input", "content": [{"type": "text", "text": text}]}


def turns_of(count: int, parallel: int = 1) -> list[Any]:
    """A history of so many turns, as the played provider has answered in them."""
    steps: list[Any] = [user_input("Find it.")]
    for number in range(count):
        steps.append({"type": "thought", "signature": signature_of(f"thought {number}")})
        ids = [f"c{number}_{place}" for place in range(parallel)]
        steps += [{"type": "function_call", "id": i, "name": "read", "arguments": {"path": f"{number}"}} for i in ids]
        steps += [result_of(SimpleNamespace(id=i, name="read")) for i in ids]
    return steps


def loop(create: Callable[..., Any], played: Interactions, first: int) -> list[Any]:
    """Go on with an agent's loop until it is done: steps of the client go back as they came, among dicts."""
    steps, played.answered = turns_of(first, played.parallel), first
    while True:
        answer = create(model="gemini-3-pro", input=list(steps), store=False)
        steps += answer.steps
        calls = [step for step in answer.steps if step.type == "function_call"]
        if not calls:
            return steps
        steps += map(result_of, calls)


def result_of(call: Any) -> dict[str, Any]:
    return {"type": "function_result", "call_id": call.id, "name": call.name, "result": f"{call.id} " * (CHARS // 6)}


def masked_in(body: dict[str, Any]) -> int:
    return json.dumps(body).count("cleared to save context")


def door_of(name: str, client: Any, options: dict[str, Any]) -> Callable[..., Any]:
    """A function that creates interactions through a door."""
    if name == "wrap":
        return recede.wrap(client, **options).interactions.create  # type: ignore[no-any-return]
    history = recede.History(**options)

    def create(*, input: list[Any], **fields: Any) -> Any:
        if name == "History":
            history.extend(input[len(history) :])
            return client.interactions.create(input=history.view(), **fields)
        return client.interactions.create(input=recede.reduce(input, **options).messages, **fields)

    return create


@pytest.mark.parametrize("door", ["wrap", "reduce", "History"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_loop_of_the_client_is_never_refused(policy: str, door: str) -> None:
    parallel = 3 if policy == "limit" else 1
    turns = TURNS // parallel
    with serving_interactions(turns=turns, parallel=parallel) as played:
        steps = loop(door_of(door, client_of(played.url), POLICIES[policy]), played, turns - 5)
        assert played.refusals == []
        assert played.answered == turns + 1
        assert len(steps) == 2 + turns * (1 + 2 * parallel)
        last = played.requests[-1]["input"]
    assert user_input("Find it.") in last[:2]
    if policy == "masks":
        assert masked_in(played.requests[-1]) == turns - 4
    elif door != "wrap":  # which hides nothing unless there is a summary
        limit = POLICIES[policy]["max_input_tokens"]
        assert all(recede.count_chars(request["input"]) <= 4 * limit for request in played.requests)
    told = [step for step in last if step["type"] == "user_input" and "It went on." in json.dumps(step)]
    assert len(told) == (policy == "summarizer")


def test_as_many_results_are_masked_as_in_the_same_history_as_contents() -> None:
    steps: list[Any] = [user_input("Find it.")]
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Find it."}]}]
    for number in range(150):
        text = f"row {number} " * 400
        steps.append({"type": "thought", "signature": "c2ln"})
        steps.append({"type": "function_call", "id": f"c{number}", "name": "read", "arguments": {"n": number}})
        steps.append({"type": "function_result", "call_id": f"c{number}", "name": "read", "result": text})
        call = {"functionCall": {"id": f"c{number}", "name": "read", "args": {"n": number}}, "thoughtSignature": "c2ln"}
        response = {"id": f"c{number}", "name": "read", "response": {"output": text}}
        contents += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [{"functionResponse": response}]}]
    for options in ({}, SLIDING, {"max_input_tokens": 20_000}):
        views = [recede.reduce(history, **options) for history in (steps, contents)]
        assert views[0].masked_count == views[1].masked_count > 100
        assert views[0].chars_after == views[1].chars_after
        assert {view.provider for view in views} == {"gemini"}


def test_an_async_client_streams_views_and_reports_usage() -> None:
    async def run(played: Interactions) -> None:
        client = recede.wrap(client_of(played.url), masker).aio
        steps, played.answered = turns_of(TURNS - 5), TURNS - 5
        for number in range(TURNS - 5, TURNS):
            stream = await client.interactions.create(model="gemini-3-pro", input=list(steps), stream=True, store=False)
            kinds = [event.event_type async for event in stream]
            assert kinds[0] == "interaction.created" and kinds[-1] == "interaction.completed"
            steps += turns_of(number + 1)[-3:]

    masker = Recording(**SLIDING)
    with serving_interactions(turns=TURNS) as played:
        asyncio.run(run(played))
        assert played.refusals == []
        assert masked_in(played.requests[-1]) == TURNS - 1 - 4
        assert all(request["stream"] for request in played.requests)
    assert len(masker.usages) == 5
    assert masker.usages[-1]["total_output_tokens"] == 20


class Recording(recede.masker.Masker[Any]):
    """A masker that remembers what was reported to it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.usages: list[Any] = []

    def reported(self, usage: Any, messages: Any) -> None:
        self.usages.append(usage)
        super().reported(usage, messages)


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_goes_on_with_a_token_is_the_same(stream: bool) -> None:
    history = turns_of(20)
    with serving_interactions(turns=20, continues_at=frozenset({0})) as played:
        client = recede.wrap(client_of(played.url), **SLIDING)
        answer = client.interactions.create(model="gemini-3-pro", input=history, store=False, stream=stream)
        events = list(answer) if stream else [answer]
        assert events
        first, second = played.requests
        assert "continuation_token" not in first and second["continuation_token"] == "t0"
        assert first["input"] == second["input"] != history
        assert played.refusals == []


@pytest.mark.parametrize(
    "kept",
    [{"previous_interaction_id": "v1_1", "model": "m"}, {"agent": "deep-research", "background": True}],
    ids=["chained", "agent"],
)
def test_what_the_provider_keeps_is_sent_as_it_is_and_said_once(
    kept: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    steps = [result_of(SimpleNamespace(id=f"c{number}", name="read")) for number in range(30)]
    with serving_interactions() as played:
        client = recede.wrap(client_of(played.url), **SLIDING)
        for _ in range(3):
            client.interactions.create(input=steps, **kept)
        assert [request["input"] for request in played.requests] == [steps] * 3
    said = [record.getMessage() for record in caplog.records if record.name == "recede"]
    assert len(said) == 1 and "the provider keeps their history" in said[0]


def test_a_text_and_contents_are_sent_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    with serving_interactions() as played:
        client = recede.wrap(client_of(played.url), **SLIDING)
        client.interactions.create(model="m", input="hi")
        client.interactions.create(model="m", input=[{"type": "text", "text": "hi"}])
        assert played.requests[0]["input"] == "hi"
        assert played.requests[1]["input"] == [user_input("hi")]
        assert played.refusals == []
    assert not [record for record in caplog.records if record.name == "recede"]


def test_a_typed_request_and_raw_responses_are_masked() -> None:
    history = turns_of(20)
    with serving_interactions() as played:
        client = recede.wrap(client_of(played.url), **SLIDING)
        raw = client.interactions.with_raw_response.create(model="m", input=history, store=False)
        assert raw.parse().status == "completed"
        client.interactions.create(request={"body": {"model": "m", "input": history, "store": False}})
        assert [masked_in(request) for request in played.requests] == [16, 16]
        assert played.refusals == []


def test_what_is_not_masked_is_refused_and_the_original_client_lives() -> None:
    with serving_interactions() as played:
        original = client_of(played.url)
        client: Any = recede.wrap(original, **SLIDING)
        for refused in (
            lambda: client.models.generate_content(model="m", contents="hi"),
            lambda: client.chats.create(model="m"),
            lambda: client.batches.create(model="m", src="x"),
            lambda: client.interactions.create(model="m", input="hi", extra_body={"input": []}),
        ):
            with pytest.raises(TypeError, match=r"which recede\.wrap does not mask"):
                refused()
        with pytest.raises(TypeError, match="wrapped already"):
            recede.wrap(client)
        assert isinstance(client, genai.Client)
        client = None  # its copy is gone, and has closed nothing
        assert original.interactions.create(model="m", input="hi").status == "completed"


def test_a_history_takes_the_answers_of_the_client() -> None:
    history = recede.History(**SLIDING)
    history.append(user_input("Find it."))
    with serving_interactions(turns=9) as played:
        client = client_of(played.url)
        with pytest.raises(TypeError, match=r"takes no client of Google: .* a recede\.History for the steps"):
            recede.designs.Conversation(client.interactions.create)
        for _ in range(9):
            answer = client.interactions.create(model="m", input=history.view(), store=False)
            history.append(answer)
            history.extend(result_of(step) for step in answer.steps if step.type == "function_call")
        assert played.refusals == []
        assert masked_in(played.requests[-1]) == 8 - 4
    assert len(history) == 1 + 9 * 3


def test_switched_off_everything_is_sent_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECEDE_OFF", "1")
    with serving_interactions(turns=6) as played:
        client = recede.wrap(client_of(played.url), keep=3, boundary="sliding")
        loop(client.interactions.create, played, 5)
        assert masked_in(played.requests[-1]) == 0


def test_a_model_summarizes_if_the_client_is_to() -> None:
    with serving_interactions(turns=TURNS) as played:
        client = recede.wrap(client_of(played.url), summarizer="model", keep=1, max_input_tokens=3_300)
        loop(client.interactions.create, played, TURNS - 5)
        assert played.refusals == []
        assert any(path.endswith(":generateContent") for path in played.paths)
        assert "It went on." in json.dumps(played.requests[-1]["input"][1])


@pytest.mark.parametrize("version", ["v1", "v1beta"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_proxy_masks_interactions(version: str, stream: bool) -> None:
    pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")
    from proxied import proxying, stats

    masker = recede.proxy.RequestMasker(**SLIDING)
    with serving_interactions(turns=TURNS) as played, proxying(played.url, masker) as proxy:
        client = client_of(proxy.url, api_version=version)
        steps, played.answered = turns_of(TURNS - 5), TURNS - 5
        for number in range(TURNS - 5, TURNS):
            answer = client.interactions.create(model="gemini-3-pro", input=steps, store=False, stream=stream)
            if stream:
                assert [event.event_type for event in answer][-1] == "interaction.completed"
            steps += turns_of(number + 1)[-3:]
        assert played.refusals == []
        assert played.paths == [f"/{version}/interactions"] * 5
        assert masked_in(played.requests[-1]) == TURNS - 1 - 4
        assert client.interactions.get("v1_1").status == "completed"
        assert client.interactions.cancel("v1_1").status == "cancelled"
        assert stats(proxy)["totals"]["requests"] == 5


def test_the_proxy_says_once_what_the_provider_keeps(caplog: pytest.LogCaptureFixture) -> None:
    masker = recede.proxy.RequestMasker(**SLIDING)
    steps = [result_of(SimpleNamespace(id=f"c{number}", name="read")) for number in range(30)]
    for more in (
        {"previous_interaction_id": "v1_1", "input": steps},
        {"agent": "deep-research", "input": steps},
        {"continuation_token": "t", "previous_interaction_id": "v1_1"},
    ):
        body = json.dumps({"model": "m", **more}).encode()
        for _ in range(2):
            done = masker.mask("POST", "/v1beta/interactions", {}, body)
            assert done.body is body and done.fault is None and done.provider is None
    said = [record.getMessage() for record in caplog.records if record.name == "recede"]
    assert len(said) == 2
    assert masker.mask("POST", "/v1/interactions/v1_1/cancel", {}, b"{}").provider is None


def test_a_request_and_its_continuation_are_one_to_the_proxy() -> None:
    bodies = [{"model": "m", "input": turns_of(count), "store": False} for count in range(1, 30)]
    maskers = [recede.proxy.RequestMasker(keep=2, provider="anthropic") for _ in range(2)]
    for body in bodies:
        plain = json.dumps(body).encode()
        views = [json.loads(masker.mask("POST", "/v1beta/interactions", {}, plain).body) for masker in maskers]
        again = json.dumps({**body, "continuation_token": "t"}).encode()
        gone_on = json.loads(maskers[1].mask("POST", "/v1beta/interactions", {}, again).body)
        assert views[0] == views[1] == {name: field for name, field in gone_on.items() if name != "continuation_token"}
    assert masked_in(views[0]) > 0
