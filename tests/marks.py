"""Cache marks in histories: where they are, and histories with marks everywhere."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from generated import histories
from hypothesis import strategies as st

Place = tuple[int, int]
"""A message, and a block of its content; -1 if the message itself is the result."""

_MARKS: tuple[Any, ...] = (
    {"type": "ephemeral"},
    {"type": "ephemeral", "ttl": "1h"},
    {"ttl": "5m", "type": "ephemeral", "é\ud83d": [1]},
    None,
)


def blocks_of(message: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any], list[Any]]]:
    """The blocks of a message that may have a mark: place, block, and the parts of its observation."""
    holds_result = message.get("role") in ("tool", "toolResult") or "output" in message
    value = message.get("output" if "output" in message else "content")
    if not isinstance(value, list):
        return
    if holds_result:
        yield -1, {}, [part for part in value if isinstance(part, dict)]
        return
    for place, block in enumerate(value):
        parts = block.get("content") if block.get("type") == "tool_result" else None
        yield place, block, parts if isinstance(parts, list) else []


def marks_of(messages: list[dict[str, Any]], name: str = "cache_control") -> dict[Place, list[Any]]:
    """The marks of this name of each block that has one, the newest last: those of its parts, then its own."""
    found = {}
    for index, message in enumerate(messages):
        for place, block, parts in blocks_of(message):
            marks = [one[name] for one in [*parts, block] if one.get(name) is not None]
            if marks:
                found[index, place] = marks
    return found


@st.composite
def histories_of_clients(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Runs of Anthropic's and of OpenAI's shape, with a few marks on blocks, and on parts of results of both."""
    marks, sizes = st.sampled_from([*[0] * 9, 1, 2, 3, 4]), st.integers(1, 4)

    def one(**fields: Any) -> dict[str, Any]:
        mark = draw(marks)
        return fields | ({"cache_control": _MARKS[mark - 1]} if mark else {})

    history = [{"role": "user", "content": "task"}]
    for turn in range(draw(st.integers(2, 7))):
        ids = [f"{turn}.{call}" for call in range(draw(st.integers(1, 2)))]
        observed = [[one(type="text", text="x" * 300) for _ in range(draw(sizes))] for _ in ids]
        if draw(st.booleans()):
            texts = [{"type": "text", "text": "hm"}] * draw(st.sampled_from([0, 0, 0, 22]))
            calls = [{"type": "tool_use", "id": call, "name": "run", "input": {}} for call in ids]
            results = [
                one(type="tool_result", tool_use_id=call, content=parts)
                for call, parts in zip(ids, observed, strict=True)
            ]
            history += [{"role": "assistant", "content": texts + calls}, {"role": "user", "content": results}]
        else:
            function = {"name": "run", "arguments": "{}"}
            called = [{"id": call, "type": "function", "function": function} for call in ids]
            history.append({"role": "assistant", "content": None, "tool_calls": called})
            for call, parts in zip(ids, observed, strict=True):
                history.append({"role": "tool", "tool_call_id": call, "content": parts})
    return history


@st.composite
def marked_histories(
    draw: st.DrawFn, shape: Any = "anthropic", one_in: int = 3, names: tuple[str, ...] = ("cache_control",)
) -> list[dict[str, Any]]:
    """Histories of a shape with marks of these names on blocks and on parts of results."""
    history = copy.deepcopy(draw(histories(shape, max_turns=6)))
    for message in history:
        for _, block, parts in blocks_of(message):
            for one in [block, *parts] if block else parts:
                if draw(st.integers(1, one_in)) == 1:
                    one[draw(st.sampled_from(names))] = draw(st.sampled_from(_MARKS))
    return history


@st.composite
def client_histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Histories of Anthropic's shape with one to three marks, mostly on the last blocks of the newest messages."""
    history = copy.deepcopy(draw(histories("anthropic", whole=True, max_turns=9, max_parallel_calls=14)))
    blocks = [
        block for message in history if message["role"] == "user" for _, block, _ in list(blocks_of(message))[-1:]
    ]
    kinds = st.sampled_from([{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])
    for age in draw(st.sampled_from([[0], [0], [1, 0], [1, 0], [2, 0], [2, 1, 0], [1], [4, 3]])):
        if age < len(blocks):
            blocks[-1 - age]["cache_control"] = draw(kinds)
    return history
