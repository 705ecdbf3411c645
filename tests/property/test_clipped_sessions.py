"""Histories that cut long results when they arrive: against the cut of each text, also saved, stored and rewound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from published import History

import recede
from oracle.clip import clip, is_clipped
from recede.store import TurnStore
from recede.testing import histories
from support import call, handle_of, result, user

BLOCK = "BEGIN_DISPATCH_RESULT\n{}\nEND_DISPATCH_RESULT"
LONG = st.builds(lambda text, times: text * times, st.text(min_size=1, max_size=9), st.integers(1, 60))
TEXTS = st.one_of(LONG, LONG.map(lambda text: str(clip(text, 60).text)), st.text(max_size=5))


def session_of(texts: list[str]) -> list[Any]:
    messages: list[Any] = [user("Go.")]
    for number, text in enumerate(texts):
        messages += [call(str(number)), result(str(number), text)]
    return messages


def cut(text: str, clip_at: int, id: str | None) -> str:
    """The definition."""
    if len(text) <= clip_at or is_clipped(text) or recede.designs.mask_observation(text) == text:
        return text
    return str(clip(text, clip_at, recall=None if id is None else handle_of(id, text)).text)


def requests(history: History, messages: list[Any]) -> list[list[Any]]:
    """The view before each message of the agent, and the last one."""
    views = []
    for message in messages:
        if message.get("role") == "assistant":
            views.append(history.view())
        history.append(message)
    return [*views, history.view()]


@given(texts=st.lists(TEXTS, max_size=6), clip_at=st.integers(60, 200), handles=st.booleans())
def test_each_long_result_is_cut_to_its_beginning_and_end(texts: list[str], clip_at: int, handles: bool) -> None:
    messages = session_of(texts)
    history = History(clip_at=clip_at, recall=handles)
    views = requests(history, messages)
    shown = [cut(text, clip_at, str(number) if handles else None) for number, text in enumerate(texts)]
    whole = session_of(shown)
    assert views == [whole[: len(view)] for view in views]
    assert views[-1] == whole
    assert [history.recall(number) for number in range(1, len(texts) + 1)] == texts
    assert history.stats().masked_count == sum(one != text for one, text in zip(shown, texts, strict=True))


@given(history=histories(), clip_at=st.integers(60, 120), at=st.integers(0, 30))
def test_no_request_changes_what_an_earlier_one_sent(history: list[Any], clip_at: int, at: int) -> None:
    made = History(clip_at=clip_at)
    before: list[Any] = []
    for message in history:
        made.append(message)
        view = made.view()
        assert view[: len(before)] == before
        before = view
    assert made.messages == history
    at = min(at, len(history))
    made.rewind(at)
    assert made.view() == before[:at]
    made.extend(history[at:])
    assert made.view() == before


def test_a_saved_or_stored_history_goes_on_cutting(tmp_path: Path) -> None:
    texts = [f"{number} a line of the output\n" * (number % 7 * 30) for number in range(1_400)]
    messages = session_of(texts)
    whole = session_of([cut(text, 400, str(number)) for number, text in enumerate(texts)])
    options: dict[str, Any] = {"clip_at": 400, "recall": True}
    path = tmp_path / "session.db"
    with TurnStore(path) as store:
        history = History(**options, store=store)
        history.extend(messages[:2_001])
        assert history.view() == whole[:2_001]
    with TurnStore(path) as store:
        history = History(**options, store=store)
        history.extend(messages[2_001:])
        assert history.view() == whole
        assert [history.recall(number) for number in (1, 500, 1_400)] == [texts[0], texts[499], texts[1_399]]
        history.rewind(1_501)
        assert history.view() == whole[:1_501]
        history.save(tmp_path / "saved")
    loaded = History.load(tmp_path / "saved")
    loaded.extend(messages[1_501:])
    assert loaded.view() == whole
    assert loaded.recall(500) == texts[499]


def test_results_that_are_never_masked_are_never_cut() -> None:
    texts = ["x" * 500, "keep: " + "x" * 500, BLOCK.format("x" * 500)]
    view = History.from_messages(session_of(texts), clip_at=60, keep_matching=["keep: "]).view()
    assert [len(message["content"]) for message in view if message["role"] == "tool"] == [60, *map(len, texts[1:])]
    excluded = History.from_messages(session_of(texts), clip_at=60, exclude_tools=["*"])
    assert excluded.view() == session_of(texts)
