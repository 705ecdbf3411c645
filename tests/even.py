"""What `fill` keeps, from the page alone: exact fractions, each unit tried in turn, for histories with whole pairs."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any, NamedTuple

import published

import recede
from oracle.outline import Message
from oracle.walk import walk
from recede import _engine
from recede.reduction._options import DESIGN_OPTIONS
from recede.reduction._planning import reduced
from recede.reduction._policy import _policy
from support import findings

History = list[dict[str, Any]]
LEAST_TASK, LEAST_CUT = 220, 60


class Even(NamedTuple):
    """The places of the messages that are kept for their own sake and for the budget, of the task, and the shares."""

    window: set[int]
    newest: set[int]
    task: list[int]  # all of it, also what is not shown
    shown_task: set[int]
    task_chars: Fraction
    summary_chars: Fraction
    next_older: int | None  # how large the newest unit is that is dropped


class Evenly:
    """A history whose kept messages are found for any budget."""

    def __init__(self, history: History, **options: Any) -> None:
        """By the sizes that messages have once all results but those of the newest turn are masked."""
        outline = walk(history).messages
        self.sizes = [recede.count_chars([message]) for message in all_masked(history, **options)]
        self.summary_max = options.get("summary_max_chars", DESIGN_OPTIONS["summary_max_chars"].default)
        recent = options.get("preserve_recent_raw_turns", 4)
        spoken = [message.index for message in outline if not message.is_system]
        first_recent = spoken[-recent] if 0 < recent <= len(spoken) else (0 if recent else len(outline))
        # Results that no request has shown are in every window.
        answered = max((message.index for message in outline if message.is_agent_made), default=-1)
        unseen = [message.index for message in outline if message.results and message.index > answered]
        first_recent = min([first_recent, *unseen])
        earlier = summaries_of(history)
        self.task = task_of(history)

        self.window = {message.index for message in outline if message.is_system} - earlier
        self.older = []
        for unit in _units(outline, {*self.window, *earlier, *self.task}):
            if unit[-1] >= first_recent or any(index >= first_recent for index in unit):
                self.window.update(unit)
            else:
                self.older.append(unit)

    def at(self, budget: int, fill: float) -> Even:
        sizes, task = self.sizes, self.task
        share, kept_chars = Fraction(round(fill * 10**6), 10**6), sum(sizes[index] for index in self.window)
        least = min(LEAST_TASK, sizes[task[-1]]) if task else 0
        task_chars = max(Fraction(least), min(min(share, Fraction(1, 2)) / 2 * budget, Fraction(budget - kept_chars)))
        task_chars = min(Fraction(sum(sizes[index] for index in task)), task_chars)
        summary_chars = min(Fraction(self.summary_max), share * budget / 4)
        room = share * budget - kept_chars - task_chars - summary_chars
        newest: set[int] = set()
        next_older = None
        for unit in reversed(self.older):
            chars = sum(sizes[index] for index in unit)
            if chars > room:
                next_older = chars
                break
            newest.update(unit)
            room -= chars

        left, shown = int(task_chars), set()
        for index in reversed(task):
            if sizes[index] > left:
                shown |= {index} if left >= LEAST_CUT else set()
                break
            shown.add(index)
            left -= sizes[index]
        return Even(self.window, newest, task, shown, task_chars, summary_chars, next_older)


def even(history: History, budget: int, fill: float, **options: Any) -> Even:
    """What is kept at this budget."""
    return Evenly(history, **options).at(budget, fill)


def budgets_of(chars: int, count: int) -> list[int]:
    """From 300 characters to the whole history, each so many times the one before."""
    return sorted({int(300 * (max(chars, 301) / 300) ** (step / (count - 1))) for step in range(count)})


def failing(messages: list[Any], previous: str | None) -> str:
    raise ValueError("no summary")


def kept_at_least(history: History, budget: int, options: dict[str, Any]) -> Any:
    """The published view without a summary, but for results that no request has shown, which stay raw."""
    rule = {**options, "fill": None, "clip_results": None, "max_input_chars": budget}
    return reduced(history, _policy(_engine.engine, "reduce", rule, masks_unseen=False), None, False)


def _broken(messages: History) -> set[tuple[str, Any]]:
    """What is wrong with the pairs; an id is open twice, or used again, by what is between."""
    kinds = {"id_used_again": "id_open_twice"}
    found = findings(messages)
    return {(kinds.get(kind, kind), call_id) for kind, _, call_id in found if kind != "open_call"}


def check_budgets(history: History, count: int, **options: Any) -> None:
    """The properties of tests/property/test_even_budgets.py at many budgets of one numbered history."""
    before = copy.deepcopy(history)
    orphans = _broken(history)
    window = kept_at_least(history, 0, options)
    chars, task, replaced = recede.count_chars(history), task_of(history), summaries_of(history)
    # The definition is of whole pairs, and of the window that `reduce` has by itself.
    evenly = Evenly(history) if not options and not orphans else None
    smaller: set[int] = set()
    unchanged: set[int] = set()
    for budget in budgets_of(chars, count):
        view = published.reduce(history, max_input_chars=budget, **options)
        assert view.within_limit is (view.chars_after <= budget)
        assert view.chars_after == recede.count_chars(view.messages)
        assert view.within_limit or window.chars_after + LEAST_TASK > budget
        assert _broken(view.messages) <= orphans
        kept = {message["place"] for message in view.messages if "place" in message}
        whole = {message["place"] for message in view.messages if message is history[message.get("place", 0)]}
        assert smaller <= kept | replaced and unchanged <= whole | replaced, "a larger budget never keeps less"
        smaller, unchanged = kept, whole
        if view.reduced and chars > budget:
            assert set(task[-1:]) <= kept
        if evenly and view.reduction_stage in ("summarization", "fallback"):
            expected = evenly.at(budget, 0.9)
            assert kept - replaced == expected.window | expected.newest | expected.shown_task
            own = [message for message in view.messages if message.get("place") in expected.window | expected.newest]
            filled = recede.count_chars(own) + expected.task_chars + expected.summary_chars
            assert expected.next_older is None or filled + expected.next_older > Fraction(9, 10) * budget
    assert history == before, "the input was changed"


def all_masked(history: History, **options: Any) -> History:
    """Masked as far as it may be before anything is dropped."""
    recent = options.get("preserve_recent_raw_turns", 4)
    once = published.mask_observations(history, keep_messages=recent, boundary="sliding").messages
    return published.mask_observations(once, keep_turns=1, boundary="sliding").messages


def summaries_of(history: History) -> set[int]:
    """What an earlier reduction left: before all that is no system message, or right behind these."""
    outline = walk(history).messages
    leading = next((message.index for message in outline if not message.is_system), len(outline))
    first_lines = {m.index: m.own.joined.partition("\n")[0] for m in outline[: leading + 1] if not m.exchanges}
    return {index for index, line in first_lines.items() if line == "Conversation summary:"}


def task_of(history: History) -> list[int]:
    """What the user said before the first run, or else the first that the user said."""
    outline, earlier = walk(history).messages, summaries_of(history)
    first_run = next((message.index for message in outline if message.is_agent_made), len(outline))
    of_user = [m for m in outline if m.role == "user" and not m.exchanges and not m.is_agent_made]
    said = [message.index for message in of_user if message.index not in earlier]
    return [index for index in said if index < first_run] or said[:1]


def _units(outline: list[Message], apart: set[int]) -> list[list[int]]:
    """A run with the messages of its results, which follow it; any other message alone."""
    units: list[list[int]] = []
    run: list[int] = []
    before_agent_made = False
    for message in outline:
        if message.is_agent_made and not before_agent_made:
            run = []
        if message.is_agent_made or message.results:
            run.append(message.index)
            if len(run) == 1:
                units.append(run)
        elif message.index not in apart:
            units.append([message.index])
        before_agent_made = message.is_agent_made
    return sorted(units, key=lambda unit: unit[-1])
