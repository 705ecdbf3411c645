"""Results that an agent has changed itself: cleared ones, and those that refer to an earlier result."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pytest
from caching_provider import CachingProvider
from hypothesis import given
from hypothesis import strategies as st

from recede._agents import AgentTexts, texts_of
from recede.costs import MODELS
from recede.proxy import RequestMasker
from recede.reduction._policy import own_policy
from support import CLEARED as PLACEHOLDER
from support import ENGINES, OF_RULES, engine_module

Blocks = list[dict[str, Any]]
LONG = "[an old result of this agent was cleared, since the context was too long]"  # longer than any placeholder
SHORT = "[cleared]"
_, MARKERS, STUBS = texts_of(None)
STUB = STUBS[0][1]
# As Claude Code sends it to models that take no system prompt among the messages.
TAIL = "\n\n<system-reminder>\n<total_tokens>149 tokens left</total_tokens>\n</system-reminder>"
MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM = [{"type": "text", "text": "s" * 12_000, **MARK}]
READ = st.tuples(st.just("Read"), st.sampled_from("ab"), st.sampled_from([20, 150, 3_000, 9_000]))
AGAIN = st.tuples(st.just("again"), st.sampled_from("ab"), st.sampled_from([0, 1]))
CLEARED = st.tuples(st.just("cleared"), st.sampled_from("ab"), st.sampled_from([0, 1]))
STEPS = st.lists(st.lists(READ | AGAIN | CLEARED, min_size=1, max_size=2), min_size=1, max_size=24)


def messages_of(steps: list[list[tuple[str, str, int]]], parts: bool = False) -> list[dict[str, Any]]:
    """A session: each step is a turn with its calls; \"again\" is a call whose result refers to an earlier one."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]
    for turn, step in enumerate(steps):
        calls: Blocks = []
        results: Blocks = []
        for place, (kind, path, size) in enumerate(step):
            text = f"{path}{turn}.{place}: " + "x" * size
            text = (
                {"again": STUB + TAIL * size, "cleared": (SHORT, LONG)[size % 2]}.get(kind, text)
                if kind != "Read"
                else text
            )
            one = f"t{turn}.{place}"
            calls.append({"type": "tool_use", "id": one, "name": "Read", "input": {"file_path": path}})
            content: Any = [{"type": "text", "text": text}] if parts else text
            results.append({"type": "tool_result", "tool_use_id": one, "content": content})
        messages += [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    return messages


def results_of(body: bytes) -> list[str]:
    """The texts of all results."""
    found = []
    for message in json.loads(body)["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_result":
                content = block["content"]
                found.append(content if isinstance(content, str) else content[0]["text"])
    return found


def mask(engine: Any, body: bytes, **options: Any) -> Any:
    policy = own_policy(engine, options, reduces=False, markers=(LONG, SHORT), stubs=STUBS)
    return engine.reduce_json(body, False, policy)


def report_of(done: Any) -> dict[str, Any]:
    return {name: getattr(done, name) for name in ("json", "masked_count", "chars_after", "boundary", "boundary_moves")}


@pytest.mark.skipif(len(ENGINES) < 2, reason="recede._core is not built: make build")
@pytest.mark.parametrize("cache", OF_RULES)
@given(steps=STEPS, keep=st.integers(0, 3), parts=st.booleans(), is_sliding=st.booleans())
def test_core_and_oracle_agree(cache: str, steps: Any, keep: int, parts: bool, is_sliding: bool) -> None:
    messages = messages_of(steps, parts)
    for message in messages[-1:-4:-2]:
        message["content"][-1] |= MARK
    body = json.dumps({"model": "m", "messages": messages}).encode()
    options: dict[str, Any] = {"keep": keep, "max_overcost": None, "provider": OF_RULES[cache]}
    options["boundary"] = "sliding" if is_sliding else "break_even"
    one, two = (report_of(mask(engine_module(name), body, **options)) for name in ("core", "oracle"))
    assert one == two


@given(steps=STEPS, keep=st.integers(0, 3))
def test_a_marker_is_the_placeholder_wherever_it_is_unless_that_is_longer(steps: Any, keep: int) -> None:
    body = json.dumps({"messages": messages_of(steps)}).encode()
    done = mask(engine_module("core"), body, keep=keep)
    for before, after in zip(results_of(body), results_of(done.json), strict=True):
        if before == LONG:
            assert after == "[old tool output cleared to save context]"
        elif before == SHORT:
            assert after == SHORT
    assert done.masked_count == sum(one.startswith("[old tool output cleared") for one in results_of(done.json))


@given(steps=STEPS, keep=st.integers(0, 3))
def test_a_reference_has_the_text_that_the_view_has_not(steps: Any, keep: int) -> None:
    """Before each reference that is shown is one copy of what was read, or it is that copy."""
    body = json.dumps({"messages": messages_of(steps)}).encode()
    raw, sent = results_of(body), results_of(mask(engine_module("core"), body, keep=keep).json)
    paths = [path for step in steps for _, path, _ in step]
    for path in "ab":
        text, copies = None, 0
        for before, after in [(raw[place], sent[place]) for place, one in enumerate(paths) if one == path]:
            is_reference = before.startswith(STUB)
            if not is_reference:
                text, copies = None if before in (SHORT, LONG) else before, 0
            copies += after == text
            if is_reference and text is None:
                assert after == before or after.startswith("[old tool output cleared")
            elif is_reference and not after.startswith("[old tool output cleared"):
                assert copies == 1 and after in (before, text)


@pytest.mark.parametrize("cache", OF_RULES)
@given(steps=STEPS, keep=st.integers(1, 3))
def test_a_prefix_changes_only_where_the_boundary_moves(cache: str, steps: Any, keep: int) -> None:
    messages = messages_of([[one for one in step if one[0] != "cleared"] or [("Read", "a", 20)] for step in steps])
    done = []
    for end in range(1, len(messages) + 1, 2):
        body = json.dumps({"messages": messages[:end]}).encode()
        options: dict[str, Any] = {"keep": keep, "provider": OF_RULES[cache]}
        done.append(mask(engine_module("core"), body, **options))
    for before, after in pairwise(done):
        one, two = (json.loads(each.json)["messages"] for each in (before, after))
        is_moved = len(after.boundary_moves) > len(before.boundary_moves)
        assert is_moved or one == two[: len(one)]


@pytest.mark.parametrize("marker", [MARKERS[0], "[Old tool result content cleared by the agent]"])
def test_an_agent_that_clears_what_is_masked_already_changes_no_result(
    marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recede.proxy._policies.texts_of", lambda *_: AgentTexts((), (marker,), ()))
    is_short = len(marker) < len(PLACEHOLDER)
    rng, tried = random.Random(0), 0
    path = "/v1/messages"
    for _ in range(60):
        masker, messages = RequestMasker(keep=3), messages_of([[("Read", "a", 0)]])[:1]
        for turn in range(40):
            text = f"{turn}: " + "x" * rng.choice([300, 3_000, 9_000])
            use = {"type": "tool_use", "id": f"t{turn}", "name": "run", "input": {}}
            result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": text}
            messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
            body = json.dumps({"model": "claude-opus-5", "messages": messages}).encode()
            sent = masker.mask("POST", path, {}, body)
            if sent.masked_count and rng.random() < 0.1:
                masked = [one.startswith("[old tool output cleared") for one in results_of(sent.body)]
                cleared = json.loads(body)
                for place, is_masked in enumerate(masked):
                    if is_masked:
                        cleared["messages"][2 + 2 * place]["content"][0]["content"] = marker
                got = masker.mask("POST", path, {}, json.dumps(cleared).encode())
                shown = [one for one, is_masked in zip(results_of(got.body), masked, strict=True) if is_masked]
                assert shown == [marker if is_short else PLACEHOLDER] * sum(masked)
                assert is_short or results_of(got.body) == results_of(sent.body)
                tried += 1
    assert tried > 60


SIZES = st.sampled_from([0, 300, 3_000, 9_000, 40_000])


@pytest.mark.parametrize("paths", ["a", "ab", "abc"])
@given(sizes=st.lists(SIZES, min_size=8, max_size=24), keep=st.integers(0, 3))
def test_with_references_no_request_makes_all_dearer_than_reading_again(
    paths: str, sizes: list[int], keep: int
) -> None:
    """The bound is to what the requests had cost if the agent had sent the text again instead of a reference."""
    masker, sides, costs = RequestMasker(keep=keep), (CachingProvider(""), CachingProvider("")), [0.0, 0.0]
    prices, model, read = MODELS["claude-opus-5"].prices, "claude-opus-5", dict[str, str]()
    raw, whole = messages_of([]), messages_of([])
    for turn, size in enumerate(sizes):
        path = paths[turn % len(paths)]
        text = f"{turn}: " + "x" * size
        is_reference = size == 0 and path in read
        read[path] = read[path] if is_reference else text
        use = {"type": "tool_use", "id": f"t{turn}", "name": "Read", "input": {"file_path": path}}
        for messages, content in ((raw, STUB if is_reference else text), (whole, read[path])):
            result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": content}
            messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        bodies = []
        for messages in (raw, whole):
            sent = [{**message, "content": [dict(block) for block in message["content"]]} for message in messages]
            for message in sent[-1:-4:-2]:
                message["content"][-1] |= MARK
            bodies.append({"model": model, "system": SYSTEM, "messages": sent})
        masked = masker.mask("POST", "/v1/messages", {}, json.dumps(bodies[0]).encode()).body
        for side, body in enumerate((json.loads(masked), bodies[1])):
            usage = sides[side].count(body)
            assert isinstance(usage, dict), usage
            cached, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
            costs[side] += prices.cost(usage["input_tokens"], cached, written, 0)
        assert costs[0] <= (1.1 + 1e-3) * costs[1]
