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


def whole(turns: list[set[int]], begun: list[int], first: int, last: int) -> set[int]:
    """The turns from one to another, without those that a message of several, or a late one, ties to others."""
    ties = [set(range(min(one), max(*one, now) + 1)) for one, now in zip(turns, begun, strict=True) if one - {0}]
    found = set(range(first, last + 1))
    while torn := [tie for tie in ties if tie & found and not tie <= found]:
        found = found.difference(*torn)
    return found


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
    begun = [sum(end <= at for end in ends) for at in range(len(history))]
    expected: list[tuple[int, ...]] = []
    hidden, told = set[int](), set[int]()
    place, number, before, seen_before = 0, 0, 0, list[Any]()
    for taken, end in enumerate(ends):
        prefix, called = history[:end], 0
        # What the view shows now, before the boundary moves.
        now = [*mask_all(history[:before], **mask).messages, *history[before:end]]
        for at in range(before, end):
            # A late message of hidden turns is hidden, unless it is torn: then all is shown again.
            gone = [begun[one] for one in hidden if made[one]]
            is_late = bool(results_of(history[at])) and bool(turns[at] & set(gone))
            if is_late and turns[at] <= set(gone):
                hidden.add(at)
            elif is_late:
                hidden, told = set(), set()
                now = prefix
        wanted = min(first - tail + (taken - first) // every * every, taken - 1) if taken >= first else 0
        reached = next((turn for turn, start in enumerate(ends) if start not in hidden), 0)
        if wanted > reached:
            shown = [at for at in range(end) if at not in hidden]
            found = whole([turns[at] for at in shown], [begun[at] for at in shown], reached + 1, wanted)
            new = {at for at in range(ends[reached], ends[wanted]) if turns[at] and turns[at] <= found} - hidden
            replaced = (SUMMARY if hidden else 0) + recede.count_chars([now[at] for at in sorted(new)])
            if replaced > SUMMARY and new:
                called = recede.count_chars([history[at] for at in sorted(new | (hidden - told))])
                called += (SUMMARY if hidden else 0) + PROMPT
                place = min(min(new), place) if hidden else min(new)
                hidden |= new
                told = set(hidden)
                number += 1
        place = next((at for at in range(place, end) if at not in hidden), end)
        seen: list[Any] = [(at, one) for at, one in enumerate(mask_all(prefix, **mask).messages) if at not in hidden]
        if hidden:
            seen.insert(sum(at < place for at, _ in seen), ("summary", number))
        chars = [SUMMARY if key == "summary" else recede.count_chars([message]) for key, message in seen]
        same = next((at for at, pair in enumerate(zip(seen_before, seen, strict=False)) if pair[0] != pair[1]), None)
        same = min(len(seen_before), len(seen)) if same is None else same
        cached = SYSTEM + sum(chars[:same]) if taken else 0
        sent = SYSTEM + sum(chars)
        masked = sum(masked_count(history[key], shown) for key, shown in seen if key != "summary")
        answer = recede.count_chars(history[end : next((at for at in range(end, len(made)) if not made[at]), None)])
        summary = called, SUMMARY if called else 0
        summarized = taken - len({begun[key] for key, _ in seen if key != "summary" and made[key]}) if hidden else 0
        figures = end, sent, cached, sent - cached, answer, masked, summarized, *summary, "", 0
        expected.append(figures)
        # No pair is broken where all were whole.
        view = [message for key, message in seen if key != "summary"]
        assert violations(prefix) or not violations(view)
        before, seen_before = end, seen
    return expected
