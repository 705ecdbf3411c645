"""Anthropic's messages API: what it refuses, drops and bills."""

from __future__ import annotations

from typing import Any

from provider_rules.anthropic import blocks, placement, reasoning
from provider_rules.anthropic.reasoning import sign
from provider_rules.anthropic.request import NEWEST, Request
from provider_rules.base import OLD, Account, Body, Taken, held, rule, tokens_of

__all__ = ["NEWEST", "Request", "batch", "blocks", "count_tokens", "placement", "reads", "sign", "take"]


def take(body: Body, account: Account = OLD, betas: frozenset[str] | None = None) -> Taken:
    """What the API does with a request."""
    return held("anthropic", lambda: Request(body, account, betas), shown_tokens)


def answered(body: Body, answer: list[Body], account: Account = OLD) -> list[Body]:
    """The blocks of an answer to a request that was taken, with their signatures."""
    request = Request(body, account)
    reasoning.unreadable_thinking_is_dropped(request)
    reasoning.thinking_is_bound_to_its_prefix(request)
    return sign(request, answer)


@rule
def shown_tokens(request: Request) -> int:
    """The input that is billed: dropped thinking, cleared messages and what a compaction replaced are not."""
    newest = reasoning.newest_compaction(request)
    tokens = tokens_of(request.body.get("system") or "") + tokens_of(request.body.get("tools") or [])
    for at, place, block in request.each:
        is_shown = at >= newest and (at, place) not in request.left_out and not placement.is_cleared(request, at)
        tokens += tokens_of(block) if is_shown else 0
    return tokens


@rule
def count_tokens(body: Body, account: Account = OLD, betas: frozenset[str] | None = None) -> Taken:
    """Answers the same refusals as a request."""
    return take({"max_tokens": 1, **body}, account, betas)


@rule
def batch(bodies: list[Body], account: Account = OLD) -> list[Taken]:
    """Of requests without an answer to it, blocks that fail are dropped; with "error" the request has errored."""
    found = []
    for body in bodies:
        thinking = body.get("thinking") or {}
        binding = {"prefix_mismatch_behavior": "drop_block", **(thinking.get("block_binding") or {})}
        found.append(take({**body, "thinking": {**thinking, "block_binding": binding}}, account))
    return found


def reads(body: Body) -> dict[str, Any]:
    """What the model has of a history beside its text: it misses it silently."""
    request = Request(body)
    tools, listed = sorted(placement.loaded_tools(request)), placement.listings(request)
    return {"loaded tools": tools, "listings": listed, "effort": placement.effort(request)}
