"""A summary of old turns, because it pays or is due.

To a turn belong the messages of its run, and those with a call made in it or a result of one; all others stay, and so
do turns without a result, with one that stays, or with anything besides: the user's words, what loads tools. A message
of several turns ties them, and so does a result that comes after a later turn has begun: they are hidden together or
not at all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from oracle.placeholder import Masked
from oracle.plan.cost_bound import Bill, again, charged, stays_cached
from oracle.plan.hide import Hiding, Standing
from oracle.plan.stay import first_in_window, for_good, in_own_window
from oracle.summary import leading_system_messages

if TYPE_CHECKING:
    from oracle.plan.boundary import Fold
    from oracle.plan.facts import Facts

Summaries = tuple[tuple[int, int] | None, tuple[float, float, float, float], int, tuple[int, int] | None]
"""Due by turns (how many for the first, and for each later one) or, None, when they pay; what a token costs to read
from the cache, to write to it, to be given to the model that summarizes, to be written by it; the turns that stay; the
characters of the model's summary and of its prompt (None: the built-in summary)."""


class Paying(NamedTuple):
    """What a request hides and masks, and what it costs to ask a model."""

    hiding: Hiding
    masked: dict[int, Masked]
    call: tuple[int, int]


def call_cost(rules: Summaries, call: tuple[int, int]) -> float:
    """What a model costs that is given so many characters, and writes so many."""
    return call[0] * rules[1][2] + call[1] * rules[1][3]


def summary_step(fold: Fold, bill: Bill | None, *, is_needed: bool = False) -> Paying | int:
    """The summary that this request makes: it pays, or a limit needs it; or the characters that it would have saved."""
    facts, end, before = fold.facts, fold.end, fold.hidden
    rules = facts.policy.summaries
    starts = [start for start in facts.runs.starts if start < end]
    reaches = None if rules is None else _reaches(fold, rules, len(starts))
    if reaches is None or reaches <= fold.reached or end in facts.failed:
        return 0
    known = facts.policy.summaries_at
    text = None if known is None else dict(known).get(end)
    if text is not None:
        reaches = min(reaches, sum(start < text for start in starts))
        if reaches <= fold.reached:
            return 0
    first = facts.runs.starts[fold.reached]
    hideable = _hideable(fold, reaches)
    so_far = _known(fold)
    turns = {index: _turns_of(facts, index, so_far) for index in range(first, facts.runs.starts[reaches])}
    hidden = {index for index, found in turns.items() if found and found <= hideable} - before.messages
    model = rules[3]
    share = facts.policy.summary_max_chars if model is None else model[0]
    replaced = before.share + sum(_view_chars(fold, index) for index in hidden)
    if share >= replaced:
        return 0
    if known is not None and text is None:
        return replaced - share
    # What stays of what the request before had sent is written again after the summary.
    place = _before_systems(fold, first, before.messages) if before.summary is None else before.summary.place
    sent = {index for index in range(place, fold.before) if index not in before.messages} - hidden
    written_again = share + sum(_view_chars(fold, index) for index in sent)
    untold = {index for index in before.messages.difference(*fold.told[-1:]) if index >= before.compacted}
    raw = sum(fold.raw(index + 1) - fold.raw(index) for index in hidden | untold)
    call = (0, 0) if model is None else (raw + before.share + model[1], model[0])
    chars = fold.shown(end) - replaced + share
    is_made = is_needed or (text is not None and end < len(facts.outline.messages))
    if not is_made and not _pays(fold, rules, bill, fold.summary_waste + replaced - share, written_again, chars, call):
        return replaced - share
    if not hidden:
        return 0
    gone = before.messages | hidden
    # Since all is written again, what is old is masked now.
    boundary = fold.rounded(fold.older_end)
    masked = {
        place: one
        for place, one in fold.waiting.items()
        if place < boundary and facts.outline.results[place].message not in hidden
    }
    place = next((index for index in range(min(min(hidden), place), end) if index not in gone), end)
    place = _before_systems(fold, place, gone)
    standing = Standing(place, share, end, frozenset(gone), before.compacted, is_needed)
    made = replace(before, messages=frozenset(gone), summary=standing)
    return Paying(Hiding(made, fold.cost_hiding(made, masked), is_needed), masked, call)


def reached(fold: Fold) -> int:
    """How many of the first turns are hidden, or stay at every request."""
    facts, stays = fold.facts, _staying(fold, for_good(fold.facts))
    gone = [start in fold.hidden.messages or turn in stays for turn, start in enumerate(facts.runs.starts, 1)]
    return [*gone, False][fold.reached :].index(False) + fold.reached


def _reaches(fold: Fold, rules: Summaries, turns: int) -> int | None:
    """How many turns a summary may stand for that is made after so many; None before the first is due."""
    by_turns, _, tail, _ = rules
    newest = turns - 1  # its results may still come
    if by_turns is not None:
        first, every = by_turns
        return None if turns < first else min(newest, first + (turns - first) // every * every - tail)
    first = first_in_window(fold.facts, fold.end)
    return min(newest, turns - tail, *[] if first is None else [fold.facts.turns[first] - 1])


def _pays(
    fold: Fold, rules: Summaries, bill: Bill | None, waste: int, written_again: int, chars: int, call: tuple[int, int]
) -> bool:
    """Whether what was sent without need has cost what a summary costs, and the bound on cost permits it."""
    by_turns, (read, write, *_), _, _ = rules
    if by_turns is not None:
        return True
    policy = fold.facts.policy
    rule, cached, written = policy.boundary
    if waste * read < written_again * (write - read) + call_cost(rules, call):
        return False
    if rule != "break_even" or policy.max_overcost is None or bill is None:
        return True
    view = charged(chars, 0)
    is_within = fold.is_within(view.and_written(again(policy.cache, 0, False)), bill.raw, cached, written, call)
    return is_within and stays_cached(policy.cache, bill.raw, view, policy.max_overcost, cached, written)


def _turns_of(facts: Facts, index: int, known: Known) -> set[int]:
    """The turns that a message belongs to; 0 is what comes before the first. An answer without results is of none."""
    message = facts.outline.messages[index]
    places = []
    for result in message.results:
        call = facts.pairs.call_of[result.index]
        places.append(index if call is None else call.message)
    places += facts.pairs.linked_before(index)
    turn = facts.runs.begun[index]
    if (message.is_agent_made or message.calls) and (places or turn == 0 or turn in known.answered):
        places.append(index)
    if index in known.replaced and turn in known.answered:
        places.append(index)
    return {facts.runs.begun[place] for place in places}


class Known(NamedTuple):
    """What has come so far."""

    answered: set[int]  # turns with a result
    replaced: set[int]  # system messages that a later one replaces: it says the same but for digits


def _known(fold: Fold) -> Known:
    facts, messages = fold.facts, fold.facts.outline.messages[: fold.end]
    calls = (facts.pairs.call_of[one.index] for one in facts.outline.results if one.message < fold.end)
    answered = {facts.runs.begun[call.message] for call in calls if call is not None}
    newest = {one.system_text: one.index for one in messages}
    texts = [(one.index, one.system_text) for one in messages if facts.runs.begun[one.index]]
    return Known(answered, {index for index, text in texts if text is not None and newest[text] > index})


def _hideable(fold: Fold, reaches: int) -> set[int]:
    """The turns that a summary may hide."""
    facts, known, ties = fold.facts, _known(fold), list[set[int]]()
    shown = (one for one in facts.outline.messages[: fold.end] if one.index not in fold.hidden.messages)
    for message in shown:
        found = _turns_of(facts, message.index, known)
        turns = found - {0}
        if not turns:
            continue
        last = math.inf if 0 in found else max(*turns, facts.runs.begun[message.index])
        ties.append({turn for turn in range(min(turns), len(facts.runs.starts) + 2) if turn <= last})
    stays = map(max, for_good(facts), in_own_window(facts, fold.end))
    hideable = set(range(fold.reached + 1, reaches + 1)) - _staying(fold, list(stays))
    while torn := [tie for tie in ties if tie & hideable and not tie <= hideable]:
        hideable = hideable.difference(*torn)
    return hideable


def _staying(fold: Fold, stays: list[bool]) -> set[int]:
    """The turns that stay: without a result, with one that stays, or with what keeps its turn."""
    facts, known = fold.facts, _known(fold)
    found = [
        _turns_of(facts, message.index, known)
        for message in facts.outline.messages[: fold.end]
        if message.keeps_turn or any(stays[result.index] for result in message.results)
    ]
    begun = set(range(1, facts.runs.begun[fold.end - 1] + 1)) if fold.end else set()
    return {min(turns) for turns in found if turns and 0 not in turns} | (begun - known.answered) | _interrupted(fold)


def _interrupted(fold: Fold) -> set[int]:
    """The turns right before a message of the user, if a system message has come: it would be right before that one."""
    facts, messages = fold.facts, fold.facts.outline.messages[: fold.end]
    systems = [one.index for one in messages[leading_system_messages(facts.outline) :] if one.is_system]
    return {
        facts.runs.begun[one.index]
        for one in messages
        if one.is_said and one.index > min(systems, default=fold.end) and not messages[one.index - 1].is_agent_made
    } - {0}


def _before_systems(fold: Fold, place: int, gone: set[int] | frozenset[int]) -> int:
    """The place before the system messages of the view that are right before it: these have to come after the user."""
    outline, first = fold.facts.outline, place
    for index in range(place - 1, leading_system_messages(outline) - 1, -1):
        if index in gone:
            continue
        if not outline.messages[index].is_system:
            break
        first = index
    return first


def _view_chars(fold: Fold, index: int) -> int:
    """What the view shows of a message."""
    own = fold.hidden.cut[index].chars if index in fold.hidden.cut else fold.facts.own_chars[index]
    shown = {**fold.references.restored, **fold.cuts, **fold.masked}
    results = fold.facts.outline.messages[index].results
    return own + sum(
        shown[one.index].chars if one.index in shown else fold.facts.observation_chars[one.index] for one in results
    )
