"""`History.rewind`: what it takes back, what it refuses, and what an error leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from published import History

import recede
from support import call, result, user


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.store"


def session(turns: int, chars: int = 400) -> list[dict[str, Any]]:
    messages = [user("Find the bug.")]
    for turn in range(turns):
        messages += [call(f"c{turn}"), result(f"c{turn}", f"{turn} " * (chars // 3))]
    return messages


def looked_at(messages: list[dict[str, Any]], **options: Any) -> History:
    """A history of which a view was taken after each message."""
    history = History(**options)
    for message in messages:
        history.append(message)
        history.view_json()
    return history


@pytest.mark.parametrize("messages", [-1, 4, True, 1.0, None, "1"])
def test_a_wrong_count_is_refused_with_words(messages: Any) -> None:
    history = looked_at(session(1))
    with pytest.raises((TypeError, ValueError), match="messages must be"):
        history.rewind(messages)
    assert len(history) == 3


def test_the_count_that_there_is_changes_nothing() -> None:
    history = looked_at(session(9))
    view = history.view()
    history.rewind(19)
    assert all(one is other for one, other in zip(history.view(), view, strict=True))


def test_views_give_the_callers_own_objects() -> None:
    messages = session(30)
    history = looked_at(messages, max_overcost=None)
    history.rewind(41)
    view = history.view()
    assert len(view) == 41 and any(one is not other for one, other in zip(view, messages, strict=False))
    assert all(one is other for one, other in zip(view, messages, strict=False) if one == other)


def test_what_was_masked_since_is_raw_again() -> None:
    messages = session(30)
    history = looked_at(messages)
    assert history.stats().masked_count > 0
    history.rewind(7)
    assert history.view() == messages[:7] and history.stats().boundary_moves == ()
    assert history.stats().changed_message == 2, "the first result was masked in the view before"
    history.rewind(5)
    assert history.view() == messages[:5] and history.stats().changed_message == 5


def test_what_the_budget_alone_masked_is_raw_again() -> None:
    """No boundary moved: the window is larger than the budget."""
    messages = session(5, chars=1_350)
    options: dict[str, Any] = {"max_input_chars": 4_000, "boundary": "sliding", "keep_turns": 5}
    history = History(**options)
    history.extend(messages)
    assert "masked" in str(history.view())
    history.rewind(9)
    assert history.view() == looked_at(messages[:9], **options).view()


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_summary_that_came_later_is_void_and_the_one_before_counts_again(path: Path, is_stored: bool) -> None:
    asked: list[int] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        asked.append(len(messages))
        return f"summary {len(asked)} after {previous!r:.20}"

    messages = session(100)
    store = recede.store.TurnStore(path) if is_stored else None
    history = History(max_input_chars=2_000, summarizer=summarizer, store=store)
    views, made = [], []
    for message in messages:
        before = len(asked)
        history.append(message)
        views.append(history.view_json())
        if len(asked) > before:
            made.append(len(history))
    assert len(made) > 3
    for count in (len(messages) - 1, made[-1], made[2], made[2] - 1, made[1] + 1, made[0], made[0] - 1, 1):
        history.rewind(count)
        calls = len(asked)
        assert history.view_json() == views[count - 1], count
        assert len(asked) == calls, "nobody is asked for it again"


@pytest.mark.parametrize("options", [{}, {"boundary": "sliding"}, {"mask_chunk": 3}])
def test_what_comes_again_is_shown_as_if_nothing_else_had_come(options: dict[str, Any]) -> None:
    """Numbers in placeholders, the boundary and its moves are those of a history that was never rewound."""
    messages = [user("Find the bug.")]
    for turn in range(60):
        messages += [call(f"c{turn}"), result(f"c{turn}", f"{turn} " * (30 + turn * 37 % 400))]
    options = {"recall": True, **options}
    for count in range(20, 121, 7):
        other = [call("other"), result("other", "x" * 5_000), call("another"), result("another", "y" * 900)]
        history = looked_at(messages[:count] + other * 3, **options)
        history.rewind(count)
        straight = looked_at(messages[:count], **options)
        for message in messages[count:]:
            history.append(message)
            straight.append(message)
            assert history.view() == straight.view()
        assert history.stats().boundary_moves == straight.stats().boundary_moves
        assert history.recall(count // 3) == straight.recall(count // 3)


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("is_up_again", [False, True])
def test_a_summary_that_failed_later_does_not_delay_one_now(path: Path, is_stored: bool, is_up_again: bool) -> None:
    """Nor does one that was made later hasten it."""
    up_from = 1_000

    def asked_at(messages: list[dict[str, Any]], rewound_to: int | None = None) -> list[int]:
        """When a summary is asked for; of a history that is rewound when all messages came, only then."""
        path.unlink(missing_ok=True)
        asked: list[int] = []

        def summarizer(messages: list[Any], previous: str | None) -> str:
            asked.append(len(history))
            if len(history) < up_from:
                raise RuntimeError("no summary today")
            return "short"

        store = recede.store.TurnStore(path) if is_stored else None
        history = History(max_input_chars=1_000, keep_turns=2, summarizer=summarizer, store=store)
        for message in messages:
            history.append(message)
            history.view_json()
        if rewound_to is not None:
            del asked[:]
            history.rewind(rewound_to)
            for message in messages[rewound_to:]:
                history.append(message)
                history.view_json()
        if store is not None:
            store.close()
        return asked

    messages = session(60)
    straight = asked_at(messages)
    if is_up_again:
        up_from = straight[4]
        straight = asked_at(messages)
    assert len(straight) > 4
    for count in (1, straight[0] - 1, straight[0], straight[1] + 1, straight[3] + 1, straight[-1]):
        assert asked_at(messages, count) == [at for at in straight if at > count], count


def test_a_store_knows_nothing_of_ids_that_were_taken_back(path: Path) -> None:
    """Not even when there are as many observations again as there were, of other calls."""
    messages = session(100)
    with recede.store.TurnStore(path) as store:
        history = looked_at(messages, store=store)
        history.rewind(5)
        others = [one for turn in range(100) for one in (call(f"d{turn}"), result(f"d{turn}", f"{turn} " * 90))]
        for message in [*others, result("c90", "of a call that never was")]:
            history.append(message)
            history.view_json()
        with pytest.raises(LookupError):
            history.recall("c80")
        straight = looked_at([*messages[:5], *others, result("c90", "of a call that never was")])
        assert history.stats() == straight.stats()


def test_a_late_result_that_was_taken_back_did_not_answer(path: Path) -> None:
    messages = [call("late"), *session(60)]
    late, more = result("late", "at last"), session(40)
    with recede.store.TurnStore(path) as store:
        history = looked_at([*messages, late], store=store)
        history.rewind(len(messages))
        for message in [*more, late]:
            history.append(message)
            history.view_json()
        straight = looked_at([*messages, *more, late])
        assert history.stats() == straight.stats()
        assert history.recall("late") == "at last"


@pytest.mark.parametrize("is_stored", [False, True])
def test_nothing_is_counted_again(path: Path, is_stored: bool) -> None:
    fails = False

    def counter(text: str) -> int:
        if fails:
            raise RuntimeError("no tokens today")
        return len(text)

    messages = session(100)
    store = recede.store.TurnStore(path) if is_stored else None
    options: dict[str, Any] = {"max_input_tokens": 2_000, "token_counter": counter}
    history = looked_at(messages, store=store, **options)
    fails = True
    history.rewind(9)
    assert history.view() == messages[:9]
    with pytest.raises(RuntimeError, match="no tokens today"):
        history.append(messages[9])
    fails = False
    history.append(messages[9])
    assert history.view_json() == looked_at(messages[:10], **options).view_json()
    assert store is None or store.count_records("message") == 10


def test_a_store_has_the_first_messages_alone(path: Path) -> None:
    messages = session(100)
    with recede.store.TurnStore(path) as store:
        history = looked_at(messages, store=store)
        for count in (199, 120, 2, 0):
            history.rewind(count)
            assert store.count_records("message") == count == len(history)
            assert history.view_json() == looked_at(messages[:count]).view_json()
            assert store.verify().is_sound
        history.extend(messages)
    with recede.store.TurnStore(path) as store:
        assert History(store=store).view_json() == looked_at(messages).view_json()


def test_it_outlives_the_process(path: Path) -> None:
    for deep in (1, 90):
        path.unlink(missing_ok=True)
        store = recede.store.TurnStore(path)
        history = looked_at(session(100), store=store)
        history.rewind(201 - deep)
        store.close(sync=False)
        with recede.store.TurnStore(path) as store:
            assert len(History(store=store)) == 201 - deep


def test_a_summary_outlives_the_process(path: Path) -> None:
    asked: list[int] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        asked.append(len(messages))
        return f"summary of {len(messages)}"

    store = recede.store.TurnStore(path)
    options: dict[str, Any] = {"max_input_chars": 2_000, "summarizer": summarizer}
    history = History(store=store, **options)
    for message in session(100):
        history.append(message)
        history.view_json()
        if store.count_records("summary"):
            break
    view = history.view_json()
    store.close(sync=False)
    with recede.store.TurnStore(path) as store:
        assert store.count_records("summary") == 1
        assert History(store=store, **options).view_json() == view
    assert len(asked) == 1


def test_a_store_for_reading_is_not_rewound(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        looked_at(session(30), store=store)
    with recede.store.TurnStore(path, read_only=True) as store:
        history = History(store=store)
        view = history.view_json()
        for count in (60, 3):
            with pytest.raises(recede.StoreError, match="opened for reading"):
                history.rewind(count)
        assert history.view_json() == view and len(history) == 61
    with pytest.raises(recede.StoreError, match="closed"):
        history.rewind(60)


def test_messages_of_another_are_not_taken_back(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        one, other = looked_at(session(3), store=store), History(store=store)
        other.append(user("mine"))
        with pytest.raises(RuntimeError, match="has messages that this history did not append"):
            one.rewind(3)
        assert store.count_records("message") == 8


def test_a_callback_cannot_rewind() -> None:
    errors: list[str] = []

    def counter(text: str) -> int:
        try:
            history.rewind(0)
        except RuntimeError as error:
            errors.append(str(error))
        return len(text)

    history = History(max_input_tokens=900, token_counter=counter)
    history.append(user("one"))
    assert errors and len(history) == 1


def test_a_saved_history_is_rewound_before_its_summaries(path: Path) -> None:
    messages = session(100)
    looked_at(messages, max_input_chars=2_000).save(path)
    history = History.load(path)
    for count in (90, 31, 9):
        history.rewind(count)
        assert history.view_json() == looked_at(messages[:count], max_input_chars=2_000).view_json()
    history.extend([user(".")] * 200)  # as many as one of those summaries was made of
    assert len(history.view()) == len(history), "there is no need of one"
    history.save(path)
    assert History.load(path).view_json() == history.view_json()


@pytest.mark.parametrize("window", [{"boundary": "sliding", "keep": 3}, {"keep": 0, "provider": "ideal"}])
@pytest.mark.parametrize("rule", [{"exclude_tools": ["dropped"]}, {"keep_by_tool": {"dropped": None}}])
def test_a_tool_after_a_rewind_is_not_taken_for_a_dropped_one(window: Any, rule: Any) -> None:
    def of_tool(name: str) -> list[dict[str, Any]]:
        turns = [[call(f"{name}{turn}", name=name), result(f"{name}{turn}", "x" * 900)] for turn in range(20)]
        return [*session(60), *(message for turn in turns for message in turn)]

    options: dict[str, Any] = {**window, **rule}
    history, masker = looked_at(of_tool("dropped"), **options), recede.masker.Masker(**options)
    masker.view(of_tool("dropped"))
    history.rewind(121)
    history.extend(of_tool("other")[121:])
    whole = History.from_messages(of_tool("other"), **options)
    assert history.view() == whole.view()
    of_history, of_masker = (
        [mask.message_index for mask in masks.masks] for masks in (whole.masks(), masker.masks(of_tool("other")))
    )
    assert of_history == of_masker != [] and masker.stats().forked == 1


def test_a_rewind_takes_back_failures_of_the_summarizer() -> None:
    asked: list[int] = []

    def fails(*_: Any) -> str:
        asked.append(len(history))
        raise ValueError("down")

    messages, history = session(60), History(max_input_chars=2_500, summarizer=fails)
    for start in (0, 70):
        history.rewind(start)
        for message in messages[start:]:
            history.append(message)
            history.view_json()
    assert asked == [77, 77]
