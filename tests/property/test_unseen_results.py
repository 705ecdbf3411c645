"""Results that no request has shown stay raw at every door, however many; the published designs mask them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import published
from generated import histories
from hypothesis import given
from hypothesis import strategies as st

import recede
from support import call, result, user

History = list[dict[str, Any]]
BOUNDARIES: list[dict[str, Any]] = [{"boundary": "sliding"}, {"mask_chunk": 2}, {"boundary": "break_even"}]
HISTORIES = histories(max_turns=5, max_parallel_calls=9)
BATCH: History = [
    user("Read them."),
    call(*map(str, range(15))),
    *(result(str(n), f"line {n}\n" * 90) for n in range(15)),
]


def requests(history: History) -> Iterator[tuple[History, History]]:
    """What is sent before each answer of the model, and at the end; and the part that is new in it."""
    new = 0
    for place, message in enumerate([*history, {"role": "assistant"}]):
        kind = message.get("type") if isinstance(message.get("type"), str) else ""
        is_answer = kind in ("reasoning", "thought", "model_output") or kind.endswith("_call")
        is_answer |= kind.endswith("_result") and kind != "function_result"
        if message.get("role") in ("assistant", "model") or is_answer:
            yield history[:place], history[new:place]
            new = place + 1


@given(history=HISTORIES, keep=st.integers(0, 3), rule=st.sampled_from(BOUNDARIES))
def test_masks_leave_them(history: History, keep: int, rule: dict[str, Any]) -> None:
    by_tool = {"keep_by_tool": {"*": keep}}
    own = {"boundary": 2} if "mask_chunk" in rule else rule
    masker = recede.masker.Masker(keep=keep, **own)
    for sent, new in requests(history):
        for options in ({}, by_tool):
            view = published.mask_observations(sent, keep_results=keep, **rule, **options).messages
            assert view[len(sent) - len(new) :] == new
            raw = published.mask_observations_json(json.dumps(sent), keep_results=keep, **rule, **options).json
            assert json.loads(raw) == view
        assert masker.view(sent)[len(sent) - len(new) :] == new


@given(history=HISTORIES, keep=st.integers(0, 3), rule=st.sampled_from(BOUNDARIES), limit=st.integers(1, 900))
def test_sessions_leave_them(history: History, keep: int, rule: dict[str, Any], limit: int) -> None:
    least = 0 if rule.get("boundary") == "break_even" else 3
    session = published.History(keep=max(keep, least), max_view_tokens=limit, **rule)
    for sent, new in requests(history):
        session.extend(sent[len(session) :])
        assert session.view()[len(sent) - len(new) :] == new


def is_said(message: dict[str, Any]) -> bool:
    """Whether it is a message of the user, which may be cut if it is the task."""
    parts = message.get("parts", [])
    return message.get("role") == "user" and ("content" in message or any("text" in part for part in parts))


@given(history=HISTORIES, keep=st.integers(0, 3), rule=st.sampled_from(BOUNDARIES), limit=st.integers(1, 3_000))
def test_budgets_leave_them(history: History, keep: int, rule: dict[str, Any], limit: int) -> None:
    for sent, new in requests(history):
        options: dict[str, Any] = {"max_input_chars": limit, "preserve_recent_raw_turns": keep, **rule}
        view = published.reduce(sent, **options).messages
        assert all(message in view for message in new if not is_said(message))


@given(history=histories("openai", max_turns=5, max_parallel_calls=9), keep=st.integers(0, 3))
def test_bodies_leave_them(history: History, keep: int) -> None:
    masker = recede.proxy.RequestMasker(keep=keep)
    for sent, new in requests(history):
        body = json.dumps({"model": "gpt-5.4", "messages": sent}).encode()
        view = json.loads(masker.mask("POST", "/v1/chat/completions", {}, body).body)["messages"]
        assert view[len(sent) - len(new) :] == new


def test_fifteen_parallel_reads_are_all_seen_once() -> None:
    chars = recede.count_chars(BATCH)
    for view in (
        published.mask_observations(BATCH, keep_results=0, boundary="sliding").messages,
        published.reduce(BATCH, max_input_chars=chars - 1, keep_results=1).messages,
        published.History.from_messages(BATCH, keep=10, boundary="sliding").view(),
        recede.masker.Masker(keep=10, boundary="sliding").view(BATCH),
    ):
        assert view[2:] == BATCH[2:]
    answered = [*BATCH, {"role": "assistant", "content": "Done."}]
    assert published.mask_observations(answered, keep_results=10, boundary="sliding").masked_count == 5


def test_a_budget_may_cut_them_in_the_end() -> None:
    view = published.reduce(BATCH, max_input_chars=5_000, clip_results=100)
    assert (view.masked_count, view.clipped_count, view.within_limit) == (0, 10, True)


def test_published_designs_mask_them(tmp_path: Path) -> None:
    view = recede.designs.mask_old_observations(BATCH, keep=4)
    assert view != BATCH
    budget = recede.designs.Budget(threshold_tokens=0)
    session = budget.history()
    session.extend(BATCH)
    assert session.view() == budget.view(BATCH) == view
    session.save(tmp_path / "session")
    assert recede.History.load(tmp_path / "session").view() == view
    chars = recede.count_chars(BATCH)
    assert recede.designs.HistoryReducer(max_input_chars=chars - 1).reduce(BATCH).masked_count == 11
