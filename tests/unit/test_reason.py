"""Why nothing is masked, and what is: one sentence of `Reduction.reason` and `History.stats().reason`."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
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
        (10, 9_000, {}, "nothing masked: all 10 results are in the window, or not shown yet"),
        (
            12,
            9_000,
            {},
            "nothing masked: 2 could be, it does not pay yet with the prompt cache of anthropic",
        ),
        (20, 50, {}, "nothing masked: the 10 results outside of the window are exempt, or too short"),
        (20, 9_000, {"exclude_tools": ["run"]}, "nothing masked: the 10 results outside of the window are exempt"),
        (60, 9_000, {"trigger_tokens": 10**6}, "nothing masked: the history is below trigger_tokens"),
        (12, 9_000, {"boundary": 5}, "nothing masked: 2 could be, less than a step of boundary"),
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
    view = recede.reduce(session(60), max_input_tokens=1_000)
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


STEP = (
    "masked 0: 2 could be, less than a step of boundary (a smaller one masks sooner), "
    "or the 10 where reasoning is verified"
)
WAITS = 'masked 0: 2 could be, it does not pay yet (boundary="sliding" masks now)'


@pytest.mark.parametrize(
    ("results", "options", "said"),
    [
        (0, {}, "masked 0"),
        (12, {}, WAITS),
        (12, {"boundary": 5}, STEP),
        (9, {}, "masked 0: all 9 results are in the window, or not shown yet (a smaller keep masks sooner)"),
        (12, {"boundary": "sliding"}, "masked 2"),
    ],
)
def test_a_repr_says_why_nothing_is_masked(results: int, options: dict[str, Any], said: str) -> None:
    history = session(results)
    for view in (recede.reduce(history, **options), recede.reduce(json.dumps(history).encode(), **options)):
        assert f", {said}, dropped 0" in repr(view)
    kept = recede.History(**options)
    kept.extend(history)
    assert "masked" not in repr(kept)  # no view was taken, so none is planned
    kept.view()
    assert repr(kept).endswith(f" chars, {said}>")
    kept.rewind(len(history) - 1)
    kept.append(history[-1])
    assert "masked" not in repr(kept)


def test_a_field_says_that_a_mask_does_not_pay_yet() -> None:
    assert recede.reduce(session(12)).unmasked.does_not_pay
    for options in ({"boundary": 5}, {"boundary": "sliding"}, {"keep": 20}, {"trigger_tokens": 10**6}):
        assert not recede.reduce(session(12), **options).unmasked.does_not_pay


def test_the_debug_log_has_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    history = session(12)
    with caplog.at_level(logging.DEBUG, logger="recede"):
        expected = recede.reduce(history).reason
        assert [record.getMessage() for record in caplog.records] == [f"a view: {expected}"]
        caplog.clear()
        kept = recede.History()
        kept.extend(history)
        kept.view()
        kept.view()  # says nothing new
        assert [record.getMessage() for record in caplog.records] == [f"a view: {expected}"]
        caplog.clear()
    recede.reduce(history)
    kept.append(history[0])
    kept.view()
    assert not caplog.records


def test_switched_off_it_says_so() -> None:
    said = "import recede; print(recede.reduce([{'role': 'tool', 'tool_call_id': '1', 'content': 'x'}]).reason)"
    done = subprocess.run([sys.executable, "-c", said], env={**os.environ, "RECEDE_OFF": "1"}, capture_output=True)
    assert done.stdout.split() == b"nothing masked: RECEDE_OFF is set".split(), done.stderr
