"""The name of a model in doors with a memory: as an option, in requests, responses and stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from children import recede_command
from test_named_models import OF_OPUS, OPUS, history, moves

import recede
from recede import _models
from recede.masker import Masker
from recede.proxy import RequestMasker


def test_each_door_takes_the_name_of_a_model() -> None:
    messages, named = history(), {"provider": "claude-opus-5-5"}
    view = recede.reduce(messages, provider=OPUS).messages
    assert view != recede.reduce(messages).messages
    assert recede.History.from_messages(messages, **named).view() == view
    assert Masker(**named).view(messages) == Masker().view(messages, provider="claude-opus-5-5") == view
    body = json.dumps({"model": "gpt-4o", "messages": messages}).encode()
    masked = RequestMasker(**named).mask("POST", "/v1/chat/completions", {}, body).body
    assert json.loads(masked)["messages"] == view


def test_a_saved_history_keeps_the_facts_of_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, messages = tmp_path / "saved", history()
    first = recede.History.from_messages(messages[:81], provider="claude-opus-5-5")
    first.view()
    first.save(saved)
    other = _models.MODEL_ROWS["claude-opus-5-5"]._replace(cached=2.0)
    monkeypatch.setattr(_models, "MODEL_ROWS", {"claude-opus-5-5": other})
    second = recede.History.load(saved)
    second.extend(messages[81:])
    assert moves(second) == OF_OPUS


def test_a_request_names_its_model_to_a_masker() -> None:
    messages, body = history(), {"model": "claude-opus-5-5"}
    view = recede.reduce(messages, provider=OPUS).messages
    assert Masker().view(messages, request=body) == view
    assert Masker(provider="anthropic").view(messages, request=body) == recede.reduce(messages).messages


class Response:
    """What a client of Anthropic answers with."""

    def __init__(self, message: Any, model: Any) -> None:
        self.role, self.content, self.stop_reason, self.model = "assistant", message["content"], "tool_use", model

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"role": self.role, "content": self.content}


def blocks(results: int = 60) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Find the bug."}]
    for number in range(results):
        use = {"type": "tool_use", "id": str(number), "name": "run", "input": {}}
        result = {"type": "tool_result", "tool_use_id": str(number), "content": f"{number} " + "a line\n" * 600}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return messages


def answered(appended: recede.History, messages: list[Any], model: Any, first: int = 0) -> recede.History:
    for message in messages[first:]:
        if message["role"] == "assistant":
            appended.view()
            appended.append(Response(message, model))
        else:
            appended.append(message)
    return appended


def test_a_response_names_its_model_to_a_history() -> None:
    messages = blocks()
    usual, of_opus = (moves(recede.reduce(messages, provider=one)) for one in ("anthropic", OPUS))
    assert usual != of_opus
    assert moves(answered(recede.History(), messages, "claude-opus-5-5-20261101")) == of_opus
    assert moves(answered(recede.History(), messages, None)) == usual
    assert moves(answered(recede.History(), messages, "unheard-of")) == usual
    assert moves(answered(recede.History(provider="anthropic"), messages, "claude-opus-5-5")) == usual


def test_a_history_keeps_the_prices_that_its_boundary_began_with() -> None:
    messages = blocks()
    first, _ = moves(recede.reduce(messages, provider=OPUS))[0]
    moved = 2 * first + 3  # messages of the request after it
    changed = answered(recede.History(), messages[:moved], "claude-opus-5-5")
    assert moves(changed)
    answered(changed, messages, "claude-opus-4-5", first=moved)
    assert moves(changed) == moves(recede.reduce(messages, provider=OPUS))


def test_a_stored_history_goes_on_with_the_model_of_its_first_response(tmp_path: Path) -> None:
    messages = blocks()
    with recede.store.TurnStore(tmp_path / "store") as store:
        answered(recede.History(store=store), messages[:21], "claude-opus-5-5")
    with recede.store.TurnStore(tmp_path / "store") as store:
        resumed = recede.History(store=store)
        resumed.extend(messages[21:])
        assert moves(resumed) == moves(recede.reduce(messages, provider=OPUS))
        resumed.save(tmp_path / "saved")
    assert moves(recede.History.load(tmp_path / "saved")) == moves(recede.reduce(messages, provider=OPUS))


def test_the_command_line_takes_the_name_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "history.json").write_text(json.dumps(history()))
    named = recede_command("reduce", str(tmp_path / "history.json"), "--provider", "claude-opus-5-5")
    assert json.loads(named.stdout) == recede.reduce(history(), provider=OPUS).messages
    wrong = recede_command("reduce", str(tmp_path / "history.json"), "--provider", "unheard-of-3")
    assert wrong.returncode == 2 and "give a recede.Provider" in " ".join(
        wrong.stderr.decode().replace("│", " ").split()
    )
