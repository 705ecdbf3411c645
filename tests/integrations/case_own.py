"""The toy framework of docs/integrations/own.md, with the adapter that the page writes for it."""

from __future__ import annotations

import copy
import doctest
import json
import re
from typing import Any

from sessions import IMAGE, LAST, TASK, Result, Turn, as_dicts, shown

from support import ROOT

WAYS = ("sync",)


def _page() -> dict[str, Any]:
    """The classes of the page: those of the framework, and those of the adapter."""
    text = (ROOT / "docs/integrations/own.md").read_text("utf-8")
    code = [example.source for example in doctest.DocTestParser().get_examples(text)]
    names: dict[str, Any] = {"__name__": __name__}
    exec("".join(one for one in code if re.match(r"(import|from|class|@)", one)), names)  # the rest runs it
    return names


toy = _page()


def _content(result: Result) -> Any:
    return toy["Content"](result.text, (IMAGE.encode(),) if result.has_image else ())


def _said(turn: Turn) -> Any:
    calls = tuple(toy["Call"](call.id, call.name, json.dumps(call.args)) for call in turn.calls)
    return toy["Message"]("assistant", toy["Content"](turn.said), calls)


def history(turns: list[Turn]) -> list[Any]:
    message: Any = toy["Message"]
    messages = [message("user", toy["Content"](TASK))]
    for turn in turns:
        messages.append(_said(turn))
        for one in turn.results.values():
            messages.append(message("tool", _content(one), call_id=one.id, is_error=one.is_error))
    return messages


def dicts(turns: list[Turn]) -> list[dict[str, Any]]:
    """The session with arguments that are texts, as the framework has them."""
    found = as_dicts(turns)
    for message in found:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_use":
                block["input"] = json.dumps(block["input"])
    return found


def masking(**options: Any) -> Any:
    return toy["MaskToolResults"](**options)


def view(masking: Any, messages: list[Any], model: str = "m") -> list[Any]:
    given: list[Any] = masking(messages)
    return given


def results(messages: list[Any]) -> list[tuple[str, str]]:
    if isinstance(messages[0], dict):  # of `dicts`
        return shown(messages)
    return [(message.call_id, message.content.text) for message in messages if message.role == "tool"]


def contents(messages: list[Any]) -> dict[str, Any]:
    """Those without images as texts."""
    found = {message.call_id: message.content for message in messages if message.role == "tool"}
    return {id: content if content.images else content.text for id, content in found.items()}


def calls(messages: list[Any]) -> list[str]:
    return [call.id for message in messages for call in message.calls]


def reloaded(messages: list[Any]) -> list[Any]:
    return copy.deepcopy(messages)


def run(masking: Any, turns: list[Turn], way: str) -> tuple[list[list[Any]], list[Any]]:
    by_id = {name: result for turn in turns for name, result in turn.results.items()}
    requests: list[list[Any]] = []
    played = iter([*turns, LAST])

    def model(messages: list[Any]) -> Any:
        requests.append(messages)
        return _said(next(played))

    def called(messages: list[Any], call: Any) -> Any:
        result = by_id[call.id]
        return _content(result), result.is_error

    agent = toy["Agent"](model, {"run": called, "recall": masking.recall}, before_model=masking)
    return requests, agent.run(TASK)
