"""Rows of docs/coming-from.md: the hybrid and its production manager, typed as the design does."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from typing import Any

import pytest
from design_rows import row

import recede
from recede.designs import HybridContextManager, ObservationMaskingContextManager, ProductionHybridContextManager

HIDDEN = "[Observation omitted]"
SEEN = "word " * 90


class LLM:
    """A client as the design has it."""

    def __init__(self, said: str = "All read.") -> None:
        self.said, self.prompts = said, list[str]()

    def generate(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.said


def added(manager: Any, turns: int, seen: str = SEEN) -> Any:
    for _ in range(turns):
        manager.add_turn(f"r{len(manager) + 1}", f"a{len(manager) + 1}", seen)
    return manager


def shown(context: str) -> list[int]:
    return [int(turn.split(":", 1)[0]) for turn in context.split("\n\nTurn ")[1:]]


@row(
    "`HybridContextManager(summarizer_llm, masking_window_w=10, summarize_at_n=43, tail_window_m=10)`",
    "`summarizer_llm` is an object of a language model",
    "the phase changes at turn 43",
    "attributes `w`, `n`, `m`, `last_summary_idx`, `summarizer`",
)
def test_it_is_made_as_in_the_design() -> None:
    defaults = inspect.signature(HybridContextManager).parameters
    assert list(defaults)[:4] == ["summarizer_llm", "masking_window_w", "summarize_at_n", "tail_window_m"]
    assert [defaults[name].default for name in list(defaults)[1:4]] == [10, 43, 10]
    llm = LLM()
    manager = HybridContextManager(summarizer_llm=llm, masking_window_w=10, summarize_at_n=43, tail_window_m=10)
    assert (manager.w, manager.n, manager.m, manager.last_summary_idx, manager.summarizer) == (10, 43, 10, 0, llm)
    assert added(manager, 42).phase == "masking" and llm.prompts == []
    assert added(manager, 1).phase == "summarizing" and len(llm.prompts) == 1
    assert manager.last_summary_idx == 33
    other = LLM()
    manager.summarizer = other
    assert manager.summarizer is other
    with pytest.raises(AttributeError, match="n is read-only"):
        manager.n = 5  # type: ignore[misc]


@row(
    "a summary is generated over dict turns",
    "the unmasked turns before the tail are summarized",
    "the last M turns stay",
    "the block `[Summary through turn N: …]`",
    '`summaries[-1]["end_turn"]`, `["content"]`',
    "turns are numbered from 0",
    "`maybe_create_summary()`",
    "the first summary at 43, then every 43 (prose) or every 33 (code)",
    "only the latest summary counts, and what was in earlier ones is lost",
    "`tail_start`, which leaves out turns between summary and tail",
    "half as many calls for summaries",
)
def test_summaries() -> None:
    given: list[tuple[list[int], int, str | None]] = []

    def _generate_summary(turns: list[Any], previous: str | None) -> str:
        given.append(([t["turn"] for t in turns], min(len(t["observation"]) for t in turns), previous))
        return f"SUM{len(given)}"

    manager = HybridContextManager(_generate_summary)
    for stored in range(1, 201):
        added(manager, 1)
        context = manager.get_context("S", "U")
        if manager.summaries:
            end = manager.summaries[-1]["end_turn"]
            assert (
                f"\n\n[Summary through turn {end}:\n{manager.summaries[-1]['content']}\n]\n\nTurn {end + 1}:" in context
            )
            assert shown(context) == list(range(end + 1, stored + 1)), "each turn once: in the summary, or shown"
            assert context.count(HIDDEN) == stored - end - 10
            assert not manager.maybe_create_summary()
        if stored in (43, 86, 129, 172):
            assert len(shown(context)) == 10
    assert [numbers[-1] for numbers, *_ in given] == [33, 76, 119, 162]
    assert [numbers[0] for numbers, *_ in given] == [1, 34, 77, 120]
    assert {chars for _, chars, _ in given} == {len(SEEN)}, "unmasked"
    assert [previous for *_, previous in given] == [None, "SUM1", "SUM2", "SUM3"]
    assert (manager.trajectory[0].turn, manager.summaries[-1].content) == (1, "SUM4")
    often = added(HybridContextManager(lambda turns: "Read.", summarize_at_n=21), 200)
    assert len(often.summaries) == 9


@row("the text of the masking phase")
@pytest.mark.parametrize("turns", [1, 10, 11, 42])
def test_the_masking_phase_is_the_text_of_the_design(turns: int) -> None:
    manager = added(HybridContextManager(LLM()), turns)
    text = "S\nU"
    for i, t in enumerate(manager.trajectory):
        observation = t["observation"] if len(manager) - i <= 10 else HIDDEN
        text += f"\n\nTurn {i + 1}:\nReasoning: {t['reasoning']}\nAction: {t['action']}\nObservation: {observation}\n"
    assert manager.get_context("S", "U") == text


@row("a bounded context", "about 30,000 tokens at N = 43", "N = 21 without regard to masking")
def test_contexts_are_bounded() -> None:
    manager, sizes = HybridContextManager(LLM("word " * 400)), []
    for _ in range(400):
        manager.add_turn("word " * 144, "word " * 144, "word " * 1_512)
        sizes.append(len(manager.get_context("", "").split()))
    assert sizes[41] == 27_490, "before the first summary"
    assert max(sizes) < 31_000 and max(sizes[129:]) == max(sizes[86:129])
    assert len(added(HybridContextManager(LLM(), summarize_at_n=21), 100).summaries) == 4
    with pytest.raises(ValueError, match="summarize_at_n"):
        HybridContextManager(LLM(), summarize_at_n=10, tail_window_m=10)


@row("failures are not mentioned", "async", "a summary may be longer than its turns")
def test_failures_and_async() -> None:
    answers = iter([RuntimeError("overloaded"), "", "long " * 9_999, "Read."])

    async def llm(turns: Any) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def run() -> HybridContextManager:
        manager = HybridContextManager(llm)
        for _ in range(60):
            await manager.aadd_turn("r", "a", SEEN)
        return manager

    manager = asyncio.run(run())
    assert manager.stats().summary_failures == 3
    assert manager.summaries == [(33, "Read.")]


@row("10 / 43 for SWE-agent, 58 / about 80 for OpenHands", "defaults for each scaffold in the production class")
def test_presets() -> None:
    for name, numbers in (("swe-agent", (10, 43, 10)), ("openhands", (58, 80, 58))):
        manager = HybridContextManager.from_preset(name, LLM())  # type: ignore[arg-type]
        agent = ProductionHybridContextManager.from_preset(name, LLM(), LLM(), execute=str)  # type: ignore[arg-type]
        own = ProductionHybridContextManager.from_preset(name, LLM(), LLM(), {"tail_window": 7}, execute=str)  # type: ignore[arg-type]
        assert (manager.w, manager.n, manager.m) == (agent.w, agent.n, agent.m) == numbers
        assert (own.w, own.n, own.m) == (*numbers[:2], 7)


@row(
    "savings at scale: $2, $20, $40 and $3.5, $35, $70",
    "the cost of an instance: $1.29, $0.61, $0.64, $0.57",
    "the rates of solved tasks",
)
def test_figures_that_are_quoted_are_on_the_pages(read_page: Any) -> None:
    managers, here = read_page("managers.md"), read_page("coming-from.md")
    assert all(f"${figure}" in managers for figure in ("1.29", "0.61", "0.64", "0.57"))
    assert all(f"${figure}" in here for figure in ("2.0", "20.0", "40.0", "3.5", "35.0", "70.0"))
    assert "54.8 %" in managers or "53.8 %" in managers


@row(
    "a moving boundary wastes a cache of keys and values",
    "the production class under a prompt cache is not mentioned",
)
def test_under_a_prompt_cache_the_boundary_of_a_history_waits() -> None:
    def changes(views: list[Any]) -> int:
        """How many requests do not begin with the whole of the one before."""
        return sum(after[: len(before)] != before for before, after in itertools.pairwise(views))

    manager = HybridContextManager(LLM())
    agent = ProductionHybridContextManager(LLM(), LLM(), execute=str)
    for one in (manager, agent):
        assert changes([added(one, 1).get_context("S", "U") for _ in range(60)]) > 40
    history, views = recede.History(), list[Any]()
    for number in range(60):
        call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        history.append({"role": "assistant", "content": "I look.", "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": str(number), "content": SEEN})
        views.append(history.view())
    assert changes(views) < 15


class Agent:
    """An agent's model as the design has it."""

    def __init__(self, done_at: int = 60) -> None:
        self.contexts, self.done_at = list[str](), done_at

    def generate(self, context: str) -> tuple[str, str]:
        self.contexts.append(context)
        return ("DONE" if len(self.contexts) == self.done_at else "I must look."), "cat a.py"


class Coder(ProductionHybridContextManager):
    def _execute(self, action: str) -> str:
        return SEEN

    def _is_complete(self, reasoning: str) -> bool:
        return reasoning == "DONE"

    def _get_system_prompt(self) -> str:
        return "SYS"


@row(
    "`ProductionHybridContextManager(agent_llm, summarizer_llm, config=None)`",
    "methods `_execute`, `_is_complete`, `_get_system_prompt`",
    "keys of `config`: 10 / 43 / 10 / 250",
    "attributes `config`, `agent_llm`, `summarizer`",
    "`run_agent(task, max_turns=None)`",
    "the result of a run: completed, hit_limit",
    "`metrics` with four keys",
)
def test_the_production_manager_runs_as_in_the_design() -> None:
    agent_llm, summarizer_llm = Agent(), LLM()
    coder = Coder(agent_llm, summarizer_llm)
    assert coder.config == {"masking_window": 10, "summarize_at": 43, "tail_window": 10, "max_trajectory_length": 250}
    assert (coder.agent_llm, coder.summarizer) == (agent_llm, summarizer_llm)
    run = coder.run_agent("the task")
    assert (run["completed"], run["hit_limit"], run["turns"]) == (True, False, 60)
    assert [t["turn"] for t in run["trajectory"]] == list(range(1, 61))
    assert agent_llm.contexts[0] == "SYS\nthe task"
    assert (coder.metrics["masking_turns"], coder.metrics["summarizing_turns"]) == (43, 17)
    assert set(coder.metrics) == {"masking_turns", "summarizing_turns", "summaries_created", "tokens_saved"}
    partial = Coder(Agent(), LLM(), {"masking_window": 5, "summarize_at": 30})
    assert partial.config == {**coder.config, "masking_window": 5, "summarize_at": 30}
    with pytest.raises(ValueError, match="config has no 'window'; it takes 'masking_window'"):
        Coder(Agent(), LLM(), {"window": 5})
    with pytest.raises(TypeError, match="execute is missing: give execute="):
        ProductionHybridContextManager(Agent(), LLM())


@row("`max_trajectory_length` is 250", "`max_turns` overrides that limit, and 0 is the default")
def test_limits_of_a_run() -> None:
    coder = Coder(Agent(9_999), LLM())
    assert (coder.run_agent("Go.", 0)["turns"], coder.run_agent("Go.", 5)["turns"]) == (0, 5)
    run = coder.run_agent("Go.", max_turns=300)
    assert (run["turns"], len(coder), run["hit_limit"], run["completed"]) == (245, 250, True, False)


@row(
    "tokens saved",
    "the structure of `get_efficiency_report()`",
    "frequency: turns / max(1, summaries)",
    "estimated cost: tokens × 0.00001",
    "`_calculate_efficiency_score`, which is not defined",
)
def test_the_report() -> None:
    coder, raw, sent = Coder(agent := Agent(60), LLM()), 0, 0
    coder.run_agent("the task")
    for number, context in enumerate(agent.contexts):
        turns = coder.trajectory[:number]
        layout = len("Turn 5: Reasoning: Action: Observation:".split())
        raw += sum(layout + len(f"{t.reasoning} {t.action} {t.observation}".split()) for t in turns)
        sent += len(context.split()) - len("SYS the task".split())
    report = coder.get_efficiency_report()
    assert report["savings"]["tokens"] == coder.metrics["tokens_saved"]
    assert coder.metrics["tokens_saved"] == raw - sent
    assert report["phases"] == {"masking": 43, "summarizing": 17}
    assert report["summaries"] == {"count": 1, "frequency": 60.0}
    assert Coder(Agent(), LLM()).get_efficiency_report()["summaries"]["frequency"] == 0
    assert report["savings"]["estimated_cost"] == pytest.approx(report["savings"]["tokens"] * 0.00001)
    whole = coder.report()
    assert report["efficiency_score"] == pytest.approx(whole.saved_tokens / whole.raw_tokens)
    dearer = Coder(Agent(), LLM(), price_per_token=0.001)
    savings = dearer.run_agent("the task")["report"]["savings"]
    assert savings["estimated_cost"] == pytest.approx(savings["tokens"] * 0.001)


@row("other methods with an underscore: `_generate_summary`, `_get_context`, `_add_turn`, `_build_result`, …")
def test_hooks_that_would_not_be_called_are_refused_when_the_class_is_made() -> None:
    said = {
        "_generate_summary": "give summarizer_llm",
        "_create_summary": "give summarizer_llm",
        "_check_phase_transition": "summarize_at_n says when",
        "_get_context": "override get_context",
        "_get_masked_context": "override get_context",
        "_get_summarized_context": "override get_context",
        "_apply_masking": "override get_context",
        "_apply_hybrid": "override get_context",
        "_add_turn": "on_turn=",
        "_build_result": "override run_agent",
    }
    managers = (ObservationMaskingContextManager, HybridContextManager, ProductionHybridContextManager)
    for manager in managers:
        for name, instead in said.items():
            with pytest.raises(TypeError, match=f"Mine.{name} would never be called: .*{instead}"):
                type("Mine", (manager,), {name: lambda self, *given: None})
            mixin = type("Mixin", (), {name: lambda self, *given: None})
            with pytest.raises(TypeError, match=f"Mine.{name} would never be called"):
                type("Mine", (mixin, manager), {})

    class Scored(Coder):
        def _calculate_efficiency_score(self) -> float:
            return 7 + super()._calculate_efficiency_score()

    scored = Scored(Agent(20), LLM())
    assert 7 < scored.run_agent("the task")["report"]["efficiency_score"] < 8
