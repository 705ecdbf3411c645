"""Who serves a request: by the user's word, the host, the maker of a model, its name, and the form."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

import recede
from recede import _serving
from recede._serving import described, serving
from recede.cli.settings import hosts_of
from recede.clients._requests import ModelProvider
from recede.costs import MODELS
from recede.integrations._shared import base_url
from recede.proxy import RequestMasker

OPUS = "claude-opus-4-8"
DEEPSEEK = "https://api.deepseek.com/anthropic"


@pytest.mark.parametrize(
    ("url", "model", "form", "name", "read"),
    [
        # The host comes first, also where the name is one of Claude.
        (DEEPSEEK, OPUS, "anthropic", "deepseek", 0.022 / 0.66),
        (DEEPSEEK, "claude-sonnet-5-5", "anthropic", "deepseek", 0.02),
        ("https://api.moonshot.ai/v1", "kimi-k2.7-code", "openai", "moonshot", 0.2),
        ("https://api.moonshot.ai/anthropic", "kimi-of-tomorrow", "anthropic", "moonshot", 0.05),
        ("https://api.z.ai/api/anthropic", "glm-5.3", "anthropic", "zai", 0.26 / 1.4),
        ("https://api.groq.com/openai/v1", "openai/gpt-oss-120b", "openai", "groq", 0.5),
        ("https://api.groq.com/openai/v1", "moonshotai/kimi-k3", "openai", "groq", 0.5),
        ("https://api.cerebras.ai/v1", "gpt-oss-120b", "openai", "cerebras", 1.0),
        ("https://api.openai.com/v1", "gpt-of-tomorrow", "openai", "openai", 0.1),
        # At a gateway it is the maker's.
        ("https://openrouter.ai/api/v1", "z-ai/glm-5.3", "openai", "zai", 0.26 / 1.4),
        ("https://openrouter.ai/api/v1", "anthropic/claude-opus-5.5", "openai", "anthropic", 0.05),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", f"us.anthropic.{OPUS}-v1:0", "anthropic", "bedrock", 0.1),
        ("https://ours.openai.azure.com/openai/v1", "deepseek-v4-pro", "openai", "none", 1.0),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "arn:aws:x", "anthropic", "bedrock", 0.1),
        # Then the name of the model.
        ("https://llm.example.com/v1", "grok-4.7", "openai", "xai", 0.25),
        ("http://127.0.0.1:4000", "minimax-m3", "anthropic", "minimax", 0.2),
        ("", "mistral-large-4", "openai", "mistral", 0.1),
        # Last the form, where no address is known, or it is one of this machine.
        ("", "of-tomorrow", "anthropic", "anthropic", 0.1),
        ("http://127.0.0.1:4000/v1", "of-tomorrow", "openai", "openai", 0.1),
        ("http://127.0.0.1:4000", "of-tomorrow", "anthropic", "unknown", 0.1),
        ("https://llm.example.com/v1", "of-tomorrow", "openai", "unknown", 0.1),
        ("https://openrouter.ai/api/v1", "of-tomorrow", "openai", "unknown", 0.1),
    ],
)
def test_the_host_says_most_then_the_maker_then_the_model_then_the_form(
    url: str, model: str, form: str, name: str, read: float
) -> None:
    found = serving(model, url, form)
    assert (found.provider.name, found.provider.read) == (name, pytest.approx(read))
    assert found.is_assumed is (name == "unknown" or model == "arn:aws:x")


def test_writes_of_open_models_at_bedrock_cost_more() -> None:
    found = serving("moonshot.kimi-k3", "https://bedrock-runtime.eu-west-1.amazonaws.com", "openai").provider
    assert (found.name, found.write) == ("unknown", 1.0)  # Bedrock's own name for it is not known
    found = serving("kimi-k3", "https://bedrock-runtime.eu-west-1.amazonaws.com", "openai").provider
    assert (found.name, found.write) == ("moonshot", 1.25)


@pytest.mark.parametrize(
    ("url", "needs"),
    [
        ("", True),
        ("https://api.anthropic.com", True),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", True),
        ("https://ours.services.ai.azure.com/anthropic", True),
        ("https://us-east5-aiplatform.googleapis.com", True),
        (DEEPSEEK, False),
        ("https://openrouter.ai/api", False),
        ("http://127.0.0.1:4000", False),
        ("https://llm.example.com", False),
    ],
)
def test_only_claude_by_anthropics_rules_has_no_cache_without_marks(url: str, needs: bool) -> None:
    assert serving(OPUS, url, "anthropic").needs_marks is needs


def test_marks_count_at_alibaba_and_for_minimax_m2() -> None:
    qwen = serving("qwen4-max", "https://dashscope-intl.aliyuncs.com/apps/anthropic", "anthropic")
    assert qwen.provider.cache == "prefix" and qwen.marked("qwen4-max").provider[:4] == ("alibaba", "marks", 0.1, 1.25)
    minimax = serving("minimax-m3", "https://api.minimax.io/anthropic", "anthropic")
    assert minimax.marked("MiniMax-M3").provider.cache == "prefix"
    assert minimax.marked("MiniMax-M2.5").provider.cache == "marks"


def test_marks_of_a_client_are_taken_for_marks_where_nothing_is_known() -> None:
    found = serving("of-tomorrow", "https://llm.example.com", "anthropic")
    assert found.provider.cache == "prefix" and not found.needs_marks
    assert [found.marked("of-tomorrow", hour).provider.name for hour in (False, True)] == ["anthropic", "anthropic_1h"]


def test_what_was_taken_is_said_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_serving, "_said", set())
    caplog.set_level(logging.INFO, "recede")
    body = json.dumps({"model": "kimi-k2.7-code", "messages": []}).encode()
    for url in ("https://api.moonshot.ai/v1", "https://llm.example.com/v1", "https://api.moonshot.ai/v1"):
        for model in (b"kimi-k2.7-code", b"of-tomorrow"):
            masker = RequestMasker(upstream=url)
            masker.mask("POST", "/v1/chat/completions", {}, body.replace(b"kimi-k2.7-code", model))
    said = [(one.levelname, one.message) for one in caplog.records if "cached token" in one.message]
    assert len(said) == 4 == len(set(said))
    line = "'kimi-k2.7-code' at api.moonshot.ai (Kimi): a cached token costs 0.2, prefix cache, 5 minutes (by the host)"
    assert said[0] == ("INFO", line)
    assert [level for level, line in said if "llm.example.com" in line and "'of-tomorrow'" in line] == ["WARNING"]


def test_every_known_model_can_be_described() -> None:
    for url in ("", DEEPSEEK, "https://openrouter.ai/api/v1", "https://llm.example.com", "http://[", "no url"):
        for model in (*MODELS, "", "of-\ntomorrow"):
            assert "\n" not in described(serving(model, url, "openai"), model)


def blocks(results: int = 60) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Find the bug."}]
    for number in range(results):
        use = {"type": "tool_use", "id": str(number), "name": "run", "input": {}}
        result = {"type": "tool_result", "tool_use_id": str(number), "content": f"{number} " + "a line\n" * 600}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return messages


def asked(masker: RequestMasker, results: int, model: str = OPUS) -> Any:
    body = json.dumps({"model": model, "messages": blocks(results)}).encode()
    return masker.mask("POST", "/v1/messages", {}, body)


def test_an_automatic_cache_without_marks_is_no_reason_to_slide() -> None:
    elsewhere, by_its_rules = RequestMasker(upstream=DEEPSEEK), RequestMasker(upstream="https://api.anthropic.com")
    found = [(asked(elsewhere, results), asked(by_its_rules, results)) for results in range(1, 61)]
    assert {one.cache for one, _ in found} == {"deepseek"} and {one.cache for _, one in found} == {"none"}
    assert sum(one.moved for one, _ in found) < 5 < 40 < sum(one.moved for _, one in found)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_report_of_more_than_the_prompt_ends_it_for_the_conversation(keeps: bool, tmp_path: Path) -> None:
    state = tmp_path / "state" if keeps else None
    masker = RequestMasker(state=state)
    for results in range(1, 31):
        last = asked(masker, results)
    assert last.cache == "none" and last.moved
    masker.reported(last, {"input_tokens": 3, "cache_read_input_tokens": 0, "output_tokens": 5})
    assert asked(masker, 31).cache == "none"
    last = asked(masker, 31)
    masker.reported(last, {"input_tokens": 3, "cache_read_input_tokens": 9_000, "output_tokens": 5})
    again = asked(masker, 31)
    assert (again.cache, again.body) == ("none", last.body)  # a request that is sent again keeps its bytes
    if keeps:
        masker = RequestMasker(state=state)
    after = [asked(masker, results) for results in range(32, 50)]
    assert {one.cache for one in after} == {"anthropic"}
    assert not after[0].moved and after[0].masked_count == last.masked_count  # the boundary stays
    assert sum(one.moved for one in after) < 4
    assert asked(RequestMasker(), 32).cache == "none"  # of another conversation


def test_a_report_changes_nothing_where_there_is_a_cache() -> None:
    masker = RequestMasker(provider="none")
    last = asked(masker, 30)
    masker.reported(last, {"input_tokens": 3, "cache_read_input_tokens": 90_000, "output_tokens": 5})
    assert asked(masker, 31).cache == "none"


def test_a_provider_of_ones_own_is_taken_with_its_lifetime() -> None:
    now = [1_700_000_000.0]
    own = recede.Provider("ours", cache="prefix", write=1.0, ttl_seconds=7_200)
    for provider, is_cold in ((own, False), (own._replace(ttl_seconds=60), True), ("anthropic_1h", False)):
        masker = RequestMasker(provider=provider, clock=lambda: now[0])
        asked(masker, 20)
        now[0] += 1_000
        assert asked(masker, 21).cold is is_cold


def test_kimi_keeps_entries_for_an_hour_on_request() -> None:
    def cache(**more: Any) -> str:
        body = {"model": "kimi-k3", "messages": [{"role": "user", "content": "Go."}], **more}
        masker = RequestMasker(upstream="https://api.moonshot.ai/v1")
        return masker.mask("POST", "/v1/chat/completions", {}, json.dumps(body).encode()).cache

    assert cache() == cache(prompt_cache_options=None) == cache(prompt_cache_options={"ttl": "5m"}) == "moonshot"
    assert cache(prompt_cache_options={"ttl": "1h"}) == "moonshot_1h"


def test_a_host_of_ones_own_serves_as_the_settings_say(tmp_path: Path) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("recede.toml is read by Python 3.11 and later")
    path = tmp_path / "recede.toml"
    path.write_text('[proxy]\nkeep = 5\n[hosts."LLM.example.com"]\nprovider = "deepseek"\n')
    masker = RequestMasker(hosts=hosts_of(path))
    body = json.dumps({"model": "claude-opus-4-8", "messages": blocks(3)}).encode()
    for url, cache in (("https://llm.example.com/v1", "deepseek"), ("https://other.example.com", "anthropic")):
        assert masker.mask("POST", "/v1/messages", {}, body, url).cache == cache
    assert hosts_of(tmp_path / "none.toml") == hosts_of(None) == {}


@pytest.mark.parametrize("table", ["provider = 3", 'maker = "deepseek"', 'provider = "zai"\nmore = 1', ""])
def test_settings_of_a_host_have_one_line(table: str, tmp_path: Path) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("recede.toml is read by Python 3.11 and later")
    path = tmp_path / "recede.toml"
    path.write_text(f'[hosts."llm.example.com"]\n{table}\n')
    with pytest.raises(click.UsageError, match="must have one line: provider"):
        hosts_of(path)


def test_a_host_that_serves_as_nobody_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no provider 'of-tomorrow'"):
        RequestMasker(hosts={"llm.example.com": "of-tomorrow"})


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (
            "https://us-east5-aiplatform.googleapis.com",
            "/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-opus-4-8@20260401:streamRawPredict",
        ),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", f"/model/us.anthropic.{OPUS}-v1%3A0/invoke"),
    ],
)
def test_claude_on_a_cloud_is_masked_by_the_model_of_the_path(url: str, path: str) -> None:
    body = json.dumps({"anthropic_version": "vertex-2023-10-16", "messages": blocks(30)}).encode()
    masker = RequestMasker(upstream=url)
    masked = masker.mask("POST", path, {}, body)
    assert masked.changed and masked.model is not None and OPUS in masked.model
    assert masked.cache == "none"  # no message has a mark
    signed = masker.mask("POST", path, {"Authorization": "AWS4-HMAC-SHA256 Credential=x"}, body)
    assert signed.body is body and signed.provider is None


def test_a_model_object_of_a_framework_has_an_address() -> None:
    client = SimpleNamespace(base_url="https://api.deepseek.com/")
    assert base_url(SimpleNamespace(client=SimpleNamespace(_client=client))) == "https://api.deepseek.com/"
    assert base_url(SimpleNamespace(openai_api_base=None, bound=SimpleNamespace(client_args={"base_url": "https://x"})))
    assert base_url({"api_base": "https://x", "model": "m"}) == "https://x"
    looped = SimpleNamespace(base_url="")
    looped.client = looped
    assert base_url(looped) == base_url("gpt-5.4") == base_url(None) == ""


def test_a_field_of_a_model_object_that_fails_is_no_address() -> None:
    class Unready:
        @property
        def client(self) -> object:
            raise RuntimeError("not connected yet")

    assert base_url(Unready()) == ""


def test_an_adapter_takes_the_provider_of_the_address() -> None:
    providers = ModelProvider(None, {}, by_name=True)
    found = [providers.of(OPUS, url) for url in ("", "https://api.deepseek.com/anthropic", "https://openrouter.ai/api")]
    assert [one and one.name for one in found] == ["anthropic", "deepseek", "anthropic"]
    assert providers.of("of-tomorrow", "") is None
    unknown = providers.of("of-tomorrow", "https://llm.example.com/v1")
    assert unknown is not None and (unknown.name, unknown.ttl_seconds) == ("unknown", None)
    assert ModelProvider(None, {"provider": "openai"}, by_name=True).of(OPUS, "https://api.deepseek.com") is None
