"""The engine in plain Python: the same answers as the Rust core, written to be read.

bytes --scan--.                                              .--> splice --> bytes
dicts --------+--> walk --> Outline --> pairs, turns, plan --+--> apply ---> dicts
                                                             `--> report

Sessions, managers of turns, replays and stores are the core's alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from oracle.apply import apply, changes_of
from oracle.outline import Outline
from oracle.pairs import findings
from oracle.pairs import repairs as _repairs
from oracle.placeholder import Observation, mask
from oracle.plan import Costs, Facts, Given, Plan, make_plan
from oracle.policy import Policy
from oracle.report import report, texts_of
from oracle.scan import scan
from oracle.size import weight
from oracle.splice import splice
from oracle.walk import walk
from recede import _core
from recede._report import Finding, JsonReduction, Reduction
from recede.reduction._exchange import CountRequest, MessageTexts, Repair, SummaryRequest
from recede.reduction._unrecognized import warn

__all__ = [
    "Policy",
    "check_pairs",
    "count_chars",
    "fields",
    "is_unrecognized",
    "mask_observation",
    "masked_message",
    "reduce",
    "reduce_json",
    "repaired",
    "repairs",
    "texts",
    "weight",
]


def reduce(
    messages: list[Any], policy: Policy, costs: Costs | None = None, summary: Given = None, texts: object = None
) -> Reduction | SummaryRequest | CountRequest:
    outline = walk(messages)
    if costs is not None and (len(costs[0]), len(costs[1])) != (len(outline.messages), len(outline.results)):
        raise RuntimeError(
            "the messages were changed while their tokens were counted: a token_counter and other threads must leave "
            "them as they are until the call returns"
        )
    facts = Facts(outline, policy, costs)
    plan = make_plan(facts, summary)
    if not isinstance(plan, Plan):
        return plan
    _warn(messages, outline, policy)
    view = apply(messages, plan, changes_of(facts, plan, messages))
    return Reduction(messages=view, **report(facts, plan))


def reduce_json(
    data: bytes,
    surrogates: bool,
    policy: Policy,
    costs: Costs | None = None,
    summary: Given = None,
    of_model: Callable[..., Policy] | None = None,
    texts: object = None,
) -> JsonReduction | SummaryRequest | CountRequest:
    """The same for bytes; dropped messages are given by their spans. A request may name a model, with a policy."""
    messages, body = scan(data, surrogates=surrogates)
    if of_model is not None and isinstance(model := (body or {}).get("model"), str):
        policy = of_model(model=model)
    outline = walk(messages)
    facts = Facts(outline, policy, costs)
    plan = make_plan(facts, summary)
    if isinstance(plan, SummaryRequest):
        return plan._replace(dropped=[messages.spans[index] for index in plan.dropped])
    if isinstance(plan, CountRequest):
        return plan
    _warn(data, outline, policy)
    view = splice(data, messages, plan, changes_of(facts, plan, messages, body))
    return JsonReduction(messages=None, json=view, **report(facts, plan))


def _warn(history: Any, outline: Outline, policy: Policy) -> None:
    """Warn once of what is not understood."""
    types = {message.type or "" for message in outline.unread if message.results}
    roles = {message.role for message in outline.messages if message.is_of_unknown_role}
    if not policy.is_off and (outline.unread or roles or outline.is_unrecognized):
        warn(history, outline.is_unrecognized, sorted(types)[:12], sorted(roles)[:12])


def texts(messages: list[Any], policy: Policy, *, whole: bool = True) -> list[MessageTexts]:
    """What a token counter counts of each message, all of it."""
    return texts_of(Facts(walk(messages), policy, None))


def masked_message(message: dict[str, Any], texts: list[tuple[int, str]], drops_reasoning: bool = False) -> Any:
    """That of the core, which tells adapters and logs whether a message has signed reasoning."""
    return _core.masked_message(message, texts, drops_reasoning)


def check_pairs(history: list[Any] | bytes, surrogates: bool = False) -> list[Finding]:
    """The faults of the pairs."""
    return findings(_outline(history, surrogates))


def repairs(messages: list[Any]) -> list[Repair]:
    """The repairs of orphans, by place in the input."""
    return _repairs(messages, walk(messages))


def repaired(data: bytes, surrogates: bool) -> bytes:
    """That of the core: the dicts of it are compared with those that `repairs` gives."""
    return _core.repaired(data, surrogates)


def count_chars(history: list[Any] | bytes, image_chars: int, surrogates: bool = False) -> int:
    return _outline(history, surrogates).chars(image_chars)


def is_unrecognized(history: list[Any] | bytes, surrogates: bool = False) -> bool:
    return _outline(history, surrogates).is_unrecognized


def _outline(history: list[Any] | bytes, surrogates: bool) -> Outline:
    return walk(scan(history, surrogates=surrogates)[0] if isinstance(history, bytes) else history)


def fields(data: bytes, surrogates: bool, names: list[str]) -> list[bytes | None]:
    """The values of these fields of a request."""
    body = json.loads(data.decode("utf-8", "surrogatepass"))
    values = body if isinstance(body, dict) else {}
    return [json.dumps(values[name]).encode() if name in values else None for name in names]


def mask_observation(text: str, policy: Policy) -> str:
    masked = mask(Observation(text), policy)
    return text if masked is None else masked.text
