"""(messages, Plan) -> what changes -> messages. Unchanged messages are the caller's objects."""

from __future__ import annotations

from typing import Any

from oracle.marks import mark, marks_of
from oracle.outline import Result
from oracle.placeholder import Masked
from oracle.plan import Facts, Plan, pins
from oracle.reasoning import unsigned
from oracle.shape import PLAIN, Shape
from oracle.shape.words import MARKS
from oracle.value import GONE, Changed, Member, NewText
from oracle.walk import walk

Changes = dict[int | str, Changed]
"""The messages that change, by their places; and "tools" of the request body, where these lose their cache marks."""


def changes_of(facts: Facts, plan: Plan, messages: list[Any], body: dict[str, Any] | None = None) -> Changes:
    changes: Changes = {}
    shown = facts.shown(plan)
    for message in (facts.outline.messages[index] for index in plan.kept):
        change, shape = Changed(Member(messages, message.index)), message.shape or PLAIN
        texts = {
            result.block: NewText(shown[result.index], _source(facts, shown[result.index], result).text.pieces)
            for result in message.results
            if result.index in shown
        }
        if message.index in plan.cut:
            text = NewText(plan.cut[message.index], message.own.pieces)
            change.new[shape.field] = _cut(change.source.value[shape.field], shape, text)
        elif texts:
            shape.mask(change, texts)
        if change.new:
            changes[message.index] = change
    if plan.summary is not None and plan.summary.joins is not None:
        _join(changes, messages, plan.kept[plan.summary.joins], plan.summary.message)
    if facts.policy.pins_boundary and (changes or plan.unsigned):
        pinned = pins(facts, plan, marks_of(messages, body, facts.policy))
        if pinned is not None:
            mark(changes, messages, body, facts.policy, pinned)
    return changes


def _join(changes: Changes, messages: list[Any], index: int, summary: dict[str, Any]) -> None:
    """A message has the content of a summary as its last block."""
    [(field, [block])] = [*summary.items()][1:]
    change = changes.setdefault(index, Changed(Member(messages, index)))
    content = change.at(field)
    if isinstance(content, list):  # it was cut
        content.append(block)
    else:
        content.new[len(content.source.value)] = block


def _source(facts: Facts, shown: Masked, result: Result) -> Result:
    """The result that has the text."""
    return facts.given.results[result.index if shown.source is None else shown.source]


def _cut(content: Any, shape: Shape, text: NewText) -> Any:
    """The content of a message of the task: the first part with text has all text, images and unknown parts go."""
    parts = content if isinstance(content, list) else []
    first = {"text": ""} if shape.part_type is None else {"type": "text"}  # decides on the shape
    own = [walk([{"role": "user", shape.field: [first, part]}]).messages[0].own for part in parts]
    with_text = next((place for place, one in enumerate(own) if one.joined), None)
    if with_text is None:
        return shape.content(text)
    kept = [place for place, one in enumerate(own) if place == with_text or not one.chars(1)]
    lost = [
        Member(part, name) for place, part in enumerate(parts) for name in MARKS if name in part and place not in kept
    ]
    is_marked = any(name in parts[with_text] for name in MARKS)
    mark = {lost[-1].key: lost[-1]} if lost and not is_marked else {}
    changed = Changed(Member(parts, with_text), {**mark, "text": text})
    return [changed if place == with_text else Member(parts, place) for place in kept]


def apply(messages: list[Any], plan: Plan, changes: Changes) -> list[Any]:
    """The view; the input list if nothing changed."""
    if len(plan.kept) == len(messages) and plan.summary is None and not changes and not plan.unsigned:
        return messages
    view = [built(changes[index]) if index in changes else messages[index] for index in plan.kept]
    view = [unsigned(one) if index in plan.unsigned else one for index, one in zip(plan.kept, view, strict=True)]
    if plan.summary is not None and plan.summary.joins is None:
        view.insert(plan.summary.place, plan.summary.message)
    return view


def built(value: Any) -> Any:
    """The new value as plain objects."""
    if isinstance(value, NewText):
        return value.masked.text
    if isinstance(value, Member):
        return value.value
    if isinstance(value, Changed):
        source, new = value.source.value, {key: built(one) for key, one in value.new.items()}
        if isinstance(source, list):
            return [new.pop(place, one) for place, one in enumerate(source)] + [*new.values()]
        return {key: one for key, one in {**source, **new}.items() if one is not GONE}
    if isinstance(value, list):
        return [built(one) for one in value]
    return {key: built(one) for key, one in value.items()} if isinstance(value, dict) else value
