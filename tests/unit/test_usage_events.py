"""A usage is an event: one that is written again, in this file or in a fork's, counts once; none is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_files import COPILOT, OPENCODE, QWEN
from dataset_files import LANGSMITH
from transcript_files import item, lines, said

import recede
from recede import transcripts
from recede._usage import tier_of
from support import dumps, user

AT = "2026-05-14T19:25:02.500Z"
_SAID = {"role": "assistant", "content": [said("Done.")], "model": "opus", "usage": {"input": 3, "output": 4}}
_PI = [
    {"type": "message", "id": "1", "parentId": None, "message": user("Go.")},
    {"type": "message", "id": "2", "parentId": "1", "timestamp": AT, "message": _SAID},
]
_GEMINI = {
    "sessionId": "x",
    "messages": [
        {"type": "user", "id": "1", "content": "Go."},
        {"type": "gemini", "id": "2", "content": "Done.", "timestamp": AT, "tokens": {"input": 9, "output": 4}},
    ],
}
_QWEN_ANSWER = {**QWEN[2], "timestamp": AT}


def counted(data: bytes) -> tuple[int, list[int]]:
    """How many requests have a usage, and the sums of their tokens."""
    usages = [one.usage for each in transcripts.read_all(data) for one in each.requests if one.usage is not None]
    return len(usages), [sum(counts) for counts in zip(*usages, strict=True)]


def messages_of(data: bytes) -> list[Any]:
    return [message for one in transcripts.read_all(data) for message in one.messages]


def twice(value: Any, *names: str) -> Any:
    """A copy of a document whose records are each written twice."""
    copy = json.loads(json.dumps(value))
    held = copy
    for name in names[:-1]:
        held = held[name]
    held[names[-1]] = [record for record in held[names[-1]] for _ in range(2)]
    return copy


WRITTEN_TWICE: dict[str, tuple[bytes, bytes]] = {
    "opencode": (dumps(OPENCODE), dumps(twice(OPENCODE, "messages"))),
    "gemini": (dumps(_GEMINI), dumps(twice(_GEMINI, "messages"))),
    "pi": (lines(*_PI), lines(*_PI, _PI[1])),
    "qwen_code": (lines(*QWEN), lines(*QWEN[:3], QWEN[2], *QWEN[3:])),
    "qwen_code, later": (lines(*QWEN), lines(*QWEN, QWEN[2])),
    "langsmith": (lines(*LANGSMITH), lines(*LANGSMITH, *LANGSMITH)),
}


@pytest.mark.parametrize("name", WRITTEN_TWICE)
def test_a_record_that_is_written_again_counts_once(name: str) -> None:
    once, again = WRITTEN_TWICE[name]
    assert counted(once)[0] > 0
    assert counted(again) == counted(once)
    assert messages_of(again) == messages_of(once)


def test_the_last_write_of_a_record_counts() -> None:
    grown = {**_PI[1], "message": {**_SAID, "content": [said("Done. And more.")], "usage": {"input": 3, "output": 9}}}
    assert counted(lines(*_PI, grown)) == (1, [3, 0, 0, 0, 9])
    assert messages_of(lines(*_PI, grown)) == messages_of(lines(_PI[0], grown))


def test_an_answer_of_copilot_that_is_written_again_is_one() -> None:
    assert messages_of(lines(*COPILOT[:4], *COPILOT[3:])) == messages_of(lines(*COPILOT))


def renamed(value: Any, *names: str) -> Any:
    """A copy whose identifiers are others, as those of a fork are."""
    if isinstance(value, list):
        return [renamed(one, *names) for one in value]
    if isinstance(value, dict):
        return {
            key: f"of the fork {held}" if key in names and isinstance(held, str) else renamed(held, *names)
            for key, held in value.items()
        }
    return value


FORKS: dict[str, tuple[bytes, bytes]] = {
    "opencode": (dumps(OPENCODE), dumps(renamed(OPENCODE, "id", "sessionID"))),
    "gemini": (dumps(_GEMINI), dumps(renamed(_GEMINI, "id", "sessionId"))),
    "pi": (lines(*_PI), lines(*renamed(_PI, "id", "parentId"))),
    "qwen_code": (lines(QWEN[1], _QWEN_ANSWER), lines(*renamed([QWEN[1], _QWEN_ANSWER], "uuid", "sessionId"))),
}


@pytest.mark.parametrize("name", FORKS)
def test_a_copy_with_new_identifiers_is_known_by_time_and_content(name: str) -> None:
    first, fork = (transcripts.read(data).requests for data in FORKS[name])
    assert [one.id for one in first] == [one.id for one in fork]
    assert None not in [one.id for one in first if one.time is not None]


def test_answers_of_other_words_at_the_same_time_are_two() -> None:
    other = {**_PI[1], "id": "3", "message": {**_SAID, "content": [said("Other.")]}}
    first, second = transcripts.read(lines(*_PI, other)).requests
    assert first.id != second.id


# Codex' counts without an answer, and before it


def count(total: int, last: int) -> dict[str, Any]:
    sizes = {"total_token_usage": total, "last_token_usage": last}
    info = {name: {"input_tokens": size, "output_tokens": size // 10} for name, size in sizes.items()}
    return {"type": "event_msg", "timestamp": AT, "payload": {"type": "token_count", "info": info}}


_HEAD = {"type": "session_meta", "payload": {"id": "p1"}}
_ASKED = item(type="message", role="user", content=[{"type": "input_text", "text": "Go."}])
_DONE = item(type="message", role="assistant", content=[{"type": "output_text", "text": "Done."}])


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([count(100, 100), count(300, 200), count(300, 200)], (2, [300, 0, 0, 0, 30])),
        ([_ASKED, count(100, 100), _DONE], (1, [100, 0, 0, 0, 10])),
        ([_ASKED, count(100, 100), count(300, 200), _DONE], (2, [300, 0, 0, 0, 30])),
        ([_ASKED, count(100, 100), _DONE, count(300, 200)], (2, [300, 0, 0, 0, 30])),
        ([_ASKED, _DONE, count(100, 100)], (1, [100, 0, 0, 0, 10])),
        # A session that goes on repeats what was counted in another file.
        ([count(900, 100), _ASKED, _DONE, count(1_000, 100)], (1, [100, 0, 0, 0, 10])),
    ],
    ids=["alone", "before its answer", "one alone", "alone and after", "after its answer", "repeated"],
)
def test_a_count_of_codex_is_no_repetition_and_is_not_lost(records: list[Any], expected: Any) -> None:
    assert counted(lines(_HEAD, *records)) == expected


# How a request was served


@pytest.mark.parametrize(
    "head",
    [
        {"type": "turn_context", "payload": {"model": "gpt", "service_tier": "priority"}},
        {
            "type": "event_msg",
            "payload": {"type": "thread_settings_applied", "thread_settings": {"service_tier": "priority"}},
        },
    ],
    ids=["context", "settings"],
)
def test_how_codex_was_served_is_that_of_requests_after_it(head: Any) -> None:
    usual = {"type": "turn_context", "payload": {"model": "gpt", "service_tier": "default"}}
    session = transcripts.read(lines(_HEAD, _ASKED, _DONE, count(100, 100), head, _DONE, count(300, 200), usual, _DONE))
    assert [one.tier for one in session.requests] == [None, "priority", None]


def test_a_tier_beside_the_count_of_codex_is_that_of_its_request() -> None:
    told = count(100, 100)
    told["payload"]["service_tier"] = "priority"
    [request] = transcripts.read(lines(_HEAD, _ASKED, _DONE, told)).requests
    assert request.tier == "priority"


@pytest.mark.parametrize(
    ("usage", "tier"),
    [
        ({"inference_geo": "us"}, "us"),
        ({"inference_geo": "us", "speed": "fast"}, "fast us"),
        ({"inference_geo": "global"}, None),
        ({"inference_geo": "not_available", "service_tier": "standard"}, None),
        ({"inference_geo": 5}, None),
    ],
)
def test_a_request_of_one_region_says_so(usage: Any, tier: str | None) -> None:
    assert tier_of(usage) == tier


@pytest.mark.parametrize(
    ("model", "tier", "times"),
    [
        ("claude-opus-4-8", "us", 1.1),
        ("claude-opus-4-8", "fast us", 2.2),
        ("us.anthropic.claude-opus-4-8-v1", None, 1.1),
        ("bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", None, 1.1),
        ("global.anthropic.claude-opus-4-8-v1", None, 1.0),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", None, 1.0),
    ],
)
def test_one_region_costs_a_tenth_more(model: str, tier: str | None, times: float) -> None:
    found = recede.costs.model_prices(model, tier=tier)
    usual = recede.costs.model_prices(model.partition("anthropic.")[2] or model)
    assert found is not None and usual is not None
    assert [now / before for now, before in zip(found.prices[:4], usual.prices[:4], strict=True)] == pytest.approx(
        [times] * 4
    )


def test_prices_of_the_user_are_those_of_a_region_too() -> None:
    own = {"claude-opus-4-8": recede.costs.MODELS["claude-opus-4-5"]}
    assert recede.costs.model_prices("claude-opus-4-8", own, tier="us") == own["claude-opus-4-8"]


def test_a_long_prompt_of_sonnet_4_5_costs_more() -> None:
    usual, long = (recede.costs.model_prices("claude-sonnet-4-5", sent_tokens=n) for n in (200_000, 200_001))
    assert usual is not None and long is not None
    assert (long.prices.input, long.prices.output) == (2 * usual.prices.input, 1.5 * usual.prices.output)
