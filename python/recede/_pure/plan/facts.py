"""Facts and plans, shared by the stages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from recede._pure.outline import Outline, Result
from recede._pure.pairs import Pairs, tools_of, turns_of
from recede._pure.placeholder import Masked, Observation, mask
from recede._pure.policy import Policy
from recede._pure.summary import earlier_summaries, first_user_message
from recede._pure.turns import Turns

Stage = Literal["masking", "summarization", "fallback"]

Costs = tuple[list[int], list[tuple[int, int]]] | tuple[list[int], list[tuple[int, int]], dict[str, int]]
"""Budget units of each message without its observations, of each observation, raw and masked, and of new texts."""


class Uncounted(Exception):
    """The cost of a text is needed first."""


Move = tuple[int, int, int, int]
"""Request, from 0; masked observations; chars removed; chars after the change that were written again."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a view."""

    text: str
    cost: int  # in budget units
    place: int  # messages of the view before it
    message: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to mask, drop and insert."""

    kept: list[int]  # messages of the input, in order
    stage: Stage | None = None
    boundary: int = 0
    boundary_before: int = 0  # at the previous request, if the boundary depends on requests
    masked: dict[int, Masked] = field(default_factory=dict)  # by observation, including those of dropped messages
    moves: tuple[Move, ...] = ()  # of a boundary that depends on earlier requests
    summary: Summary | None = None
    cut: dict[int, Masked] = field(default_factory=dict)  # messages of the task, by message


class Facts:
    """A history and its policy, with facts for several rules."""

    def __init__(self, outline: Outline, policy: Policy, costs: Costs | None) -> None:
        self.outline = outline
        self.policy = policy
        self.costs = costs
        # Numbers of the observations among all of a session with a summary.
        self.numbers: Sequence[int] = ()
        self.task_end = 0  # how many of the first messages may be the task, in a session after a compaction
        self.own_chars = [message.own_chars(policy.image_chars) for message in outline.messages]
        self.observation_chars = [result.chars(policy.image_chars) for result in outline.results]
        self.runs = Turns(outline)
        self.pairs = Pairs(outline, self.runs)
        self.tools = tools_of(outline, self.pairs)
        self.turns = turns_of(outline, self.runs, self.pairs)

        self.window_start, self.observation_bound = self._window()
        self.earlier_summaries = earlier_summaries(outline)
        self.task = first_user_message(outline, self.earlier_summaries)

    def mask(self, result: Result) -> Masked | None:
        """Mask an observation; None if it stays."""
        tool, turn = self.tools[result.index], self.turns[result.index]
        observation = Observation(
            result.observation,
            result.images,
            turn,
            tool or "",
            result.id or "",
            self.number_of(result),
            result.json_chars,
        )
        return mask(observation, self.policy)

    def number_of(self, result: Result) -> int:
        """Its number among all observations, from 1."""
        return self.numbers[result.index] if self.numbers else result.index + 1

    def _window(self) -> tuple[int, int]:
        """The first message and observation of the window, the union of all measures."""
        messages, results, policy = self.outline.messages, self.outline.results, self.policy
        starts = []
        if policy.keep_messages is not None:
            spoken = [message.index for message in messages if not message.is_system]
            starts.append(_start_of_last(policy.keep_messages, spoken, len(messages)))
        if policy.keep_turns is not None:
            starts.append(_start_of_last(policy.keep_turns, self.runs.starts, len(messages)))
        bounds = [bisect_left(results, start, key=lambda result: result.message) for start in starts]
        if policy.keep_results is not None:
            holders = [result.message for result in results]
            starts.append(_start_of_last(policy.keep_results, holders, len(messages)))
            bounds.append(max(0, len(results) - policy.keep_results))
        return min(starts, default=len(messages)), min(bounds, default=len(results))

    def chars(self, plan: Plan) -> int:
        """The chars of the view."""
        summary = 0 if plan.summary is None else len(plan.summary.text)
        return summary + sum(self.message_chars(plan, index) for index in plan.kept)

    def message_chars(self, plan: Plan, index: int) -> int:
        """The chars of a message in the view."""
        chars = plan.cut[index].chars if index in plan.cut else self.own_chars[index]
        for result in self.outline.messages[index].results:
            masked = plan.masked.get(result.index)
            chars += self.observation_chars[result.index] if masked is None else masked.chars
        return chars

    def fits(self, plan: Plan) -> bool:
        """Whether the view is within the budget."""
        budget = self.policy.max_cost
        return budget is None or self.cost(plan) <= budget

    def cost(self, plan: Plan) -> int:
        """The cost of the view, in budget units."""
        summary = 0 if plan.summary is None else plan.summary.cost
        return summary + sum(self.message_cost(plan, index) for index in plan.kept)

    def message_cost(self, plan: Plan, index: int) -> int:
        """The cost of a message in the view."""
        places = [result.index for result in self.outline.messages[index].results]
        own_cost = self.text_cost(plan.cut[index].text) if index in plan.cut else self.own_cost(index)
        return own_cost + sum(self.observation_cost(place, plan.masked.get(place)) for place in places)

    def own_cost(self, index: int) -> int:
        """The cost of a message without its observations."""
        return self.own_chars[index] if self.costs is None else self.costs[0][index]

    def observation_cost(self, place: int, masked: Masked | None) -> int:
        """The cost of an observation, raw or replaced."""
        if self.costs is not None:
            if masked is not None and masked.is_clipped:
                return self.text_cost(masked.text)
            return self.costs[1][place][masked is not None]
        return self.observation_chars[place] if masked is None else masked.chars

    def text_cost(self, text: str) -> int:
        """The cost of a new text."""
        if self.costs is None:
            return len(text)
        if len(self.costs) == 2 or text not in self.costs[2]:
            raise Uncounted(text)
        return self.costs[2][text]

    def keeps_pairs(self, plan: Plan) -> bool:
        """The pair invariant: no stage adds an orphan, so only orphans of the input can break it."""
        if not self.policy.strict_pairs:
            return True
        return set(self.pairs.orphans).isdisjoint(plan.kept)


def _start_of_last(count: int, places: list[int], end: int) -> int:
    """The start of the last `count` of these places."""
    if count == 0:
        return end
    return places[-count] if count < len(places) else 0
