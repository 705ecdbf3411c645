"""How much new content a session takes between two compactions: what the budget leaves beside the view of the first."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from even import all_masked, even, summaries_of
from hypothesis import event, given
from hypothesis import strategies as st
from published import History

import recede
from support import call, result, user

Messages = list[dict[str, Any]]


def _short(messages: list[Any], previous: str | None) -> str:
    return "It went well."


def _failing(messages: list[Any], previous: str | None) -> str:
    raise OSError("no model")


@st.composite
def sessions(draw: Any) -> Messages:
    """A task, and turns of a call and its result: what the user says later would be a task for the definition."""
    messages = [{"role": "system", "content": "Be brief."}] if draw(st.booleans()) else []
    messages.append(user("Find the bug. " * draw(st.integers(1, 12))))
    for turn, size in enumerate(
        draw(st.lists(st.sampled_from([0, 20, 90, 300, 900, 2_500]), min_size=12, max_size=40))
    ):
        messages += [
            {**call(str(turn)), "content": "I look. " * draw(st.integers(0, 20))},
            result(str(turn), "x" * size),
        ]
    return messages


@given(
    messages=sessions(),
    budget=st.sampled_from([900, 1_500, 3_000]),
    fill=st.sampled_from([0.25, 0.5, 0.9]),
    summarizer=st.sampled_from([None, _short, _failing]),
    window=st.sampled_from([1, 2, 4]),
)
def test_new_content_between_compactions_fills_the_rest_of_the_budget(
    messages: Messages, budget: int, fill: float, summarizer: Any, window: int
) -> None:
    options: dict[str, Any] = {"fill": fill, "preserve_recent_raw_turns": window}
    functions = {} if summarizer is None else {"summarizer": summarizer}
    history = History(max_input_chars=budget, clip_results=None, **options, **functions)
    base: Messages = []  # the view of the last compaction, which became the session
    least = budget  # of content that is new since then
    new: Messages = []
    for message in messages:
        history.append(message)
        new.append(message)
        if message["role"] == "assistant":
            continue
        view, whole = history.view(), [*base, *new]
        if len(view) == len(whole):
            continue
        event("a compaction after another" if base else "the first compaction")
        masked = all_masked(whole, preserve_recent_raw_turns=window)
        assert recede.count_chars(masked[len(base) :]) > least
        kept = even(whole, budget, **options)
        window_chars = recede.count_chars([masked[place] for place in sorted(kept.window)])
        summary_chars = recede.count_chars([view[place] for place in sorted(summaries_of(view))])
        most = max(Fraction(str(fill)) * budget, window_chars + kept.task_chars + summary_chars)
        assert recede.count_chars(view) <= most
        base, new, least = view, [], budget - most
