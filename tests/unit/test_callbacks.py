"""Callbacks that touch what they were called for: the caller's own list, or the history or manager itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import published
import pytest
from published import History

import recede
from recede.designs import HybridContextManager
from support import system, turns, user

TASK = [system("Be brief."), user("Go."), *turns(12, chars=300)]
SMALL: dict[str, Any] = {"max_input_tokens": 400, "preserve_recent_raw_turns": 1}
CHANGES: dict[str, Callable[[list[Any]], None]] = {
    "grows": lambda messages: messages.extend(turns(3, chars=999)),
    "shrinks": lambda messages: messages.__delitem__(slice(1, None)),
    "is emptied": list.clear,
    "is turned round": list.reverse,
    "gets others": lambda messages: messages.__setitem__(slice(None), [user("x" * 9)] * len(messages)),
    "gets what is no message": lambda messages: messages.__setitem__(slice(None), [5] * len(messages)),
}


def calling(deed: Callable[[], object], function: Callable[..., Any]) -> Callable[..., Any]:
    """A callback that does something besides, each time that it is called."""

    def called(*arguments: Any) -> Any:
        deed()
        return function(*arguments)

    return called


def shorter(messages: list[Any], previous: str | None) -> str:
    return f"{len(messages)} messages: {sum(len(str(message)) for message in messages)} characters"


# The caller's list


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("callback", ["token_counter", "summarizer"])
@pytest.mark.parametrize("budget", [100, 400, 100_000])
def test_a_list_is_read_once_whatever_a_callback_makes_of_it(change: str, callback: str, budget: int) -> None:
    functions = {"token_counter": len, "summarizer": shorter}
    options = {**SMALL, "max_input_tokens": budget, **functions}
    expected = published.reduce(TASK, **options)
    messages = TASK.copy()
    options[callback] = calling(lambda: CHANGES[change](messages), functions[callback])
    assert published.reduce(messages, **options) == expected


def test_an_unchanged_view_is_the_callers_own_list_unless_that_was_changed() -> None:
    messages = TASK.copy()
    assert published.reduce(messages, max_input_tokens=10**6, token_counter=len).messages is messages
    counter = calling(lambda: messages.append(user("More.")), len)
    view = published.reduce(messages, max_input_tokens=10**6, token_counter=counter).messages
    assert view == TASK != messages


@pytest.mark.parametrize("change", [{"role": "user"}, {"role": "assistant", "content": None}])
def test_a_message_that_a_counter_makes_another_one_is_an_error_with_words(change: dict[str, Any]) -> None:
    messages = [dict(message) for message in TASK]
    counter = calling(lambda: messages[3].update(change), len)
    with pytest.raises(RuntimeError, match="the messages were changed while their tokens were counted"):
        published.reduce(messages, **SMALL, token_counter=counter)


# A history


def reads(history: History) -> list[Any]:
    length = len(history)
    read = [length, bool(history), repr(history), list(history), history.messages, history.to_json()]
    return [*read, history.recall(1) if length > 3 else None, history[-1] if length else None]


@pytest.mark.parametrize("name", ["token_counter", "summarizer"])
def test_callbacks_may_read_their_history(name: str, tmp_path: Path) -> None:
    history, other = History(**SMALL, token_counter=len, summarizer=shorter), None
    functions = {"token_counter": len, "summarizer": shorter}
    functions[name] = calling(lambda: seen.append(reads(other)), functions[name])
    seen: list[Any] = []
    other = History(**SMALL, **functions)
    for message in TASK:
        history.append(message)
        before = len(seen)
        other.append(message)
        if name == "token_counter":
            assert all(read[0] == len(history) - 1 for read in seen[before:])
        assert other.view() == history.view()
        assert other.stats() == history.stats()
    assert seen
    assert all(read[4] == read[3] == TASK[: read[0]] and read[1] == bool(read[0]) for read in seen)
    assert all(read[6] in (None, TASK[3]["content"]) for read in seen)


DEEDS: dict[str, Callable[[History], object]] = {
    "append": lambda history: history.append(user("More.")),
    "append_json": lambda history: history.append_json('{"role":"user","content":"More."}'),
    "extend": lambda history: history.extend(turns(1)),
    "view": lambda history: history.view(),
    "view_json": lambda history: history.view_json(),
    "view_chunks": lambda history: history.view_chunks(),
    "stats": lambda history: history.stats(),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_a_counter_that_calls_its_history_is_an_error_with_words(deed: str) -> None:
    plain = History(**SMALL, token_counter=len, summarizer=shorter)
    calls_it = False
    history = History(
        **SMALL, token_counter=calling(lambda: calls_it and DEEDS[deed](history), len), summarizer=shorter
    )
    for message in TASK:
        plain.append(message)
        calls_it = True
        with pytest.raises(RuntimeError, match="the token_counter or the summarizer of this history is at work"):
            history.append(message)
        calls_it = False
        assert history.messages == plain.messages[:-1]
        history.append(message)
        # A summary is counted when the view is made.
        calls_it = True
        try:
            view = history.view()
        except (
            RuntimeError
        ):  # the summarizer has answered: it is not asked for the same again, the built-in text stands
            calls_it = False
            assert "Conversation summary:\\n- outcome: run: " in str(history.view())
            assert history.messages == plain.messages
            return
        calls_it = False
        assert view == plain.view()
    assert history.stats() == plain.stats()
    assert "Conversation summary" in str(plain.view()) or "characters" in str(plain.view())


@pytest.mark.parametrize("deed", DEEDS)
def test_a_summarizer_that_calls_its_history_has_failed_and_nothing_else(deed: str) -> None:
    def failing(messages: list[Any], previous: str | None) -> str:
        raise ValueError("no summary")

    plain = History(max_input_chars=400, preserve_recent_raw_turns=1, summarizer=failing)
    summarizer = calling(lambda: DEEDS[deed](history), shorter)
    history = History(max_input_chars=400, preserve_recent_raw_turns=1, summarizer=summarizer)
    for message in TASK:
        plain.append(message)
        history.append(message)
        assert history.view() == plain.view()
    assert type(plain.summarizer_error) is ValueError
    assert "the summarizer of this history is at work" in str(history.summarizer_error)
    assert history.messages == TASK


# Managers


def test_a_summarizer_may_add_turns_to_its_manager() -> None:
    def summarizer(turns: list[recede.turns.Turn], previous: str | None) -> str:
        manager.add_turn("a", "b", "meanwhile")
        return f"<{turns[0].turn}-{turns[-1].turn}>"

    manager = HybridContextManager(summarizer, 1, 3, 1)
    for _ in range(3):
        manager.add_turn("a", "b", "c")
    assert (len(manager), manager.summaries) == (4, [recede.turns.Summary(2, "<1-2>")])
