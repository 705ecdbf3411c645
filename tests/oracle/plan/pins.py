"""Cache marks of ours: which block of a view gets one, and which mark of the client gives way."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

from oracle.plan.boundary import remembers
from oracle.plan.facts import Facts, Plan
from oracle.plan.mask import boundaries

Block = tuple[int, int]
"""A message, and the place of a block in its content."""


class Marked(NamedTuple):
    """A block that has marks: its own, or those of its parts."""

    block: Block
    marks: int


class Marks(NamedTuple):
    """The marks of a request."""

    blocks: list[Marked]
    elsewhere: int  # outside of messages, those on tools included
    on_tools: int = 0  # where the system prompt has one as well, which covers them


class Pins(NamedTuple):
    """What a plan changes about marks."""

    added: list[tuple[Block, Block]]  # and the block whose oldest mark is copied
    removed: Block | None
    clears_tools: bool


def pins(facts: Facts, plan: Plan, marks: Marks) -> Pins | None:
    """The pins of a view; None if its marks stay as they are."""
    is_whole = len(plan.kept) == len(facts.outline.messages) and plan.summary is None and not plan.cut
    if not is_whole or not marks.blocks:
        return None
    most, lookback = facts.policy.cache.most_marks, facts.policy.cache.lookback_blocks
    blocks, replaced = _in_view(facts, plan, marks)
    total = marks.elsewhere + sum(one.marks for one in blocks)
    if total > most:
        return None
    messages = facts.outline.messages
    starts = list(accumulate((message.position_count for message in messages), initial=0))

    def position(block: Block) -> int:
        return starts[block[0]] + messages[block[0]].position(block[1])

    places = [one.block for one in blocks]
    before = _boundary_before(facts, plan)
    gone = [index for index, one in facts.shown(plan).items() if one.is_masked]
    sent = [index for index in gone if index < before]
    pin = _block(facts, max(sent, default=None))
    if pin is not None and (pin >= places[-1] or pin in places):
        pin = None
    carried = _carried(facts) if before == plan.boundary else None
    if carried is not None:
        is_found = any(carried <= one and position(one) - position(carried) < lookback for one in places)
        if carried >= places[-1] or is_found or carried == pin:
            carried = None

    if pin is not None and carried is not None and total + 2 > most:
        pin = None
    clears_tools, removed = False, None
    if total + (pin is not None) + (carried is not None) > most:
        # Those whose entry the next one finds as well.
        near = [
            one.block
            for one, newer in pairwise(blocks)
            if position(newer.block) - position(one.block) < lookback and one.block[0] not in replaced
        ]
        if marks.on_tools:
            clears_tools = True
        elif near:
            removed = near[0]
        else:
            return None
    # The value of the mark after it: entries that live longer come before others.
    stays = [one.block for one in blocks if one.block != removed]
    added = [(block, next(one for one in stays if one > block)) for block in (pin, carried) if block is not None]
    return Pins(added, removed, clears_tools) if added else None


def _in_view(facts: Facts, plan: Plan, marks: Marks) -> tuple[list[Marked], set[int]]:
    """The marks that are left in a view without pins: of those in a replaced observation the newest.

    Also the messages that are such an observation themselves, whose one part keeps its mark.
    """
    masked = [facts.outline.results[place] for place in facts.shown(plan)]
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


def _previous_request(facts: Facts) -> int:
    """Messages before the previous request; 0 if there was none."""
    messages = facts.outline.messages
    is_over = bool(messages) and messages[-1].is_agent_made
    earlier = facts.runs.starts[:-1] if is_over else facts.runs.starts
    return earlier[-1] if earlier else 0


def _boundary_before(facts: Facts, plan: Plan) -> int:
    """The boundary at the previous request."""
    if remembers(facts):
        return plan.boundary_before
    return boundaries(Facts(facts.given.beginning(_previous_request(facts)), facts.policy, None))[0]


def _carried(facts: Facts) -> Block | None:
    """The last block of the previous request, if that is a result."""
    messages = facts.outline.messages[: _previous_request(facts)]
    results = messages[-1].results if messages else []
    return _block(facts, results[-1].index) if results else None
