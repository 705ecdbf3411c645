"""Why nothing is masked, and what is: one sentence of `Reduction.reason` and `History.stats().reason`."""

from __future__ import annotations

import json
from typing import Any

import pytest

import recede


def session(results: int, chars: int = 9_000) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for number in range(results):
        call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": str(number), "content": "x" * chars})
    return history


@pytest.mark.parametrize(
    ("results", "chars", "options", "reason"),
    [
        (0, 0, {}, "nothing masked: there are no tool results"),
        (10, 9_000, {}, "nothing masked: all 10 results are in the window, or were not shown yet"),
        (12, 9_000, {}, "nothing masked: 2 results outside of the window; masking them does not pay yet"),
        (20, 50, {}, "nothing masked: the 10 results outside of the window are exempt, or too short"),
        (20, 9_000, {"exclude_tools": ["run"]}, "nothing masked: the 10 results outside of the window are exempt"),
        (60, 9_000, {"trigger_tokens": 10**6}, "nothing masked: the history is below trigger_tokens"),
        (12, 9_000, {"boundary": 5}, "nothing masked: 2 results outside of the window, less than a step of boundary"),
        (20, 9_000, {"boundary": "sliding"}, "10 of 20 results masked"),
        (60, 9_000, {}, "43 of 60 results masked since request 54"),
    ],
)
def test_each_door_says_in_one_sentence_what_is_masked_or_why_nothing_is(
    results: int, chars: int, options: dict[str, Any], reason: str
) -> None:
    history = session(results, chars)
    kept = recede.History(**options)
    kept.extend(history)
    kept.view()
    of_request = recede.reduce({"model": "m", "messages": history}, **options)
    of_json = recede.reduce(json.dumps(history).encode(), **options)
    for said in (recede.reduce(history, **options).reason, of_request.reason, of_json.reason, kept.stats().reason):
        assert said.startswith(reason), said


def test_over_a_limit_the_reason_names_what_was_cut_and_dropped() -> None:
    view = recede.reduce(session(60), max_input_tokens=500)
    assert view.clipped_count or view.dropped_count
    assert f"{view.dropped_count} messages dropped" in view.reason or "cut" in view.reason
    assert view.reason.endswith("; still over the limit") is (view.within_limit is False)


def test_places_of_masked_cut_and_dropped_are_those_of_the_view() -> None:
    history = session(20)
    view = recede.reduce(history, boundary="sliding", max_result_chars=4_000)
    assert view.masks == tuple((2 + 2 * number, 0) for number in range(10))
    assert view.clipped == tuple((2 + 2 * number, 0) for number in range(10, 20))
    assert view.dropped == ()
    small = recede.reduce(history, max_input_tokens=600)
    assert len(small.dropped) == small.dropped_count
    assert recede.reduce(json.dumps(history).encode(), boundary="sliding").masks == view.masks
