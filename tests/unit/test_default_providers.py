"""Whose cache is assumed: of lists that name no model by their form, and of a store the one that it began with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from children import recede_command
from test_named_models import OPUS, history

import recede
from recede import _models, providers
from recede.masker import Masker
from recede.reduction import _policy

RESULTS = 60


def observation(number: int) -> str:
    return f"{number} " + "a line\n" * 600


def of_turns(first: Any, turn: Callable[[str, str], list[Any]]) -> list[Any]:
    return [first, *(one for number in range(RESULTS) for one in turn(str(number), observation(number)))]


# Each form of messages, and whose cache one that names no model is taken to have.
FORMS: dict[str, tuple[str, list[Any]]] = {
    "chat": ("anthropic", history(RESULTS)),
    "chat messages": ("anthropic", of_turns({"role": "user", "content": "Go."}, lambda id, text: [
        {"role": "assistant", "content": "", "pairRole": "call", "pairId": id},
        {"role": "tool", "content": text, "pairRole": "result", "pairId": id},
    ])),
    "blocks": ("anthropic", of_turns({"role": "user", "content": "Go."}, lambda id, text: [
        {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "run", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]},
    ])),
    "converse": ("bedrock", of_turns({"role": "user", "content": [{"text": "Go."}]}, lambda id, text: [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": id, "name": "run", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": id, "content": [{"text": text}]}}]},
    ])),
    "responses": ("openai", of_turns({"role": "user", "content": "Go."}, lambda id, text: [
        {"type": "function_call", "call_id": id, "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": id, "output": text},
    ])),
    "contents": ("gemini", of_turns({"role": "user", "parts": [{"text": "Go."}]}, lambda id, text: [
        {"role": "model", "parts": [{"functionCall": {"id": id, "name": "run", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": id, "name": "run", "response": {"output": text}}}]},
    ])),
    "interactions": ("gemini", of_turns({"type": "user_input", "content": [{"type": "text", "text": "Go."}]},
                                        lambda id, text: [
        {"type": "function_call", "id": id, "name": "run", "arguments": {}},
        {"type": "function_result", "call_id": id, "name": "run", "result": text},
    ])),
}  # fmt: skip


def test_forms_are_all_that_name_a_provider() -> None:
    assert {name for name, _ in FORMS.values()} == {*_policy._NAMED.values(), _policy._UNNAMED}


@pytest.mark.parametrize("form", FORMS)
def test_a_list_that_names_no_model_has_the_cache_of_its_form(form: str, tmp_path: Path) -> None:
    name, messages = FORMS[form]
    told = recede.reduce(messages, provider=name)
    assert 0 < told.masked_count < RESULTS and told.messages != recede.reduce(messages, provider="deepseek").messages
    plain, data = recede.reduce(messages), json.dumps(messages).encode()
    assert (plain.provider, plain.messages) == (name, told.messages)
    assert recede.reduce(data).json == recede.reduce(data, provider=name).json
    kept = recede.History.from_messages(messages)
    assert (kept.view(), kept.stats().provider) == (told.messages, name)
    growing, masker = recede.History(), Masker[Any]()
    for count in range(1, len(messages) + 1, 2):
        growing.extend(messages[len(growing) : count])
        assert growing.view() == masker.view(messages[:count])
    assert growing.view() == told.messages
    path = tmp_path / "list.json"
    path.write_bytes(data)
    assert json.loads(recede_command("reduce", path).stdout) == told.messages


@pytest.mark.parametrize("given", ["auto", "deepseek", "claude-opus-5-5", "own"])
def test_a_store_goes_on_with_the_provider_that_it_began_with(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after an upgrade has other facts of the provider, of the model, and of what is assumed without one."""
    own = recede.Provider("ours", cache="prefix", read=0.3, write=1.0, min_tokens=None, ttl_seconds=None)
    options: dict[str, Any] = {} if given == "auto" else {"provider": own if given == "own" else given}
    messages, path = history(RESULTS), tmp_path / "store"
    expected = recede.History.from_messages(messages, **options)
    view, name = expected.view(), expected.stats().provider
    with recede.store.TurnStore(path) as store:
        began = recede.History(store=store, **options)
        began.extend(messages[:31])
        began.view()
    if given == "claude-opus-5-5":
        other = _models.MODEL_ROWS[given]._replace(cached=2.0)
        monkeypatch.setattr(_models, "MODEL_ROWS", {given: other})
        providers._of_model.cache_clear()
        providers.named_provider.cache_clear()
    with recede.store.TurnStore(path) as store:
        resumed = recede.History(store=store)
        resumed.extend(messages[31:])
        assert (resumed.view(), resumed.stats().provider) == (view, name)
        resumed.save(tmp_path / "saved")
    with recede.store.TurnStore(path, read_only=True) as store:
        assert recede.History(store=store).view() == view
    assert recede.History.load(tmp_path / "saved").view() == view
    providers._of_model.cache_clear()
    providers.named_provider.cache_clear()


def test_a_provider_that_is_given_comes_before_that_of_a_store(tmp_path: Path) -> None:
    messages = history(RESULTS)
    with recede.store.TurnStore(tmp_path / "store") as store:
        recede.History(store=store, provider="deepseek").extend(messages)
    with recede.store.TurnStore(tmp_path / "store") as store:
        assert recede.History(store=store, provider=OPUS).view() == recede.reduce(messages, provider=OPUS).messages
