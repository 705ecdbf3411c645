"""A history that is given dicts against one that is given their texts: nothing that can be read of it differs."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from marks import marked_histories

from recede import History, _bodies
from recede._bodies import dumps
from recede.session import _messages
from recede.session._messages import serialized
from support import call, result, user

CHOICES = {
    "keep": st.integers(0, 3),
    "boundary": st.sampled_from(["break_even", "sliding", 2]),
    "provider": st.sampled_from(["anthropic", "openai", "none"]),
    "max_result_chars": st.integers(60, 120),
    "max_input_tokens": st.integers(10, 300) | st.integers(300, 3_000),
    "trigger_tokens": st.integers(1, 300),
    "summarizer": st.sampled_from([lambda items, previous: f"{len(items)} after {previous}", lambda *_: 1 / 0]),
    "keep_errors": st.booleans(),
    "keep_matching": st.sampled_from([["a*"], ["*e"]]),
    "placeholder": st.sampled_from(["[{chars} of {tool}, {lines} lines]", "[cut]", "[{handle}]"]),
    "recall": st.booleans(),
    "token_counter": st.just(len),
}


class OfTexts(History):
    """Each message is written and scanned when it is appended."""

    def _begin(self, *arguments: Any) -> None:
        super()._begin(*arguments)
        self._live.append_object = self._append_text  # type: ignore[method-assign]

    def _append_text(self, message: Any) -> None:
        data, surrogates, has_objects = serialized(message)
        self._live.append(data, surrogates, message, has_objects)


class Text(str):
    pass


class Items(list[Any]):
    pass


def cyclic() -> dict[str, Any]:
    message = user("again")
    message["self"] = [message]
    return message


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else "x"


STRANGE: dict[str, Callable[[], Any]] = {
    "floats": lambda: {**user("x"), "at": 1.5, "more": [1e300, -0.0]},
    "nan": lambda: {**user("x"), "at": float("nan")},
    "infinity": lambda: {**user("x"), "at": [float("inf")]},
    "whole": lambda: {**user("x"), "at": 1 << 63},
    "huge": lambda: {**user("x"), "at": 10**5_000},
    "number as key": lambda: {**user("x"), 2: "two", None: 2, True: 3},
    "keys that are one": lambda: {**user("x"), "a": {1: "one", "1": "two"}},
    "bytes": lambda: {**user("x"), "data": b"x"},
    "set": lambda: {"role": "tool", "tool_call_id": "1", "content": {"x"}},
    "surrogate": lambda: result("1", "x" * 300 + "\ud800"),
    "surrogates": lambda: result("1", "\ud83d\ude00" * 300),
    "surrogate in a key": lambda: {**user("x"), "\udc00": 1},
    "dict of another class": lambda: OrderedDict(result("1", "x" * 300)),
    "text of another class": lambda: result("1", Text("x" * 300)),
    "list of another class": lambda: {"role": "user", "content": Items([{"type": "text", "text": "x"}])},
    "tuple": lambda: {"role": "tool", "tool_call_id": "1", "content": ({"type": "text", "text": "x" * 300},)},
    "no content": lambda: {"role": "assistant", "content": None, "tool_calls": None},
    "arguments": lambda: {"role": "assistant", "tool_calls": [{"id": "1", "function": {"arguments": {"a": [1, 2.5]}}}]},
    "json result": lambda: {"role": "tool", "tool_call_id": "1", "content": {"rows": list(range(200)), "x": 1e-9}},
    "cycle": cyclic,
    "deep": lambda: {**user("x"), "at": deep(70)},
    "deeper": lambda: {**user("x"), "at": deep(1_500)},
    "mark": lambda: {
        "role": "user",
        "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
    },
    "role": lambda: {"role": "robot", "content": "x"},
    "no message": lambda: ["x"],
    "number": lambda: 5,
    "role that is no text": lambda: {"role": 5, "content": "x"},
    "call that is no dict": lambda: {"role": "assistant", "tool_calls": ["x"]},
}


def outcome(work: Callable[[], Any]) -> Any:
    """What it returns, or the error."""
    try:
        return work()
    except Exception as error:
        return type(error), str(error)


LOOKS: dict[str, Callable[[History], Any]] = {
    "view": lambda history: history.view(),
    "view_json": lambda history: history.view_json(),
    "stats": lambda history: history.stats(),
    "masks": lambda history: history.masks(),
    "repr": repr,
    "messages": lambda history: history.messages,
    "to_json": lambda history: history.to_json(),
    "recall": lambda history: [outcome(lambda number=number: history.recall(number)) for number in (1, 2, 5)],  # type: ignore[misc]
    "cold": lambda history: history.cache_is_cold(),
}


def same(histories: tuple[History, History], work: Callable[..., Any], *arguments: Any) -> None:
    """Both do the same with copies of these arguments."""
    one, other = (outcome(lambda history=history: work(history, *copy.deepcopy(arguments))) for history in histories)  # type: ignore[misc]
    assert repr(one) == repr(other)  # a NaN equals nothing


def append(history: History, message: Any) -> None:
    history.append(message)


def append_strange(history: History, name: str) -> None:
    history.append(STRANGE[name]())


def change(history: History, place: int) -> None:
    """As a caller may change a message that was appended."""
    message = history[place]
    if isinstance(message, dict):
        message["content"] = "changed"
        message["more"] = [1]


@given(
    options=st.fixed_dictionaries({}, optional=CHOICES),
    messages=histories() | marked_histories("anthropic"),
    steps=st.lists(st.sampled_from([*LOOKS, *["", "view"] * 8, "strange", "changed", "rewind", "sync"]), max_size=40),
    data=st.data(),
)
def test_no_look_tells_dicts_from_texts(
    options: dict[str, Any], messages: list[Any], steps: list[str], data: st.DataObject
) -> None:
    if "trigger_tokens" in options:  # it is below the limit
        options["trigger_tokens"] = min(options["trigger_tokens"], options.get("max_input_tokens", 300) - 1)
    both = History(**options), OfTexts(**options)
    left = list(messages)
    for step in [*steps, *LOOKS]:
        if step in LOOKS:
            same(both, LOOKS[step])
        elif step == "strange":
            same(both, append_strange, data.draw(st.sampled_from([*STRANGE])))
        elif step == "changed" and len(both[0]):
            same(both, change, data.draw(st.integers(0, len(both[0]) - 1)))
        elif step == "rewind":
            same(both, History.rewind, data.draw(st.integers(0, len(both[0]))))
        elif step == "sync":
            same(both, History.sync, [*both[1].messages, *left[:1]])
        elif left:
            same(both, append, left.pop(0))
        assert len(both[0]) == len(both[1])


@pytest.mark.parametrize("more", [{}, {"max_input_tokens": 10_000}, {"trigger_tokens": 1}, {"summarizer": print}])
def test_texts_are_written_when_they_are_read(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """And once: a view of objects needs none, and where messages may be dropped none but the first."""
    written: list[Any] = []
    for module in (_bodies, _messages):
        monkeypatch.setattr(module, "dumps", lambda value, *more: (written.append(value), dumps(value, *more))[1])
    history = History(keep=1, boundary="sliding", **more)
    for number in range(5):
        history.extend([call(str(number)), result(str(number), "x" * 300)])
        assert len(history.view()) == 2 * number + 2
    assert written == history.messages[: len(more)] and history.stats().masked_count > 0
    assert written == history.messages
    history.view_json(), history.append(user("Go on.")), history.view_json()
    assert len(written) == len(history) == 11


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", STRANGE)
def test_strange_values_are_as_their_text(name: str, look: str) -> None:
    both = History(keep=0, boundary="sliding"), OfTexts(keep=0, boundary="sliding")
    for message in (user("Go."), call("1"), result("1", "y" * 300)):
        same(both, append, message)
    same(both, append_strange, name)
    for message in (call("2"), result("2", "z" * 300), user("Go on."), call("3")):
        same(both, append, message)
    same(both, LOOKS[look])
    same(both, LOOKS["view"])


def test_what_a_caller_changes_later_is_in_no_text(tmp_path: Path) -> None:
    """Neither in that of the message, nor in its mask; the view has the object itself, and a mask is a copy."""
    history = History(keep=0, boundary="sliding")
    messages = [user("Go."), call("1"), {**result("1", "x" * 300), "more": {"a": ["b"]}}, call("2")]
    written = json.dumps(messages, separators=(",", ":")).encode()
    history.extend(messages)
    messages[0]["content"] = messages[2]["more"]["a"] = "changed"
    messages[1].clear()
    view = history.view()
    assert view[0] is messages[0] and view[1] == {}
    assert view[2]["content"].startswith("[") and view[2]["more"] == {"a": ["b"]}
    view[2]["more"]["a"].append("c")
    assert history.to_json() == written
    history.save(tmp_path / "saved")
    assert History.load(tmp_path / "saved").to_json() == written
