"""Facts of models: prices, windows, reasoning, with date and source of each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from functools import cache
from time import time as seconds_now
from typing import NamedTuple

from recede._model_names import gpt_version, model_names, served_as


class Reasoning(NamedTuple):
    """What a model does with its reasoning.

    `kept` is the reasoning of earlier turns that a request still has: ``"all"``, ``"last"`` (of the turn that is open)
    or ``"none"``. `lowest_effort` asks for the least reasoning; None: no word for it is known. `share` is how much of
    an answer's tokens it takes at that effort; 0 if it is off by default, or where nothing is known.
    """

    kept: str
    lowest_effort: str | None
    share: float
    date: str
    source: str


class Model(NamedTuple):
    """The facts of a model, with the prices of a million tokens in US dollars.

    `write_1h` is the price of input written to the cache of one hour; that of other writes if there is no such cache.
    """

    provider: str
    date: str  # when the prices were valid, as year and month
    source: str  # the provider's page; "as others quote it" where the page itself was not read
    input: float
    cached: float
    write: float
    write_1h: float
    output: float
    min_tokens: int  # shorter requests are not cached
    window_tokens: int  # longer requests are refused
    ttl_seconds: float = 0  # how long an entry lives after its last use; 0: as its provider has it
    long: tuple[int, float, float] = (1 << 60, 1, 1)  # above so many tokens: how many times as much input, output cost
    small: str = ""  # a small and cheap model of the same provider; "": this one
    reasoning: Reasoning = Reasoning("none", None, 0.0, "", "")
    peak_hours: tuple[tuple[int, int], ...] = ()  # of weekdays, in UTC: from one up to another it costs twice as much


# What OpenRouter allots to an effort, of `max_tokens` (openrouter.ai/docs, reasoning tokens). It is no bound: others
# have measured more at "low".
_SHARES = {None: 0.0, "none": 0.0, "minimal": 0.1, "low": 0.2}
_QUOTED = ", as others quote it"
_CLAUDE = "platform.claude.com/docs: pricing, models, prompt caching"
_OPENAI = "developers.openai.com/api/docs/pricing" + _QUOTED
_OPENAI_MODEL = "developers.openai.com/api/docs/models: the model's own page"
_GEMINI = "ai.google.dev/gemini-api/docs/pricing" + _QUOTED
_THINKING = "platform.claude.com/docs: extended and preserved thinking, effort"
_ITEMS = "developers.openai.com/api/docs: reasoning, conversation state"
_THOUGHTS = "ai.google.dev/gemini-api/docs: thinking, thought signatures"


def _kept(kept: str, lowest_effort: str | None, source: str) -> Reasoning:
    return Reasoning(kept, lowest_effort, _SHARES[lowest_effort], "2026-11", source)


# Opus 4.5, Sonnet 4.6 and all that came later keep thinking of all turns; earlier models that of the open turn.
_CLAUDE_ALL = _kept("all", "low", _THINKING)
_CLAUDE_LAST = _kept("last", None, _THINKING)
_CLAUDE_NONE = _kept("none", None, _THINKING)
# Reasoning items of earlier turns are read from GPT-5.6 on (`reasoning.context`), and left out before.
_GPT_LAST = {effort: _kept("last", effort, _ITEMS) for effort in ("none", "minimal", "low")}
_GPT_ALL = {effort: _kept("all", effort, _ITEMS) for effort in ("none", "low")}
_GPT_NONE = _kept("none", None, _ITEMS)
# Signatures of the open turn must come back; those of earlier ones may be left out. 2.5 takes numbers, and no words.
_GEMINI_LAST = {effort: _kept("last", effort, _THOUGHTS) for effort in (None, "minimal", "low")}


def _claude(
    date: str,
    input: float,
    output: float,
    least: int = 2_048,
    cached: float | None = None,
    read: str = "",
    window: int = 1_000_000,
    small: str = "claude-haiku-5-5",
    reasoning: Reasoning = _CLAUDE_ALL,
) -> Model:
    # Writing costs 1.25 times the input for five minutes, twice for an hour; reading a tenth unless `cached` says more.
    cached = round(input / 10 if cached is None else cached, 4)
    prices = input, cached, input * 1.25, input * 2, output
    return Model("anthropic", date, _CLAUDE + read, *prices, least, window, small=small, reasoning=reasoning)


def _old_claude(date: str, input: float, output: float, least: int, read: str = "") -> Model:
    small = "claude-haiku-4-5"
    return _claude(date, input, output, least, None, read, 200_000, small, _CLAUDE_LAST)


def _openai(
    date: str,
    input: float,
    cached: float,
    output: float,
    window: int = 272_000,
    small: str = "gpt-5-nano",
    reasoning: Reasoning = _GPT_LAST["none"],
) -> Model:
    prices = input, cached, input, input, output
    return Model("openai", date, _OPENAI, *prices, 1_024, window, small=small, reasoning=reasoning)


# From GPT-5.6 on, writing to the cache costs 1.25 times the input, and an entry lives for 30 minutes
# (developers.openai.com/api/docs, prompt caching).
_NEW_WRITE, _NEW_TTL_SECONDS = 1.25, 1_800.0
_REGIONAL_TIMES = 1.1  # what one region alone costs
_MOST_UNKNOWN = 20  # names of models
_WEEKEND = 5  # the first day of it, from Monday on


def _openai_new(
    date: str,
    input: float,
    cached: float,
    output: float,
    effort: str = "none",
    small: str = "gpt-6-luna",
    source: str = _OPENAI,
) -> Model:
    write = round(input * _NEW_WRITE, 4)
    long = 272_000, 2.0, 1.5
    prices, facts = (input, cached, write, write, output), (1_024, 922_000, _NEW_TTL_SECONDS, long)
    return Model("openai", date, source, *prices, *facts, small, _GPT_ALL[effort])


def _gemini(
    date: str,
    input: float,
    output: float,
    least: int,
    cached: float | None = None,
    effort: str | None = "minimal",
    small: str = "gemini-3.1-flash-lite",
) -> Model:
    # Prompts up to 200,000 tokens; longer ones cost up to twice as much. Cached input costs a tenth unless `cached`
    # says more; the storage of explicit caches is not included.
    cached = round(input / 10 if cached is None else cached, 4)
    prices, reasoning = (input, cached, input, input, output), _GEMINI_LAST[effort]
    return Model("gemini", date, _GEMINI, *prices, least, 1_048_576, small=small, reasoning=reasoning)


def _times(row: Model, times: float, output_times: float) -> Model:
    prices = {name: round(getattr(row, name) * times, 4) for name in ("input", "cached", "write", "write_1h")}
    return row._replace(**prices, output=round(row.output * output_times, 4))


def _other(
    provider: str,
    source: str,
    prices: tuple[float, float, float],  # input, cached, output
    least: int,
    window: int,
    kept: str = "last",
    effort: str | None = None,
    small: str = "",
    twice_above: int = 1 << 60,
    write_1h: float = 1.0,
) -> Model:
    # Writing costs what input does. What is not published is 0: no minimum.
    input, cached, output = prices
    costs = input, cached, input, round(input * write_1h, 4), output
    reasoning = _kept(kept, effort, source)
    long = (twice_above, 2.0, 2.0) if twice_above < 1 << 60 else (1 << 60, 1.0, 1.0)
    return Model(provider, "2026-11", source, *costs, least, window, 0, long, small, reasoning)


_PEAK = ((1, 4), (6, 10))
_DEEPSEEK = "api-docs.deepseek.com: kv_cache, pricing, thinking mode"
_MOONSHOT = "platform.moonshot.ai/docs: pricing; forum.moonshot.ai/t/613"
_ZAI = "docs.z.ai: pricing, cache, thinking mode"
_ALIBABA = "help.aliyun.com/model-studio: context cache, models"
_MINIMAX = "platform.minimax.io/docs: pricing, prompt caching"
_XAI = "docs.x.ai: models, prompt caching, reasoning"
_MISTRAL = "docs.mistral.ai: models, prompt caching"
_FLASH = _other("deepseek", _DEEPSEEK, (0.15, 0.003, 0.6), 64, 1_000_000, "all")._replace(peak_hours=_PEAK)
_PRO = _other("deepseek", _DEEPSEEK, (0.66, 0.022, 1.98), 64, 1_000_000, "all", small="deepseek-flash")
_GLM = _other("zai", _ZAI, (1.4, 0.26, 4.4), 0, 1_000_000, small="glm-5.3-flash")
_GROK = _other("xai", _XAI, (2.0, 0.5, 6.0), 0, 500_000, "all", "low", twice_above=199_999)

# The smallest prompt that is cached is that of the providers' pages in October 2026 (prompt caching of
# platform.claude.com/docs, caching of ai.google.dev/gemini-api/docs). They do not name Claude Sonnet 5.5, for which
# 2,048 is assumed, nor Gemini's Flash-Lite models and 3 Flash, which have that of the Flash of their time. For
# Sonnet 4.6 the page says 1,024, but nothing under 2,048 was cached (anthropic-sdk-python, issue 1194).
# Older models that cost more above a limit (GPT before 5.6 above 272,000 tokens, Gemini above 200,000) have the lower
# price.
# Windows are of requests: of Anthropic by its page, of others as LiteLLM 1.110 quotes them. OpenAI counts the
# answer in, 128,000 tokens of 1,050,000 or 400,000. Models newer than that have the window of their family.
_STANDARD: Mapping[str, Model] = {
    "claude-fable-5-2": _claude("2026-11", 8.0, 40.0, 512, cached=0.2, read=_QUOTED),
    "claude-fable-5-1": _claude("2026-11", 10.0, 50.0, 512, cached=0.25),
    "claude-fable-5": _claude("2026-09", 10.0, 50.0, 512),
    "claude-opus-5-5": _claude("2026-11", 4.0, 20.0, 512, cached=0.2),
    "claude-opus-5": _claude("2026-11", 5.0, 25.0, 512),
    "claude-opus-4-8": _claude("2026-10", 5.0, 25.0, 1_024),
    "claude-opus-4-7": _claude("2026-09", 5.0, 25.0),
    "claude-opus-4-6": _claude("2026-10", 5.0, 25.0, 4_096),
    "claude-opus-4-5": _old_claude("2026-10", 5.0, 25.0, 4_096)._replace(reasoning=_CLAUDE_ALL),
    "claude-opus-4-1": _old_claude("2026-09", 15.0, 75.0, 1_024),
    "claude-opus-4": _old_claude("2026-09", 15.0, 75.0, 1_024),
    "claude-sonnet-5-5": _claude("2026-11", 2.0, 10.0, cached=0.1, read=_QUOTED),
    "claude-sonnet-5": _claude("2026-11", 2.0, 10.0, 1_024),
    "claude-sonnet-4-6": _claude("2026-06", 3.0, 15.0, read=_QUOTED),
    "claude-sonnet-4-5": _old_claude("2026-06", 3.0, 15.0, 1_024, _QUOTED)._replace(long=(200_000, 2.0, 1.5)),
    "claude-sonnet-4": _old_claude("2025-08", 3.0, 15.0, 1_024, _QUOTED),
    "claude-3-7-sonnet": _old_claude("2025-08", 3.0, 15.0, 1_024, _QUOTED),
    "claude-3-5-sonnet": _old_claude("2025-08", 3.0, 15.0, 1_024, _QUOTED)._replace(
        small="claude-3-5-haiku", reasoning=_CLAUDE_NONE
    ),
    "claude-haiku-5-5": _claude("2026-11", 0.1, 0.5, read=_QUOTED, small="")._replace(long=(100_000, 5.0, 5.0)),
    "claude-haiku-4-5": _old_claude("2026-10", 1.0, 5.0, 4_096)._replace(small=""),
    "claude-3-5-haiku": _old_claude("2025-08", 0.8, 4.0, 2_048, _QUOTED)._replace(small="", reasoning=_CLAUDE_NONE),
    "gpt-6.2-sol": _openai_new("2026-11", 2.0, 0.1, 10.0, "low", source=_OPENAI_MODEL),
    "gpt-6.2-astra": _openai_new("2026-11", 8.0, 0.4, 40.0, "low"),
    "gpt-6.1-sol": _openai_new("2026-09", 2.0, 0.1, 10.0, "low"),
    "gpt-6.1-terra": _openai_new("2026-11", 1.0, 0.05, 5.0),
    "gpt-6-astra": _openai_new("2026-09", 10.0, 1.0, 50.0, "low"),
    "gpt-6-sol": _openai_new("2026-11", 2.0, 0.2, 10.0, source=_OPENAI_MODEL),
    "gpt-6-luna": _openai_new("2026-09", 0.1, 0.01, 0.5, small=""),
    "gpt-5.6": _openai_new("2026-08", 4.0, 0.4, 20.0, small="gpt-5.6-luna"),
    "gpt-5.6-sol": _openai_new("2026-08", 4.0, 0.4, 20.0, small="gpt-5.6-luna"),
    "gpt-5.6-terra": _openai_new("2026-07", 2.0, 0.2, 12.0, small="gpt-5.6-luna"),
    "gpt-5.6-luna": _openai_new("2026-07", 0.2, 0.02, 1.2, small=""),
    "gpt-5.5": _openai("2026-06", 5.0, 0.5, 30.0, window=922_000, small="gpt-5.4-nano"),
    "gpt-5.4": _openai("2026-06", 2.5, 0.25, 15.0, window=922_000, small="gpt-5.4-nano"),
    "gpt-5.4-mini": _openai("2026-06", 0.75, 0.075, 4.5, small="gpt-5.4-nano"),
    "gpt-5.4-nano": _openai("2026-06", 0.2, 0.02, 1.25, small=""),
    "gpt-5.3-codex": _openai("2026-05", 1.75, 0.175, 14.0, reasoning=_GPT_LAST["low"]),
    "gpt-5.2-codex": _openai("2026-05", 1.75, 0.175, 14.0, reasoning=_GPT_LAST["low"]),
    "gpt-5.2": _openai("2026-05", 1.75, 0.175, 14.0),
    "gpt-5.1-codex-max": _openai("2026-05", 1.25, 0.125, 10.0, reasoning=_GPT_LAST["low"]),
    "gpt-5.1-codex": _openai("2026-05", 1.25, 0.125, 10.0, reasoning=_GPT_LAST["low"]),
    "gpt-5.1": _openai("2026-05", 1.25, 0.125, 10.0),
    "gpt-5-codex": _openai("2026-05", 1.25, 0.125, 10.0, reasoning=_GPT_LAST["low"]),
    "gpt-5": _openai("2026-05", 1.25, 0.125, 10.0, reasoning=_GPT_LAST["minimal"]),
    "gpt-5-mini": _openai("2025-12", 0.25, 0.025, 2.0, reasoning=_GPT_LAST["minimal"]),
    "gpt-5-nano": _openai("2025-12", 0.05, 0.005, 0.4, small="", reasoning=_GPT_LAST["minimal"]),
    "gpt-4.1": _openai("2025-12", 2.0, 0.5, 8.0, window=1_047_576, small="gpt-4.1-mini", reasoning=_GPT_NONE),
    "gpt-4.1-mini": _openai("2025-12", 0.4, 0.1, 1.6, window=1_047_576, small="", reasoning=_GPT_NONE),
    "gpt-4o": _openai("2025-12", 2.5, 1.25, 10.0, window=128_000, small="gpt-4o-mini", reasoning=_GPT_NONE),
    "gpt-4o-2024-05-13": _openai("2025-12", 5.0, 5.0, 15.0, window=128_000, small="gpt-4o-mini", reasoning=_GPT_NONE),
    "gpt-4o-mini": _openai("2025-12", 0.15, 0.075, 0.6, window=128_000, small="", reasoning=_GPT_NONE),
    "gemini-4-neon": _gemini("2026-11", 3.0, 15.0, 4_096, cached=0.15, effort="low"),
    "gemini-4-hydrogen": _gemini("2026-11", 1.5, 7.5, 4_096, cached=0.075, effort="low"),
    "gemini-4-argon": _gemini("2026-11", 2.0, 10.0, 4_096, cached=0.1, effort="low"),
    "gemini-3.8-flash": _gemini("2026-10", 0.75, 3.75, 4_096),
    "gemini-3.6-flash": _gemini("2026-09", 0.75, 3.75, 4_096),
    "gemini-3.7-flash": _gemini("2026-09", 0.75, 3.75, 4_096),
    "gemini-3.5-flash": _gemini("2026-10", 1.5, 9.0, 4_096),
    "gemini-3.1-pro": _gemini("2026-10", 2.0, 12.0, 4_096, effort="low"),
    "gemini-3-pro": _gemini("2026-01", 2.0, 12.0, 4_096, effort="low"),
    "gemini-3-flash": _gemini("2026-06", 0.5, 3.0, 1_024),
    "gemini-3.1-flash-lite": _gemini("2026-06", 0.25, 1.5, 1_024, small=""),
    "gemini-2.5-pro": _gemini("2026-10", 1.25, 10.0, 2_048, effort=None, small="gemini-2.5-flash-lite"),
    "gemini-2.5-flash": _gemini("2026-10", 0.3, 2.5, 2_048, effort=None, small="gemini-2.5-flash-lite"),
    "gemini-2.5-flash-lite": _gemini("2026-10", 0.1, 0.4, 2_048, effort=None, small=""),
    "deepseek-flash": _FLASH,
    "deepseek-v4-flash": _FLASH,
    "deepseek-v4.1-flash": _FLASH,
    "deepseek-v4-pro": _PRO._replace(peak_hours=_PEAK),
    "kimi-k3.1-pro": _other("moonshot", _MOONSHOT, (2.0, 0.2, 10.0), 256, 1_048_576, "all", write_1h=2.0),
    "kimi-k3.1-pro-highspeed": _other("moonshot", _MOONSHOT, (4.0, 0.2, 20.0), 256, 1_048_576, "all", write_1h=2.0),
    "kimi-k3": _other("moonshot", _MOONSHOT, (3.0, 0.3, 15.0), 256, 1_048_576, "all", write_1h=2.0),
    "kimi-k2.7-code": _other("moonshot", _MOONSHOT, (0.95, 0.19, 4.0), 256, 262_144),
    "glm-5.2": _GLM,
    "glm-5.3": _GLM,
    "glm-5.3-flash": _other("zai", _ZAI, (0.15, 0.03, 0.5), 0, 1_000_000),
    "qwen4-max": _other("alibaba", _ALIBABA, (1.5, 0.075, 4.5), 1_024, 991_808),
    "minimax-m3.1-flash": _other("minimax", _MINIMAX, (0.15, 0.015, 0.6), 512, 1_000_000, "all"),
    "minimax-m3": _other(
        "minimax", _MINIMAX, (0.3, 0.06, 1.2), 512, 1_000_000, "all", small="minimax-m3.1-flash", twice_above=512_000
    ),
    "grok-4.6": _GROK,
    "grok-4.7": _GROK,
    "mistral-large-4": _other("mistral", _MISTRAL, (0.7, 0.07, 2.1), 0, 1_048_576, effort="none"),
    "mistral-medium-3.5": _other("mistral", _MISTRAL, (1.5, 0.15, 7.5), 0, 262_144, effort="none"),
}
# What a name means at a host, before what it means anywhere. Cerebras has no price for what is cached.
_OSS = "console.groq.com/docs: prompt caching, models", "inference-docs.cerebras.ai: models"
HOST_ROWS: Mapping[tuple[str, str], Model] = {
    ("groq", "gpt-oss-120b"): _other("groq", _OSS[0], (0.15, 0.075, 0.6), 0, 131_072, "last", "low"),
    ("cerebras", "gpt-oss-120b"): _other("cerebras", _OSS[1], (0.35, 0.35, 0.75), 0, 131_072, "last", "low"),
}
_DEEPSEEK_NAMES = (("claude-opus", "deepseek-v4-pro"), ("claude-", "deepseek-flash"))  # how those of Claude begin there
# Fast mode has prices of its own, by the pages of the models; those of other models are not known.
_FAST_TIMES = {
    "claude-opus-5-5": 2.0,
    "claude-opus-5": 2.0,
    "claude-opus-4-8": 2.0,
    "claude-opus-4-7": 6.0,
    "claude-opus-4-6": 6.0,
}

MODEL_ROWS: Mapping[str, Model] = {
    **_STANDARD,
    **{f"{name}-fast": _times(_STANDARD[name], times, times) for name, times in _FAST_TIMES.items()},
}
"""Models by name, at the prices of standard requests, or of fast ones; batch, priority and regional prices differ."""

# What models cost until the first moment, in UTC, of a day, the oldest first; and from one on.
EARLIER_ROWS: Mapping[str, tuple[tuple[str, Model], ...]] = {
    "claude-sonnet-5-5": (("2026-10-07", _claude("2026-09", 2.0, 10.0, read=_QUOTED)),),
    "gpt-5.6": (("2026-08-21", _openai_new("2026-07", 5.0, 0.5, 30.0)),),
    "gpt-5.6-sol": (("2026-08-21", _openai_new("2026-07", 5.0, 0.5, 30.0)),),
    "gpt-5.6-terra": (("2026-07-30", _openai_new("2026-07", 2.5, 0.25, 15.0)),),
    "gpt-5.6-luna": (("2026-07-30", _openai_new("2026-07", 1.0, 0.1, 6.0)),),
}
# Announced for December and 2027 (ai.google.dev/gemini-api/docs/pricing, as genai-prices 0.2 quotes it, November 2026).
_TWICE_FROM_2027 = ("gemini-3.6-flash", "gemini-3.7-flash", "gemini-3.8-flash")
LATER_ROWS: Mapping[str, tuple[tuple[str, Model], ...]] = {
    "gemini-4-argon": (("2026-12-01", _times(_STANDARD["gemini-4-argon"], 2, 2)),),
    **{name: (("2027-01-01", _times(_STANDARD[name], 2, 2)),) for name in _TWICE_FROM_2027},
}

USUAL_MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "anthropic_1h": "claude-sonnet-4-6",
    "openai": "gpt-5.4",
    "gemini": "gemini-3.1-pro",
    "bedrock": "claude-sonnet-4-6",
}
"""The models whose prices are taken to be those of a provider."""


def model_row(
    model: str, time: float | None = None, sent_tokens: int = 0, tier: str | None = None, host: str | None = None
) -> Model | None:
    """Find the row of a model by a log's name for it; None if there is none: names are not guessed.

    The prices are those of a moment in Unix seconds (None: now), for a prompt of that many tokens, at a host by its
    maker.
    """
    tier, is_regional = served_as(model, tier)
    names = model_names(model, tier)
    at_host = next((row for name in names if (row := HOST_ROWS.get((host or "", name)))), None)
    if host == "deepseek":
        meant = (to for start, to in _DEEPSEEK_NAMES if names[-1].startswith(start))
        names = next(((to,) for to in meant), names)
    found = next((name for name in names if name in MODEL_ROWS), None)
    if found is None and at_host is None:
        return None
    row = at_host or _row_at(found or "", seconds_now() if time is None else time)
    above, times, output_times = row.long
    row = _times(row, times, output_times) if sent_tokens > above else row
    return _times(row, _REGIONAL_TIMES, _REGIONAL_TIMES) if is_regional else row


def _row_at(name: str, time: float) -> Model:
    """The row of a name in the table, with the prices of a moment."""
    for day, row in EARLIER_ROWS.get(name, ()):
        if time < _first_second(day):
            return row
    rows = [row for day, row in LATER_ROWS.get(name, ()) if time >= _first_second(day)]
    row = rows[-1] if rows else MODEL_ROWS[name]
    if row.peak_hours:
        then = datetime.fromtimestamp(time, timezone.utc)
        is_peak = then.weekday() < _WEEKEND and any(first <= then.hour < end for first, end in row.peak_hours)
        return _times(row, 2, 2) if is_peak else row
    return row


@cache
def _first_second(day: str) -> float:
    return datetime.fromisoformat(f"{day}T00:00+00:00").timestamp()


def new_cache(model: str) -> tuple[float, float] | None:
    """The price of a write, where input costs 1, and the lifetime of an entry, for models of OpenAI from GPT-5.6 on."""
    version = gpt_version(model)
    return None if version is None or version < (5, 6) else (_NEW_WRITE, _NEW_TTL_SECONDS)


class UnknownModels:
    """The first `names` of models without prices, which come from requests and answers."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def note(self, model: str, provider: str = "") -> None:
        """Log once that a model has no known prices: its cache costs what is usual for `provider`, it has no dollars.

        Without a provider it is the dollars alone that are not known.
        """
        if model not in self.names and len(self.names) < _MOST_UNKNOWN:
            import logging  # lazily: it takes longer to import than the prices

            self.names.append(model)
            cache = f"its cache is taken to cost what is usual for {provider}"
            said = cache if provider else "its requests are counted in tokens alone"
            logging.getLogger("recede").warning("the prices of %s are not known: %s", named(model), said)


def named(model: str) -> str:
    """Return a model's name in printable form: it comes from a request or an answer."""
    return ascii(model) if model else "a model without a name"
