"""`cache_breakpoint="boundary"` in a `History` and a `Budget`: only the newest mark is sent, and pins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from published import History
from test_pins import HOUR, MARK, marked, marks, session

import recede
from recede.agent._given import newest_mark_only
from support import loads

PINNED: Any = {"cache_breakpoint": "boundary"}


def appended(history: list[dict[str, Any]], **options: Any) -> History:
    return History.from_messages(history, **{**PINNED, "mask_chunk": 4, **options})


def all_marked(turns: int, mark: Any = MARK) -> list[dict[str, Any]]:
    history = session(turns)
    return marked(history, *range(0, len(history), 2), mark=mark)


def test_only_the_newest_mark_is_sent_and_one_at_the_boundary() -> None:
    assert marks(appended(all_marked(2)).view()) == {4: MARK}
    # Masked are the results of turns 0 to 3, at this request and the one before.
    assert marks(appended(all_marked(9)).view()) == {8: MARK, 18: MARK}
    assert marks(appended(all_marked(9, HOUR)).view()) == {8: HOUR, 18: HOUR}


def test_keep_leaves_marks_alone() -> None:
    assert len(marks(appended(all_marked(9), cache_breakpoint="keep").view())) == 10


def test_at_a_move_the_old_boundary_has_it() -> None:
    history = appended(all_marked(11))
    assert marks(history.view()) == {8: MARK, 22: MARK}
    history.extend(marked(session(12)[23:], 0, 1))
    assert marks(history.view()) == {8: MARK, 24: MARK}
    history.extend(marked(session(13)[25:], 0, 1))
    assert marks(history.view()) == {16: MARK, 26: MARK}


@pytest.mark.parametrize(("elsewhere", "pins"), [(0, 1), (2, 1), (3, 0), (4, 0)])
def test_no_request_has_more_than_four_marks(elsewhere: int, pins: int) -> None:
    view = appended(all_marked(9), marks_elsewhere=elsewhere).view()
    assert len(marks(view)) == 1 + pins


def test_without_marks_there_are_none() -> None:
    assert marks(appended(session(9)).view()) == {}


def test_a_message_with_a_changed_mark_is_a_copy_and_no_change() -> None:
    history = all_marked(2)
    before = [dict(message) for message in history]
    view = appended(history).view()
    assert history == before
    assert view[4] is history[4] and view[2] is not history[2]
    grown = History(**PINNED)
    for message in all_marked(6):
        grown.append(message)
        grown.view()
        assert grown.stats().changed_message is None


def test_bytes_and_dicts_have_the_same_marks() -> None:
    history = appended(all_marked(9))
    assert loads(history.view_json()) == history.view() == loads(b"".join(history.view_chunks()))


def test_the_history_itself_keeps_its_marks(tmp_path: Path) -> None:
    history = appended(all_marked(9))
    history.view()
    assert history.messages == all_marked(9) == loads(history.to_json())
    history.save(tmp_path / "saved")
    loaded = History.load(tmp_path / "saved")
    assert loaded.view() == history.view() and loaded.messages == all_marked(9)


@pytest.mark.parametrize("rule", [{}, {"boundary": "sliding"}, {"mask_chunk": 2}])
def test_pins_are_sent_again_after_a_restart(tmp_path: Path, rule: dict[str, Any]) -> None:
    path = tmp_path / "session.store"
    store = recede.store.TurnStore(path, sync_every=1)
    options = {"keep": 3, **PINNED, **rule}
    stored, plain = History(store=store, **options), History(**options)
    for number, message in enumerate(all_marked(60)):
        stored.append(message)
        plain.append(message)
        assert stored.view() == plain.view()
        if number % 25 == 24:
            store.close()
            store = recede.store.TurnStore(path, sync_every=1)
            stored = History(store=store, **options)
    store.close()


@pytest.mark.parametrize("rule", ["sliding", "break_even"])
def test_the_views_of_a_budget_are_those_of_its_history(rule: Any) -> None:
    provider = recede.Provider.of("anthropic")._replace(min_tokens=0)
    budget = recede.designs.Budget(threshold_tokens=400, boundary=rule, provider=provider)
    history, messages = budget.history(), all_marked(30)
    pins = 0
    for end, message in enumerate(messages, 1):
        history.append(message)
        view = budget.view(messages[:end])
        assert view == history.view()
        assert len(marks(view)) <= 2
        pins += len(marks(view)) == 2
    assert pins > 10


def test_a_budget_without_marks_gives_the_list_itself() -> None:
    history = session(2)
    assert recede.designs.Budget(provider="anthropic").view(history) is history


def test_the_newest_of_several_marks_in_a_block_stays() -> None:
    parts = [{"type": "text", "text": "a", "cache_control": MARK}, {"type": "text", "text": "b", "cache_control": HOUR}]
    result = {"type": "tool_result", "tool_use_id": "1", "content": parts}
    history = [{"role": "user", "content": [result]}]
    (message,) = newest_mark_only(history)
    assert message["content"][0]["content"] == [{"type": "text", "text": "a"}, parts[1]]
    assert History.from_messages(history, **PINNED).view() == [message]
    assert "cache_control" in parts[0], "the input was changed"
