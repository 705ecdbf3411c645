"""Sessions in the forms of clients, and what they cost where a cache is played by the rules of its provider."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

from caching_provider import RULES, CachingProvider, Rule

import recede

Turn = tuple[int, list[int], float]
"""Characters of an answer, those of the results of its calls, and the seconds until the next request."""
Body = dict[str, Any]


class Row(NamedTuple):
    """A provider, and the rule by which its cache is played; none: that of marks."""

    provider: recede.Provider
    rule: Rule | None


def of_rule(name: str, read: float, write: float = 1.0) -> Row:
    rule = RULES[name]
    ttl_seconds = None if math.isinf(rule.ttl_seconds) else rule.ttl_seconds
    provider = recede.Provider(
        name,
        cache=rule.kind,  # type: ignore[arg-type]
        read=read,
        write=write,
        min_tokens=rule.least or None,
        step_tokens=rule.step if rule.step > 1 else None,
        ttl_seconds=ttl_seconds,
        shares_prefixes=rule.shares_prefixes,
    )
    return Row(provider, rule)


def chat(turns: list[Turn], tool_chars: int) -> Body:
    messages: list[Any] = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Go on."}]
    for number, (said, observed, _) in enumerate(turns):
        ids = [f"{number}.{place}" for place in range(len(observed))]
        calls = [{"id": one, "type": "function", "function": {"name": "run", "arguments": "{}"}} for one in ids]
        messages.append({"role": "assistant", "content": "y" * said, **({"tool_calls": calls} if calls else {})})
        messages += [
            {"role": "tool", "tool_call_id": one, "content": "x" * chars}
            for one, chars in zip(ids, observed, strict=True)
        ]
        messages += [] if calls else [{"role": "user", "content": "Go on."}]
    return {"tools": [{"description": "d" * tool_chars}], "messages": messages}


def responses(turns: list[Turn], tool_chars: int) -> Body:
    items: list[Any] = [{"role": "user", "content": "Find the bug."}]
    for number, (said, observed, _) in enumerate(turns):
        items.append({"role": "assistant", "content": [{"type": "output_text", "text": "y" * said}]})
        ids = [f"{number}.{place}" for place in range(len(observed))]
        items += [{"type": "function_call", "call_id": one, "name": "run", "arguments": "{}"} for one in ids]
        items += [
            {"type": "function_call_output", "call_id": one, "output": "x" * chars}
            for one, chars in zip(ids, observed, strict=True)
        ]
        items += [] if ids else [{"role": "user", "content": "Go on."}]
    return {"store": False, "tools": [{"description": "d" * tool_chars}], "input": items}


def blocks(turns: list[Turn], tool_chars: int, **fields: Any) -> Body:
    """In Anthropic's form; `fields` may be for automatic caching."""
    messages: list[Any] = [{"role": "user", "content": "Find the bug."}]
    for number, (said, observed, _) in enumerate(turns):
        ids = [f"{number}.{place}" for place in range(len(observed))]
        calls = [{"type": "tool_use", "id": one, "name": "run", "input": {}} for one in ids]
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "y" * said + "."}, *calls]})
        results = [
            {"type": "tool_result", "tool_use_id": one, "content": "x" * chars}
            for one, chars in zip(ids, observed, strict=True)
        ]
        messages.append({"role": "user", "content": results or [{"type": "text", "text": "Go on."}]})
    system = [{"type": "text", "text": "s" * tool_chars + ".", **fields}]
    return {"model": "m", **fields, "system": system, "messages": messages}


automatic = partial(blocks, cache_control={"type": "ephemeral"})


def bodies_of(whole: Body) -> list[Body]:
    """The requests of a session."""
    key = "input" if "input" in whole else "messages"
    is_made = [one.get("role") == "assistant" or one.get("type") == "function_call" for one in whole[key]] + [True]
    ends = [end for end in range(1, len(is_made)) if is_made[end] and not is_made[end - 1]]
    return [{**whole, key: whole[key][:end]} for end in ends]


def paid(row: Row, bodies: list[Body], seconds: list[float]) -> list[float]:
    """What all requests so far cost, after each."""
    cache, sums = CachingProvider("", least=row.provider.min_tokens or 0), [0.0]
    for body, cache.seconds in zip(bodies, seconds, strict=True):
        if row.rule is None:
            usage = cache.count(body)
            assert isinstance(usage, dict), usage
            read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
            plain = usage["input_tokens"]
        else:
            whole, read, written = cache.count_by(row.rule, body)
            plain = whole - read - written
        sums.append(sums[-1] + read * row.provider.read + written * row.provider.write + plain)
    return sums[1:]
