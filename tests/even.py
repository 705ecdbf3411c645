"""What a budget must not break: properties of the views of one history at many budgets."""

from __future__ import annotations

import copy
from typing import Any

import published

import recede
from oracle.walk import walk
from recede import _engine
from recede.reduction._planning import reduced
from recede.reduction._policy import _policy
from support import findings

History = list[dict[str, Any]]
LEAST_TASK = 220


def budgets_of(chars: int, count: int) -> list[int]:
    """From 300 characters to the whole history, each so many times the one before."""
    return sorted({int(300 * (max(chars, 301) / 300) ** (step / (count - 1))) for step in range(count)})


def failing(messages: list[Any], previous: str | None) -> str:
    raise ValueError("no summary")


def kept_at_least(history: History, budget: int, options: dict[str, Any]) -> Any:
    """The published view without a summary, but for results that no request has shown, which stay raw."""
    rule = {**options, "fill": None, "clip_results": None, "max_input_chars": budget}
    return reduced(history, _policy(_engine.engine, "reduce", rule, masks_unseen=False), None, False)


def unsummarized(message: dict[str, Any]) -> dict[str, Any]:
    """A message of Converse without the summary that was joined to it."""
    *blocks, last = message["content"] if isinstance(message.get("content"), list) and message["content"] else [None]
    joined = isinstance(last, dict) and str(last.get("text")).startswith("Conversation summary:")
    return {**message, "content": blocks} if joined and blocks else message


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
    smaller: set[int] = set()
    unchanged: set[int] = set()
    for budget in budgets_of(chars, count):
        view = published.reduce(history, max_input_chars=budget, **options)
        assert view.within_limit is (view.chars_after <= budget)
        assert view.chars_after == recede.count_chars(view.messages)
        assert view.within_limit or window.chars_after + LEAST_TASK > budget
        assert _broken(view.messages) <= orphans
        shown = [message for message in view.messages if "place" in message]
        kept = {message["place"] for message in shown}
        whole = {one["place"] for one in shown if unsummarized(one) == history[one["place"]]}
        assert smaller <= kept | replaced and unchanged <= whole | replaced, "a larger budget never keeps less"
        smaller, unchanged = kept, whole
        if view.reduced and chars > budget:
            assert set(task[-1:]) <= kept
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
