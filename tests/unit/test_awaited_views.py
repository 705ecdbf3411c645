"""`await history.aview()`: the view of `view`, with a summarizer that may be async."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import recede
from recede import History

Messages = list[dict[str, Any]]


def session(turns: int) -> Messages:
    messages: Messages = [{"role": "user", "content": "Fix the bug."}]
    for number in range(turns):
        call = {"type": "tool_use", "id": f"t{number}", "name": "run", "input": {"number": number}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "I look. " * 60}, call]})
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"line {number} " * 500}
        messages.append({"role": "user", "content": [result]})
    return messages


SESSION = session(120)


def told(messages: Messages, previous: str | None) -> str:
    return f"{len(messages)} messages, and {previous}"


async def awaited(messages: Messages, previous: str | None) -> str:
    await asyncio.sleep(0)
    return told(messages, previous)


def test_it_is_the_view_whether_the_summarizer_is_async_or_not() -> None:
    plain = History(summarizer=told)
    others = [History(summarizer=awaited), History(summarizer=told)]

    async def play() -> None:
        for message in SESSION:
            for history in (plain, *others):
                history.append(message)
            if message["role"] == "user":
                view = plain.view()
                for history in others:
                    assert await history.aview() == view

    asyncio.run(play())
    assert "120" not in plain.view()[1]["content"] and "messages, and None" in plain.view()[1]["content"]


def test_a_view_that_needs_no_text_is_had_without_waiting_and_another_says_to_wait() -> None:
    history = History(summarizer=awaited)
    history.extend(SESSION[:9])
    assert history.view() == SESSION[:9]
    history.extend(SESSION[9:])
    with pytest.raises(TypeError, match=r"is async: await history.aview\(\)"):
        history.view()
    assert len(asyncio.run(history.aview())) == len(history.view()) < len(SESSION)
    assert history.stats().summary_failures == 0


def test_meanwhile_nothing_changes_the_history_and_a_canceled_view_has_not_happened() -> None:
    history: History

    async def hostile(messages: Messages, previous: str | None) -> str:
        for change in (lambda: history.append(SESSION[0]), lambda: history.rewind(3), history.view, history.stats):
            with pytest.raises(RuntimeError, match="is at work"):
                change()
        with pytest.raises(RuntimeError, match="is at work"):
            await history.aview()
        assert len(history) == len(SESSION)
        await asyncio.sleep(asked.pop())
        return "What was done."

    async def play() -> Messages:
        view = asyncio.ensure_future(history.aview())
        await asyncio.sleep(0.05)
        view.cancel()
        with pytest.raises(asyncio.CancelledError):
            await view
        return await history.aview()

    asked = [0, 60]
    history = History(summarizer=hostile)
    history.extend(SESSION)
    assert asyncio.run(play())[1]["content"].endswith("What was done.") and not asked


@pytest.mark.parametrize("answer", [OSError("no model"), "", 5])
def test_one_that_fails_leaves_the_view_masked(answer: Any) -> None:
    async def failing(messages: Messages, previous: str | None) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    history, masked = History(summarizer=failing), History()
    for one in (history, masked):
        one.extend(SESSION)
    assert asyncio.run(history.aview()) == masked.view()
    assert history.stats().summary_failures == 1 and history.summarizer_error is not None


def test_reduce_refuses_an_async_summarizer() -> None:
    with pytest.raises(TypeError, match="async"):
        recede.reduce(SESSION, summarizer=awaited)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_summarizer_that_asks_its_own_masker_has_failed(is_async: bool) -> None:
    def ask(messages: Messages, previous: str | None) -> str:
        masker.view(SESSION)
        return "What was done."

    async def aask(messages: Messages, previous: str | None) -> str:
        await masker.aview(SESSION)
        return "What was done."

    masker: recede.masker.Masker[Any] = recede.masker.Masker(summarizer=aask if is_async else ask)
    view = asyncio.run(masker.aview(SESSION)) if is_async else masker.view(SESSION)
    assert view == recede.reduce(SESSION).messages
    assert "must not ask for the view" in str(masker.summarizer_error)


def test_threads_that_ask_for_one_conversation_have_the_same_views() -> None:
    masker: recede.masker.Masker[Any] = recede.masker.Masker(summarizer=lambda messages, previous: "What was done.")
    expected = [
        recede.masker.Masker(summarizer=lambda *_: "What was done.").view(SESSION[:n]) for n in range(9, 240, 10)
    ]

    def play(_: int) -> list[Messages]:
        return [masker.view(SESSION[:n]) for n in range(9, 240, 10)]

    with ThreadPoolExecutor(4) as pool:
        for views in pool.map(play, range(4)):
            assert views == expected


def test_one_that_ends_an_iteration_has_failed() -> None:
    def summarizer(messages: list[Any], previous: str | None) -> str:
        return next(iter(()))  # type: ignore[no-any-return, call-overload]

    history, masked = History(summarizer=summarizer), History()
    for one in (history, masked):
        one.extend(SESSION)
    assert asyncio.run(asyncio.wait_for(history.aview(), 60)) == masked.view()
    assert "StopIteration" in repr(history.summarizer_error)
