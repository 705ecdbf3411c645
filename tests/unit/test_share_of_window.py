"""`max_input_tokens` as a share of the model's window, at each door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recede
from recede._models import MODEL_ROWS
from recede.masker import Masker
from recede.proxy import RequestMasker
from recede.store import TurnStore
from support import turns, user

MODEL, OTHER, UNKNOWN = "claude-haiku-4-5", "gpt-4o", "nobody-knows-1"
WINDOW = MODEL_ROWS[MODEL].window_tokens
SHARE = 0.01
MESSAGES = [user("Go."), *turns(60, chars=900)]


def limited(tokens: int | None, **options: Any) -> list[Any]:
    """The view of a list with a limit in tokens."""
    return list(recede.reduce(MESSAGES, max_input_tokens=tokens, **options).messages)


def body(model: str | None) -> dict[str, Any]:
    return {**({} if model is None else {"model": model}), "messages": MESSAGES}


def test_a_list_has_a_share_of_the_window_of_its_provider() -> None:
    tokens = int(WINDOW * SHARE)
    view = recede.reduce(MESSAGES, max_input_tokens=SHARE, provider=MODEL)
    assert view.messages == limited(tokens, provider=MODEL) != limited(None, provider=MODEL)
    assert view.within_limit
    as_bytes = recede.reduce(json.dumps(MESSAGES).encode(), max_input_tokens=SHARE, provider=MODEL)
    assert json.loads(as_bytes.json) == view.messages
    history = recede.History(max_input_tokens=SHARE, provider=MODEL)
    history.extend(MESSAGES)
    assert history.view() == view.messages


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5, -0.5, float("nan"), float("inf"), 20_000.0])
def test_other_floats_are_errors(share: float) -> None:
    for door in (recede.History, Masker, RequestMasker, lambda **given: recede.reduce(MESSAGES, **given)):
        with pytest.raises(ValueError, match="or a share of the model's window between 0 and 1"):
            door(max_input_tokens=share, provider=MODEL)


def test_the_int_1_is_a_token() -> None:
    assert limited(1, provider=MODEL) == recede.reduce(MESSAGES, max_input_tokens=1, provider=MODEL).messages
    with pytest.raises(TypeError, match="not bool"):
        limited(True)


@pytest.mark.parametrize("provider", ["auto", "anthropic", "none", recede.Provider.of("openai")])
def test_a_list_without_a_window_is_an_error_that_names_provider(provider: Any) -> None:
    options: dict[str, Any] = {"max_input_tokens": 0.5, "provider": provider}
    doors = [
        lambda: recede.reduce(MESSAGES, **options),
        lambda: recede.reduce(json.dumps(MESSAGES), **options),
        lambda: recede.History(**options),
        lambda: Masker(**options).view(MESSAGES),
        lambda: Masker(**options).count_tokens(MESSAGES),
    ]
    for door in doors:
        with pytest.raises(ValueError, match="which is not known here: name the model"):
            door()


def by_request(share: float | int | None, model: str | None) -> list[list[Any]]:
    """The views of doors that see requests."""
    request = body(model)
    data = json.dumps(request).encode()
    sent = RequestMasker(max_input_tokens=share).mask("POST", "/v1/chat/completions", {}, data)
    return [
        recede.reduce(request, max_input_tokens=share).messages,
        json.loads(recede.reduce(data, max_input_tokens=share).json)["messages"],
        Masker(max_input_tokens=share).view(MESSAGES, request=request),
        json.loads(sent.body)["messages"],
    ]


def test_a_request_names_the_model() -> None:
    for model in (MODEL, OTHER):
        tokens = int(MODEL_ROWS[model].window_tokens * SHARE)
        assert by_request(SHARE, model) == by_request(tokens, model) != by_request(None, model)


def test_a_request_without_a_window_has_no_limit_and_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    for model in (UNKNOWN, None):
        caplog.clear()
        views = by_request(0.015, model)
        assert sum("are sent without a limit" in one.message for one in caplog.records) == 1
        assert views == by_request(None, model)
    assert not any(one in caplog.text for one in ("None", UNKNOWN))


def test_a_conversation_has_the_limit_of_its_newest_request() -> None:
    masker = Masker(max_input_tokens=SHARE, keep=0, boundary="sliding")
    for model in (MODEL, OTHER, MODEL):
        tokens = int(MODEL_ROWS[model].window_tokens * SHARE)
        fresh = Masker(max_input_tokens=tokens, keep=0, boundary="sliding", provider="anthropic")
        given = {"request": body(model), "provider": "anthropic"}
        assert masker.view(MESSAGES, **given) == fresh.view(MESSAGES, request=body(model))


def test_a_trigger_is_at_most_the_limit_that_a_share_gives() -> None:
    with_trigger = recede.reduce(MESSAGES, max_input_tokens=SHARE, trigger_tokens=5_000, provider=MODEL)
    assert with_trigger.messages == limited(2_000, trigger_tokens=2_000, provider=MODEL)


def test_a_stored_history_keeps_its_limit(tmp_path: Path) -> None:
    with TurnStore(tmp_path / "one.db") as store:
        history = recede.History(max_input_tokens=SHARE, provider=MODEL, store=store)
        history.extend(MESSAGES)
        view = history.view()
    with TurnStore(tmp_path / "one.db") as store:
        again = recede.History(max_input_tokens=SHARE, provider=MODEL, store=store)
        assert again.view() == view == limited(int(WINDOW * SHARE), provider=MODEL)
