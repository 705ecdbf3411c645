"""What `fill` keeps, from the page alone: exact fractions, each unit tried in turn, for histories with whole pairs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import recede
from recede._pure.outline import Message
from recede._pure.walk import walk
from recede.reduction._options import OPTIONS

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


def even(history: History, budget: int, fill: float, **options: Any) -> Even:
    """By the sizes that messages have once all results but those of the newest turn are masked."""
    outline = walk(history).messages
    sizes = [recede.count_chars([message]) for message in all_masked(history, **options)]
    recent = options.get("preserve_recent_raw_turns", 4)
    spoken = [message.index for message in outline if not message.is_system]
    first_recent = spoken[-recent] if 0 < recent <= len(spoken) else (0 if recent else len(outline))
    earlier = summaries_of(history)
    task = task_of(history)

    window = {message.index for message in outline if message.is_system} - earlier
    older = []
    for unit in _units(outline, {*window, *earlier, *task}):
        if unit[-1] >= first_recent or any(index >= first_recent for index in unit):
            window.update(unit)
        else:
            older.append(unit)

    share, kept_chars = Fraction(round(fill * 10**6), 10**6), sum(sizes[index] for index in window)
    summary_max = options.get("summary_max_chars", OPTIONS["summary_max_chars"].default)
    least = min(LEAST_TASK, sizes[task[-1]]) if task else 0
    task_chars = max(Fraction(least), min(min(share, Fraction(1, 2)) / 2 * budget, Fraction(budget - kept_chars)))
    task_chars = min(Fraction(sum(sizes[index] for index in task)), task_chars)
    summary_chars = min(Fraction(summary_max), share * budget / 4)
    room = share * budget - kept_chars - task_chars - summary_chars
    newest: set[int] = set()
    next_older = None
    for unit in reversed(older):
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
    return Even(window, newest, task, shown, task_chars, summary_chars, next_older)


def all_masked(history: History, **options: Any) -> History:
    """Masked as far as it may be before anything is dropped."""
    recent = options.get("preserve_recent_raw_turns", 4)
    once = recede.mask_observations(history, keep_messages=recent, boundary="sliding").messages
    return recede.mask_observations(once, keep_turns=1, boundary="sliding").messages


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
