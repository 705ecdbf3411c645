"""The counts of every provider's usage, and what they cost: by model, date, length and tier."""

from __future__ import annotations

from typing import Any

import pytest

import recede
from recede import costs
from recede._usage import beside_of, tier_of, usage_of
from recede.proxy._answers import AnswerReader
from recede.transcripts import Beside, LoggedRequest, LoggedUsage
from support import dumps

JULY_10, AUGUST_20, AUGUST_21 = 1_783_641_600.0, 1_787_270_399.0, 1_787_270_400.0


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        # Chat Completions, Responses and Codex, with the writes of GPT-5.6 and newer.
        (
            {"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 9}},
            (1, 20, 9, 0, 0),
        ),
        (
            {"input_tokens": 30, "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 9}},
            (1, 20, 9, 0, 0),
        ),
        ({"input_tokens": 30, "cached_input_tokens": 20, "cache_write_input_tokens": 9}, (1, 20, 9, 0, 0)),
        (
            {"input_tokens": 30, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 29}},
            (1, 0, 29, 0, 0),
        ),
        # A router that counts as Anthropic does, beside the names of OpenAI.
        (
            {
                "prompt_tokens": 30,
                "cache_read_input_tokens": 20,
                "cache_creation_input_tokens": 9,
                "completion_tokens": 4,
            },
            (1, 20, 9, 0, 4),
        ),
        ({"prompt_tokens": 30, "prompt_cache_hit_tokens": 20, "prompt_cache_miss_tokens": 10}, (10, 20, 0, 0, 0)),
        # Kimi and Together; Vercel's AI SDK, of two versions.
        ({"prompt_tokens": 30, "completion_tokens": 4, "cached_tokens": 20}, (10, 20, 0, 0, 4)),
        ({"inputTokens": 30, "outputTokens": 4, "cachedInputTokens": 20, "totalTokens": 34}, (10, 20, 0, 0, 4)),
        (
            {
                "inputTokens": 30,
                "inputTokenDetails": {"noCacheTokens": 1, "cacheReadTokens": 20, "cacheWriteTokens": 9},
            },
            (1, 20, 9, 0, 0),
        ),
        # The SDK of xAI counts reasoning apart.
        (
            {
                "prompt_tokens": 30,
                "prompt_text_tokens": 30,
                "cached_prompt_text_tokens": 20,
                "completion_tokens": 4,
                "reasoning_tokens": 2,
                "total_tokens": 36,
            },
            (10, 20, 0, 0, 6),
        ),
        ({"prompt_tokens": 30, "completion_tokens": 4, "reasoning_tokens": 2, "total_tokens": 34}, (30, 0, 0, 0, 4)),
        # Kimi K3; Qwen's marks, for five minutes and for an hour.
        ({"prompt_tokens": 30, "cached_tokens": 20, "cache_write_tokens": 9}, (1, 20, 9, 0, 0)),
        *(
            (
                {
                    "prompt_tokens": 30,
                    "prompt_tokens_details": {"cached_tokens": 20, "cache_creation_input_tokens": 9, **kind},
                },
                tokens,
            )
            for kind, tokens in (
                ({"cache_type": "ephemeral"}, (1, 20, 9, 0, 0)),
                ({"cache_type": "ephemeral_1h"}, (1, 20, 0, 9, 0)),
                (
                    {"cache_type": "ephemeral", "cache_creation": {"ephemeral_1h_input_tokens": 9}},
                    (1, 20, 0, 9, 0),
                ),
                (
                    {"cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 4}},
                    (1, 20, 5, 4, 0),
                ),
            )
        ),
        # Anthropic and Converse count the cache apart.
        ({"input_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 9}, (3, 20, 9, 0, 0)),
        (
            {"inputTokens": 3, "outputTokens": 4, "cacheReadInputTokens": 20, "cacheWriteInputTokens": 9},
            (3, 20, 9, 0, 4),
        ),
        ({"inputTokens": 3, "outputTokens": 4}, (3, 0, 0, 0, 4)),
        # Gemini: its tools' tokens are input, its thoughts output.
        (
            {
                "promptTokenCount": 30,
                "toolUsePromptTokenCount": 7,
                "cachedContentTokenCount": 20,
                "thoughtsTokenCount": 2,
            },
            (17, 20, 0, 0, 2),
        ),
        ({"prompt_token_count": 30, "candidates_token_count": 4, "thoughts_token_count": 2}, (30, 0, 0, 0, 6)),
        ({"promptTokenCount": "30", "candidatesTokenCount": 4}, (0, 0, 0, 0, 4)),
        # Gemini's Live and Interactions.
        ({"promptTokenCount": 30, "responseTokenCount": 4}, (30, 0, 0, 0, 4)),
        (
            {
                "total_input_tokens": 30,
                "total_cached_tokens": 20,
                "total_output_tokens": 4,
                "total_thought_tokens": 3,
                "total_tool_use_tokens": 2,
            },
            (12, 20, 0, 0, 7),
        ),
        # Converse lists what it wrote by its time to live; its early names.
        (
            {
                "inputTokens": 3,
                "cacheWriteInputTokens": 9,
                "cacheDetails": [{"ttl": "1h", "inputTokens": 5}, {"ttl": "5m", "inputTokens": 4}, None],
            },
            (3, 0, 4, 5, 0),
        ),
        ({"inputTokens": 3, "cacheReadInputTokenCount": 20, "cacheWriteInputTokenCount": 9}, (3, 20, 9, 0, 0)),
        # Writes by their time to live alone.
        (
            {"input_tokens": 3, "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 7}},
            (3, 0, 2, 7, 0),
        ),
        # A router with the names of several APIs, of which it fills one.
        ({"prompt_tokens": 0, "input_tokens": 3, "cache_read_input_tokens": 20, "output_tokens": 4}, (3, 20, 0, 0, 4)),
        ({"prompt_tokens": 30, "input_tokens": 0, "prompt_tokens_details": {"cached_tokens": 20}}, (10, 20, 0, 0, 0)),
        # xAI counts reasoning apart, OpenAI does not.
        (
            {
                "prompt_tokens": 30,
                "completion_tokens": 4,
                "total_tokens": 36,
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            (30, 0, 0, 0, 6),
        ),
        (
            {
                "prompt_tokens": 30,
                "completion_tokens": 4,
                "total_tokens": 34,
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            (30, 0, 0, 0, 4),
        ),
        # Qwen, Mistral, Cohere, LangChain, Pydantic AI; integers that a table made floats.
        (
            {"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 20, "cache_creation_input_tokens": 9}},
            (1, 20, 9, 0, 0),
        ),
        ({"prompt_tokens": 30, "completion_tokens": 4, "num_cached_tokens": 20}, (10, 20, 0, 0, 4)),
        ({"tokens": {"input_tokens": 30, "output_tokens": 4}, "cached_tokens": 20}, (10, 20, 0, 0, 4)),
        ({"input_tokens": 30, "input_token_details": {"cache_read": 20, "cache_creation": 9}}, (1, 20, 9, 0, 0)),
        ({"input_tokens": 30, "cache_read_tokens": 20, "cache_write_tokens": 9}, (1, 20, 9, 0, 0)),
        ({"prompt_tokens": 30.0, "completion_tokens": 4.5, "cached_tokens": float("inf")}, (30, 0, 0, 0, 0)),
        ({"promptTokenCount": 30.0, "toolUsePromptTokenCount": 7.0}, (37, 0, 0, 0, 0)),
    ],
)
def test_the_usage_of_each_api_is_read(usage: dict[str, Any], tokens: tuple[int, ...]) -> None:
    assert usage_of(usage, lambda _: None) == tokens
    history = recede.History()
    history.append({"role": "user", "content": "Go."})
    history.view()
    history.reported(usage)
    reported = history.stats().reported
    assert reported[1:5] == (tokens[0], tokens[1], tokens[2] + tokens[3], tokens[4])
    reader = AnswerReader("application/json", "identity")
    key = "usageMetadata" if "promptTokenCount" in usage or "prompt_token_count" in usage else "usage"
    reader.feed(dumps({key: usage}))
    reader.end()
    assert reader.usage == tokens


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (
            {"input_tokens": 3, "output_tokens": 4, "frozen_input_tokens": 5},
            "tokens of the unknown kind 'frozen_input_tokens' are not counted",
        ),
        (
            {"input_tokens": 3, "output_tokens": 4, "input_tokens_details": {"frozen_tokens": 5, "text_tokens": 3}},
            "tokens of the unknown kind 'input_tokens_details.frozen_tokens' are not counted",
        ),
        ({"output_tokens": 4, "input_tokens": None}, "usage without input tokens"),
        (
            {"input_tokens": 3, "output_tokens": 4, "server_tool_use": {"web_search_requests": 2}},
            "web searches are not counted: they are billed apart from tokens",
        ),
        ({"input_tokens": 3, "output_tokens": 4, "server_tool_use": {"web_search_requests": 0}}, None),
        ({"prompt_tokens": 4}, "usage without output tokens"),
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "frozen_tokens": 0, "token_cost": 0.5}, None),
        ({"input_tokens": 0, "output_tokens": 0}, None),
    ],
)
def test_counts_that_nobody_knows_are_said(usage: dict[str, Any], said: str | None) -> None:
    notes: list[str] = []
    usage_of(usage, notes.append)
    assert notes == ([] if said is None else [said])


def test_what_a_usage_has_beside_its_sums_is_read() -> None:
    message = {"type": "message", "input_tokens": 3, "output_tokens": 60}
    advisor = {"type": "advisor_message", "model": "claude-opus-4-7", "input_tokens": 100, "output_tokens": 4}
    usage = {"input_tokens": 3, "output_tokens": 60, "iterations": [message, advisor, None, {"type": 7}]}
    compaction = {"type": "compaction", "input_tokens": 180, "output_tokens": 35}
    assert beside_of(usage, print) == [Beside("advisor_message", "claude-opus-4-7", LoggedUsage(100, 0, 0, 0, 4))]
    assert beside_of({"iterations": [compaction]}, print) == [Beside("compaction", None, LoggedUsage(180, 0, 0, 0, 35))]
    assert beside_of({"iterations": "none"}, print) == beside_of(None, print) == []


@pytest.mark.parametrize(
    ("usage", "tier"),
    [
        ({"speed": "fast", "service_tier": "standard"}, "fast"),
        ({"speed": "standard", "service_tier": "priority"}, "priority"),
        ({"service_tier": "batch"}, "batch"),
        ({"service_tier": "default", "speed": None}, None),
        ({"service_tier": "auto"}, None),
        ({"speed": 7}, None),
        ([], None),
    ],
)
def test_how_a_request_was_served_is_read(usage: Any, tier: str | None) -> None:
    assert tier_of(usage) == tier


# Prices


@pytest.mark.parametrize(
    ("model", "time", "tokens", "tier", "prices"),
    [
        ("gpt-5.6-sol", JULY_10, 0, None, (5.0, 0.5, 6.25, 30.0)),
        ("openai/gpt-5.6-sol", AUGUST_20, 0, None, (5.0, 0.5, 6.25, 30.0)),
        ("gpt-5.6-sol", AUGUST_21, 0, None, (4.0, 0.4, 5.0, 20.0)),
        ("gpt-5.6-sol", None, 0, None, (4.0, 0.4, 5.0, 20.0)),
        ("gpt-5.6-luna", JULY_10, 0, None, (1.0, 0.1, 1.25, 6.0)),
        ("gpt-5.6-sol", AUGUST_21, 272_001, None, (8.0, 0.8, 10.0, 30.0)),
        ("claude-haiku-5-5", None, 100_000, None, (0.1, 0.01, 0.125, 0.5)),
        ("claude-haiku-5-5", None, 100_001, None, (0.5, 0.05, 0.625, 2.5)),
        ("claude-opus-4-8", None, 0, "fast", (10.0, 1.0, 12.5, 50.0)),
        ("global.anthropic.claude-opus-4-8-20260528-v1:0", None, 0, "fast", (10.0, 1.0, 12.5, 50.0)),
        ("anthropic/claude-opus-5-fast", None, 0, None, (10.0, 1.0, 12.5, 50.0)),
        ("claude-opus-4-8", None, 0, None, (5.0, 0.5, 6.25, 25.0)),
        ("openai/gpt-4o-2024-05-13", None, 0, None, (5.0, 5.0, 5.0, 15.0)),
    ],
)
def test_prices_have_dates_lengths_and_tiers(
    model: str, time: float | None, tokens: int, tier: str | None, prices: tuple[float, ...]
) -> None:
    found = costs.model_prices(model, time=time, sent_tokens=tokens, tier=tier)
    assert found is not None and found.prices[:4] == prices


def test_an_own_price_is_that_of_any_day() -> None:
    own = {"gpt-5.6-sol": costs.MODELS["gpt-4o"]}
    assert costs.model_prices("gpt-5.6-sol", own, time=JULY_10) is costs.MODELS["gpt-4o"]
    assert costs.model_prices("gpt-5.6-sol", own, tier="fast") is None


def session(*requests: LoggedRequest) -> recede.transcripts.Transcript:
    history = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done."}]
    return recede.transcripts.Transcript(history, 1, "codex", "x", requests=requests)


def test_what_a_session_cost_is_told_at_the_price_of_its_day_and_what_is_not_known_is_a_note() -> None:
    usage, advice = LoggedUsage(1_000_000, 0, 0, 0, 0), LoggedUsage(0, 0, 0, 0, 100_000)
    first = LoggedRequest(1, "gpt-5.6-luna", JULY_10, LoggedUsage(100_000, 0, 0, 0, 0))
    assert costs.logged_bill([first]).cost == pytest.approx(0.1)
    assert costs.session_prices(session(first)).prices.input == 1.0
    fast = LoggedRequest(1, "claude-sonnet-4-6", None, usage, tier="fast")
    assert costs.logged_bill([fast]).cost == pytest.approx(3.0)
    note = "what claude-sonnet-4-6 costs as fast is not known: priced as usual"
    assert costs.session_prices(session(fast, fast)).assumed == (note,)
    advised = LoggedRequest(1, "claude-sonnet-4-6", None, usage, beside=(Beside("a", "claude-opus-4-7", advice),))
    bill = costs.logged_bill([advised])
    assert (bill.requests, bill.output_tokens, bill.cost) == (1, 100_000, pytest.approx(5.5))
    unknown = advised._replace(beside=(Beside("a", "no-model", advice),))
    assert costs.session_prices(session(unknown)).assumed == (
        "the model no-model has no known price: shares are at the prices of anthropic",
    )
    assert costs.logged_bill([unknown._replace(cost=0.5)])[5:] == (0.5, 0)


# Caches


@pytest.mark.parametrize(
    ("model", "write", "ttl_seconds"),
    [
        ("gpt-5.6-sol", 1.25, 1_800),
        ("openai/gpt-6.1-terra", 1.25, 1_800),
        ("gpt-6.9-nova", 1.25, 1_800),  # a later family
        ("gpt-7", 1.25, 1_800),
        ("gpt-5.5", 1.0, 300),
        ("gpt-5.4-mini", 1.0, 300),
        ("gpt-4o", 1.0, 300),
        ("gpt-35-turbo", 1.0, 300),
        ("o3", 1.0, 300),
    ],
)
def test_openai_keeps_entries_longer_and_charges_for_writes_since_gpt_5_6(
    model: str, write: float, ttl_seconds: float
) -> None:
    provider = recede.Provider.of("openai", model)
    assert (provider.name, provider.write, provider.ttl_seconds) == ("openai", write, ttl_seconds)


def test_a_replay_has_the_cache_of_the_session_s_model() -> None:
    usage = LoggedUsage(5_000, 0, 0, 0, 10)
    for model, ttl_seconds in (("gpt-5.6-sol", 1_800), ("gpt-6.9-nova", 1_800), ("gpt-5.5", 300), ("no-model", 300)):
        found = session(LoggedRequest(1, model, AUGUST_21, usage))
        assert costs.session_prices(found).ttl_seconds == ttl_seconds
        assert costs.replay_transcript(found, ["raw"]).cache.ttl_seconds == ttl_seconds
