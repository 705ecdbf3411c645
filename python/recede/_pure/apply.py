"""(messages, Plan) -> messages. Messages that are unchanged are the caller's own objects."""

from __future__ import annotations

from typing import Any

from recede._pure.outline import Message, Outline
from recede._pure.placeholder import Masked
from recede._pure.plan import Plan


def apply(messages: list[Any], outline: Outline, plan: Plan) -> list[Any]:
    """The view; the input list itself where nothing changed."""
    if len(plan.kept) == len(messages) and plan.summary is None and not plan.masked:
        return messages
    view = [_masked_message(messages[index], outline.messages[index], plan.masked) for index in plan.kept]
    if plan.summary is not None:
        view.insert(plan.summary.place, plan.summary.message)
    return view


def _masked_message(source: dict[str, Any], message: Message, masked: dict[int, Masked]) -> dict[str, Any]:
    texts = {result.block: masked[result.index].text for result in message.results if result.index in masked}
    if not texts:
        return source
    assert message.shape is not None
    return message.shape.masked(source, texts)
