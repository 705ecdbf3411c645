"""Summaries of old turns that pay, at the doors: both engines, `reduce` and a `History` hide the same."""

from __future__ import annotations

from typing import Any

from generated import histories
from hypothesis import given
from hypothesis import strategies as st
from marks import client_histories

import recede
from recede import History, Provider
from support import ENGINES, using

Messages = list[dict[str, Any]]

# Prices at which summaries pay within a few turns, and those of a provider.
CHEAP = Provider("cheap", cache="ideal", read=0.9, write=1.0, output=0.1)
FREE = Provider("free", cache="none", read=1.0, write=1.0, output=0.0)

OPTIONS = st.fixed_dictionaries(
    {"keep": st.integers(0, 2), "provider": st.sampled_from([CHEAP, FREE])},
    optional={
        "boundary": st.sampled_from(["break_even", "sliding", 2]),
        "max_overcost": st.sampled_from([None, None, 0.1]),
        "exclude_tools": st.sampled_from([(), ("run",), ("*",)]),
        "trigger_tokens": st.sampled_from([0, 200]),
        "max_input_tokens": st.sampled_from([None, None, 1_500]),
    },
)


def long(messages: Messages, times: int) -> Messages:
    """The history again and again, with its texts so long that summaries pay."""

    def longer(value: Any, number: int) -> Any:
        if isinstance(value, list):
            return [longer(one, number) for one in value]
        if not isinstance(value, dict):
            return value
        wide = {
            name: f"{text} {number} " * 40 if name in ("text", "content") and isinstance(text, str) else text
            for name, text in value.items()
        }
        return {name: longer(one, number) for name, one in wide.items()}

    return [longer(message, number) for number in range(times) for message in messages]


class Told:
    """A summarizer that always says the same, but fails at some calls."""

    def __init__(self, fails: set[int]) -> None:
        self.fails, self.calls = fails, 0
        self.given: list[Messages] = []

    def __call__(self, messages: Messages, previous: str | None) -> str:
        self.calls += 1
        self.given.append(messages)
        if self.calls in self.fails:
            raise OSError("no model")
        return "What was done."


@given(
    messages=histories() | client_histories(),
    times=st.integers(2, 4),
    options=OPTIONS,
    fails=st.just(set()) | st.sets(st.integers(1, 4)),
)
def test_both_engines_hide_the_same_and_so_does_reduce(
    messages: Messages, times: int, options: dict[str, Any], fails: set[int]
) -> None:
    messages = long(messages, times)
    told = {name: Told(fails) for name in ENGINES}
    kept: dict[str, History] = {}
    for name in ENGINES:
        with using(name):
            kept[name] = History(**options, summarizer=told[name])
    asked = 0
    for count, message in enumerate(messages, 1):
        for history in kept.values():
            history.append(message)
        if message.get("role") in ("assistant", "model") and count < len(messages):
            continue
        views = {}
        for name, history in kept.items():
            with using(name):
                views[name] = history.view()
        assert views["core"] == views["oracle"]
        assert told["core"].given == told["oracle"].given
        if not fails and (told["core"].calls > asked or count == len(messages)):
            asked = told["core"].calls
            view = recede.reduce(messages[:count], **options, summarizer=Told(set()))
            assert view.messages == views["core"]
