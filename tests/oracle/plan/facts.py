"""Facts and plans, shared by the stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from oracle.handle import HANDLE_CHARS
from oracle.outline import Call, Outline, Result
from oracle.pairs import Pairs
from oracle.placeholder import Masked, Observation, fill, mask
from oracle.plan.arrival import arrivals, with_arrivals
from oracle.plan.references import is_reference
from oracle.policy import Policy
from oracle.size import weight
from oracle.turns import Turns

Stage = Literal["masking", "summarization", "fallback"]

Costs = (
    tuple[list[tuple[int, int]], list[tuple[int, int]]]
    | tuple[list[tuple[int, int]], list[tuple[int, int]], dict[str, int]]
)
"""Budget units of each message without its observations, and of its reasoning; of each observation, raw and masked;
and of new texts."""


class Uncounted(Exception):
    """The cost of a text is needed first."""


Move = tuple[int, int, int, int, int]
"""Request, from 0; masked observations; chars removed; chars after the change that were written again; messages that
lose their reasoning."""


class Summary(NamedTuple):
    """The summary of a view."""

    text: str
    cost: int  # in budget units
    place: int  # messages of the view before it
    message: dict[str, Any]
    joins: int | None = None  # the place of the message that has its content instead


@dataclass(frozen=True, slots=True)
class Plan:
    """What to mask, drop and insert."""

    kept: list[int]  # messages of the input, in order
    stage: Stage | None = None
    boundary: int = 0
    boundary_before: int = 0  # at the previous request, if the boundary depends on requests
    masked: dict[int, Masked] = field(default_factory=dict)  # by observation, including those of dropped messages
    moves: tuple[Move, ...] = ()  # of a boundary that depends on earlier requests
    is_below_trigger: bool = False
    summary: Summary | None = None
    cut: Mapping[int, Masked] = field(default_factory=dict)  # messages of the task, by message
    unsigned: frozenset[int] = frozenset()  # messages without their signed reasoning
    is_forced: bool = False  # a limit has hidden messages
    own_chars: int | None = None  # of the view, where references have the text of other results


class Facts:
    """A history and its policy, with facts for several rules."""

    def __init__(self, outline: Outline, policy: Policy, costs: Costs | None) -> None:
        self.given = self.outline = outline
        shapes = (message.shape.name for message in outline.messages if message.shape is not None)
        self.policy = policy = policy.of(shapes)
        self.costs = costs
        self.runs = Turns(outline)
        self.pairs = Pairs(outline, self.runs)
        self.tools = [
            (result.name if result.shape.may_name_results or result.shape.names_results else None)
            if call is None
            else call.name
            for result, call in zip(outline.results, self.pairs.call_of, strict=True)
        ]
        # The turn of an observation is the run of its call, or the last run begun before it.
        self.turns = [
            self.runs.begun[result.message if call is None or not self._is_in_run(call) else call.message]
            for result, call in zip(outline.results, self.pairs.call_of, strict=True)
        ]
        self.cleared: set[int] = set()
        self.arrived = arrivals(self)
        self.cuts = {place: one for place, one in self.arrived.items() if one.is_clipped}
        self.cleared = self.arrived.keys() - self.cuts.keys()
        self.outline = outline = with_arrivals(outline, self.arrived)
        self.own_chars = [message.own_chars(policy.image_chars) for message in outline.messages]
        self.observation_chars = [result.text.chars(policy.image_chars) for result in outline.results]
        self.raw_chars = [message.chars(policy.image_chars) for message in outline.messages]
        self.given_costs = costs
        self.tokens = policy.tokens if costs is None else None
        if self.tokens is not None:
            self.costs = self._weighed()
        self.raw = Plan(kept=list(range(len(outline.messages))))
        self.failed: tuple[int, ...] = ()  # the requests at which no text of a summary arrived

    def _weighed(self) -> Costs:
        """The costs of what is weighed: the one table of what counts."""
        image_chars, (_, per_call) = self.policy.image_chars, self.tokens
        own, observations = [], []
        for message in self.outline.messages:
            itself = self._tokens(message.own_weight) + message.own.images * image_chars + len(message.calls) * per_call
            reasoning = self._tokens(sum(map(weight, message.reasoning))) + message.sealed_chars
            own.append((itself, reasoning * self.policy.counts_reasoning))
        for result in self.outline.results:
            raw = self._tokens(result.text.weight) + result.text.images * image_chars
            placeholder = fill(self.observation(result), self.policy, "0" * HANDLE_CHARS)
            observations.append((raw, self._tokens(weight(placeholder))))
        return own, observations

    def _tokens(self, weight: int) -> int:
        """Quarter tokens of texts that weigh so much."""
        return weight * self.tokens[0] // 1_000

    def _is_in_run(self, call: Call) -> bool:
        return self.outline.messages[call.message].is_agent_made

    def mask(self, result: Result) -> Masked | None:
        """Mask an observation; None if it stays."""
        if result.index in self.cleared:
            return None
        if is_reference(self, result):
            text = fill(self.observation(result), self.policy)
            return Masked((text,), text) if len(text) <= len(result.text.joined) else None
        return mask(self.observation(result), self.policy)

    def observation(self, result: Result) -> Observation:
        """What a placeholder may say of it."""
        text, tool, turn = result.text, self.tools[result.index] or "", self.turns[result.index]
        number, json = self.number_of(result), text.json.own_json if text.json else ""
        whole, added = self.given.results[result.index].text.joined or json, self._added_chars(result)
        return Observation(text.joined, text.images, turn, tool, result.id or "", number, text.json_chars, whole, added)

    def _added_chars(self, result: Result) -> int:
        """The chars around a text that replaces JSON."""
        shape = self.outline.messages[result.message].shape
        around = {"gemini": '{"output":""}', "converse": '[{"text":""}]'}
        return len(around.get(shape.name, '""')) if result.text.json and shape is not None else 0

    def number_of(self, result: Result) -> int:
        """Its number among all observations, from 1."""
        return result.index + 1

    def shown(self, plan: Plan) -> dict[int, Masked]:
        """What the view has in the place of observations: those that a plan masks, and what arrived as another text."""
        return dict(sorted({**self.arrived, **plan.masked}.items()))

    def removed_chars(self, masked: Mapping[int, Masked]) -> int:
        """The chars that these replacements of observations remove."""
        return sum(self.observation_chars[place] - one.chars for place, one in masked.items())

    def chars(self, plan: Plan) -> int:
        """The chars of the view."""
        kept = [self.outline.messages[index] for index in plan.kept]
        own = sum(plan.cut[one.index].chars if one.index in plan.cut else self.own_chars[one.index] for one in kept)
        raw = {result.index for message in kept for result in message.results}
        masked = {place: one for place, one in plan.masked.items() if place in raw}
        summary = 0 if plan.summary is None else len(plan.summary.text)
        if plan.own_chars is not None:
            return summary + plan.own_chars
        return summary + own + sum(self.observation_chars[place] for place in raw) - self.removed_chars(masked)

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
        own_cost += 0 if index in plan.unsigned else self.reasoning_cost(index)
        return own_cost + sum(self.observation_cost(place, plan.masked.get(place)) for place in places)

    def own_cost(self, index: int) -> int:
        """The cost of a message without its observations and its reasoning."""
        return self.own_chars[index] if self.costs is None else self.costs[0][index][0]

    def reasoning_cost(self, index: int) -> int:
        """The cost of the reasoning of a message, which counts to limits."""
        if self.costs is not None:
            return self.costs[0][index][1]
        message = self.outline.messages[index]
        chars = sum(map(len, message.reasoning)) + message.sealed_chars
        return chars if self.policy.counts_reasoning else 0

    def observation_cost(self, place: int, masked: Masked | None) -> int:
        """The cost of an observation, raw or replaced."""
        if masked is not None and masked.is_clipped:
            return self.text_cost(masked.text)
        if masked is not None and masked.source is not None:
            return self.observation_cost(masked.source, None)
        if self.costs is not None:
            return self.costs[1][place][masked is not None]
        return self.observation_chars[place] if masked is None else masked.chars

    def saved_cost(self, place: int, masked: Masked) -> int:
        """What replacing an observation saves."""
        return self.observation_cost(place, None) - self.observation_cost(place, masked)

    def text_cost(self, text: str) -> int:
        """The cost of a new text."""
        if self.costs is None:
            return len(text)
        if self.tokens is not None:
            return self._tokens(weight(text))
        if len(self.costs) == 2 or text not in self.costs[2]:
            raise Uncounted(text)
        return self.costs[2][text]

    def keeps_pairs(self, plan: Plan) -> bool:
        """The pair invariant: no stage adds an orphan, so only orphans of the input can break it."""
        return not self.policy.strict_pairs or set(self.pairs.orphans).isdisjoint(plan.kept)
