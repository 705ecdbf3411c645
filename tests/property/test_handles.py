"""The handle of a result is the same at each door, and leads to that result alone."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from generated import histories
from hypothesis import given

import recede
from recede.masker import Masker
from support import tool_result, tool_use, user

LONG = "a line of a result\n" * 40
TEMPLATE: dict[str, Any] = {"keep": 0, "boundary": "sliding", "placeholder": "[gone: {handle}]"}


def anthropic(*contents: Any) -> list[dict[str, Any]]:
    ids = list(map(str, range(len(contents))))
    results = [tool_result(id_, content) for id_, content in zip(ids, contents, strict=True)]
    return [user("Go."), tool_use(*ids), user(results), {"role": "assistant", "content": "Done."}]


def gemini(*responses: Any) -> list[dict[str, Any]]:
    calls = [{"functionCall": {"name": f"run_{number}"}} for number in range(len(responses))]
    results = [
        {"functionResponse": {"name": f"run_{number}", "response": response}}
        for number, response in enumerate(responses)
    ]
    parts = [[{"text": "Go."}], calls, results, [{"text": "Done."}]]
    return [{"role": ("user", "model")[place % 2], "parts": own} for place, own in enumerate(parts)]


def converse(*contents: Any) -> list[dict[str, Any]]:
    calls = [{"toolUse": {"toolUseId": str(n), "name": "run", "input": {}}} for n in range(len(contents))]
    results = [{"toolResult": {"toolUseId": str(n), "content": content}} for n, content in enumerate(contents)]
    parts = [[{"text": "Go."}], calls, results, [{"text": "Done."}]]
    return [{"role": ("user", "assistant")[place % 2], "content": own} for place, own in enumerate(parts)]


TEXT = {"type": "text", "text": LONG}
NO_TEXTS = {
    "anthropic": anthropic(
        [{"type": "search_result", "source": "é", "title": "", "content": [TEXT]}],
        [{"type": "search_result", "source": "é", "title": "other", "content": [TEXT]}],
        [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": LONG}}],
        [TEXT, {"type": "new", "data": [1, None, True, 2.5, "\u2028", {}]}],
        [TEXT],
    ),
    "gemini": gemini({"lines": [LONG, 1], "ok": True}, {"lines": [LONG, 2]}, {"output": LONG}),
    "converse": converse([{"json": {"lines": [LONG, "ü"]}}], [{"text": LONG}, {"json": []}], [{"text": LONG}]),
}


def handles_of(history: list[Any]) -> list[str]:
    """The handles of a view, which are the same at each door and lead to the same result."""
    masker, other = Masker(**TEMPLATE), recede.History.from_messages(history, **TEMPLATE)
    compact = recede.reduce(json.dumps(history, ensure_ascii=False, separators=(",", ":")), **TEMPLATE)
    views = [masker.view(history), other.view(), recede.reduce(history, **TEMPLATE).messages, compact.json]
    handles, *others = [re.findall(r"\[gone: ([0-9a-f]{12})\]", str(view)) for view in views]
    assert all(one == handles for one in others)
    for handle in handles:
        try:
            text = other.recall(handle)
        except LookupError:
            with pytest.raises(LookupError):
                masker.recall(history, handle)
        else:
            assert masker.recall(history, handle) == text
    return handles


@pytest.mark.parametrize("history", NO_TEXTS.values(), ids=NO_TEXTS)
def test_a_result_that_is_no_text_has_a_handle_of_its_own(history: list[Any]) -> None:
    handles = handles_of(history)
    assert len(set(handles)) == len(handles) >= 3


@given(histories())
def test_handles_are_the_same_at_each_door(history: list[Any]) -> None:
    handles_of(history)
