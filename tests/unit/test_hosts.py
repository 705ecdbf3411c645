"""The table of hosts: an address finds its row, each form has a base URL, and keys and models say whose they are."""

from __future__ import annotations

import re

import pytest

from recede._hosts import FORMS, HOSTS, TITLES, base_url, base_urls, host_row, key_maker, model_maker, takes_key


def test_rows_have_date_source_maker_and_clean_paths() -> None:
    for row in HOSTS:
        assert re.fullmatch(r"20\d\d-[01]\d", row.date) and row.source, row.host
        assert row.maker in TITLES and set(row.paths) <= set(FORMS), row.host
        assert all(path == "" or re.fullmatch(r"(/[\w.-]+)+", path) for path in row.paths.values()), row.host
        assert row.host == row.host.lower() and row.host.strip("/") == row.host
    assert len({row.host for row in HOSTS}) == len(HOSTS)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.deepseek.com/anthropic", "api.deepseek.com"),
        ("https://API.DeepSeek.com.:443", "api.deepseek.com"),
        ("https://api.z.ai/api/paas/v4", "api.z.ai"),
        ("https://api.z.ai/api/coding/paas/v4", "api.z.ai/api/coding"),
        ("https://api.z.ai/api/codings", "api.z.ai"),
        ("https://api.kimi.com/coding/", "api.kimi.com/coding"),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1", "bedrock-runtime.*.amazonaws.com"),
        ("https://aiplatform.googleapis.com/v1", "*aiplatform.googleapis.com"),
        ("https://europe-west4-aiplatform.googleapis.com/v1", "*aiplatform.googleapis.com"),
        ("https://api.business.githubcopilot.com", "api.*.githubcopilot.com"),
        ("https://mine.openai.azure.com/openai/v1", "*.openai.azure.com"),
    ],
)
def test_host_row_of_address_is_the_closest(url: str, host: str) -> None:
    row = host_row(url)
    assert row is not None and row.host == host


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/v1",
        "https://api.openai.com.example.org",
        "https://example.org/api.openai.com",
        "https://evil-api.openai.com",
        "https://api.kimi.com/other",
        "https://api.openai.com@example.org",
        "https://[bad",
        "",
    ],
)
def test_host_row_of_other_address_is_none(url: str) -> None:
    assert host_row(url) is None


def test_base_url_of_known_and_unknown_form() -> None:
    assert base_url("api.z.ai/api/coding", "chat") == "https://api.z.ai/api/coding/paas/v4"
    assert base_url("api.z.ai", "anthropic") == "https://api.z.ai/api/anthropic"
    assert base_url("api.mistral.ai", "anthropic") is None and base_url("example.org", "chat") is None


def test_base_urls_of_maker_with_several_hosts_are_all() -> None:
    found = base_urls("moonshot", "anthropic")
    assert found == [
        "https://api.moonshot.ai/anthropic",
        "https://api.moonshot.cn/anthropic",
        "https://api.kimi.com/coding",
        "https://api.kimi.ai/coding",
    ]
    assert base_urls("azure", "chat") == []


@pytest.mark.parametrize(
    ("key", "maker"),
    [
        ("sk-ant-api03-x", "anthropic"),
        ("sk-proj-x", "openai"),
        ("AIzaSy", "google"),
        ("sk-or-v1-x", "openrouter"),
        ("sk-kimi-x", "moonshot"),
        ("0123456789abcdef0123456789abcdef.AbCdEfGhIjKlMnOp", "zai"),
        ("sk-0123456789abcdef0123456789abcdef", None),
        ("0123456789abcdef0123456789abcdef", None),
        ("", None),
    ],
)
def test_key_maker_by_how_a_key_looks(key: str, maker: str | None) -> None:
    assert key_maker(key) == maker


@pytest.mark.parametrize(
    ("url", "key", "takes"),
    [
        ("https://api.deepseek.com", "sk-0123", True),
        ("https://api.deepseek.com", "sk-ant-x", False),
        ("https://api.moonshot.ai/v1", "sk-kimi-x", True),
        ("https://openrouter.ai/api/v1", "sk-ant-x", False),
        ("https://gateway.ai.cloudflare.com/v1/a/g/openai", "sk-proj-x", True),
        ("https://ai-gateway.vercel.sh", "sk-ant-oat01-x", True),
        ("https://ai-gateway.vercel.sh", "sk-proj-x", False),
    ],
)
def test_takes_key_of_own_maker_or_by_its_pages(url: str, key: str, takes: bool) -> None:
    row = host_row(url)
    assert row is not None and takes_key(row, key) is takes


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("deepseek-v4-pro", "deepseek"),
        ("deepseek/deepseek-v4-pro", "deepseek"),
        ("MiniMax-M3", "minimax"),
        ("qwen4-max", "alibaba"),
        ("accounts/fireworks/models/kimi-k2p5", "moonshot"),
        ("ft:gpt-4.1:mine", "openai"),
        ("gpt-oss-120b", "openai"),
        ("my-own", None),
        ("opus", None),
        ("", None),
    ],
)
def test_model_maker_by_its_name(model: str, maker: str | None) -> None:
    assert model_maker(model) == maker
