"""The hybrid and its agent loop: summaries that fail, that are slow, and that are interrupted."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

import recede
from recede.designs import HybridContextManager, ProductionHybridContextManager
from recede.turns import Turn

TURN = ("I must look.", "cat a.py", "the text of a.py " * 9)
Options = dict[str, Any]
SMALL: Options = {"masking_window_w": 2, "summarize_at_n": 4, "tail_window_m": 2}
CONFIG = {"masking_window": 2, "summarize_at": 4, "tail_window": 2}


def told(turns: list[Turn], previous: str | None) -> str:
    return f"{previous or ''}<{turns[0].turn}-{turns[-1].turn}>"


async def atold(turns: list[Turn], previous: str | None) -> str:
    await asyncio.sleep(0)
    return told(turns, previous)


def contents(manager: HybridContextManager) -> list[tuple[int, str]]:
    return [tuple(summary) for summary in manager.summaries]


def test_summaries_come_at_every_nth_turn() -> None:
    manager = HybridContextManager(told, **SMALL)
    for turn in range(13):
        manager.add_turn(*TURN)
        assert manager.report().masking_turns == min(turn + 1, 4)  # the first summary is sent with the fifth
    assert contents(manager) == [(2, "<1-2>"), (6, "<1-2><3-6>"), (10, "<1-2><3-6><7-10>")]
    assert "[Summary through turn 10:\n<1-2><3-6><7-10>\n]" in manager.get_context("S", "U")
    assert manager.recall(1) == TURN[2]
    assert len(manager.trajectory) == 13
    around = len("Turn 1: Reasoning: Action: Observation:".split())
    words_of_a_turn = around + sum(len(text.split()) for text in TURN)
    # The summaries have a word each, which the next call is given again.
    assert manager.report().summarizer_tokens == 10 * words_of_a_turn + 3 + 2


def test_after_failures_the_wait_doubles_up_to_64_turns_and_begins_again() -> None:
    asked: list[int] = []

    def summarizer(turns: list[Turn], previous: str | None) -> str:
        asked.append(len(manager))
        return told(turns, previous) if len(asked) == 10 else ""

    manager = HybridContextManager(summarizer, **SMALL)
    for _ in range(280):
        manager.add_turn(*TURN)
    assert asked == [4, 5, 7, 11, 19, 35, 67, 131, 195, 259, 260, 261, 263, 267, 275]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"summarize_at_n": 10}, ValueError, r"summarize_at_n \(10\) must be more than tail_window_m \(10\)"),
        ({"tail_window_m": -1}, ValueError, "tail_window_m must be at least 0"),
        ({"summarize_at_n": 4.5}, TypeError, "summarize_at_n must be a whole number, not float"),
        ({"masking_window_w": "2"}, TypeError, "masking_window_w must be a whole number"),
        ({"summarizer_llm": 5}, TypeError, "summarizer_llm must be callable"),
    ],
)
def test_arguments_that_are_wrong_are_named(options: Options, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        HybridContextManager(**{"summarizer_llm": told, **options})


@pytest.mark.parametrize("answer", ["raises", "", " \n", None, 5, "coroutine"])
def test_a_summarizer_that_fails_loses_nothing(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    fails = True

    def summarizer(turns: list[Turn], previous: str | None) -> Any:
        if not fails:
            return told(turns, previous)
        if answer == "raises":
            raise OSError("no model")
        return atold(turns, previous) if answer == "coroutine" else answer

    manager = HybridContextManager(summarizer, **SMALL)
    with caplog.at_level(logging.WARNING, logger="recede"):
        for _ in range(5):
            manager.add_turn(*TURN)
    assert (manager.stats().summary_failures, manager.phase, manager.summaries) == (2, "masking", [])
    assert isinstance(manager.summarizer_error, (OSError, ValueError, TypeError))
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "no summary of turns 1 to 2",
        "no summary of turns 1 to 2",
    ]
    assert manager.get_context("S", "U").count("Turn ") == 5
    fails = False
    assert manager.maybe_create_summary() is False, "after two failures it is asked after two more turns"
    manager.add_turn(*TURN)
    assert manager.summaries == []
    manager.add_turn(*TURN)
    assert manager.maybe_create_summary() is False
    assert contents(manager) == [(2, "<1-2>")]
    assert manager.stats().summary_failures == 2
    manager.add_turn(*TURN)
    assert contents(manager) == [(2, "<1-2>"), (6, "<1-2><3-6>")]


def test_an_async_summarizer_is_awaited() -> None:
    class Callable:
        async def __call__(self, turns: list[Turn], previous: str | None) -> str:
            return await atold(turns, previous)

    for summarizer in (atold, Callable(), lambda turns, previous: atold(turns, previous), told):
        manager = HybridContextManager(summarizer, **SMALL)

        async def run(manager: HybridContextManager = manager) -> None:
            for _ in range(8):
                await manager.aadd_turn(*TURN)

        asyncio.run(run())
        assert contents(manager) == [(2, "<1-2>"), (6, "<1-2><3-6>")]


def test_an_async_summarizer_is_refused_where_nobody_awaits() -> None:
    manager = HybridContextManager(atold, **SMALL)
    with pytest.raises(RuntimeError, match="the summarizer is async: use aadd_turn"):
        manager.add_turn(*TURN)
    assert len(manager) == 0
    with pytest.raises(RuntimeError, match="use amaybe_create_summary"):
        manager.maybe_create_summary()


def test_a_slow_summarizer_does_not_block_turns() -> None:
    async def run() -> None:
        released = asyncio.Event()

        async def slow(turns: list[Turn], previous: str | None) -> str:
            await released.wait()
            return told(turns, previous)

        manager = HybridContextManager(slow, **SMALL)
        for _ in range(3):
            await manager.aadd_turn(*TURN)
        fourth = asyncio.create_task(manager.aadd_turn(*TURN))
        await asyncio.sleep(0)  # it begins: from Python 3.12 on, wait_for does not yield first
        for _ in range(6):
            await asyncio.wait_for(manager.aadd_turn(*TURN), 5)
        await asyncio.sleep(0)
        assert not fourth.done()
        assert manager.get_context("S", "U").count("Turn ") == 10
        released.set()
        await fourth
        # What was begun ends at the turn that it was told of; what came meanwhile is shown.
        assert len(manager) == 10
        assert manager.summaries[0].end_turn < 8
        shown = manager.get_context("S", "U").count("\nTurn ")
        assert shown == 10 - manager.summaries[-1].end_turn

    asyncio.run(run())


def test_a_cancelled_summary_is_tried_again() -> None:
    async def run() -> None:
        is_slow = True

        async def slow(turns: list[Turn], previous: str | None) -> str:
            if is_slow:
                await asyncio.Event().wait()
            return told(turns, previous)

        manager = HybridContextManager(slow, **SMALL)
        for _ in range(3):
            await manager.aadd_turn(*TURN)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(manager.aadd_turn(*TURN), 0.05)
        is_slow = False
        await manager.aadd_turn(*TURN)
        assert contents(manager) == [(2, "<1-2>")]

    asyncio.run(run())


def test_turns_of_several_threads_are_each_summarized_once() -> None:
    seen: list[int] = []

    def summarizer(turns: list[Turn], previous: str | None) -> str:
        seen.extend(turn.turn for turn in turns)
        return "A summary."

    manager = HybridContextManager(summarizer, **SMALL)
    threads = [
        threading.Thread(target=lambda: [manager.add_turn(*TURN) for _ in range(25)], name=str(number))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == list(range(1, len(seen) + 1))
    assert manager.get_context("", "").count("\nTurn ") == 100 - manager.summaries[-1].end_turn


# The loop of an agent


def agent_of(**options: Any) -> ProductionHybridContextManager:
    values: Options = {
        "agent_llm": lambda context: ("Think.", "act"),
        "summarizer_llm": told,
        "config": CONFIG,
        "execute": lambda action: f"{action} " * 50,
    }
    return ProductionHybridContextManager(**{**values, **options})


def test_an_agent_runs_to_its_limit() -> None:
    seen: list[int] = []
    agent = agent_of(config={**CONFIG, "max_trajectory_length": 9}, price_per_token=0.5)
    run = agent.run_agent("Work.", 4, on_turn=lambda turn: seen.append(turn.turn))
    assert (run["completed"], run["hit_limit"], run["turns"], seen) == (False, True, 4, [1, 2, 3, 4])
    run = agent.run_agent("Work.")
    assert (run["hit_limit"], run["turns"], len(run["trajectory"])) == (True, 5, 9)
    assert agent.run_agent("Work.")["turns"] == 0
    assert agent.metrics == {
        "masking_turns": 4,
        "summarizing_turns": 5,
        "summaries_created": 2,
        "tokens_saved": agent.report().saved_tokens,
    }
    report = run["report"]
    assert report["summaries"] == {"count": 2, "frequency": 4.5}
    assert report["savings"]["estimated_cost"] == 0.5 * report["savings"]["tokens"] > 0
    assert report["efficiency_score"] == agent.report().saved_tokens / agent.report().raw_tokens
    assert agent.report().cost == 0.5 * (agent.report().sent_tokens + agent.report().summarizer_tokens)
    assert agent.report().summarizer_tokens > 0
    assert agent.report().masking_turns == agent.metrics["masking_turns"]


def test_what_a_tool_raises_is_an_observation() -> None:
    def execute(action: str) -> Any:
        raise FileNotFoundError("no a.py")

    agent = agent_of(execute=execute)
    assert agent.run_agent("Work.", 2)["trajectory"][1].observation == "[FileNotFoundError: no a.py]"
    assert agent_of(execute=lambda action: 5).run_agent("Work.", 1)["trajectory"][0].observation == "5"


def test_an_agent_recalls_a_masked_turn() -> None:
    actions = ["cat a.py", "ls", "ls", "ls", "recall 1", " RECALL 9 ", "recall one"]
    seen: list[str] = []

    def agent_llm(context: str) -> tuple[str, str]:
        seen.append(context)
        return "Think.", actions[len(seen) - 1]

    config = {**CONFIG, "summarize_at": 40}
    agent = agent_of(agent_llm=agent_llm, config=config, recall=True)
    turns = agent.run_agent("Work.", len(actions))["trajectory"]
    assert "Observation: [Observation omitted: recall 1]" in seen[4]
    assert turns[4].observation == turns[0].observation == "cat a.py " * 50
    assert turns[5].observation == "[LookupError: there is no turn 9]"
    assert turns[6].observation == "recall one " * 50
    assert [agent.tool_definition(shape)[key] for shape, key in (("anthropic", "name"), ("responses", "name"))] == [
        "recall",
        "recall",
    ]
    with pytest.raises(ValueError, match="shape must be"):
        agent.tool_definition("x")


def test_an_agent_without_recall_runs_each_action() -> None:
    agent = agent_of(agent_llm=lambda context: ("Think.", "recall 1"))
    turns = agent.run_agent("Work.", 6)["trajectory"]
    assert {turn.observation for turn in turns} == {"recall 1 " * 50}
    assert "recall {turn}" not in agent.placeholder and "recall 1]" not in agent.get_context("", "")


def test_a_manager_with_recall_names_the_turn_in_its_placeholder() -> None:
    for given, shown in [(None, "[Observation omitted for brevity: recall 1]"), ("see turn {turn}", "see turn 1")]:
        manager = recede.designs.ObservationMaskingContextManager(0, given, recall=True)
        manager.add_turn("Think.", "act", "a long text " * 20)
        assert f"Observation: {shown}\n" in manager.get_masked_context("", "")


def test_an_interrupt_leaves_a_state_that_goes_on() -> None:
    is_interrupted = True

    def execute(action: str) -> str:
        if is_interrupted:
            raise KeyboardInterrupt
        return "seen"

    agent = agent_of(execute=execute)
    with pytest.raises(KeyboardInterrupt):
        agent.run_agent("Work.")
    assert [turn.observation for turn in agent.trajectory] == ["[KeyboardInterrupt]"]
    is_interrupted = False
    assert agent.run_agent("Work.", 1)["trajectory"][1].observation == "seen"

    def stopped(turns: list[Turn], previous: str | None) -> str:
        raise KeyboardInterrupt

    agent = agent_of(summarizer_llm=stopped)
    with pytest.raises(KeyboardInterrupt):
        agent.run_agent("Work.")
    assert (len(agent), agent.summaries) == (4, [])
    with pytest.raises(KeyboardInterrupt):
        agent.maybe_create_summary()


def test_an_agent_may_be_async() -> None:
    async def generate(context: str) -> tuple[str, str]:
        return "Think.", "act"

    async def execute(action: str) -> str:
        if action == "fail":
            raise OSError("no disk")
        return action * 9

    async def is_complete(reasoning: str) -> bool:
        return False

    agent = agent_of(agent_llm=generate, execute=execute, is_complete=is_complete, summarizer_llm=atold)
    run = asyncio.run(agent.arun_agent("Work.", 9))
    assert (run["turns"], run["hit_limit"], run["report"]["summaries"]["count"]) == (9, True, 2)
    with pytest.raises(RuntimeError, match="the summarizer is async: use arun_agent"):
        agent.run_agent("Work.")
    with pytest.raises(TypeError, match="agent_llm is async: use arun_agent"):
        agent_of(agent_llm=generate).run_agent("Work.")
    failing = agent_of(agent_llm=lambda context: ("Think.", "fail"), execute=execute)
    assert asyncio.run(failing.arun_agent("Work.", 1))["trajectory"][0].observation == "[OSError: no disk]"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"config": {"window": 5}}, ValueError, "config has no 'window'; it takes 'masking_window'"),
        ({"config": {"max_trajectory_length": -1}}, ValueError, "max_trajectory_length must be at least 0"),
        ({"config": {"max_trajectory_length": "9"}}, TypeError, "max_trajectory_length must be a whole number"),
        ({"config": {"summarize_at": 10}}, ValueError, "must be more than tail_window_m"),
        ({"agent_llm": 5}, TypeError, "agent_llm must be callable"),
        ({"execute": None}, TypeError, "execute is missing: give execute=, .* or override _execute in a subclass"),
        ({"execute": 5}, TypeError, "execute must be callable"),
        ({"is_complete": 5}, TypeError, "is_complete must be callable"),
    ],
)
def test_options_of_an_agent_that_are_wrong_are_named(options: Options, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        agent_of(**options)
    with pytest.raises(ValueError, match="max_turns must be at least 0"):
        agent_of().run_agent("Work.", -1)
