"""`Provider`: the table, and what reads it."""

from __future__ import annotations

import math
from typing import Any

import pytest

import recede
from recede.costs import CACHES, MODELS, PRESETS
from recede.providers import PROVIDERS, checked_provider, lifetime, policy_cache, saved_provider
from support import turns_of

OTHERS = """deepseek moonshot moonshot_1h zai alibaba minimax xai mistral groq cerebras fireworks""".split()
NAMES = ["anthropic", "anthropic_1h", "openai", "gemini", "bedrock", *OTHERS, "ideal", "none"]


def test_the_providers() -> None:
    assert list(PROVIDERS) == NAMES
    assert all(recede.Provider.of(name).name == name for name in NAMES)


def test_one_of_your_own_has_the_defaults_of_the_table() -> None:
    ours = recede.Provider("ours")
    assert ours == ("ours", "marks", 0.1, 1.25, 1_024, 0, 300, 20, 4, 5.0, False, False, "")


@pytest.mark.parametrize(
    ("name", "model", "facts"),
    [
        ("anthropic", "claude-opus-5-5", (0.05, 1.25)),
        ("anthropic_1h", "claude-opus-5-5", (0.05, 2.0)),
        ("bedrock", "us.anthropic.claude-opus-5-5-v1:0", (0.05, 1.25)),
        ("openai", "gpt-5.6-sol", (0.1, 1.25)),
        ("openai", "gpt-4o", (0.5, 1.0)),
        ("openai", "no-such-model", (0.1, 1.0)),
        ("ideal", "claude-opus-5-5", (0.05, 1.25)),
        ("none", "claude-opus-5-5", (1.0, 1.0)),
    ],
)
def test_prices_are_those_of_the_model(name: str, model: str, facts: tuple[float, float]) -> None:
    found = recede.Provider.of(name, model)
    assert (found.name, *found[2:4]) == (name, *(pytest.approx(price) for price in facts))


def test_all_else_is_that_of_the_provider() -> None:
    usual, found = recede.Provider.of("anthropic"), recede.Provider.of("anthropic", "claude-opus-5-5")
    assert found.min_tokens == 512
    assert found._replace(read=usual.read, min_tokens=usual.min_tokens, verifies_reasoning=False) == usual


@pytest.mark.parametrize("model", [None, ""])
def test_without_a_model_it_is_the_row(model: str | None) -> None:
    assert recede.Provider.of("gemini", model) is PROVIDERS["gemini"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("antropic",), ValueError, "there is no provider 'antropic'; did you mean 'anthropic'"),
        (("x",), ValueError, "there is no provider 'x'"),
        ((7,), TypeError, "must be a str, not int"),
        ((["anthropic"],), TypeError, "must be a str, not list"),
        (("anthropic", b"gpt"), TypeError, "must be a str, not bytes"),
    ],
)
def test_wrong_names_say_what_there_is(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        recede.Provider.of(*arguments)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_prices_in_dollars_have_the_proportions_of_the_provider(name: str) -> None:
    prices, provider = PRESETS[name], PROVIDERS[name]
    assert prices.cached / prices.input == pytest.approx(provider.read)
    assert prices.write / prices.input == pytest.approx(provider.write)
    assert prices.min_cached_tokens == provider.min_tokens


def test_each_provider_with_a_cache_has_one_in_costs() -> None:
    assert [*CACHES, "none"] == [name for name in NAMES if name != "cerebras"]  # which has no price of a cached token
    assert CACHES["ideal"].ttl_seconds == math.inf


def test_each_model_is_of_a_provider() -> None:
    assert {one.provider for one in MODELS.values()} <= PROVIDERS.keys()


def test_a_policy_has_the_numbers_of_the_provider() -> None:
    assert policy_cache(recede.Provider.of("openai")) == ("prefix", 1_024, 128, 20, 4, 0, False)
    assert policy_cache(recede.Provider.of("anthropic")) == ("breakpoints", 2_048, 0, 20, 4, 0, False)
    assert policy_cache(recede.Provider.of("none")) == ("ideal", 0, 0, 20, 4, 0, False)
    assert policy_cache(recede.Provider.of("openai", "gpt-5.6")) == ("entries", 1_024, 0, 20, 4, 40_000, False)


@pytest.mark.parametrize(
    ("model", "least"),
    [("claude-opus-5-5", 512), ("claude-sonnet-5", 1_024), ("claude-opus-4-7", 2_048), ("gemini-2.5-pro", 2_048)],
)
def test_models_have_the_minimum_of_the_pages_of_providers(model: str, least: int) -> None:
    assert MODELS[model].prices.min_cached_tokens == least


@pytest.mark.parametrize(
    ("model", "provider", "read"),
    [
        ("claude-opus-5-5", "anthropic", 0.05),
        ("anthropic:claude-sonnet-4-5", "anthropic", 0.1),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic", 0.1),
        ("openrouter/anthropic/claude-unheard-of", "anthropic", 0.1),
        ("gpt-4o-2024-08-06", "openai", 0.5),
        ("azure/o3-mini", "openai", 0.1),
        ("o3", "openai", 0.1),
        ("models/gemini-2.5-pro", "gemini", 0.1),
        ("groq/openai/gpt-oss-120b", None, 0),
        ("my-claude-like-model", None, 0),
        ("llama-4", None, 0),
        ("", None, 0),
    ],
)
def test_the_name_of_a_model_says_whose_cache_it_has(model: str, provider: str | None, read: float) -> None:
    found = recede.Provider.of_model(model)
    if provider is None:
        assert found is None
    else:
        assert found is not None and (found.name, found.read) == (provider, pytest.approx(read))


def test_the_name_of_a_model_is_a_str() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="the name of a model must be a str, not int"):
        recede.Provider.of_model(wrong)


@pytest.mark.parametrize(
    ("model", "verifies"),
    [
        ("claude-opus-5", False),
        ("claude-opus-5-20261101", False),  # of that day, not version 5.20261101
        ("claude-opus-5@20261101", False),
        ("us.anthropic.claude-opus-5-20261101-v1:0", False),
        ("claude-opus-5-20261101-thinking", False),
        ("claude-opus-5-5", True),
        ("claude-opus-5-5-20261101", True),
        ("claude-opus-5.5", True),
        ("anthropic/claude-5.5-opus-20261101", True),
        ("claude-opus-5-5-fast", True),
        ("claude-sonnet-4-6", False),
        ("claude-sonnet-5-5[1m]", True),
        ("claude-haiku-5-10", True),
        ("claude-fable-5", False),
        ("claude-fable-5-1", True),
        ("claude-mythos-5", False),
        ("vertex_ai/claude-mythos-5-2@20261101", True),
        ("claude-3-7-sonnet", False),
        ("claude-6", True),
        ("claude-nova-6", True),
        ("claude-unheard-of", False),
        ("my-claude-opus-6-like", False),
        ("gpt-6.1-sol", False),
        ("gpt-6.2-sol", True),
        ("openai/gpt-6.2-astra-2026-11-01", True),
        ("gpt-6.10", True),
        ("gpt-7", True),
        ("gpt-10", True),
        ("gpt-35-turbo", False),
        ("gpt-5.62", False),
        ("gpt-4o-2024-08-06", False),
        ("o3", False),
        ("gemini-4-neon", False),
        ("deepseek-v4-pro", False),
    ],
)
def test_reasoning_is_verified_from_a_version_of_the_family(model: str, verifies: bool) -> None:
    assert recede.Provider.of("none", model).verifies_reasoning is verifies
    found = recede.Provider.of_model(model)
    assert found is None or found.verifies_reasoning is verifies


def test_a_provider_as_the_first_version_stored_it_still_opens() -> None:
    stored = ["ours", "prefix", 0.2, 1.0, 512, 0, 0, 20, 4, 5.0]
    assert checked_provider("provider", stored) == recede.Provider(*stored) == (*stored, False, False, "")


def test_whether_it_verifies_must_be_a_bool() -> None:
    wrong: Any = recede.Provider("ours", verifies_reasoning=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"provider\.verifies_reasoning must be True or False, not int"):
        recede.reduce([], provider=wrong)


DEEPSEEK = recede.Provider(
    "deepseek",
    cache="entries",
    read=0.033,
    write=1,
    min_tokens=64,
    step_tokens=None,
    ttl_seconds=None,
    shares_prefixes=True,
)


def test_what_is_not_published_is_no_minimum_no_step_and_never_cold() -> None:
    ours = recede.Provider("ours", cache="prefix", min_tokens=None, step_tokens=None, ttl_seconds=None)
    assert policy_cache(checked_provider("provider", ours)) == ("prefix", 0, 0, 20, 4, 0, False)
    assert lifetime(ours) == math.inf
    with pytest.raises(TypeError, match=r"provider\.lookback_blocks must be a whole number, not NoneType"):
        checked_provider("provider", ours._replace(lookback_blocks=None))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"provider\.shares_prefixes must be True or False, not int"):
        checked_provider("provider", ours._replace(shares_prefixes=1))  # type: ignore[arg-type]


def test_what_requests_share_counts_only_where_it_never_expires() -> None:
    assert policy_cache(DEEPSEEK)[-1]
    assert not policy_cache(DEEPSEEK._replace(ttl_seconds=3_600))[-1]


@pytest.mark.parametrize(("static", "chars"), [(0, 40_000), (1, 1), (30_000, 32_768), (32_768, 32_768)])
def test_the_size_of_system_prompt_and_tools_is_rounded_up(static: int, chars: int) -> None:
    assert policy_cache(DEEPSEEK, static)[5] == chars


def test_stored_providers_open_with_fewer_fields_and_without_a_lifetime() -> None:
    stored = saved_provider(DEEPSEEK)
    assert policy_cache(checked_provider("provider", stored)) == policy_cache(DEEPSEEK)
    assert checked_provider("provider", list(recede.Provider("ours"))[:10]) == recede.Provider("ours")
    assert saved_provider(DEEPSEEK._replace(ttl_seconds=3_600))[6] == 0


@pytest.mark.parametrize("is_cold", [False, True])
def test_a_move_counts_on_what_was_shared_while_the_cache_is_warm(is_cold: bool) -> None:
    """The second move reads what precedes the first change of the first one, unless the cache was cold then."""
    history = turns_of([(20, 9_000)] * 60)
    first = recede.reduce(history, keep=2, provider=DEEPSEEK).boundary_moves[0]
    cold = [1 + 2 * first.request] if is_cold else []
    second = recede.reduce(history, keep=2, provider=DEEPSEEK, cold=cold).boundary_moves[1]
    end = 1 + 2 * second.request
    view = recede.reduce(history[:end], keep=2, provider=DEEPSEEK, cold=cold).messages
    kept = recede.count_chars(view[: end - 2]) - second.written_chars
    assert kept == (0 if is_cold else recede.count_chars(history[:2]))
