"""What a turn has besides calls, the agent's text and results keeps it from a summary: in each shape, at each door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from everywhere import DOORS, SHAPES, Messages, Step, shown_in, steps

OPTIONS: dict[str, Any] = {"keep": 2, "provider": "none", "summarizer": True}
KEPT, AT = "<kept>", 3  # what is planted, and in which step

Plant = Callable[[Messages], Messages]


def beside(field: str, *parts: Any, of: int = -1, first: bool = False) -> Plant:
    """Parts in the message of results, or in the answer (`of=0`)."""

    def planted(messages: Messages) -> Messages:
        changed = [*messages]
        own = messages[of][field]
        changed[of] = {**messages[of], field: [*parts, *own] if first else [*own, *parts]}
        return changed

    return planted


def items(*more: Any) -> Plant:
    return lambda messages: [*more, *messages]


def referring(messages: Messages) -> Messages:
    """Each result is a reference to a tool."""
    found = [{"type": "tool_reference", "tool_name": KEPT}]
    results = [{**one, "content": found} for one in messages[-1]["content"]]
    return [*messages[:-1], {**messages[-1], "content": results}]


WORDS, PICTURE = {"type": "text", "text": KEPT}, {"type": "image", "source": {"type": "url", "url": KEPT}}
SEARCH = [
    {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_regex", "input": {}},
    {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": {"tool_references": [{"tool_name": KEPT}]}},
]
WEB = [
    {"type": "server_tool_use", "id": "w1", "name": "web_search", "input": {"query": KEPT}},
    {"type": "web_search_tool_result", "tool_use_id": "w1", "content": []},
]
FOUND = {"type": "tool_search_output", "call_id": "f1", "execution": "client", "tools": [{"name": KEPT}]}
PLANTS: dict[tuple[str, str], Plant] = {
    ("anthropic", "words"): beside("content", WORDS),
    ("anthropic", "a picture"): beside("content", PICTURE),
    ("anthropic", "a reference to a tool"): referring,
    ("anthropic", "found tools"): beside("content", *SEARCH, of=0, first=True),
    ("anthropic", "a search of the web"): beside("content", *WEB, of=0, first=True),
    ("anthropic", "listed tools"): beside("content", {"type": "mcp_tool_listing", "tools": [KEPT]}, of=0, first=True),
    ("anthropic", "an unknown type"): beside("content", {"type": "later", "text": KEPT}, of=0, first=True),
    ("gemini", "words"): beside("parts", {"text": KEPT}),
    ("gemini", "a picture"): beside("parts", {"inlineData": {"mimeType": "image/png", "data": KEPT}}),
    ("gemini", "an unknown type"): beside("parts", {"later": {"text": KEPT}}, of=0),
    ("gemini", "a search of the web"): beside("parts", {"toolCall": {"id": KEPT}}, {"toolResponse": {}}, of=0),
    ("converse", "words"): beside("content", {"text": KEPT}),
    ("converse", "a picture"): beside("content", {"image": {"format": "png", "source": {"s3Location": {"uri": KEPT}}}}),
    ("converse", "an unknown type"): beside("content", {"later": {"text": KEPT}}, of=0, first=True),
    ("chat", "an unknown type"): lambda given: [{**given[0], "content": [{"type": "later", "text": KEPT}]}, *given[1:]],
    ("responses", "found tools"): items({"type": "tool_search_call", "call_id": "f1", "arguments": {}}, FOUND),
    ("responses", "a search of the web"): items({"type": "web_search_call", "id": KEPT, "status": "completed"}),
    ("responses", "settings"): items({"type": "configuration_update", "reasoning": {"effort": KEPT}}),
    ("responses", "a permission"): items(
        {"type": "mcp_approval_request", "id": "a1", "name": "run", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "a1", "approve": False, "reason": KEPT},
    ),
    ("interactions", "an unknown type"): items({"type": "later", "text": KEPT}),
    ("interactions", "found tools"): items({"type": "tool_search_call", "id": "f1", "arguments": {}},
                                           {"type": "tool_search_result", "call_id": "f1", "result": [KEPT]}),
}  # fmt: skip
CELLS = [(door, *plant) for door, (_, shapes, _) in DOORS.items() for plant in PLANTS if plant[0] in shapes]


@pytest.mark.parametrize(("door", "shape", "kind"), CELLS)
def test_what_stands_beside_calls_keeps_its_turn(
    door: str, shape: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_step, task = SHAPES[shape]
    made = steps(Random(4), results=(200, 900), words=220, exempt=0)

    def planted(step: Step) -> Iterator[Any]:
        messages = list(of_step(step))
        yield from PLANTS[shape, kind](messages) if step == made[AT] else messages

    monkeypatch.setitem(SHAPES, shape, (planted, task))
    requests = list(DOORS[door][0](made, shape, OPTIONS))
    assert requests[-1].asked and len(requests[-1].view) < len(requests[-1].history)
    assert all(KEPT in shown_in(one.view) for one in requests if len(one.steps) > AT)
