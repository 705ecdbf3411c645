"""What a view over its limit keeps, where masks and cuts are not enough; all else is hidden.

The keep set; shares for the task, for what the user has said since, and for a summary; and the newest units that fit
the rest. A summary counts as its share, whatever its text is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from oracle.clip import LEAST_CHARS, clip
from oracle.placeholder import Masked
from oracle.plan.facts import Facts
from oracle.plan.keep import joined, keep_set, units
from oracle.plan.stay import exempt
from oracle.plan.window import window_start
from oracle.summary import earlier_summaries, leading_system_messages, user_messages

if TYPE_CHECKING:
    from oracle.plan.boundary import Fold

_LEAST_TASK = 220
"""Minimum characters of the newest message of the task: a view must not begin with an answer of the model."""

_LEAST_SUMMARY, _LEAST_WEIGHED_SUMMARY = 30, 90
"""Shorter summaries would have little more than their first line: in characters or tokens, in weighed quarters."""

_PARTS = 4_000_000
"""Parts of a budget unit, in which shares are exact; the sum of rounded shares could grow faster than the budget."""


class Standing(NamedTuple):
    """A summary in a view."""

    place: int  # the message before which it stands
    share: int
    request: int  # messages before the request that made it
    told: frozenset[int]  # what was hidden then
    compacted: int  # of the messages before this one a compaction of the provider told then
    is_forced: bool = True  # a limit needed it


@dataclass(frozen=True)
class Hidden:
    """What a view does not show, and what stands for it."""

    messages: frozenset[int] = frozenset()
    cut: Mapping[int, Masked] = field(default_factory=dict)  # messages of the task
    cut_costs: Mapping[int, int] = field(default_factory=dict)
    summary: Standing | None = None
    compacted: int = 0  # of the messages before this one a compaction of the provider tells

    @property
    def is_cut_off(self) -> bool:
        """Whether it lacks messages of which no compaction tells."""
        return any(message >= self.compacted for message in self.messages)

    @property
    def share(self) -> int:
        return 0 if self.summary is None else self.summary.share

    def share_before(self, messages: int, end: int) -> int:
        """What the summary counts before a message."""
        is_before = self.summary is not None and (self.summary.place < messages or messages == end)
        return self.share if is_before else 0


class Hiding(NamedTuple):
    """What a request hides, and what the view costs then."""

    hidden: Hidden
    cost: int
    is_forced: bool = True  # by a limit


def compacted(fold: Fold) -> Hidden | None:
    """What is hidden once what the newest compaction of the provider stands for goes; None if it has gone.

    That is all before it but the system messages, what the user has said, and what is tied to later messages.
    """
    facts, before, end = fold.facts, fold.hidden, fold.end
    place = _newest_compaction(fold)
    if place <= before.compacted or facts.policy.goal != "reduce" or facts.policy.fill_millionths is None:
        return None
    ties = [{facts.outline.results[one].message for one in group} for group in fold.references.groups]
    kept = keep_set(facts, place, without=before.messages, end=end, ties=ties)
    kept |= {message.index for message in user_messages(facts.outline.beginning(end))}
    messages = before.messages | (set(range(place)) - kept)
    summary = before.summary if before.summary is not None and before.summary.request > place else None
    if summary is not None:
        first = next((index for index in range(summary.place, end) if index not in messages), end)
        summary = summary._replace(place=first)
    if messages == before.messages and summary == before.summary:
        return None
    return replace(before, messages=messages, summary=summary, compacted=place)


def _newest_compaction(fold: Fold) -> int:
    """Its message, of those that have come; 0 if there is none."""
    return max((one.index for one in fold.facts.outline.messages[: fold.end] if one.is_compaction), default=0)


def fixed_cost(fold: Fold) -> int:
    """The cost of what is shown and never hidden, as it arrived."""
    facts, view = fold.facts, replace(fold.facts.raw, masked=fold.references.restored)
    shown = [one for one in facts.outline.messages[: fold.end] if one.index not in fold.hidden.messages]
    costs, cuts = fold.hidden.cut_costs, fold.hidden.cut
    fixed = [one.index for one in shown if one.is_system or one.is_never_hidden]
    return sum(costs[index] if index in cuts else facts.message_cost(view, index) for index in fixed)


def hide(fold: Fold, changes: Mapping[int, Masked], limit: int) -> Hiding | None:
    """Hide messages of a view that these changes leave over its limit; None if nothing helps."""
    facts, policy, before = fold.facts, fold.facts.policy, fold.hidden
    outline, end, fill = facts.outline, fold.end, fold.facts.policy.fill_millionths
    if fill is None:
        return None
    here = outline.beginning(end)
    shown = [index for index in range(end) if index not in before.messages]
    earlier = [index for index in earlier_summaries(here) if index in shown]
    task = [index for index in _task_of(facts, end) if index in shown]
    apart = {*earlier, *task}
    masked = {**fold.masked, **{place: one for place, one in changes.items() if not one.is_clipped}}
    cuts = {**fold.cuts, **{place: one for place, one in changes.items() if one.is_clipped}}
    unsigned = fold.voided(changes, hides=True)
    view = replace(facts.raw, masked={**fold.references.restored, **cuts, **masked}, unsigned=unsigned)

    def cost(messages: Iterable[int]) -> int:
        return sum(
            before.cut_costs[index] if index in before.cut else facts.message_cost(view, index) for index in messages
        )

    answers = [index for index in range(end) if outline.messages[index].is_agent_made]
    first_unseen = answers[-1] + 1 if answers else 0
    unseen = [index for index in shown if index >= first_unseen]
    if policy.is_limit and cost(unseen) > limit:  # it is sent whole, the task and a summary too
        task, earlier = [index for index in task if index < first_unseen], [i for i in earlier if i < first_unseen]
        apart = {*earlier, *task}
    refused = apart | before.messages
    ties = [{outline.results[place].message for place in group} for group in fold.references.groups]

    def kept_from(start: int) -> set[int]:
        return keep_set(facts, start, without=refused, end=end, ties=ties)

    start = min([window_start(facts, end), *(unseen if policy.is_limit else [])], default=end)
    kept = kept_from(start)
    if policy.is_limit and _PARTS * cost(kept) > 4 * limit * fill:
        newest = max((index for index in shown if index not in apart), default=0)
        kept = kept_from(min([newest, *unseen]))

    # Shares, in parts of a unit.
    window_cost, task_cost = cost(kept), cost(task)
    least = min(_LEAST_TASK, cost(task[-1:]))
    of_task = min(2 * limit * min(fill, 500_000), _PARTS * (limit - window_cost))
    of_task = min(_PARTS * task_cost, max(_PARTS * least, of_task))
    of_summary = min(_PARTS * policy.summary_max_chars, limit * fill)
    room = 4 * limit * fill - _PARTS * window_cost - of_task - of_summary
    of_words = min(4 * limit * fill // 3, _PARTS * limit - _PARTS * window_cost - of_task - of_summary)
    newest = max((index for index in shown if outline.messages[index].is_compaction), default=0)
    room -= _keep_words(fold, kept, refused, of_words, cost, ties, newest)
    for unit in units(facts, without=kept | refused, end=end, ties=ties):
        if max(unit) < newest:
            break
        room -= _PARTS * cost(unit)
        if room < 0:
            break
        kept |= unit

    cut, cut_costs = _cut_task(fold, task, of_task // _PARTS, cost)
    task_kept = [index for index in task if index in cut]
    kept_cost = cost(kept) + sum(cut_costs[index] if index in cut_costs else cost([index]) for index in task_kept)
    drops = any(index not in kept and index not in apart for index in shown if index >= newest)
    kept.update(task_kept)
    share = min(of_summary, _PARTS * (limit - kept_cost)) // _PARTS
    full = fold.cost_with(changes)
    place = min((index for index in kept if index >= leading_system_messages(here)), default=end)
    summary: Standing | None
    least = _LEAST_SUMMARY if facts.tokens is None else _LEAST_WEIGHED_SUMMARY
    if drops and end not in facts.failed and share >= least and kept_cost + share < full:
        summary = Standing(place, share, end, before.messages | (set(shown) - kept), before.compacted)
    else:
        if len(earlier) == end or kept_cost + cost(earlier) <= limit:
            kept.update(earlier)
            kept_cost += cost(earlier)
        fits = before.summary is not None and kept_cost + before.share <= limit
        summary = before.summary._replace(place=place) if before.summary is not None and fits else None
    texts = {index: text for index, text in cut.items() if text is not None}
    hidden = Hidden(before.messages | (set(shown) - kept), texts, cut_costs, summary, before.compacted)
    is_same = hidden.messages == before.messages and dict(hidden.cut) == dict(before.cut) and summary == before.summary
    return None if is_same else Hiding(hidden, kept_cost + hidden.share)


def _keep_words(
    fold: Fold, kept: set[int], refused: set[int], share: int, cost: object, ties: list[set[int]], first: int
) -> int:
    """Keep what the user has said since, from this message on, as much as fits a share.

    What was sent goes before what is new, then the shortest first.

    Equal texts are kept once. Returns what it takes of the share.
    """
    facts, policy = fold.facts, fold.facts.policy
    if not policy.is_limit or share <= 0:
        return 0
    said = {message.index for message in user_messages(facts.outline)}
    own = {index: facts.outline.messages[index].own.joined for index in said}
    is_exempt = exempt(facts)
    words = [
        message.index
        for message in facts.outline.messages[first : fold.end]
        if (message.index in said or message.has_words_beside or any(is_exempt[one.index] for one in message.results))
        and message.index not in refused
    ]
    texts = {own[index] for index in words if index in kept and index in said}

    def unit_of(index: int) -> set[int]:
        return joined(facts, [index], refused, fold.end, ties)

    left = share
    order = sorted(
        (index >= fold.before, cost(unit_of(index)), -index)  # type: ignore[operator]
        for index in words
        if index not in kept
    )
    for _, _, negative in order:
        index = -negative
        if index in kept:
            continue
        unit = unit_of(index) - kept
        unit_cost = _PARTS * cost(unit)  # type: ignore[operator]
        if unit_cost > left or (len(unit) == 1 and own.get(index) in texts):
            continue
        if index in said:
            texts.add(own[index])
        kept |= unit
        left -= unit_cost
    return share - left


def _task_of(facts: Facts, end: int) -> list[int]:
    """The user messages before the first run; if there are none, the first one after it."""
    said = [message.index for message in user_messages(facts.outline.beginning(end))]
    starts = [start for start in facts.runs.starts if start < end]
    first_run = starts[0] if starts else end
    return [index for index in said if index < first_run] or said[:1]


def _cut_task(fold: Fold, task: list[int], share: int, cost: object) -> tuple[dict[int, Masked | None], dict[int, int]]:
    """The kept messages of the task, newest first: as they are (None), or cut to the rest of the share."""
    shown: dict[int, Masked | None] = {}
    costs: dict[int, int] = {}
    for index in reversed(task):
        size = cost([index])  # type: ignore[operator]
        text = fold.hidden.cut.get(index)
        if size > share:
            new = _cut(fold, index, size, share, _LEAST_TASK if index == task[-1] else 0)
            if new is None and index != task[-1]:
                break
            text = None if new is None else new[0]
            if new is not None:
                costs[index] = new[1]
        elif index in fold.hidden.cut:
            costs[index] = fold.hidden.cut_costs[index]
        shown[index] = text
        if size > share:
            break
        share -= size
    return shown, costs


def _cut(fold: Fold, index: int, cost: int, share: int, least: int) -> tuple[Masked, int] | None:
    """Cut a message of the task to a share, each of whose characters costs the same."""
    facts = fold.facts
    own, chars = facts.outline.messages[index].own, facts.own_chars[index]
    if not own.joined and not facts.outline.messages[index].blocks:
        return None  # it has no content
    before = fold.hidden.cut[index].chars if index in fold.hidden.cut else chars
    max_chars = max(least, before * share // max(1, cost))
    if not LEAST_CHARS <= max_chars < before:
        return None
    text = clip(own.joined, max_chars, chars - len(own.joined))
    return text, text.chars * cost // max(1, before)
