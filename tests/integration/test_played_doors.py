"""A replay hides at each request what its door sends without it, place by place, for bodies made from logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_logs import claude_log
from shared_data import each_file

import recede
from recede import costs, transcripts
from recede._agents import AGENTS
from recede.costs import PolicyReplay, calibrate
from recede.providers import OF_FORMATS
from recede.proxy._played import PlayedProxy
from recede.transcripts import LoggedRequest, Transcript
from recede.transcripts._places import COMMANDS_OF_FORMATS

PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "gemini": "/v1beta/models/some:generateContent",
}
FORMATS = ("claude_code", "codex", "gemini", "pi", "openhands", "swe_agent", "mini_swe")


def results(value: Any) -> Iterator[Any]:
    """The results of a history, in order, without cache marks."""
    if isinstance(value, list):
        for one in value:
            yield from results(one)
    elif isinstance(value, dict):
        is_one = value.get("type") in ("tool_result", "function_call_output", "custom_tool_call_output")
        if is_one or value.get("role") == "tool" or "functionResponse" in value:
            yield json.loads(
                json.dumps(value), object_hook=lambda one: {k: v for k, v in one.items() if k != "cache_control"}
            )
        else:
            for name in ("content", "parts", "messages"):
                yield from results(value.get(name))


def without_marks(one: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name != "cache_control"}


def hidden_in(view: list[Any], raw: list[Any]) -> set[int]:
    shown, whole = list(results(view)), list(results(raw))
    assert len(shown) == len(whole)
    return {place for place, (one, other) in enumerate(zip(shown, whole, strict=True)) if one != other}


def hidden_by(replayed: PolicyReplay) -> Iterator[tuple[int, set[int]]]:
    """For each request of a context how many messages precede it, and the results that it does not show."""
    hidden: set[int] = set()
    for turn in replayed.turns:
        hidden = (hidden | {*turn.hidden}) - {*turn.shown}
        yield turn.messages, set(hidden)


def asked_of_proxy(session: Transcript, keep: int) -> Iterator[tuple[int, set[int]]]:
    """The same by the proxy: each request is a body with model, marks and a system prompt of the logged size."""
    form, now = OF_FORMATS.get(session.format, "anthropic"), [0.0]
    masker = recede.proxy.RequestMasker(keep=keep, clock=lambda: now[0])
    agent = AGENTS.get(COMMANDS_OF_FORMATS.get(session.format, ""))
    headers = {} if agent is None else {"user-agent": agent.user_agent}
    usages = [one.usage for one in session.requests if one.usage is not None]
    writes = sum(usage.written_tokens for usage in usages), sum(usage.written_1h_tokens for usage in usages)
    mark = {"type": "ephemeral", **({"ttl": "1h"} if writes[1] > writes[0] else {})}
    fixed: dict[str, Any] = {"cache_control": mark} if any(writes) or not usages else {}
    for context in session.each_context():
        found = calibrate(context)
        static = costs.SYSTEM_CHARS if found is None else found.system_chars
        logged, known = {one.messages: one for one in context.requests}, None
        for turn in costs.replay(context.messages, ["raw"]).policies[0].turns:
            if turn.messages < context.shown:
                continue
            known = logged.get(turn.messages, known)
            if known is not None and known.time is not None:
                now[0] = known.time
            model = {} if known is None or known.model is None else {"model": known.model}
            raw = context.messages[: turn.messages]
            body = json.dumps({**model, **fixed, "system": "s" * static, "messages": raw}).encode()
            done = masker.mask("POST", PATHS[form], headers, body)
            assert done.fault is None
            if known is not None and known.usage is not None:
                masker.reported(done, known.usage)
            yield turn.messages, hidden_in(json.loads(done.body)["messages"], raw)


def played_as_proxy(session: Transcript, keep: int) -> Iterator[tuple[int, set[int]]]:
    door, policy = PlayedProxy(session), f"break_even:window={keep}"
    for context in session.each_context():
        found = calibrate(context)
        static = costs.SYSTEM_CHARS if found is None else found.system_chars
        own = door.periods(context, static)
        replayed = costs._replay.replayed(
            context.messages, [policy], costs.Prices(), "anthropic", None, static, None, 4_000, None, door=own
        )
        yield from ((end, hidden) for end, hidden in hidden_by(replayed.policies[1]) if end >= context.shown)


@each_file(*FORMATS)
def test_a_replay_hides_what_the_proxy_hides_over_the_corpus(path: Path) -> None:
    for session in transcripts.read_all(path):
        for keep in (10, 3):
            sent, played = list(asked_of_proxy(session, keep)), list(played_as_proxy(session, keep))
            assert played == sent, f"#{session.index}, keep={keep}"


@each_file(*FORMATS)
def test_a_replay_hides_what_a_history_hides_over_the_corpus(path: Path) -> None:
    for session in transcripts.read_all(path):
        kept, sent = recede.History(keep=10), []
        [_, found] = costs.replay(session.messages, ["break_even:window=10"]).policies
        for turn in found.turns:
            kept.extend(session.messages[len(kept) : turn.messages])
            sent.append((turn.messages, hidden_in(kept.view(), session.messages[: turn.messages])))
        assert list(hidden_by(found)) == sent, f"#{session.index}"


@pytest.mark.parametrize("first", [0, 1, 2, 40])
def test_a_replay_changes_its_policy_where_the_proxy_does(first: int) -> None:
    """A session that goes on with a model of another maker, after so many answers."""
    session = transcripts.read(claude_log())
    turns = costs.replay(session.messages, ["raw"]).policies[0].turns
    models = ["claude-sonnet-4-5"] * first + ["gpt-5.4"] * len(turns)
    made = (LoggedRequest(turn.messages, model, None, None) for turn, model in zip(turns, models, strict=False))
    session = replace(session, requests=tuple(made))
    sent, played = list(asked_of_proxy(session, 3)), list(played_as_proxy(session, 3))
    assert played == sent and len(sent[-1][1]) > 30
    [context] = session.each_context()
    assert len(PlayedProxy(session).periods(context, 12_000).door({"keep": 3}, summarizes=False)) == 1 + (first > 0)
