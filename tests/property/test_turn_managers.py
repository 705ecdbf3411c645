"""The managers of turns against what their rule says, at every turn of random runs."""

from __future__ import annotations

from typing import Any

from asked import Waiting
from hypothesis import given
from hypothesis import strategies as st

import recede
from recede.designs import HybridContextManager, ObservationMaskingContextManager
from recede.turns import Turn

# Text that could be taken for the frame of a turn, for a placeholder or a template, and what UTF-8 has no form for.
PIECES = [
    "",
    "word",
    "\n",
    " ",
    "é日本",
    "\ud83d",
    "Turn 3:",
    "[Observation omitted]",
    "{turn}",
    "x" * 40,
    "\x1c\u2028",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
TURNS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS | TEXTS.map(lambda text: text * 9)), max_size=14)
PLACEHOLDERS = st.sampled_from([None, "[gone]", "{turn}: {chars} chars, {lines} lines", "[Turn {turn} omitted]"])

Texts = tuple[str, str, str]


def rendered(number: int, reasoning: str, action: str, observation: str) -> str:
    return f"\nTurn {number}:\nReasoning: {reasoning}\nAction: {action}\nObservation: {observation}\n"


def shown(turns: list[Texts], masked_below: int, template: str) -> list[Texts]:
    """The turns, with a placeholder for the first ones where it is shorter."""
    found = []
    for number, (reasoning, action, observation) in enumerate(turns, 1):
        lines = observation.count("\n") + 1
        placeholder = template.format(turn=number, chars=len(observation), lines=lines)
        is_masked = number < masked_below and len(placeholder) < len(observation)
        found.append((reasoning, action, placeholder if is_masked else observation))
    return found


def joined(before: list[str], turns: list[Texts], first: int = 0) -> str:
    return "\n".join([*before, *(rendered(number, *turn) for number, turn in enumerate(turns, 1) if number > first)])


def count(text: str) -> int:
    return len(text.split())


@given(turns=TURNS, window=st.integers(0, 6), placeholder=PLACEHOLDERS, data=st.data())
def test_exactly_the_last_turns_show_their_observation(
    turns: list[Texts], window: int, placeholder: str | None, data: Any
) -> None:
    manager = ObservationMaskingContextManager(window, placeholder)
    for number, turn in enumerate(turns, 1):
        assert manager.add_turn(*turn) == number
        if not data.draw(st.booleans(), label="look"):
            continue
        older = max(0, number - window)
        expected = shown(turns[:number], older + 1, placeholder or "[Observation omitted for brevity]")
        prompts = data.draw(st.sampled_from([["S", "U"]] * 3 + [["é", "\ud83d"]]), label="prompts")
        assert manager.get_masked_context(*prompts) == joined(prompts, expected)
        assert recede.designs.apply_observation_masking(turns[:number], number + 1, window, placeholder) == expected
    assert [turn[1:4] for turn in manager.trajectory] == turns
    assert [manager.recall(number) for number in range(1, len(turns) + 1)] == [turn[2] for turn in turns]


@given(turns=TURNS, window=st.integers(0, 6), placeholder=PLACEHOLDERS)
def test_the_report_is_a_count_of_what_was_rendered(turns: list[Texts], window: int, placeholder: str | None) -> None:
    manager = ObservationMaskingContextManager(window, placeholder)
    sent, raw = [], []
    for number, turn in enumerate(turns):
        sent.append(count(manager.get_masked_context("", "")[1:]))
        raw.append(count(joined([""], turns[:number])))
        manager.add_turn(*turn)
    report = manager.report(price_per_token=2.0)
    assert (report.turns, report.raw_tokens, report.sent_tokens) == (len(turns), sum(raw), sum(sent))
    assert report.saved_tokens == sum(raw) - sum(sent)
    assert (report.raw_cost, report.cost) == (2.0 * sum(raw), 2.0 * sum(sent))
    assert report.efficiency_score == (report.saved_tokens / sum(raw) if sum(raw) else 0.0)
    savings = manager.estimate_token_savings()
    now = count(manager.get_masked_context("", "")[1:])
    assert savings["estimated_saved_tokens"] == count(joined([""], turns)) - now
    assert savings["total_obs_tokens"] == sum(count(turn[2]) for turn in turns)
    shown_now = shown(turns, len(turns) - window + 1, placeholder or "[Observation omitted for brevity]")
    assert savings["visible_turns"] == sum(one == turn for one, turn in zip(shown_now, turns, strict=True))
    assert savings["masked_turns"] + savings["visible_turns"] == len(turns)


class Recorded:
    """A summarizer that fails when it is told to, and remembers what it was given."""

    def __init__(self, fails: set[int] = frozenset()) -> None:  # type: ignore[assignment]
        self.fails = fails
        self.calls: list[tuple[list[tuple[int, Texts]], str | None, bool]] = []
        self.numbers: list[list[int]] = []

    def __call__(self, turns: list[Turn], previous: str | None) -> str:
        fails = len(self.calls) in self.fails
        self.calls.append(([(turn.turn, turn[1:4]) for turn in turns], previous, fails))
        if fails and len(self.calls) % 2:
            raise OSError("no model")
        self.numbers.append([] if fails else [turn.turn for turn in turns])
        return "  \n" if fails else f"{previous or ''}<{turns[0].turn}-{turns[-1].turn}>"


@given(turns=TURNS, window=st.integers(0, 6), tail=st.integers(0, 3), more=st.integers(1, 4), data=st.data())
def test_every_turn_is_in_the_context_exactly_once(
    turns: list[Texts], window: int, tail: int, more: int, data: Any
) -> None:
    summarizer = Recorded(data.draw(st.sets(st.integers(0, 14)), label="failures"))
    manager = HybridContextManager(summarizer, window, tail + more, tail)
    sent: list[int] = []
    waiting = Waiting()
    for number, turn in enumerate(turns, 1):
        sent.append(count(manager.get_context("", "")[1:]))
        calls, done = len(summarizer.calls), len(manager.summaries)
        manager.add_turn(*turn)
        # One is asked for when it is due, and after failures later and later until there is one.
        assert len(summarizer.calls) - calls in (0, 1)
        if number % (tail + more) == 0:
            assert len(summarizer.calls) - calls == waiting.is_over(number)
        if len(summarizer.calls) > calls:
            assert waiting.is_over(number)
            if len(manager.summaries) == done:
                waiting.failed(number)
                assert manager.stats().summary_failures > 0 and manager.summarizer_error is not None
            else:
                waiting = Waiting()
        end = manager.summaries[-1].end_turn if manager.summaries else 0
        content = manager.summaries[-1].content if manager.summaries else ""
        block = [f"\n[Summary through turn {end}:\n{content}\n]"] if end else []
        expected = shown(turns[:number], number - window + 1, "[Observation omitted]")
        assert manager.get_context("S", "U") == joined(["S", "U", *block], expected, end)
        assert manager.phase == ("summarizing" if end else "masking")
        assert end <= max(0, number - tail)
    # What was summarized was told once, in order, unmasked.
    told = [number for numbers in summarizer.numbers for number in numbers]
    assert told == list(range(1, len(told) + 1))
    for given_turns, previous, _ in summarizer.calls:
        assert all(turns[number - 1] == turn for number, turn in given_turns)
        assert previous is None or previous.startswith("<1-")
    report = manager.report()
    assert report.sent_tokens == sum(sent)
    assert manager.trajectory == manager.trajectory and len(manager) == len(turns)
