"""Whose keys and models may go to a host, and what a refusal tells one to type."""

from __future__ import annotations

import pytest

from recede._hosts import host_row
from recede.proxy._keys import refused_key, refused_model

BEARER = "Authorization"


def refused(url: str, *headers: tuple[str, str], path: str = "/v1/x", is_usual: bool = False) -> str | None:
    return refused_key(host_row(url), is_usual, "chat", path, headers, "claude")


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("https://api.deepseek.com", [(BEARER, "Bearer sk-ant-x")]),
        ("https://api.deepseek.com", [("x-api-key", "sk-proj-x")]),
        ("https://api.deepseek.com", [(BEARER, "Bearer sk-0"), ("X-Api-Key", "sk-ant-x")]),
        ("https://api.deepseek.com", [(BEARER, "Bearer sk-0"), (BEARER, "Bearer sk-ant-x")]),
        ("https://api.deepseek.com", [(BEARER, "bearer   sk-ant-x")]),
        ("https://api.deepseek.com", [(BEARER, "Bearer\tsk-ant-x ")]),
        ("https://api.deepseek.com", [(BEARER, "sk-ant-x")]),
        ("https://api.openai.com/v1", [("x-ai-gateway-api-key", "Bearer vck_x")]),
        ("https://api.mistral.ai", [("cf-aig-authorization", "Bearer xai-x")]),
        ("https://api.z.ai/api/paas/v4", [(BEARER, "Bearer sk-kimi-x")]),
        ("https://api.anthropic.com", [(BEARER, f"Bearer {'0123456789abcdef' * 2}.AbCdEfGhIjKlMnOp")]),
        ("https://openrouter.ai/api", [("x-api-key", "sk-ant-x")]),
        ("https://x.openai.azure.com", [("api-key", "sk-proj-x")]),
    ],
)
def test_refused_key_of_another_maker_says_so_without_it(url: str, headers: list[tuple[str, str]]) -> None:
    why = refused(url, *headers)
    assert why is not None and "its key is" in why and "recede proxy --upstream" in why
    assert not any(value.split()[-1] in why for _, value in headers)


def test_refused_key_in_a_query_is_found() -> None:
    for path in ("/v1/x?key=sk-ant-x", "/v1/x?a=1&api_key=sk-ant-x", "/x?access_token=sk%2Dant-x"):
        assert refused("https://api.deepseek.com", path=path) is not None, path


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("https://api.deepseek.com", (BEARER, "Bearer sk-0")),
        ("https://api.deepseek.com", (BEARER, "")),
        ("https://api.deepseek.com", ("api-key", "0123")),
        ("https://api.kimi.com/coding", (BEARER, "Bearer sk-kimi-x")),
        ("https://gateway.ai.cloudflare.com/v1/a/g/anthropic", ("x-api-key", "sk-ant-x")),
        ("https://ai-gateway.vercel.sh", (BEARER, "Bearer sk-ant-oat01-x")),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", (BEARER, "AWS4-HMAC-SHA256 Credential=A, Signature=b")),
        ("http://127.0.0.1:4000", (BEARER, "Bearer sk-ant-x")),
        ("https://gateway.example.org/v1", (BEARER, "Bearer sk-ant-x")),
    ],
)
def test_refused_key_of_own_maker_or_of_nobody_is_none(url: str, header: tuple[str, str]) -> None:
    assert refused(url, header) is None


def test_refused_key_in_the_header_of_azure_at_a_default_host() -> None:
    for is_usual in (True, False):
        why = refused("https://api.openai.com", ("api-key", "0123"), is_usual=is_usual)
        assert (why is not None and "Azure" in why) == is_usual


@pytest.mark.parametrize(
    ("form", "model", "urls"),
    [
        ("anthropic", "deepseek-v4-pro", ["https://api.deepseek.com/anthropic"]),
        ("chat", "deepseek/deepseek-v4", ["https://api.deepseek.com"]),
        ("anthropic", "glm-5.3", ["https://api.z.ai/api/anthropic", "https://open.bigmodel.cn/api/anthropic"]),
        ("responses", "grok-4.7", ["https://api.x.ai/v1"]),
        (
            "chat", "kimi-k3.1-pro",
            ["https://api.moonshot.ai/v1", "https://api.moonshot.cn/v1", "https://api.kimi.com/coding/v1"],
        ),
        ("anthropic", "MiniMax-M3", ["https://api.minimax.io/anthropic", "https://api.minimaxi.com/anthropic"]),
    ],
)  # fmt: skip
def test_refused_model_of_another_maker_names_all_its_addresses(form: str, model: str, urls: list[str]) -> None:
    row = host_row("https://api.openai.com" if form != "anthropic" else "https://api.anthropic.com")
    assert row is not None
    why = refused_model(row, form, model, "claude")
    assert why is not None
    assert all(f"`recede proxy --upstream {url} -- claude`" in why for url in urls), why


def test_refused_model_of_a_maker_without_that_form_says_what_is_missing() -> None:
    row = host_row("https://api.anthropic.com")
    assert row is not None
    why = refused_model(row, "gemini", "mistral-large-4", "")
    assert why is not None and "`recede proxy --upstream URL`" in why


@pytest.mark.parametrize("model", ["gpt-6.2-sol", "gpt-oss-120b", "ft:gpt-4.1:x", "o3", "mine", "", None])
def test_refused_model_of_own_maker_or_of_nobody_is_none(model: str | None) -> None:
    row = host_row("https://api.openai.com")
    assert row is not None and refused_model(row, "chat", model, "") is None
