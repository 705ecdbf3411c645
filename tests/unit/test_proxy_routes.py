"""Where a request goes at an upstream: the path of its form at hosts of the table, one version elsewhere."""

from __future__ import annotations

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

from recede._hosts import FORMS, HOSTS
from recede.proxy._routes import UPSTREAMS, Route, model_of, provider_of, route_of, url_to

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages?beta=true"
GENERATE = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
OPUS_AT_VERTEX = "claude-opus-4-8@20260401"
VERTEX = f"/v1/projects/p/locations/us-east5/publishers/anthropic/models/{OPUS_AT_VERTEX}:streamRawPredict"
BEDROCK, AWS = "/model/us.anthropic.claude-opus-4-8-v1%3A0/invoke", "bedrock-runtime.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    ("upstream", "path", "url"),
    [
        # hosts of the table, with any of their base URLs
        ("https://api.z.ai/api/paas/v4", CHAT, "https://api.z.ai/api/paas/v4/chat/completions"),
        ("https://api.z.ai", CHAT, "https://api.z.ai/api/paas/v4/chat/completions"),
        ("https://api.z.ai/api/anthropic", CHAT, "https://api.z.ai/api/paas/v4/chat/completions"),
        ("https://api.z.ai/api/paas/v4", RESPONSES, "https://api.z.ai/api/v1/responses"),
        ("https://api.z.ai/api/paas/v4", MESSAGES, "https://api.z.ai/api/anthropic/v1/messages?beta=true"),
        ("https://api.z.ai/api/coding/paas/v4", CHAT, "https://api.z.ai/api/coding/paas/v4/chat/completions"),
        ("https://api.z.ai/api/coding/paas/v4", "/messages", "https://api.z.ai/api/anthropic/v1/messages"),
        ("https://api.z.ai", "/api/paas/v4/chat/completions", "https://api.z.ai/api/paas/v4/chat/completions"),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai", CHAT,
            "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        ),
        (
            "https://generativelanguage.googleapis.com/v1beta", CHAT,
            "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        ),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai", GENERATE,
            "https://generativelanguage.googleapis.com" + GENERATE,
        ),
        (
            UPSTREAMS["gemini"], "/v1beta/openai/chat/completions",
            "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        ),
        ("https://api.deepseek.com", CHAT, "https://api.deepseek.com/chat/completions"),
        ("https://api.deepseek.com/v1", MESSAGES, "https://api.deepseek.com/anthropic/v1/messages?beta=true"),
        ("https://api.deepseek.com/anthropic", "/v1/models", "https://api.deepseek.com/models"),
        ("https://api.kimi.com/coding", CHAT, "https://api.kimi.com/coding/v1/chat/completions"),
        ("https://api.kimi.com/coding/v1", MESSAGES, "https://api.kimi.com/coding/v1/messages?beta=true"),
        ("https://api.moonshot.ai/v1", MESSAGES, "https://api.moonshot.ai/anthropic/v1/messages?beta=true"),
        ("https://api.groq.com", RESPONSES, "https://api.groq.com/openai/v1/responses"),
        ("https://api.groq.com", "/openai/v1/models", "https://api.groq.com/openai/v1/models"),
        ("https://api.fireworks.ai/inference/v1", MESSAGES, "https://api.fireworks.ai/inference/v1/messages?beta=true"),
        ("https://openrouter.ai", "/chat/completions", "https://openrouter.ai/api/v1/chat/completions"),
        ("https://mine.openai.azure.com", RESPONSES, "https://mine.openai.azure.com/openai/v1/responses"),
        (
            "https://mine.openai.azure.com", "/openai/deployments/d/chat/completions?api-version=1",
            "https://mine.openai.azure.com/openai/deployments/d/chat/completions?api-version=1",
        ),
        (
            f"https://{AWS}", BEDROCK,
            f"https://{AWS}{BEDROCK}",
        ),
        (
            "https://us-east5-aiplatform.googleapis.com", VERTEX,
            f"https://us-east5-aiplatform.googleapis.com{VERTEX}",
        ),
        ("https://api.githubcopilot.com", CHAT, "https://api.githubcopilot.com/chat/completions"),
        ("https://api.githubcopilot.com", MESSAGES, "https://api.githubcopilot.com/v1/messages?beta=true"),
        (UPSTREAMS["openai"], "/chat/completions", "https://api.openai.com/v1/chat/completions"),
        (UPSTREAMS["openai"], "/v1/files/f?a=/v1/", "https://api.openai.com/v1/files/f?a=/v1/"),
        (UPSTREAMS["openai"], "/other", "https://api.openai.com/other"),
        (UPSTREAMS["anthropic"], CHAT, "https://api.anthropic.com/v1/chat/completions"),
        (UPSTREAMS["anthropic"], "/messages", "https://api.anthropic.com/v1/messages"),
        ("https://api.mistral.ai", MESSAGES, "https://api.mistral.ai/v1/messages?beta=true"),
        # others
        ("http://localhost:1", CHAT, "http://localhost:1/v1/chat/completions"),
        ("http://localhost:1/v1", CHAT, "http://localhost:1/v1/chat/completions"),
        ("http://localhost:1/api/v3", CHAT, "http://localhost:1/api/v3/chat/completions"),
        ("http://localhost:1/v1beta/openai", CHAT, "http://localhost:1/v1beta/openai/chat/completions"),
        ("http://localhost:1/vault/openai", CHAT, "http://localhost:1/vault/openai/v1/chat/completions"),
        ("http://localhost:1/openai", "/chat/completions", "http://localhost:1/openai/chat/completions"),
        ("http://localhost:1/v1", "/messages", "http://localhost:1/v1/messages"),
        ("http://localhost:1/a", "/messages", "http://localhost:1/a/v1/messages"),
        ("http://localhost:1", "/v1/threads/t/messages", "http://localhost:1/v1/threads/t/messages"),
        (
            "https://gateway.ai.cloudflare.com/v1/a/g/openai", CHAT,
            "https://gateway.ai.cloudflare.com/v1/a/g/openai/chat/completions",
        ),
        (
            "https://gateway.ai.cloudflare.com/v1/a/g/anthropic", MESSAGES,
            "https://gateway.ai.cloudflare.com/v1/a/g/anthropic/v1/messages?beta=true",
        ),
    ],
)  # fmt: skip
def test_url_to_upstream_has_the_path_of_the_form(upstream: str, path: str, url: str) -> None:
    provider = "anthropic" if "messages" in path else "gemini" if "v1beta/" in path else "openai"
    assert url_to(upstream, path, provider) == url


def test_url_to_login_of_chatgpt_has_no_version() -> None:
    assert url_to(UPSTREAMS["chatgpt"], RESPONSES, "chatgpt") == "https://chatgpt.com/backend-api/codex/responses"


def test_url_to_each_host_is_its_own_whichever_base_url_is_given() -> None:
    """Also a client that has the whole path in its base URL arrives there."""
    ends = {"chat": "/chat/completions", "responses": "/responses", "anthropic": "/v1/messages", "gemini": GENERATE}
    ends["interactions"] = "/v1beta/models/x:generateContent"
    for row in HOSTS:
        origin = "https://" + row.host.partition("/")[0].replace("*", "x")
        for form, base in row.paths.items():
            expected = origin + base + ends[form]
            for given in {*row.paths.values()}:
                if "/" in row.host and not f"{given}/".startswith(f"/{row.host.partition('/')[2]}/"):
                    continue  # the address of another row
                sent = ends[form] if form not in ("chat", "responses") else f"/v1{ends[form]}"
                provider = form if form in ("anthropic", "gemini") else "openai"
                assert url_to(origin + given, sent, provider) == expected, (row.host, form, given)
    assert {form for row in HOSTS for form in row.paths} == {*FORMS}


@pytest.mark.parametrize(
    ("path", "route", "model"),
    [
        (VERTEX, Route("anthropic", names_model=True), OPUS_AT_VERTEX),
        (VERTEX.replace(":stream", ":").replace("RawP", "rawP"), Route("anthropic", names_model=True), OPUS_AT_VERTEX),
        (
            "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
            Route("anthropic", is_counted=True, names_model=True),
            "count-tokens",
        ),
        (BEDROCK, Route("anthropic", names_model=True), "us.anthropic.claude-opus-4-8-v1:0"),
        (
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.anthropic.claude-opus-4-8-v1%3A0/invoke",
            Route("anthropic", names_model=True),
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-8-v1:0",
        ),
        ("/openai/deployments/gpt-5.4/chat/completions?api-version=1", Route("openai"), "gpt-5.4"),
        (GENERATE, Route("gemini"), "gemini-3-pro"),
        ("/model/meta.llama4-1/invoke", None, "meta.llama4-1"),
        ("/v1/models/x", None, None),
    ],
)
def test_a_path_names_the_model(path: str, route: Route | None, model: str | None) -> None:
    assert (route_of(path), model_of(path, None)) == (route, model)
    assert model_of(path, "of the body") == "of the body"


def test_a_path_of_a_cloud_says_nothing_of_its_host() -> None:
    for path in (VERTEX, BEDROCK):
        assert provider_of("POST", path, {"Authorization": "Bearer key"}, route_of(path)) is None
