"""Which results are masked, planned from the beginning at each call."""

from __future__ import annotations

from typing import Any

from recede import _engine
from recede.masker._facts import CallFacts, Facts, ResultFacts
from recede.reduction._masks import Mask
from recede.reduction._policy import compiled
from recede.reduction._stages import mask_observations

__all__ = ["cold_masks", "observations_of"]

_PINNED = "a pinned result"


def cold_masks(adapter: Any, messages: list[Any], options: dict[str, Any]) -> tuple[list[Mask], int]:
    """The masks of `mask_observations` for messages or of dicts in their place; and the characters of the view."""
    if adapter is not None:
        messages = _as_dicts(adapter, messages)
        options = {**options, "exclude_tools": [*options.get("exclude_tools", ()), _PINNED]}
    reduction = mask_observations(messages, **options)
    masks = []
    for index, (message, shown) in enumerate(zip(messages, reduction.messages, strict=True)):
        if shown is not message:
            before, after = observations_of(message), observations_of(shown)
            pairs = enumerate(zip(before, after, strict=True))
            masks += [Mask(index, place, text) for place, (raw, text) in pairs if text != raw]
    return masks, reduction.chars_after


def observations_of(message: dict[str, Any]) -> list[str]:
    """The texts of a message's results."""
    engine = _engine.engine
    (texts,) = engine.texts([message], compiled(engine, "truncate", {}))
    return [observation.text for observation in texts.observations]


def _as_dicts(adapter: Any, messages: list[Any]) -> list[dict[str, Any]]:
    """Messages with the same facts, in which all ids are known."""
    stand_ins: list[dict[str, Any]] = []
    open_calls: list[tuple[str, CallFacts]] = []
    by_id: dict[str, CallFacts] = {}
    number = 0
    for message in messages:
        facts = Facts(*adapter.facts(message))
        blocks: list[dict[str, Any]] = [{"type": "text", "text": "x" * facts.chars}]
        blocks += [_image()] * facts.images
        for call in (CallFacts(*call) for call in facts.calls):
            number += 1
            name = call.id or f"call without id {number}"
            open_calls.append((name, call))
            by_id[name] = call
            blocks.append({"type": "tool_use", "id": name, "name": call.name, "input": "x" * call.chars})
        for place, result in enumerate(ResultFacts(*result) for result in facts.results):
            of_call = result.id if result.id in by_id else None
            if of_call is None:
                names = (one for one, call in open_calls if result.name in (None, call.name))
                of_call = next(names, f"result {len(stand_ins)} {place}")
            open_calls = [one for one in open_calls if one[0] != of_call]
            text = _text_of(adapter, message, place, result)
            content = [{"type": "text", "text": text}, *[_image()] * result.images] if result.images else text
            blocks.append(
                {"type": "tool_result", "tool_use_id": of_call, "content": content, "is_error": result.is_error}
            )
        role = facts.role if facts.role in ("system", "developer", "assistant", "model") else "user"
        stand_ins.append({"role": role, "content": blocks})
    return stand_ins


def _text_of(adapter: Any, message: Any, place: int, result: ResultFacts) -> str:
    if hasattr(adapter, "text"):
        text: str = adapter.text(message, place)
        return text
    return "\n" * (result.lines - 1) + "x" * (result.chars - result.lines + 1)


def _image() -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
