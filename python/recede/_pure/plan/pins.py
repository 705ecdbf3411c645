"""Cache marks of ours: which block of a view gets one, and which mark of the client gives way."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

from recede._pure.plan.boundary import remembers
from recede._pure.plan.facts import Facts, Plan
from recede._pure.plan.mask import boundaries
from recede._pure.policy import LOOKBACK_BLOCKS

_MOST_MARKS = 4  # in a request

Block = tuple[int, int]
"""A message, and the place of a block in its content."""


class Marked(NamedTuple):
    """A block that has marks: its own, or those of its parts."""

    block: Block
    marks: int


@dataclass(slots=True)
class Marks:
    """The marks of a request."""

    blocks: list[Marked] = field(default_factory=list)
    elsewhere: int = 0  # outside of messages, those on tools included
    on_tools: int = 0  # where the system prompt has one as well, which covers them


@dataclass(slots=True)
class Pins:
    """What a plan changes about marks."""

    added: list[tuple[Block, Marked]]  # and the block whose mark is copied
    removed: list[Marked]
    clears_tools: bool


def pins(facts: Facts, plan: Plan, marks: Marks) -> Pins | None:
    """The pins of a view; None if its marks stay as they are."""
    is_whole = len(plan.kept) == len(facts.outline.messages) and plan.summary is None and not plan.cut
    if not facts.policy.pins_boundary or not is_whole or not plan.masked or not marks.blocks:
        return None
    blocks, replaced = _in_view(facts, plan, marks)
    total = marks.elsewhere + sum(one.marks for one in blocks)
    if total > _MOST_MARKS:
        return None
    starts = list(accumulate((message.block_count for message in facts.outline.messages), initial=0))

    def place(block: Block) -> int:
        return starts[block[0]] + block[1]

    newest, places = place(blocks[-1].block), {place(one.block) for one in blocks}
    before = _boundary_before(facts, plan)
    sent = [index for index, one in plan.masked.items() if not one.is_clipped and index < min(before, plan.boundary)]
    pin = _block(facts, max(sent, default=None))
    if pin is not None and (place(pin) >= newest or place(pin) in places):
        pin = None
    carried = _carried(facts)
    if carried is not None:
        deepest = place(carried)
        is_found = any(deepest <= one < deepest + LOOKBACK_BLOCKS for one in places)
        if before != plan.boundary or deepest >= newest or is_found or carried == pin:
            carried = None
    stays, removed, clears_tools = list(blocks), [], False
    total += (pin is not None) + (carried is not None)
    while total > _MOST_MARKS:
        # Those whose entry the next one finds as well.
        near = [
            one
            for one, newer in pairwise(stays)
            if place(newer.block) - place(one.block) < LOOKBACK_BLOCKS and one.block[0] not in replaced
        ]
        if carried is not None and pin is not None:
            pin = None
            total -= 1
        elif marks.on_tools and not clears_tools:
            clears_tools = True
            total -= marks.on_tools
        elif near:
            stays.remove(near[0])
            removed.append(near[0])
            total -= near[0].marks
        else:
            pin = carried = None
            total -= 1
    # The value of the mark after it: entries that live longer come before others.
    added = [
        (block, next(one for one in stays if place(one.block) > place(block)))
        for block in (pin, carried)
        if block is not None
    ]
    return Pins(added, removed, clears_tools) if added else None


def _in_view(facts: Facts, plan: Plan, marks: Marks) -> tuple[list[Marked], set[int]]:
    """The marks that are left in a view without pins: of those in a replaced observation the newest.

    Also the messages that are such an observation themselves, whose one part keeps its mark.
    """
    masked = [facts.outline.results[place] for place in plan.masked]
    replaced = {result.message for result in masked if not result.shape.results_are_blocks}
    newest = {block[0]: block for block, _ in marks.blocks}
    kept = [one for one in marks.blocks if one.block[0] not in replaced or one.block == newest[one.block[0]]]
    alone = {(result.message, result.block) for result in masked} | {newest[one] for one in replaced & newest.keys()}
    return [Marked(one.block, 1) if one.block in alone else one for one in kept], replaced


def _block(facts: Facts, result: int | None) -> Block | None:
    if result is None:
        return None
    found = facts.outline.results[result]
    return (found.message, found.block) if found.shape.name == "anthropic" else None


def _requests(facts: Facts) -> list[int]:
    """Messages before each request."""
    messages = facts.outline.messages
    is_over = bool(messages) and messages[-1].is_agent_made
    return [*facts.runs.starts] if is_over else [*facts.runs.starts, len(messages)]


def _boundary_before(facts: Facts, plan: Plan) -> int:
    """The boundary at the previous request."""
    if remembers(facts):
        return plan.boundary_before
    requests = _requests(facts)
    sent = facts.outline.beginning(requests[-2] if len(requests) > 1 else 0)
    return boundaries(Facts(sent, facts.policy, None))[0]


def _carried(facts: Facts) -> Block | None:
    """The last block of the previous request, if that is a result."""
    requests = _requests(facts)
    if len(requests) < 2 or requests[-2] == 0:
        return None
    results = facts.outline.messages[requests[-2] - 1].results
    return _block(facts, results[-1].index) if results else None
