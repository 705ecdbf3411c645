"""(messages, Plan) -> messages. Unchanged messages are the caller's objects."""

from __future__ import annotations

from typing import Any

from recede._pure.clip import Part, cut_parts
from recede._pure.outline import Message, Outline
from recede._pure.plan import Plan
from recede._pure.shape import PLAIN, Shape
from recede._pure.shape.words import MARK
from recede._pure.walk import walk


def apply(messages: list[Any], outline: Outline, plan: Plan) -> list[Any]:
    """The view; the input list if nothing changed."""
    if len(plan.kept) == len(messages) and plan.summary is None and not plan.masked and not plan.cut:
        return messages
    view = [_shown(messages[index], outline.messages[index], plan) for index in plan.kept]
    if plan.summary is not None:
        view.insert(plan.summary.place, plan.summary.message)
    return view


def _shown(source: dict[str, Any], message: Message, plan: Plan) -> dict[str, Any]:
    shape = message.shape or PLAIN
    if message.index in plan.cut:
        return _cut(source, shape, plan.cut[message.index].text)
    masked = plan.masked
    texts = {result.block: masked[result.index].text for result in message.results if result.index in masked}
    return shape.masked(source, texts) if texts else source


def _cut(source: dict[str, Any], shape: Shape, text: str) -> dict[str, Any]:
    """A message of the task with its text cut, and without images."""
    content = source[shape.field]
    cut = cut_parts(parts_of(content, shape)) if isinstance(content, list) else None
    if cut is None:
        return {**source, **shape.summary(source["role"], text)}
    mark = {} if cut.mark_of is None else {MARK: content[cut.mark_of][MARK]}
    parts = [{**content[place], "text": text, **mark} if place == cut.text else content[place] for place in cut.kept]
    return {**source, shape.field: parts}


def parts_of(content: list[dict[str, Any]], shape: Shape) -> list[Part]:
    """The facts of each part."""
    found = []
    first = {"type" if shape.text_frame == ("", "") else "text": ""}  # decides on the shape
    for part in content:
        own = walk([{"role": "user", shape.field: [first, part]}]).messages[0].own
        found.append(Part(own.joined != "", own.images > 0, MARK in part))
    return found
