"""What a replay with summaries gives, from its definition alone: slow, and independent of both engines.

It knows messages of OpenAI chat and of Anthropic.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import recede
from support import mask as mask_all

History = list[dict[str, Any]]

SYSTEM, SUMMARY, PROMPT = 1_000, 60, 1_200
PRICES = recede.costs.Prices(min_cached_tokens=0)


def blocks(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if block.get("type") == kind] if isinstance(content, list) else []


def results_of(message: dict[str, Any]) -> list[Any]:
    if message["role"] == "tool":
        return [message.get("tool_call_id")]
    return [block.get("tool_use_id") for block in blocks(message, "tool_result")]


def calls_of(message: dict[str, Any]) -> list[Any]:
    made = [*(message.get("tool_calls") or []), *blocks(message, "tool_use")]
    return [call["id"] for call in made]


def turns_of(history: History) -> list[set[int]]:
    """The turns that each message belongs to, by its run and by the calls that it answers; 0: before the first."""
    found: list[set[int]] = []
    turn, in_run = 0, False
    newest: dict[str, int] = {}
    for message in history:
        is_made = message["role"] == "assistant"
        turn += is_made and not in_run
        in_run = is_made
        ids = [id if isinstance(id, str) else None for id in results_of(message)]
        found.append({turn} if is_made else {turn if id is None else newest.get(id, turn) for id in ids})
        newest |= {id: turn for id in calls_of(message) if isinstance(id, str)}
    return found


def is_within(turns: set[int], count: int) -> bool:
    return bool(turns) and turns <= set(range(1, count + 1))


def is_torn(turns: set[int], count: int) -> bool:
    return bool(turns & set(range(1, count + 1))) and not is_within(turns, count)


def masked_count(raw: dict[str, Any], shown: dict[str, Any]) -> int:
    if raw["role"] == "tool":
        return int(shown is not raw)
    pairs = zip(blocks(raw, "tool_result"), blocks(shown, "tool_result"), strict=True)
    return sum(before != after for before, after in pairs)


def violations(messages: History) -> Counter[tuple[str, Any]]:
    found = (finding for finding in recede.check_pairs(messages).findings if finding.kind != "missing_id")
    return Counter((finding.kind, repr(finding.id)) for finding in found)


def expected_turns(history: History, first: int, every: int, tail: int, **mask: Any) -> list[tuple[int, ...]]:
    """What a replay gives that makes the first summary at so many turns, and one every so many turns after."""
    if mask.get("mask_chunk") is None:
        mask.setdefault("boundary", "sliding")
    mask["keeps_dispatch"] = False
    turns = turns_of(history)
    made = [message["role"] == "assistant" for message in history]
    ends = [at for at, is_made in enumerate(made) if is_made and not (at and made[at - 1])]
    expected: list[tuple[int, ...]] = []
    summarized, number, before, told, seen_before = 0, 0, 0, set(), list[Any]()
    for taken, end in enumerate(ends):
        prefix, called = history[:end], 0
        # What the view shows now, before the boundary moves.
        now = [*mask_all(history[:before], **mask).messages, *history[before:end]]
        if any(is_torn(one, summarized) for one in turns[before:end]):
            summarized, told, now = 0, set(), prefix
        wanted = first - tail + (taken - first) // every * every if taken >= first else 0
        while any(is_torn(one, wanted) for one in turns[:end]):
            wanted -= 1
        if wanted > summarized:
            new = [at for at in range(end) if is_within(turns[at], wanted) and at not in told]
            replaced = recede.count_chars([now[at] for at in new if not is_within(turns[at], summarized)])
            if (SUMMARY if summarized else 0) + replaced > SUMMARY:
                called = recede.count_chars([history[at] for at in new]) + (SUMMARY if summarized else 0) + PROMPT
                summarized, told, number = wanted, {*told, *new}, number + 1
        seen: list[Any] = []
        for at, message in enumerate(mask_all(prefix, **mask).messages):
            if not is_within(turns[at], summarized):
                seen.append((at, message))
            elif at == ends[0]:
                seen.append(("summary", number))
        chars = [SUMMARY if key == "summary" else recede.count_chars([message]) for key, message in seen]
        same = next((at for at, pair in enumerate(zip(seen_before, seen, strict=False)) if pair[0] != pair[1]), None)
        same = min(len(seen_before), len(seen)) if same is None else same
        cached = SYSTEM + sum(chars[:same]) if taken else 0
        sent = SYSTEM + sum(chars)
        masked = sum(masked_count(history[key], shown) for key, shown in seen if key != "summary")
        answer = recede.count_chars(history[end : next((at for at in range(end, len(made)) if not made[at]), None)])
        summary = called, SUMMARY if called else 0
        figures = end, sent, cached, sent - cached, answer, masked, summarized, *summary, "", 0
        expected.append(figures)
        # Each turn is either in the summary or shown, and no pair is broken.
        shown_turns = [turns[key] for key, _ in seen if key != "summary"]
        assert all(not is_torn(one, summarized) for one in shown_turns)
        view = [message for key, message in seen if key != "summary"]
        assert violations(view) <= violations(prefix)
        before, seen_before = end, seen
    return expected
