"""What a replay says that a policy costs, and what a `Conversation` with the official client pays to a provider.

The provider has a cache of its own. What the proxy pays is in test_proxy_corpus.py; that the other doors send the same,
in test_doors.py.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import pytest
from caching_provider import CachingProvider, caching
from shared_data import CORPUS, need

import recede
from recede import transcripts
from recede.costs import Prices

History = list[dict[str, Any]]

MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM_CHARS = 12_000
SYSTEM = [{"type": "text", "text": "x" * SYSTEM_CHARS, **MARK}]
PRICES = Prices(output=0)
PLAIN, PINNED = "break_even:window=10", "break_even:window=10,cache_breakpoint=boundary"
MIN_OBSERVATIONS = 30
FORMATS = ("claude_code", "codex", "openhands", "pi")


def as_anthropic(history: History) -> History:
    """A recorded history as messages of Anthropic: roles alternate, and each message is a list of blocks."""
    blocks: list[tuple[str, dict[str, Any]]] = [("user", _text("Go."))]
    for message in history:
        kind, role = str(message.get("type") or ""), message.get("role")
        if kind.endswith("_call") and "call_id" not in message:  # the provider ran it
            blocks.append(("assistant", _text(json.dumps(message))))
        elif kind.endswith("_call"):
            given = message.get("arguments") or message.get("input") or message.get("action") or ""
            blocks.append(("assistant", _call(message["call_id"], message.get("name") or "run", given)))
        elif kind.endswith("_output"):
            blocks.append(("user", _result(message["call_id"], message["output"])))
        elif role == "tool":
            blocks.append(("user", _result(message["tool_call_id"], message["content"])))
        elif role is not None:
            side = "assistant" if role == "assistant" else "user"
            blocks += ((side, block) for block in _own(message.get("content")))
            for call in message.get("tool_calls") or ():
                function = call["function"]
                blocks.append((side, _call(call["id"], function["name"], function["arguments"])))
    groups = itertools.groupby(blocks, key=lambda one: one[0])
    return [{"role": role, "content": [block for _, block in group]} for role, group in groups]


def _own(content: Any) -> Iterator[dict[str, Any]]:
    for block in [_text(content)] if isinstance(content, str) else content or ():
        if block.get("type") == "tool_result":
            yield _result(block["tool_use_id"], block.get("content"))
        elif block.get("type") == "tool_use":
            yield {name: block[name] for name in ("type", "id", "name", "input")}
        elif isinstance(block.get("text"), str) and block["text"].strip():
            yield _text(block["text"])


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _call(id: str, name: str, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": given if isinstance(given, dict) else {"given": given}}


def _result(id: str, content: Any) -> dict[str, Any]:
    if not isinstance(content, str):
        parts = content if isinstance(content, list) else [content]
        texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
        content = "\n".join(text for text in texts if isinstance(text, str))
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def marked(messages: History, before: int) -> History:
    """Marks as the common clients write them: on the newest message, and on the newest one of the request before."""
    sent = list(messages)
    for place in {before - 1, len(sent) - 1} - {-1}:
        *others, last = sent[place]["content"]
        sent[place] = {**sent[place], "content": [*others, {**last, **MARK}]}
    return sent


Sender = Callable[[History, int, "frozenset[int]"], History]
"""From the messages so far, how many of them the request before had, and all pauses, to what is sent."""


def pay(provider: CachingProvider, messages: History, send: Sender, pauses: frozenset[int] = frozenset()) -> float:
    """What a session costs that asks for each answer by the official client, after a pause before some of them."""
    with anthropic.Anthropic(api_key="none", base_url=provider.url, max_retries=0) as client:
        before = 0
        for end in ends_of(messages):
            provider.seconds += 3_600.0 if end in pauses else 1.0
            view: Any = send(messages[:end], before, pauses)
            client.messages.create(model="claude", max_tokens=1, system=SYSTEM, messages=view)  # type: ignore[arg-type]
            before = end
    paid = provider.read * PRICES.cached + provider.written * PRICES.write + provider.plain * PRICES.input
    return paid / 1_000_000


def ends_of(messages: History) -> list[int]:
    return [place for place, message in enumerate(messages) if message["role"] == "assistant"]


def play_conversation(provider: CachingProvider, messages: History) -> recede.History:
    """The session made again by a `Conversation`: the model says, and tools answer, what they did.

    A user's text that came with results is part of the last one: a conversation asks on as soon as tools have answered.
    """
    turns: list[list[dict[str, Any]]] = []
    outputs: list[str] = []
    calls: list[str] = []
    for message in messages:
        if message["role"] == "assistant":
            provider.answers.append(message["content"])
            calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
            continue
        results = {one["tool_use_id"]: one["content"] for one in message["content"] if one["type"] == "tool_result"}
        texts = [_text(block.get("text") or results[block["tool_use_id"]]) for block in message["content"]]
        if calls:
            outputs += [results.pop(call, "") for call in calls]
            rest = [block["text"] for block in message["content"] if block["type"] == "text"]
            outputs[-1] = "\n".join([outputs[-1], *results.values(), *rest])
        else:
            turns.append([text for text in texts if text["text"].strip()] or [_text("Go on.")])
        calls = []
    kept = recede.History(provider="anthropic")
    with anthropic.Anthropic(api_key="none", base_url=provider.url, max_retries=0) as client:
        talk = recede.designs.Conversation(
            client.messages.create,
            model="claude",
            max_tokens=1,
            system=SYSTEM,
            history=kept,
            tools=[{"name": "run", "input_schema": {"type": "object"}}],
            run_tool=lambda name, given: outputs.pop(0) if outputs else "",
            max_tool_rounds=1_000_000,
        )
        for content in turns:
            talk.turn(content)
    assert not provider.answers and not outputs
    return kept


def check_conversation(messages: History) -> None:
    with caching() as provider:
        kept = play_conversation(provider, messages)
        said = json.loads(kept.to_json())
        [_, pinned] = recede.costs.replay(
            said, [PINNED], prices=PRICES, cache="anthropic", system_chars=SYSTEM_CHARS
        ).costs
        reported = kept.stats().reported
        assert reported.requests == provider.requests == pinned.usage.requests
        assert reported[1:4] == (provider.plain, provider.read, provider.written)
        assert reported.cost(PRICES) == pytest.approx(pinned.cost, rel=0.05)


def a_session() -> History:
    messages: History = [{"role": "user", "content": [_text("Find the bug.")]}]
    for number in range(45):
        messages.append({"role": "assistant", "content": [_text("Next. " * 30), _call(str(number), "run", "ls")]})
        messages.append(
            {"role": "user", "content": [_result(str(number), "a line of the log\n" * (20 + 97 * number % 331))]}
        )
    return messages


def test_what_a_conversation_adds_up_is_what_a_replay_says() -> None:
    check_conversation(a_session())


@functools.cache
def long_sessions() -> list[History]:
    sessions = []
    for path in sorted(path for name in FORMATS for path in (CORPUS / name).iterdir()):
        with contextlib.suppress(recede.TranscriptError):
            for found in transcripts.read_all(path):
                tools = recede.reduce(found.messages).tools.values()
                if sum(tool.observations for tool in tools) >= MIN_OBSERVATIONS:
                    sessions.append(as_anthropic(found.messages))
    return sessions


def test_short_sessions_of_the_corpus_cost_what_their_replays_say() -> None:
    need(CORPUS)
    by_size = sorted(long_sessions(), key=lambda messages: len(json.dumps(messages)) * len(messages))
    for messages in by_size[:3]:
        check_conversation(messages)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("number", range(21))
def test_long_sessions_of_the_corpus_cost_what_their_replays_say(number: int) -> None:
    need(CORPUS)
    sessions = long_sessions()
    assert len(sessions) == 21
    check_conversation(sessions[number])
