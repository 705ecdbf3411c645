"""Replays where a summary takes the place of old turns, against their definition: each turn once, no pair broken."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import spelled

import recede
from recede.testing import histories
from support import built_engines, using

ENGINES = pytest.mark.parametrize("engine_name", built_engines())
History = list[dict[str, Any]]

SYSTEM, SUMMARY, PROMPT = 1_000, 60, 1_200
PRICES = recede.Prices(min_cached_tokens=0)


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


@st.composite
def tangled(draw: st.DrawFn) -> History:
    """Histories in which some results came late, in one message with those of a later turn."""
    history: History = draw(histories("anthropic", max_turns=9, max_parallel_calls=3))
    holders = [message for message in history if blocks(message, "tool_result")]
    for _ in range(draw(st.integers(0, 5)) if len(holders) > 1 else 0):
        first = draw(st.integers(0, len(holders) - 2))
        source, target = holders[first], holders[draw(st.integers(first + 1, len(holders) - 1))]
        late = blocks(source, "tool_result")[:1]
        source["content"] = [
            *(block for block in source["content"] if block not in late),
            {"type": "text", "text": "-"},
        ]
        target["content"] = [*target["content"], *late]
    return history


SESSIONS = tangled() | tangled() | histories("openai", max_turns=12, max_parallel_calls=2)


def expected_turns(history: History, first: int, every: int, tail: int, **mask: Any) -> list[tuple[int, ...]]:
    """What a replay gives that makes the first summary at so many turns, and one every so many turns after."""
    turns = turns_of(history)
    made = [message["role"] == "assistant" for message in history]
    ends = [at for at, is_made in enumerate(made) if is_made and not (at and made[at - 1])]
    expected: list[tuple[int, ...]] = []
    summarized, number, before, told, seen_before = 0, 0, 0, set(), list[Any]()
    for taken, end in enumerate(ends):
        prefix, called = history[:end], 0
        # What the view shows now, before the boundary moves.
        now = [*recede.mask_observations(history[:before], **mask).messages, *history[before:end]]
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
        for at, message in enumerate(recede.mask_observations(prefix, **mask).messages):
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
        figures = end, sent, cached, sent - cached, answer, masked, summarized, called, SUMMARY if called else 0
        expected.append(figures)
        # Each turn is either in the summary or shown, and no pair is broken.
        shown_turns = [turns[key] for key, _ in seen if key != "summary"]
        assert all(not is_torn(one, summarized) for one in shown_turns)
        view = [message for key, message in seen if key != "summary"]
        assert violations(view) <= violations(prefix)
        before, seen_before = end, seen
    return expected


@ENGINES
@given(
    history=SESSIONS, window=st.integers(0, 4), every=st.integers(1, 5), tail=st.integers(1, 3), chunk=st.integers(1, 4)
)
def test_each_request_shows_each_turn_once(
    engine_name: str, history: History, window: int, every: int, tail: int, chunk: int
) -> None:
    at = tail + every
    policies = {
        f"summary:every={every},tail={tail}": (at, every, {"keep_results": 10**6}),
        f"hybrid:window={window},at={at},tail={tail}": (at, at, {"keep_turns": window}),
        f"hybrid:window={window},at={at},tail={tail},chunk={chunk}": (
            at,
            at,
            {"keep_turns": window, "mask_chunk": chunk},
        ),
    }
    with using(engine_name):
        replayed = recede.replay(history, policies, prices=PRICES, system_chars=SYSTEM, summary_chars=SUMMARY)
        for policy, (first, again, mask) in zip(replayed.policies[1:], policies.values(), strict=True):
            assert list(map(tuple, policy.turns)) == expected_turns(history, first, again, tail, **mask)


@st.composite
def spellings(draw: st.DrawFn) -> list[str]:
    """Policies with summaries, with every sort of boundary and of occasion."""
    window, tail, more = draw(st.integers(0, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    boundaries = ["", ",boundary=break_even", f",chunk={draw(st.integers(1, 4))}"]
    hybrids = [f"hybrid:window={window},at={at},tail={tail}" for at in (tail + more, "break_even")]
    return [
        *(f"summary:every={every},tail={tail}" for every in (more, "break_even")),
        *(hybrid + boundary for hybrid in hybrids for boundary in boundaries),
    ]


@given(
    history=SESSIONS | histories("mixed", max_turns=9, max_parallel_calls=3),
    names=spellings(),
    read=st.sampled_from([0, 0.1, 1, 3]),
    price=st.sampled_from([0, 0.01, 0.3, 3]),
    chars=st.sampled_from([0, 1, 60, 300]),
    data=st.data(),
)
def test_both_engines_give_the_same(
    history: History, names: list[str], read: float, price: float, chars: int, data: Any
) -> None:
    prices = recede.Prices(cached=read, write=max(read, 1), min_cached_tokens=0)
    options: dict[str, Any] = {"prices": prices, "system_chars": 0, "summary_chars": chars}
    options["summary_prices"] = recede.Prices(input=price, output=price)
    found = []
    for engine_name in built_engines():
        with using(engine_name):
            found.append(recede.replay(history, names, **options))
            found.append(recede.replay_json(data.draw(spelled(history)), names, **options))
    assert all(replayed == found[0] for replayed in found)
