"""What every stage of the planner knows, and what it decides."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

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
    """What a text costs must be asked for."""


Move = tuple[int, int, int, int]
"""Before which request, from 0; observations masked; chars removed; chars behind the change written again."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The new message of a view."""

    text: str
    cost: int  # in budget units
    place: int  # how many messages of the view come before it
    message: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the view is made of."""

    kept: list[int]  # messages of the input, in order
    stage: Stage | None = None
    boundary: int = 0
    masked: dict[int, Masked] = field(default_factory=dict)  # by observation, those of dropped messages too
    moves: tuple[Move, ...] = ()  # how the boundary came there, where it depends on earlier requests
    summary: Summary | None = None
    cut: dict[int, Masked] = field(default_factory=dict)  # messages of the task, by message


class Sent(NamedTuple):
    """What a request sent."""

    chars: int  # of the view
    cached_chars: int  # of these, of what the view before began with as well
    masked: int  # observations
    summarized: int = 0  # turns that the view shows as a summary
    summary_input_chars: int = 0  # what a model was given for a summary, before this request
    summary_output_chars: int = 0  # what it wrote


class Facts:
    """A history and the policy for it, with what several rules ask for."""

    def __init__(self, outline: Outline, policy: Policy, costs: Costs | None) -> None:
        self.outline = outline
        self.policy = policy
        self.costs = costs
        self.numbers: Sequence[
            int
        ] = ()  # of the observations among all that there ever were, where a session began anew
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
        """What masking puts in the place of an observation; None where it stays as it is."""
        tool, turn = self.tools[result.index], self.turns[result.index]
        number = self.numbers[result.index] if self.numbers else result.index + 1
        observation = Observation(
            result.observation, result.images, turn, tool or "", result.id or "", number, result.json_chars
        )
        return mask(observation, self.policy)

    def _window(self) -> tuple[int, int]:
        """The first message of the window, and its first observation: the smallest by any measure that is set."""
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
        """What the view costs, in budget units."""
        summary = 0 if plan.summary is None else plan.summary.cost
        return summary + sum(self.message_cost(plan, index) for index in plan.kept)

    def message_cost(self, plan: Plan, index: int) -> int:
        """What a message of the view costs."""
        places = [result.index for result in self.outline.messages[index].results]
        own_cost = self.text_cost(plan.cut[index].text) if index in plan.cut else self.own_cost(index)
        return own_cost + sum(self.observation_cost(place, plan.masked.get(place)) for place in places)

    def own_cost(self, index: int) -> int:
        """What a message costs without its observations."""
        return self.own_chars[index] if self.costs is None else self.costs[0][index]

    def observation_cost(self, place: int, masked: Masked | None) -> int:
        """What an observation costs, raw or with this in its place."""
        if self.costs is not None:
            if masked is not None and masked.is_clipped:
                return self.text_cost(masked.text)
            return self.costs[1][place][masked is not None]
        return self.observation_chars[place] if masked is None else masked.chars

    def text_cost(self, text: str) -> int:
        """What a text costs that no message has."""
        if self.costs is None:
            return len(text)
        if len(self.costs) == 2 or text not in self.costs[2]:
            raise Uncounted(text)
        return self.costs[2][text]

    def keeps_pairs(self, plan: Plan) -> bool:
        """The pair invariant: no stage adds an orphan, so it can only be broken by those that the input has."""
        if not self.policy.strict_pairs:
            return True
        return set(self.pairs.orphans).isdisjoint(plan.kept)


def _start_of_last(count: int, places: list[int], end: int) -> int:
    """Where the last `count` of these places begin."""
    if count == 0:
        return end
    return places[-count] if count < len(places) else 0
