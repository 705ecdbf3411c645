"""Rows of docs/coming-from.md: masking of turns, typed as the design does."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from children import recede_command
from design_rows import row

import recede
from recede.costs import replay
from recede.designs import ObservationMaskingContextManager
from support import dumps, turns_of

HIDDEN = "[Observation omitted for brevity]"
SEEN = "the text of a.py " * 9


def added(manager: Any, turns: int, observation: str = SEEN) -> Any:
    for number in range(1, turns + 1):
        manager.add_turn(f"I must look, {number}.", f"cat {number}.py", observation)
    return manager


def masked(manager: Any) -> list[int]:
    turns = manager.get_masked_context("S", "U").split("\n\nTurn ")[1:]
    return [int(turn.split(":", 1)[0]) for turn in turns if HIDDEN in turn]


@row(
    "the observation of turn i is a placeholder if i < t - M",
    "masking is active from turn 11",
    "a figure with M = 10 at turn 15: turns 1 to 10 masked",
)
def test_a_turn_is_masked_by_the_formula() -> None:
    manager = ObservationMaskingContextManager(window_size_m=10, placeholder=None)
    for stored in range(1, 16):
        added(manager, 1)
        t = stored + 1  # the next turn
        assert masked(manager) == [i for i in range(1, t) if i < t - 10]
    assert masked(added(ObservationMaskingContextManager(), 10)) == []
    assert masked(added(ObservationMaskingContextManager(), 11)) == [1]
    assert masked(added(ObservationMaskingContextManager(), 14)) == [1, 2, 3, 4], "the request of turn 15"


@row("the class compares `turns_ago > self.m`, which shows M + 1", "the layout of a context")
@pytest.mark.parametrize("turns", [0, 1, 10, 11, 12, 30])
def test_the_class_of_the_design_shows_the_same_text_with_a_window_that_is_larger_by_one(turns: int) -> None:
    class Designed:
        def __init__(self, window_size_m: int = 10) -> None:
            self.m = window_size_m
            self.trajectory: list[dict[str, Any]] = []

        def add_turn(self, reasoning: str, action: str, observation: str) -> None:
            number = len(self.trajectory) + 1
            self.trajectory.append(
                {"turn": number, "reasoning": reasoning, "action": action, "observation": observation}
            )

        def get_masked_context(self, system_prompt: str, user_prompt: str) -> str:
            context = f"{system_prompt}\n{user_prompt}"
            for t in self.trajectory:
                turns_ago = len(self.trajectory) + 1 - t["turn"]
                observation = HIDDEN if turns_ago > self.m + 1 else t["observation"]
                context += f"\n\nTurn {t['turn']}:\nReasoning: {t['reasoning']}\nAction: {t['action']}\n"
                context += f"Observation: {observation}\n"
            return context

    manager, designed = ObservationMaskingContextManager(11), Designed(10)
    added(manager, turns), added(designed, turns)
    assert manager.get_masked_context("S", "U") == designed.get_masked_context("S", "U")


@row("the system prompt and the user prompt are always visible", "reasoning and actions are always visible")
def test_prompts_reasoning_and_actions_are_visible() -> None:
    context = added(ObservationMaskingContextManager(), 25).get_masked_context("You are careful.", "Find the bug.")
    assert context.startswith("You are careful.\nFind the bug.\n")
    assert all(f"Reasoning: I must look, {n}.\nAction: cat {n}.py\n" in context for n in range(1, 26))
    assert context.count(HIDDEN) == 15


@row(
    "the default placeholder `[Observation omitted for brevity]`",
    "four examples of placeholders",
    "`[Turn {turn_idx} observation omitted for brevity]`",
    "`placeholder or default`: an empty one is the default",
    "attributes `m`, `placeholder`",
)
def test_placeholders() -> None:
    assert ObservationMaskingContextManager(placeholder=None).placeholder == HIDDEN
    for given, shown in [
        ("[Observation omitted for brevity]", "[Observation omitted for brevity]"),
        ("[Previous output omitted]", "[Previous output omitted]"),
        ("[Previous {lines} lines omitted]", "[Previous 1 lines omitted]"),
        ("[see turn {turn}]", "[see turn 1]"),
        ("[{chars} characters]", f"[{len(SEEN)} characters]"),
        ("[Turn {turn} observation omitted for brevity]", "[Turn 1 observation omitted for brevity]"),
        ("{{gone}}", "{gone}"),
    ]:
        manager = added(ObservationMaskingContextManager(1, given), 2)
        assert manager.get_masked_context("S", "U").count(f"Observation: {shown}\n") == 1
        assert (manager.m, manager.placeholder) == (1, given)
    with pytest.raises(ValueError, match="placeholder must have some text"):
        ObservationMaskingContextManager(placeholder="")
    with pytest.raises(ValueError, match=r"turn_idx.*turn"):
        ObservationMaskingContextManager(placeholder="[Turn {turn_idx} observation omitted for brevity]")


@row("`apply_observation_masking`: prompts in slots 0 and 1, which are not masked; numbered placeholders")
def test_the_function_takes_the_slots_of_the_design() -> None:
    slots: list[Any] = [("system", "You are careful."), ("user", "Find the bug."), *[("r", "a", SEEN)] * 13]
    shown = recede.designs.apply_observation_masking(slots, 15, 10)
    assert [index for index, slot in enumerate(shown) if slot[-1] == HIDDEN] == [2, 3, 4]
    numbered = recede.designs.apply_observation_masking(
        slots, current_turn=15, window_size_m=10, placeholder="[Turn {turn} observation omitted for brevity]"
    )
    assert numbered[2][2] == "[Turn 2 observation omitted for brevity]"
    with pytest.raises(TypeError, match=r"entry 1 must be .* or a prompt with its role"):
        recede.designs.apply_observation_masking(["You are careful.", "Find the bug.", *slots[2:]], 15, 10)
    # What is written like a turn is one, as the row says.
    assert (
        recede.designs.apply_observation_masking([("", "", "Find the bug. " * 9), *slots[2:]], 15, 10)[0][2] == HIDDEN
    )


@row("`mask_observations(turns, current_turn, m=10)`")
def test_the_function_of_the_research_names_the_one_to_use() -> None:
    mask_observations: Any = recede.designs.mask_observations
    hint = r"use recede.designs.apply_observation_masking\(trajectory, current_turn, window_siz"
    turns = [("r", "a", SEEN)]
    for positional, named in [
        ((turns, 15), {"m": 10}),
        ((), {"turns": turns, "current_turn": 15}),
        ((), {"turns": turns}),
    ]:
        with pytest.raises(TypeError, match=hint):
            mask_observations(*positional, **named)


@row(
    "the agent loop around the manager",
    "`add_turn(reasoning, action, observation)`",
    "`estimate_token_savings()` with five keys",
    "M is 10 by default",
)
def test_the_loop_of_the_design_runs_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    def llm(context: str) -> tuple[str, str]:
        return ("DONE" if "Turn 25:" in context else "I must look."), "cat a.py"

    def environment(action: str) -> str:
        return "word " * 300

    context_manager = ObservationMaskingContextManager(window_size_m=10)
    while True:
        context = context_manager.get_masked_context("You are careful.", "Find the bug.")
        reasoning, action = llm(context)
        if reasoning == "DONE":
            break
        observation = environment(action)
        context_manager.add_turn(reasoning, action, observation)
    savings = context_manager.estimate_token_savings()
    print(f"Saved {savings['estimated_saved_tokens']} tokens ({savings['reduction_percent']:.1f}%)")
    assert capsys.readouterr().out == "Saved 4440 tokens (59.2%)\n"
    assert savings["masked_turns"] == 15 and savings["visible_turns"] == 10
    assert savings["total_obs_tokens"] == 25 * 300
    assert inspect.signature(ObservationMaskingContextManager).parameters["window_size_m"].default == 10
    assert context_manager.add_turn("r", "a", "o") == 26


@row("savings estimated from averages, a placeholder as about 5 tokens")
def test_savings_are_counted_turn_by_turn() -> None:
    manager = ObservationMaskingContextManager(1)
    for words in (1_000, 10, 100):
        manager.add_turn("r", "a", "word " * words)
    saved = manager.estimate_token_savings()
    words_of_placeholder = len(HIDDEN.split())
    assert saved["estimated_saved_tokens"] == 1_010 - 2 * words_of_placeholder
    assert ObservationMaskingContextManager().estimate_token_savings()["total_obs_tokens"] == 0


@row("a trajectory of dicts", "turns are stored unmasked")
def test_turns_answer_as_the_dicts_of_the_design_do() -> None:
    manager = added(ObservationMaskingContextManager(1), 5)
    for t in manager.trajectory:
        assert (t["reasoning"], t["action"], t["observation"]) == (
            f"I must look, {t['turn']}.",
            f"cat {t['turn']}.py",
            SEEN,
        )
        assert t.get("observation") == SEEN and t.get("cost") is None and t.get("cost", 0) == 0
        assert dict(t) == {**t} == t._asdict() and dict(t)["timestamp"] == t["timestamp"] > 0
        with pytest.raises(TypeError):
            t["observation"] = ""
    assert manager.recall(1) == manager.trajectory[0].observation == SEEN


@row("what M = 5, 10 and 20 trade", "84 % of the tokens are observations")
def test_what_windows_trade_is_measured_on_ones_own_sessions(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(dumps(turns_of([(7, 5_400)] * 30)))
    shown = recede_command("replay", "--all", path).stdout.decode()
    assert all(f"sliding:window={window}" in shown for window in (5, 10, 20))
    assert "window" in recede_command("replay", "--curve", path).stdout.decode()
    assert "results" in recede_command("stats", "--by-format", path).stdout.decode()


@row("10 for SWE-agent, 58 for OpenHands")
def test_presets() -> None:
    assert ObservationMaskingContextManager.from_preset("swe-agent").m == 10
    manager = added(ObservationMaskingContextManager.from_preset("openhands"), 100)
    assert manager.estimate_token_savings()["visible_turns"] == 58
    with pytest.raises(ValueError, match="there is no preset 'SWE-agent'; give one of 'swe-agent', 'openhands'"):
        ObservationMaskingContextManager.from_preset("SWE-agent")  # type: ignore[arg-type]


@row("at turn 100 a context of 180,000 has 45,000", "a context grows from 5,000 at turn 10 to 300,000 at turn 1,000")
def test_contexts_grow_as_in_the_design() -> None:
    """84 % of 1,800 words a turn are its observation."""
    manager, sizes = ObservationMaskingContextManager(), {}
    for turn in range(1, 1_001):
        manager.add_turn("word " * 144, "word " * 144, "word " * 1_512)
        if turn in (10, 100, 1_000):
            sizes[turn] = len(manager.get_masked_context("", "").split()) - 5 * turn  # without the words of the layout
    assert sizes == {10: 18_000, 100: 44_280, 1_000: 307_080}


@row("about half of the tokens")
def test_half_of_the_tokens_without_a_cache() -> None:
    session = replay(turns_of([(480, 3_600)] * 60), ["sliding:window=10", "break_even:window=10"], system_chars=0)
    raw, sliding, even = session.policies
    chars = [sum(turn.view_chars for turn in one.turns) for one in (raw, sliding)]
    assert 0.3 < chars[1] / chars[0] < 0.6
    costs = {cost.policy: cost.of_raw for cost in session.costs}
    assert costs[sliding.policy] > 1 > costs[even.policy], (
        "with a prompt cache the sliding boundary costs more than raw"
    )


@row("deterministic, and no model is called", "every old observation is replaced")
def test_the_same_turns_make_the_same_text_and_nothing_grows() -> None:
    one, other = (added(ObservationMaskingContextManager(2), 9) for _ in range(2))
    assert one.get_masked_context("S", "U") == other.get_masked_context("S", "U") == one.get_masked_context("S", "U")
    short = added(ObservationMaskingContextManager(1), 5, "ok")
    assert HIDDEN not in short.get_masked_context("S", "U") and masked(short) == []
