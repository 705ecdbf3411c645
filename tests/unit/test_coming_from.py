"""What the published designs type works under their names, or its error says what to type instead."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import published
import pytest

import recede
from recede.designs import HybridContextManager, ObservationMaskingContextManager, ProductionHybridContextManager
from recede.turns import Turn

TURN = ("I must look.", "cat a.py", "the text of a.py " * 9)
SMALL: dict[str, Any] = {"masking_window_w": 2, "summarize_at_n": 4, "tail_window_m": 2}
CONFIG = {"masking_window": 2, "summarize_at": 4, "tail_window": 2}


def added(manager: Any, turns: int) -> Any:
    for _ in range(turns):
        manager.add_turn(*TURN)
    return manager


async def aadded(manager: HybridContextManager, turns: int) -> HybridContextManager:
    for _ in range(turns):
        await manager.aadd_turn(*TURN)
    return manager


# Turns and summaries are dicts in the designs


def test_turns_and_summaries_answer_to_the_keys_of_the_designs() -> None:
    manager = added(HybridContextManager(lambda turns, previous: "All read.", **SMALL), 4)
    turn, summary = manager.trajectory[2], manager.summaries[-1]
    assert [turn[name] for name in ("turn", "reasoning", "action", "observation")] == [3, *TURN]
    assert turn["timestamp"] == turn.timestamp > 0
    assert (summary["end_turn"], summary["content"]) == (2, "All read.")
    assert (turn[0], turn[-2], turn[1:3]) == (3, TURN[2], TURN[:2])
    with pytest.raises(KeyError, match="a turn has no 'obs'; it has turn, reasoning, action, observation, timestamp"):
        turn["obs"]
    with pytest.raises(KeyError, match="a summary has no '_fields'; it has end_turn, content"):
        summary["_fields"]
    with pytest.raises(IndexError):
        turn[5]


# Summarizers


class Answer:
    def __init__(self, text: Any) -> None:
        self.text = text


class Model:
    """A client as the designs have it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.prompts: list[str] = []

    def generate(self, prompt: str) -> Any:
        self.prompts.append(prompt)
        return self.answer


class AsyncModel(Model):
    async def generate(self, prompt: str) -> Any:
        await asyncio.sleep(0)
        return super().generate(prompt)


def over_dicts(turns: Any, previous: str | None) -> str:
    return f"{previous or ''}{' '.join(t['reasoning'] for t in turns)}"


def of_turns_alone(turns: Any) -> str:
    return " ".join(t["reasoning"] for t in turns)


async def of_turns_alone_async(turns: Any) -> str:
    return of_turns_alone(turns)


class CallableModel(Model):
    def __call__(self, turns: Any) -> str:
        return of_turns_alone(turns)


READ = "I must look. I must look."


@pytest.mark.parametrize(
    ("summarizer", "contents"),
    [
        (over_dicts, [READ, READ + " ".join([TURN[0]] * 4)]),
        (of_turns_alone, [READ, " ".join([TURN[0]] * 4)]),
        (lambda *given: given[0][0]["action"] + str(given[1]), ["cat a.pyNone", "cat a.pycat a.pyNone"]),
        (CallableModel("never"), [READ, " ".join([TURN[0]] * 4)]),
        (Model("Read."), ["Read.", "Read."]),
        (Model(Answer("Read.")), ["Read.", "Read."]),
        (lambda turns, previous: Answer("Read."), ["Read.", "Read."]),
    ],
)
def test_a_summarizer_is_called_as_it_can_be(summarizer: Any, contents: list[str]) -> None:
    manager = added(HybridContextManager(summarizer, **SMALL), 8)
    assert [summary.content for summary in manager.summaries] == contents
    assert manager.stats().summary_failures == 0
    manager = asyncio.run(aadded(HybridContextManager(summarizer, **SMALL), 8))
    assert [summary.content for summary in manager.summaries] == contents


@pytest.mark.parametrize("summarizer", [of_turns_alone_async, AsyncModel(READ), AsyncModel(Answer(READ))])
def test_an_async_summarizer_is_bound_likewise(summarizer: Any) -> None:
    manager = asyncio.run(aadded(HybridContextManager(summarizer, **SMALL), 4))
    assert manager.summaries == [(2, READ)]
    with pytest.raises(RuntimeError, match="the summarizer is async: use aadd_turn"):
        manager.add_turn(*TURN)


def test_generate_is_given_the_prompt_of_the_summarizers() -> None:
    model = Model("All read.")
    added(HybridContextManager(model, **SMALL), 8)
    shown = f"Reasoning: {TURN[0]}\nAction: {TURN[1]}\nObservation: {TURN[2]}"
    assert model.prompts == [
        f"{recede.summarizers.PROMPT}\n\nTurn 1:\n{shown}\n\nTurn 2:\n{shown}",
        f"{recede.summarizers.PROMPT}\n\nThe summary so far:\n\nAll read.\n\n"
        + "\n\n".join(f"Turn {number}:\n{shown}" for number in range(3, 7)),
    ]


class Refused:
    def generate(self) -> str:
        return ""


@pytest.mark.parametrize(
    ("summarizer", "words"),
    [
        (5, r"callable as \(turns, previous_summary\) or \(turns\), or have .generate\(prompt\), not int; recede.summ"),
        (None, "not NoneType"),
        (lambda: "", r"summarizer_llm must take \(turns, previous_summary\) or \(turns\), not \(\)"),
        (lambda turns, previous, model: "", r"not \(turns, previous, model\)"),
        (lambda turns, *, previous: "", r"not \(turns, \*, previous\)"),
        (Refused(), r"the .generate of summarizer_llm must take \(prompt\), not \(\)"),
    ],
)
def test_a_summarizer_that_cannot_be_called_is_refused_at_once(summarizer: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        HybridContextManager(summarizer)
    with pytest.raises(TypeError, match=words):
        ProductionHybridContextManager(str, summarizer, execute=str)


def test_a_function_without_a_signature_is_called_with_both() -> None:
    with pytest.raises(ValueError, match="signature"):
        inspect.signature(max)  # of C, and says nothing of its parameters
    manager = added(HybridContextManager(max, **SMALL), 4)
    assert isinstance(manager.summarizer_error, TypeError), "max([...], None) cannot compare the two"
    assert "'NoneType'" in str(manager.summarizer_error)


def test_reduce_and_history_bind_summarizers_likewise(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "Read the file."}]
    for _ in range(8):
        history += [{"role": "assistant", "content": "word " * 40}, {"role": "user", "content": "Read on."}]
    summary = {"role": "system", "content": "Conversation summary:\nRead."}
    model = Model(Answer("Read."))
    options: dict[str, Any] = {"max_input_chars": 600, "preserve_recent_raw_turns": 1}
    for summarizer in (lambda messages: "Read.", lambda messages, previous: "Read.", model):
        result = published.reduce(history, **options, summarizer=summarizer)
        assert summary in result.messages and result.summarizer_error is None
        session = published.History(**options, summarizer=summarizer)
        session.extend(history)
        assert summary in session.view()
        session.save(tmp_path / "session.json")
        assert published.History.load(tmp_path / "session.json", summarizer=summarizer).view() == session.view()
    assert "\n\n[assistant] word word" in model.prompts[0]
    with pytest.raises(TypeError, match=r"summarizer must be callable, have .generate\(prompt\), or be None, not int"):
        published.reduce(history, **options, summarizer=5)
    result = published.reduce(history, **options, summarizer=lambda: "")  # type: ignore[arg-type, misc]
    assert "must take (turns, previous_summary) or (turns), not ()" in str(result.summarizer_error)


def test_failures_are_counted_and_the_first_is_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    def failing(turns: list[Turn]) -> str:
        raise OSError("no model")

    manager = added(HybridContextManager(failing, **SMALL), 4)
    assert (manager.stats().summary_failures, manager.stats().summaries) == (1, 0)
    assert added(manager, 1).stats() == (5, 3, 0, 0, 2)
    assert [bool(record.exc_info) for record in caplog.records] == [True, False]
    assert "in failing" in caplog.text
    caplog.clear()
    session = published.History(max_input_chars=400, preserve_recent_raw_turns=1, summarizer=failing)
    for number in range(6):
        session.append({"role": "user", "content": "word " * 40})
        session.append({"role": "assistant", "content": f"Answer {number}."})
        session.view()
    failures = session.stats().summary_failures
    assert failures == len(caplog.records) > 1
    assert [bool(record.exc_info) for record in caplog.records] == [True] + [False] * (failures - 1)


# The production manager


class Coder:
    """An agent's model as the design has it."""

    def __init__(self) -> None:
        self.contexts: list[str] = []

    def generate(self, context: str) -> tuple[str, str]:
        self.contexts.append(context)
        return ("DONE" if len(self.contexts) == 60 else "I must look."), "cat a.py"


class AsyncDesigned(ProductionHybridContextManager):
    async def _execute(self, action: str) -> str:
        await asyncio.sleep(0)
        return TURN[2]

    async def _is_complete(self, reasoning: str) -> bool:
        return reasoning == "DONE"


def test_overridden_methods_may_be_async() -> None:
    agent = AsyncDesigned(Coder(), AsyncModel("Files were read."), None)
    run = asyncio.run(agent.arun_agent("the task"))
    assert (run["completed"], run["turns"], agent.summaries) == (True, 60, [(33, "Files were read.")])
    with pytest.raises(TypeError, match="execute is async: use arun_agent"):
        AsyncDesigned(Coder(), Model("")).run_agent("the task")


def test_an_override_wins_and_may_call_what_the_constructor_was_given() -> None:
    class Wrapping(ProductionHybridContextManager):
        def _execute(self, action: str) -> str:
            return f"<{super()._execute(action)}>"

        def _is_complete(self, reasoning: str) -> bool:
            return bool(super()._is_complete(reasoning)) or len(self) == 2

        def _get_system_prompt(self) -> str:
            return super()._get_system_prompt() + "!"

    contexts: list[str] = []

    def coder(context: str) -> list[str]:
        contexts.append(context)
        return ["Think.", "act"]

    agent = Wrapping(coder, of_turns_alone, execute=str.upper, is_complete=lambda reasoning: False, system_prompt="SYS")
    run = agent.run_agent("the task", 5)
    assert (run["turns"], run["trajectory"][0].observation, contexts[0]) == (2, "<ACT>", "SYS!\nthe task")
    agent = Wrapping(coder, of_turns_alone)
    words = "execute is missing: give execute=, a function action -> observation, or override _execute in a subclass"
    assert agent.run_agent("the task", 1)["trajectory"][0].observation == f"[TypeError: {words}]"
    with pytest.raises(TypeError, match=words):
        ProductionHybridContextManager(coder, of_turns_alone)
    with pytest.raises(TypeError, match=r"agent_llm must return \(reasoning, action\), not str"):
        Wrapping(lambda context: "ls", of_turns_alone).run_agent("the task")


@pytest.mark.parametrize("spare", [0, 1])
def test_a_summary_is_refused_unless_it_is_shorter_in_the_context(spare: int) -> None:
    def summarizer(turns: list[Turn]) -> str:
        return "s" * (length - spare)

    length = 0
    # The context of the next request without a summary: turns 1 and 2 are masked in it.
    before = added(ObservationMaskingContextManager(2, "[Observation omitted]"), 4).get_masked_context("S", "U")
    replaced = len(before[: before.index("\n\nTurn 3:")]) - len("S\nU")
    length = replaced - len("\n\n[Summary through turn 2:\n\n]")
    manager = added(HybridContextManager(summarizer, **SMALL), 4)
    assert len(manager.summaries) == spare
    assert len(manager.get_context("S", "U")) == len(before) - spare
    if not spare:
        words = f"the summary has {replaced} characters, and what it would replace only {replaced}"
        assert str(manager.summarizer_error) == words


# Settings


def test_settings_can_be_read_back_under_both_names() -> None:
    masking = ObservationMaskingContextManager(7, "[gone]")
    assert (masking.window, masking.m, masking.placeholder) == (7, 7, "[gone]")
    assert ObservationMaskingContextManager().placeholder == "[Observation omitted for brevity]"
    model = Model("Files were read.")
    hybrid = HybridContextManager(model, 9, 40, 8)
    assert (hybrid.window, hybrid.summarize_at, hybrid.tail) == (hybrid.w, hybrid.n, hybrid.m) == (9, 40, 8)
    assert hybrid.placeholder == "[Observation omitted]"
    assert hybrid.summarizer is model
    assert added(hybrid, 39).last_summary_idx == 0
    assert added(hybrid, 1).last_summary_idx == hybrid.summaries[-1].end_turn == 32
    coder = Coder()
    agent = ProductionHybridContextManager(coder, model, {"summarize_at": 50}, execute=str)
    assert agent.agent is agent.agent_llm is coder
    assert agent.config == {"masking_window": 10, "summarize_at": 50, "tail_window": 10, "max_trajectory_length": 250}
    agent.config["summarize_at"] = 5
    assert agent.config["summarize_at"] == agent.n == 50, "a copy"
    for name in ("window", "placeholder", "m", "w", "n", "tail", "config", "trajectory", "metrics"):
        with pytest.raises(AttributeError, match=f"{name} is read-only: the settings of a manager are the arguments"):
            setattr(agent, name, 5)
    assert (agent.w, agent.n, agent.m) == (10, 50, 10)


class Masking(ObservationMaskingContextManager):
    """As a design's class has its constructor, with our base below it."""

    def __init__(self, window_size_m: int = 10, placeholder: str | None = None) -> None:
        super().__init__(window_size_m, placeholder)
        self.m = window_size_m
        self.placeholder = placeholder or "[Observation omitted for brevity]"
        self.trajectory: list[Any] = []


class Hybrid(HybridContextManager):
    def __init__(self, summarizer_llm: Any, w: int = 2, n: int = 4, m: int = 2) -> None:
        self.summarizer = summarizer_llm  # some write this first
        super().__init__(summarizer_llm, w, n, m)
        self.summarizer = summarizer_llm
        self.w, self.n, self.m = w, n, m
        self.last_summary_idx = 0
        self.summaries: list[Any] = []


class Production(ProductionHybridContextManager):
    def __init__(self, agent_llm: Any, summarizer_llm: Any, config: Any = None) -> None:
        self.agent = agent_llm
        super().__init__(agent_llm, summarizer_llm, config or CONFIG)
        self.config = {**CONFIG, "max_trajectory_length": 250}
        self.agent_llm, self.summarizer = agent_llm, summarizer_llm

    def _execute(self, action: str) -> str:
        return TURN[2]


def test_a_subclass_may_state_the_settings_again_as_a_class_of_the_designs_does() -> None:
    masking = added(Masking(2), 4)
    assert (masking.m, masking.stats().masked_turns, len(masking.trajectory)) == (2, 2, 4)
    hybrid = added(Hybrid(lambda turns, previous: "All read."), 4)
    assert (hybrid.w, hybrid.n, hybrid.m, hybrid.last_summary_idx) == (2, 4, 2, 2)
    assert Production(lambda context: TURN[:2], Model("Read.")).run_agent("Go.", 5)["turns"] == 5
    with pytest.raises(AttributeError, match="m is read-only"):
        hybrid.m = 3
    with pytest.raises(AttributeError, match="trajectory is read-only"):
        masking.trajectory = []


def test_another_model_may_be_assigned() -> None:
    hybrid = Hybrid(Model("By the first."))
    hybrid.summarizer = Model("By the second.")
    added(hybrid, 4)
    assert [summary.content for summary in hybrid.summaries] == ["By the second."]

    async def by_the_third(turns: Any) -> str:
        return "By the third."

    hybrid.summarizer = by_the_third
    with pytest.raises(RuntimeError, match="the summarizer is async: use aadd_turn"):
        hybrid.add_turn(*TURN)
    asyncio.run(aadded(hybrid, 4))
    assert hybrid.summaries[-1].content == "By the third."
    with pytest.raises(TypeError, match="summarizer must be callable as"):
        hybrid.summarizer = 5  # type: ignore[assignment]
    assert hybrid.summarizer is by_the_third
    agent = ProductionHybridContextManager(lambda context: TURN[:2], Model("Read."), CONFIG, execute=str.upper)
    for name in ("agent", "agent_llm"):
        coder = Coder()
        setattr(agent, name, coder)
        assert agent.agent is agent.agent_llm is coder
        with pytest.raises(TypeError, match=f"^{name} must be callable, or have .generate"):
            setattr(agent, name, 5)
    agent.agent = lambda context: ("I am another.", "ls")
    assert agent.run_agent("Go.", 1)["trajectory"][0]["reasoning"] == "I am another."


def test_repr_and_stats_show_the_numbers() -> None:
    assert repr(added(ObservationMaskingContextManager(7), 9)) == (
        "<ObservationMaskingContextManager: window 7; 9 turns, 2 masked>"
    )
    hybrid = added(HybridContextManager(over_dicts, **SMALL), 9)
    assert repr(hybrid) == "<HybridContextManager: window 2, summary at 4, tail 2; 9 turns, 7 masked>"
    assert hybrid.stats() == (9, 7, 6, 2, 0)


# Stores


# The research code's functions


PROMPTS: dict[str, list[Any]] = {
    "dicts": [{"role": "system", "content": "SYS"}, {"role": "user", "content": "the task " * 20}],
    "pairs": [("system", "SYS"), ("user", "the task " * 20)],
    "lists": [["system", "SYS"], ["user", "the task " * 20]],
    "objects": [type("Prompt", (), {"role": role})() for role in ("developer", "user")],
}
HIDDEN = "[Observation omitted for brevity]"


@pytest.mark.parametrize("prompts", PROMPTS.values(), ids=PROMPTS)
def test_prompts_in_the_first_slots_are_counted_and_never_masked(prompts: list[Any]) -> None:
    slots = [*prompts, *[TURN] * 13]
    shown = recede.designs.apply_observation_masking(slots, len(slots), 10, "[Turn {turn} observation omitted]")
    assert [one is other for one, other in zip(shown, slots, strict=True)] == [True] * 2 + [False] * 3 + [True] * 10
    assert [entry[2] for entry in shown[2:5]] == [f"[Turn {slot} observation omitted]" for slot in (2, 3, 4)]
    assert recede.designs.apply_observation_masking(prompts, 99, 0) == prompts
    shown = recede.designs.apply_observation_masking([TURN] * 14, 15, 10, "[Turn {turn} observation omitted]")
    assert [entry[2] for entry in shown[:5]] == [f"[Turn {n} observation omitted]" for n in (1, 2, 3, 4)] + [TURN[2]]


def test_turns_of_any_form_are_masked_in_it() -> None:
    turn = added(ObservationMaskingContextManager(), 1).trajectory[0]
    made = dict(zip(("reasoning", "action", "observation"), TURN, strict=True), cost=5)
    masked = recede.designs.apply_observation_masking([turn, made, list(TURN)], 9, 1)
    assert masked == [turn._replace(observation=HIDDEN), {**made, "observation": HIDDEN}, (*TURN[:2], HIDDEN)]
    assert made["observation"] == TURN[2]
    for entry, words in (
        ("SYS", r"entry 1 must be \(reasoning, action, observation\), or a prompt with its role, .*, not str"),
        (TURN[:2], "entry 1 must be .* not tuple"),
        (None, "entry 1 must be .* not NoneType"),
        ({"reasoning": "", "action": ""}, "observation must be a string, not NoneType"),
    ):
        with pytest.raises(TypeError, match=words):
            recede.designs.apply_observation_masking([entry], 9)
