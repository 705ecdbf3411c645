"""What a `Masker` shows: `reduce` of the messages, or of dicts with the same facts, all of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from recede import _engine
from recede.masker import CallFacts, Facts, Mask, ResultFacts
from recede.reduction._planning import reduce_messages
from recede.reduction._policy import compiled, own_policy

__all__ = ["cold_masks", "cold_view", "masks_of_dicts", "names_an_orphan", "stand_ins"]

_BEFORE, _AFTER = "[observation masked — ", " chars]"
_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}


def cold_reduction(messages: list[Any], options: dict[str, Any], *, has_shape: bool) -> Any:
    """The reduction by a door that only masks. Facts have no shape, which would name a provider or take marks."""
    options = dict(options)
    own: dict[str, Any] = {"marks_elsewhere": options.pop("marks_elsewhere", 2)}
    unnamed = {} if has_shape else {"terms_by_shape": ()}
    policy = own_policy(_engine.engine, options, reduces=False, **own, **unnamed)
    return reduce_messages(policy, messages, {})


def cold_view(adapter: Any, messages: list[Any], options: dict[str, Any]) -> list[Any]:
    """The view; what is not masked is the given object."""
    if adapter is None:
        return list(cold_reduction(messages, options, has_shape=True).messages)
    view = list(messages)
    texts: dict[int, dict[int, str]] = {}
    for index, place, text in cold_masks(adapter, messages, options)[0]:
        texts.setdefault(index, {})[place] = text
    for index, masked in texts.items():
        view[index] = adapter.masked(messages[index], masked)
    return view


def cold_masks(adapter: Any, messages: list[Any], options: dict[str, Any]) -> tuple[list[Mask], int]:
    """The masked results, and the characters of the view."""
    if adapter is None:
        return masks_of_dicts(messages, options)
    return masks_of_dicts(stand_ins(adapter, messages), options, has_shape=False)


def masks_of_dicts(
    messages: list[dict[str, Any]], options: dict[str, Any], *, has_shape: bool = True
) -> tuple[list[Mask], int]:
    """The same for dicts. Stand-ins of the first messages are the first of the stand-ins."""
    reduction = cold_reduction(messages, options, has_shape=has_shape)
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
    """Dicts with the same facts, whose pairs all have ids; a result without a call has no name there."""
    all_facts = [Facts(*adapter.facts(message)) for message in messages]
    answers = _answers(all_facts)
    found = []
    for index, (message, facts) in enumerate(zip(messages, all_facts, strict=True)):
        blocks: list[dict[str, Any]] = [{"type": "text", "text": "x" * facts.chars}, *[_IMAGE] * facts.images]
        for place, call in enumerate(CallFacts(*call) for call in facts.calls):
            used = {"type": "tool_use", "id": f"{index} {place}", "name": call.name, "input": "x" * call.chars}
            blocks.append(used)
        for place, result in enumerate(ResultFacts(*result) for result in facts.results):
            text = _text_of(adapter, message, place, result)
            content = [{"type": "text", "text": text}, *[_IMAGE] * result.images] if result.images else text
            of_call = "{} {}".format(*(answers[index, place] or (f"orphan {index}", place)))
            block = {"type": "tool_result", "tool_use_id": of_call, "content": content, "is_error": result.is_error}
            blocks.append(block)
        role = facts.role if facts.role in ("system", "developer", "assistant", "model") else "user"
        found.append({"role": role, "content": blocks})
    return found


def names_an_orphan(adapter: Any, messages: list[Any]) -> bool:
    """Whether a result without a call has a name, which no dict could have."""
    all_facts = [Facts(*adapter.facts(message)) for message in messages]
    answers = _answers(all_facts)
    return any(call is None and all_facts[index].results[place][1] for (index, place), call in answers.items())


def _answers(all_facts: list[Facts]) -> dict[tuple[int, int], tuple[int, int] | None]:
    """The call of each result, both by message and place: the nearest one of its id, else an open one by place.

    Calls of one turn may share an id. Then the open ones of the result's tool come first, then any, by their places.
    """
    answers: dict[tuple[int, int], tuple[int, int] | None] = {}
    for index, facts in enumerate(all_facts):
        named = [
            (call[0], call[1], (at, place))
            for at, before in enumerate(all_facts[: index + 1])
            for place, call in enumerate(before.calls)
        ]
        nearest: dict[int, tuple[int, int]] = {}
        for place, result in enumerate(facts.results):
            same = [(tool, call) for id, tool, call in named if id == result[0] and result[0]]
            answers[index, place] = None
            if same:
                nearest[place] = same[-1][1]
                sharing = [one for one in same if _are_of_one_turn(all_facts, one[1][0], same[-1][1][0])]
                taken = {*answers.values()} if len(sharing) > 1 else set()
                answers[index, place] = _next_of(sharing, result[1], taken)
        for place, result in sorted(enumerate(facts.results), key=lambda one: one[1][0] is None):
            if answers[index, place] is None:
                found = _call_by_place(all_facts, index, ResultFacts(*result), {*answers.values()})
                answers[index, place] = found or nearest.get(place)
    return answers


def _are_of_one_turn(all_facts: list[Facts], one: int, other: int) -> bool:
    return one == other or all(facts.role in ("assistant", "model") for facts in all_facts[one : other + 1])


def _next_of(
    calls: list[tuple[str | None, tuple[int, int]]], tool: str | None, answered: Collection[tuple[int, int] | None]
) -> tuple[int, int] | None:
    """Of calls of one turn the next open one: of the last message the first; those of the tool come first."""
    is_open = [(tool not in (None, name), -call[0], call[1], call) for name, call in calls if call not in answered]
    return min(is_open)[-1] if is_open else None


def _call_by_place(
    all_facts: list[Facts], index: int, result: ResultFacts, answered: Collection[tuple[int, int] | None]
) -> tuple[int, int] | None:
    """An open call of the tool of a result, in the run and results before it: without an id, of the last message."""
    first = index
    while first > 0 and all_facts[first - 1].results:
        first -= 1
    while first > 0 and all_facts[first - 1].role in ("assistant", "model"):
        first -= 1
    fitting = [
        (call.id is not None, -before, place)
        for before in range(first, index)
        for place, call in enumerate(CallFacts(*call) for call in all_facts[before].calls)
        if (before, place) not in answered and None in (call.id, result.id) and result.name in (None, call.name)
    ]
    if not fitting:
        return None
    _, before, place = min(fitting)
    return -before, place


def _text_of(adapter: Any, message: Any, place: int, result: ResultFacts) -> str:
    if result.pinned:  # no placeholder is masked
        return _BEFORE + "0" * (result.chars - len(_BEFORE + _AFTER)) + _AFTER
    if hasattr(adapter, "text"):
        text: str = adapter.text(message, place)
        return text
    return "\n" * (result.lines - 1) + "x" * (result.chars - result.lines + 1)
