"""What a `Masker` shows: `mask_observations` of the messages, or of dicts with the same facts, all of them."""

from __future__ import annotations

from typing import Any

from recede import _engine, mask_observations
from recede.masker import CallFacts, Facts, Mask, ResultFacts
from recede.reduction._policy import compiled

__all__ = ["cold_masks", "cold_options", "cold_view", "observations_of"]

_BEFORE, _AFTER = "[observation masked — ", " chars]"
_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}


def cold_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a `Masker` as `mask_observations` takes them."""
    given = {"keep": 10, **options}
    if given.get("mask_chunk") is None:
        given.setdefault("boundary", "break_even")
    return {**{name: given[name] for name in given if name != "keep"}, "keep_results": given["keep"]}


def cold_view(adapter: Any, messages: list[Any], options: dict[str, Any]) -> list[Any]:
    """The view; what is not masked is the given object."""
    if adapter is None:
        return list(mask_observations(messages, **cold_options(options)).messages)
    view = list(messages)
    texts: dict[int, dict[int, str]] = {}
    for index, place, text in cold_masks(adapter, messages, options)[0]:
        texts.setdefault(index, {})[place] = text
    for index, masked in texts.items():
        view[index] = adapter.masked(messages[index], masked)
    return view


def cold_masks(adapter: Any, messages: list[Any], options: dict[str, Any]) -> tuple[list[Mask], int]:
    """The masked results, and the characters of the view."""
    if adapter is not None:
        messages = stand_ins(adapter, messages)
    reduction = mask_observations(messages, **cold_options(options))
    masks = []
    for index, (message, shown) in enumerate(zip(messages, reduction.messages, strict=True)):
        if shown is not message:
            pairs = enumerate(zip(observations_of(message), observations_of(shown), strict=True))
            masks += [Mask(index, place, text) for place, (raw, text) in pairs if text != raw]
    return masks, reduction.chars_after


def observations_of(message: dict[str, Any]) -> list[str]:
    """The texts of a message's results."""
    engine = _engine.engine
    (texts,) = engine.texts([message], compiled(engine, "truncate", {}))
    return [observation.text for observation in texts.observations]


def stand_ins(adapter: Any, messages: list[Any]) -> list[dict[str, Any]]:
    """Dicts with the same facts, whose pairs all have ids."""
    all_facts = [Facts(*adapter.facts(message)) for message in messages]
    calls = [
        [CallFacts(*call)._replace(id=call[0] or f"call {index} {place}") for place, call in enumerate(facts.calls)]
        for index, facts in enumerate(all_facts)
    ]
    answered: set[str | None] = set()
    found = []
    for index, (message, facts) in enumerate(zip(messages, all_facts, strict=True)):
        results = [ResultFacts(*result) for result in facts.results]
        known = {call.id for of_message in calls[: index + 1] for call in of_message}
        ids = [result.id if result.id in known else None for result in results]
        answered.update(ids)
        for place, result in enumerate(results):
            if ids[place] is None:
                ids[place] = _call_by_place(all_facts, calls, index, result, answered) or f"orphan {index} {place}"
                answered.add(ids[place])
        blocks: list[dict[str, Any]] = [{"type": "text", "text": "x" * facts.chars}, *[_IMAGE] * facts.images]
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": "x" * call.chars} for call in calls[index]
        ]
        for place, (result, of_call) in enumerate(zip(results, ids, strict=True)):
            text = _text_of(adapter, message, place, result)
            content = [{"type": "text", "text": text}, *[_IMAGE] * result.images] if result.images else text
            block = {"type": "tool_result", "tool_use_id": of_call, "content": content, "is_error": result.is_error}
            blocks.append(block)
        role = facts.role if facts.role in ("system", "developer", "assistant", "model") else "user"
        found.append({"role": role, "content": blocks})
    return found


def _call_by_place(
    facts: list[Facts], calls: list[list[CallFacts]], index: int, result: ResultFacts, answered: set[str | None]
) -> str | None:
    """Of the run and the messages with results before a result, the last message with an open call of its tool."""
    first = index
    while first > 0 and facts[first - 1].results:
        first -= 1
    while first > 0 and facts[first - 1].role in ("assistant", "model"):
        first -= 1
    for before in reversed(range(first, index)):
        for call, given in zip(calls[before], facts[before].calls, strict=True):
            is_open = call.id not in answered and None in (given[0], result.id)
            if is_open and result.name in (None, call.name):
                return call.id
    return None


def _text_of(adapter: Any, message: Any, place: int, result: ResultFacts) -> str:
    if result.pinned:  # no placeholder is masked
        return _BEFORE + "0" * (result.chars - len(_BEFORE + _AFTER)) + _AFTER
    if hasattr(adapter, "text"):
        text: str = adapter.text(message, place)
        return text
    return "\n" * (result.lines - 1) + "x" * (result.chars - result.lines + 1)
