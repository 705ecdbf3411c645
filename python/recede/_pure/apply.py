"""(messages, Plan) -> messages. Unchanged messages are the caller's objects."""

from __future__ import annotations

from typing import Any

from recede._pure.outline import Message, Outline
from recede._pure.plan import Plan
from recede._pure.shape import PLAIN
from recede._pure.shape.words import marked


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
        shown = shape.summary(source["role"], plan.cut[message.index].text)
        if isinstance(shown.get("content"), str):
            shown["content"] = marked(shown["content"], source["content"], "text")
        return {**source, **shown}
    masked = plan.masked
    texts = {result.block: masked[result.index].text for result in message.results if result.index in masked}
    return shape.masked(source, texts) if texts else source
