"""A summarizer that fails or does not help is asked again by the rule, and views show what they show without it."""

from __future__ import annotations

import asyncio
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from asked import FAILING, WAITS, Asked, Waiting
from hypothesis import event, given
from hypothesis import strategies as st
from published import History
from strategies import words

import recede
from recede.designs import HybridContextManager, ProductionHybridContextManager
from support import ENGINES as ENGINE_NAMES
from support import chat_call, chat_result, user, using

ENGINES = pytest.mark.parametrize("engine_name", ENGINE_NAMES)
Messages = list[dict[str, Any]]


@st.composite
def sessions(draw: Any) -> Messages:
    """Turns of one or two calls; each message is there once."""
    messages = [{"role": "system", "content": "Be brief."}] if draw(st.booleans()) else []
    messages.append(user("Find the bug."))
    sizes = st.lists(st.sampled_from([0, 3, 40, 40, 150, 400]), min_size=1, max_size=2)
    for turn, seen in enumerate(draw(st.lists(sizes, min_size=6, max_size=24))):
        names = [f"{turn}.{place}" for place in range(len(seen))]
        messages += [chat_call(name, "run") for name in names]
        messages += [chat_result(name, "a word " * size) for name, size in zip(names, seen, strict=True)]
        if draw(st.integers(0, 5)) == 0:
            messages.append(user(f"And {turn}?"))
    return messages


@st.composite
def options(draw: Any) -> dict[str, Any]:
    budget = draw(st.sampled_from([50, 400, 1_500, 3_000, 6_000]))
    chosen: dict[str, Any] = {"max_input_chars": budget}
    if draw(st.integers(0, 2)) == 0:
        counter = draw(st.sampled_from([None, words]))
        chosen = {"max_input_tokens": budget // 6, "token_counter": counter}
    chosen |= draw(st.sampled_from([{"boundary": "sliding"}, {"boundary": "break_even"}, {"mask_chunk": 3}]))
    window = st.sampled_from([{}, {"preserve_recent_raw_turns": 2}, {"keep_turns": 2}, {"keep_results": 3}])
    optional = {
        "summary_max_chars": st.just(9_000),
        "strict_pairs": st.booleans(),
        "observation_masking": st.booleans(),
    }
    return {**chosen, **draw(window), **draw(st.fixed_dictionaries({}, optional=optional))}


@given(
    messages=sessions(),
    options=options(),
    answers=st.lists(st.sampled_from([*FAILING, "helps"]), max_size=6),
    data=st.data(),
)
def test_both_engines_ask_the_same_by_the_rule(
    messages: Messages, options: dict[str, Any], answers: list[str], data: Any
) -> None:
    answers = [*answers, "raises"]
    asked = {name: Asked(answers) for name in ENGINE_NAMES}
    histories = {}
    for name in ENGINE_NAMES:
        with using(name):
            histories[name] = History(**options, summarizer=asked[name])
    turns = 0
    for message in messages:
        turns += message["role"] == "assistant"
        skips = data.draw(st.integers(0, 3), label="skip") == 0
        views = []
        for name, history in histories.items():
            with using(name):
                history.append(message)
                asked[name].length = turns
                views += [] if skips else [history.view()]
        assert all(view == views[0] for view in views)
        assert all(one.calls == asked["core"].calls for one in asked.values())
    failing: list[int] = []
    for answer, (turn, *_) in zip([*answers, *["raises"] * len(messages)], asked["core"].calls, strict=False):
        assert not failing or turn - failing[-1] >= WAITS[: len(failing)][-1]
        failing = [*failing, turn] if answer in FAILING[:3] else []
    event(f"failures in a row: {len(failing)}")


@given(
    messages=sessions(),
    options=options(),
    answers=st.lists(st.sampled_from([*FAILING, "helps"]), max_size=5),
    steps=st.lists(st.sampled_from(["view", "view", "view", "none", "restart", "crash", "load"]), min_size=1),
)
def test_a_history_with_a_store_waits_after_a_restart_too(
    messages: Messages, options: dict[str, Any], answers: list[str], steps: list[str]
) -> None:
    answers = [*answers, "raises"]
    plain_asked, asked = Asked(answers), Asked(answers)
    counter = options.get("token_counter")
    with using("core"), tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.store")
        store = recede.store.TurnStore(path)
        plain = History(**options, summarizer=plain_asked)
        stored = History(store=store, **options, summarizer=asked)
        for length, message in enumerate(messages, 1):
            plain.append(message)
            stored.append(message)
            plain_asked.length = asked.length = length
            step = steps[length % len(steps)]
            if step in ("restart", "crash"):
                store.close() if step == "restart" else store.close(sync=False)
                store = recede.store.TurnStore(path)
                stored = History(store=store, **options, summarizer=asked)
            elif step == "load":
                plain.save(Path(folder, "saved"))
                plain = History.load(Path(folder, "saved"), summarizer=plain_asked, token_counter=counter)
            if step != "none":
                assert stored.view_json() == plain.view_json()
                assert asked.calls == plain_asked.calls
        assert store.verify().is_sound
        store.close()
        event(f"calls: {len(asked.calls)}")


def turns_asked(count: int, every: int, tail: int, answers: list[str]) -> list[tuple[int, int, int]]:
    """After which turns a manager asks, and for which ones."""
    waiting, asked, summarized = Waiting(), list[tuple[int, int, int]](), 0
    for turn in range(every, count + 1):
        wanted = turn // every * every - tail
        if wanted <= summarized or not waiting.is_over(turn):
            continue
        answer = answers[min(len(asked), len(answers) - 1)]
        asked.append((turn, summarized + 1, wanted))
        if answer == "helps":
            summarized, waiting = wanted, Waiting()
        else:
            waiting.failed(turn)
    return asked


def run(manager: Any, asked: Asked, count: int, way: str) -> None:
    """So many turns, in one of the ways that a manager offers; each asks for a summary more often than it must."""

    async def with_tasks() -> None:
        for asked.length in range(len(manager) + 1, count + 1):
            await manager.aadd_turn("Think.", "act", "seen " * 9)
            assert not await manager.amaybe_create_summary()

    if way == "run_agent":
        manager.run_agent("Work.", count)
    elif way == "arun_agent":
        asyncio.run(manager.arun_agent("Work.", count))
    elif way == "aadd_turn":
        asyncio.run(with_tasks())
    else:
        for asked.length in range(len(manager) + 1, count + 1):
            manager.add_turn("Think.", "act", "seen " * 9)
            assert not manager.maybe_create_summary()


@ENGINES
@given(
    count=st.integers(1, 150),
    every=st.integers(1, 20),
    tail=st.integers(0, 19),
    answers=st.lists(st.sampled_from(["raises", "empty", "no text", "helps"]), max_size=9),
    last=st.sampled_from(["raises", "empty", "no text", "helps"]),
    way=st.sampled_from(["add_turn", "aadd_turn", "run_agent", "arun_agent"]),
    is_async=st.booleans(),
)
def test_a_manager_asks_by_the_rule(
    engine_name: str, count: int, every: int, tail: int, answers: list[str], last: str, way: str, is_async: bool
) -> None:
    every, answers = max(every, tail + 1), [*answers, last]
    asked = Asked(answers)
    summarizer = asked.awaited if is_async and way.startswith("a") and way != "add_turn" else asked
    with using(engine_name):
        if way.endswith("agent"):

            def act(action: str) -> str:
                asked.length = len(manager) + 1
                return "seen " * 9

            config = {"masking_window": 2, "summarize_at": every, "tail_window": tail}
            manager: Any = ProductionHybridContextManager(
                lambda context: ("Think.", "act"), summarizer, config, execute=act
            )
        else:
            manager = HybridContextManager(summarizer, 2, every, tail)
        run(manager, asked, count, way)
    found = [(length, turns[0].turn, turns[-1].turn) for length, turns, _ in asked.calls]
    expected = turns_asked(count, every, tail, answers)
    assert found == expected
    failed = [answer for answer, _ in zip([*answers, *[last] * len(found)], found, strict=False) if answer != "helps"]
    assert manager.stats().summary_failures == len(failed)
    # Each turn is in the context once, whatever failed.
    end = manager.summaries[-1].end_turn if manager.summaries else 0
    assert manager.get_context("S", "U").count("\nTurn ") == count - end
    event(f"failures: {len(failed)}")


@given(
    count=st.integers(20, 120),
    answers=st.lists(st.sampled_from(["raises", "empty", "helps"]), max_size=8),
    restarts=st.sets(st.integers(1, 120), min_size=1, max_size=20),
)
def test_a_manager_with_a_store_waits_after_a_restart_too(count: int, answers: list[str], restarts: set[int]) -> None:
    answers = [*answers, "raises"]
    asked = Asked(answers)
    with using("core"), tempfile.TemporaryDirectory() as folder:
        store = recede.store.TurnStore(Path(folder, "session.store"))
        manager = HybridContextManager(asked, 2, 5, 3, store=store)
        for asked.length in range(1, count + 1):
            manager.add_turn("Think.", "act", "seen " * 9)
            if asked.length in restarts:
                store.close()
                store = recede.store.TurnStore(Path(folder, "session.store"))
                manager = HybridContextManager(asked, 2, 5, 3, store=store)
                assert not manager.maybe_create_summary()
        store.close()
    found = [(length, turns[0].turn, turns[-1].turn) for length, turns, _ in asked.calls]
    assert found == turns_asked(count, 5, 3, answers)


def assert_waits(turns: list[int]) -> None:
    """Summaries failed after these turns: after 1 new turn at the earliest, then 2, 4, 8 and so on."""
    gaps = [after - before for before, after in pairwise(turns)]
    assert len(gaps) > 2
    assert all(gap >= wait for gap, wait in zip(gaps, WAITS, strict=False))


def test_a_model_that_is_down_costs_some_calls() -> None:
    """What was seen: 99 calls with 9,801 messages in 100 turns."""
    asked = Asked(["raises"])
    history = History(max_input_chars=2_000, summarizer=asked)
    history.append(user("Go."))
    for turn in range(1, 101):
        history.extend([chat_call(str(turn), "run"), chat_result(str(turn), "a word " * 99)])
        asked.length = turn
        history.view()
    assert_waits([length for length, *_ in asked.calls])


def test_views_without_a_summary_are_no_failures_while_nobody_is_asked() -> None:
    asked = Asked(["raises"])
    history = History(max_input_chars=2_000, summarizer=asked, boundary="sliding")
    history.append(user("Go."))
    for turn in range(1, 41):
        history.extend([{"role": "assistant", "content": "x" * 700}, user("Next.")])
        asked.length = turn
        history.view()
    assert [length for length, *_ in asked.calls] == [3, 5, 7, 11, 19, 35]


@ENGINES
def test_nobody_is_asked_where_what_is_new_is_alone_over_the_budget(engine_name: str) -> None:
    asked = Asked(["helps"])
    with using(engine_name):
        history = History(max_input_chars=1_000, summarizer=asked, clip_results=None)
        messages = [user("Go.")]
        for turn in range(5):
            messages += [chat_call(str(turn), "run"), chat_result(str(turn), "a word " * 400)]
            history.extend(messages[len(history) :])
            assert history.view() == [messages[0], *messages[-2:]] and history.stats().view_chars > 1_000
        # Once masks are enough again, nothing is over it.
        messages += [{"role": "assistant", "content": "Done."}, user("So?")]
        history.extend(messages[len(history) :])
        assert history.view()[-2:] == messages[-2:] and history.stats().view_chars <= 1_000
    assert asked.calls == []


def test_a_counter_that_fails_after_the_summarizer_answered_is_a_failure() -> None:
    def counter(text: str) -> int:
        if text.startswith("Conversation summary:\nsummary "):  # that of the summarizer
            raise RuntimeError("no tokenizer")
        return words(text)

    asked = Asked(["helps"])
    history = History(max_input_tokens=300, token_counter=counter, summarizer=asked)
    history.append(user("Go."))
    failures = []
    for turn in range(1, 201):
        history.extend([chat_call(str(turn), "run"), chat_result(str(turn), "a word " * 20)])
        try:
            history.view()
        except RuntimeError:
            failures.append(turn)
        assert history.view() == history.view()
    assert_waits(failures)
    assert len(asked.calls) == len(failures)
