"""What the rules of all providers share: a refusal, a register of rules, and what a provider does with a request."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

Body = dict[str, Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])

RULES: dict[str, Callable[..., Any]] = {}
"""Each rule by its module and name; docs/provider-rules.md has a row for each."""

CHECKS: dict[str, list[Callable[..., Any]]] = {}
"""The rules that each request of a provider is held against, in order."""

LATER = "later_"
"""Blocks and items whose type begins so play what a provider adds after today: it accepts them."""


class RefusedError(Exception):
    """A request that a provider answers with 400."""


class Account(NamedTuple):
    """Who asks: accounts made since 2026-08-31 have their thinking checked unless a request says otherwise."""

    is_new: bool = False
    name: str = "org"


OLD, NEW = Account(), Account(is_new=True)


@dataclass
class Taken:
    """What a provider does with a request.

    Attributes:
        fault: the words of its 400, if it refuses.
        dropped: its report of what it took out of the input (`input_transformations`).
        refusal: the category of a refusal that is an answer, and is billed.
        tokens: the input that it bills.
    """

    fault: str | None = None
    dropped: list[Body] = field(default_factory=list)
    refusal: str | None = None
    tokens: int = 0


def rule(function: _Function) -> _Function:
    """Register a rule of a provider under the names of its module and its own."""
    RULES[f"{_provider_of(function)}.{function.__name__}"] = function
    return function


def check(function: _Function) -> _Function:
    """Register a rule, and hold each request of the provider against it."""
    CHECKS.setdefault(_provider_of(function), []).append(function)
    return rule(function)


def _provider_of(function: Callable[..., Any]) -> str:
    return function.__module__.split(".")[1]


def held(provider: str, begin: Callable[[], Any], tokens: Callable[[Any], int]) -> Taken:
    """What a provider does with a request: it refuses by the first check that raises, or takes it."""
    try:
        request = begin()
        refusals = [said for one in CHECKS[provider] if (said := one(request))]
        return Taken(None, request.dropped, refusals[0] if refusals else None, tokens(request))
    except RefusedError as refused:
        return Taken(str(refused))


def demand(fact: Any, words: str) -> None:
    if not fact:
        raise RefusedError(words)


def version(model: str, family: str) -> tuple[int, int] | None:
    """The version in the name of a model of this family: `claude-opus-4-5-20251101` has (4, 5); None of another."""
    found = re.search(rf"{family}-(\d{{1,2}})(?:[-.](\d{{1,2}}))?(?!\d)", model)
    return (int(found[1]), int(found[2] or 0)) if found else None


def tokens_of(value: Any) -> int:
    """Tokens of a value, at four characters each; keys and signatures are none."""
    if isinstance(value, str):
        return len(value) // 4
    if isinstance(value, dict):
        unseen = ("type", "id", "role", "signature", "cache_control", "tool_use_id", "call_id", "tool_call_id")
        return sum(tokens_of(one) for name, one in value.items() if name not in unseen)
    return sum(map(tokens_of, value)) if isinstance(value, list) else 0
