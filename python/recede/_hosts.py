"""Hosts of makers and gateways: whose they are, the base URL of each form of request, and whose keys they take.

A form is the shape of a request: ``"chat"`` and ``"responses"`` (OpenAI's), ``"anthropic"``, ``"gemini"`` and
``"interactions"`` (Google's). A base URL is what clients of that form are given: with the version for OpenAI's two
forms, without it for the others.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

FORMS = ("chat", "responses", "anthropic", "gemini", "interactions")


class Host(NamedTuple):
    """What is known of a host: its rows stand in `HOSTS`."""

    host: str  # in it, ``*`` is any text; what follows a slash is the path of those addresses that the row is for
    maker: str
    date: str  # when this was read, as year and month
    source: str
    paths: Mapping[str, str]  # the path of the base URL, by form
    is_gateway: bool = False  # it sends requests on to several makers
    is_subscription: bool = False  # its plain keys are those of a subscription: no request has a price
    takes_keys: tuple[str, ...] = ()  # makers whose keys or logins its pages ask for; ``*``: all


def _openai(path: str = "/v1") -> dict[str, str]:
    return {"chat": path, "responses": path}


_QUOTED = ", as others quote it"
_GOOGLE = {"chat": "/v1beta/openai", "gemini": "", "interactions": ""}
_ALIYUN = {**_openai("/compatible-mode/v1"), "anthropic": "/apps/anthropic"}
_AZURE = {**_openai("/openai/v1"), "anthropic": "/anthropic"}
_COPILOT = {**_openai(""), "anthropic": ""}
_BOTH = {"chat": "/v1", "anthropic": "/anthropic"}
_PLAN = {"chat": "/v1", "anthropic": "/apps/anthropic"}
_NOV, _OCT = "2026-11", "2026-10"

HOSTS: tuple[Host, ...] = (
    # Makers
    Host("api.anthropic.com", "anthropic", _NOV, "platform.claude.com/docs/en/api", {"anthropic": "", "chat": "/v1"}),
    Host("api.openai.com", "openai", _NOV, "developers.openai.com/api/reference", _openai()),
    Host("chatgpt.com", "openai", _NOV, "openai/codex, model_provider_info.rs", {"responses": "/backend-api/codex"},
         is_subscription=True),
    Host("generativelanguage.googleapis.com", "google", _NOV, "ai.google.dev/gemini-api/docs: openai, interactions",
         _GOOGLE),
    Host("api.deepseek.com", "deepseek", _NOV, "api-docs.deepseek.com: first call, anthropic_api",
         {"chat": "", "anthropic": "/anthropic"}),
    Host("api.moonshot.ai", "moonshot", _NOV, "platform.moonshot.ai/docs" + _QUOTED, _BOTH),
    Host("api.moonshot.cn", "moonshot", _NOV, "platform.moonshot.cn/docs" + _QUOTED, _BOTH),
    Host("api.kimi.com/coding", "moonshot", _NOV, "www.kimi.com/code/docs",
         {"chat": "/coding/v1", "anthropic": "/coding"}, is_subscription=True),
    Host(
        "api.kimi.ai/coding",
        "moonshot",
        _NOV,
        "npm, @moonshot-ai/kimi-code 2.1.0",
        {"chat": "/coding/v1", "anthropic": "/coding"},
        is_subscription=True,
    ),
    # The address of Anthropic's form is that of both: of the Coding Plan, and of paid tokens.
    Host("api.z.ai", "zai", _NOV, "docs.z.ai/devpack; docs.z.ai/guides/develop",
         {"chat": "/api/paas/v4", "responses": "/api/v1", "anthropic": "/api/anthropic"}),
    Host("api.z.ai/api/coding", "zai", _NOV, "docs.z.ai/devpack/quick-start",
         {"chat": "/api/coding/paas/v4", "anthropic": "/api/anthropic"}, is_subscription=True),
    Host("open.bigmodel.cn", "zai", _NOV, "docs.bigmodel.cn" + _QUOTED,
         {"chat": "/api/paas/v4", "anthropic": "/api/anthropic"}),
    Host("open.bigmodel.cn/api/coding", "zai", _NOV, "docs.bigmodel.cn" + _QUOTED,
         {"chat": "/api/coding/paas/v4", "anthropic": "/api/anthropic"}, is_subscription=True),
    Host("dashscope.aliyuncs.com", "alibaba", _NOV, "help.aliyun.com/en/model-studio/base-url", _ALIYUN),
    Host("dashscope-intl.aliyuncs.com", "alibaba", _NOV, "help.aliyun.com/en/model-studio/base-url", _ALIYUN),
    Host("dashscope-us.aliyuncs.com", "alibaba", _NOV, "help.aliyun.com/en/model-studio/base-url", _ALIYUN),
    Host("coding.dashscope.aliyuncs.com", "alibaba", _NOV, "help.aliyun.com, coding plan" + _QUOTED, _PLAN,
         is_subscription=True),
    Host("coding-intl.dashscope.aliyuncs.com", "alibaba", _NOV, "help.aliyun.com, coding plan" + _QUOTED, _PLAN,
         is_subscription=True),
    Host("*.maas.aliyuncs.com", "alibaba", _NOV, "help.aliyun.com/en/model-studio/base-url", _ALIYUN),
    Host("api.minimax.io", "minimax", _NOV, "platform.minimax.io/docs/guides/quickstart", _BOTH),
    Host("api.minimaxi.com", "minimax", _NOV, "platform.minimaxi.com/docs" + _QUOTED, _BOTH),
    Host("api.x.ai", "xai", _NOV, "docs.x.ai/docs/api-reference", {**_openai(), "anthropic": ""}),
    Host("cli-chat-proxy.grok.com", "xai", _NOV, "npm, @xai-official/grok 1.0.41", _openai(), is_subscription=True),
    Host("api.mistral.ai", "mistral", _NOV, "docs.mistral.ai/api", {"chat": "/v1"}),
    Host("codestral.mistral.ai", "mistral", _NOV, "docs.mistral.ai/api" + _QUOTED, {"chat": "/v1"}),
    Host("api.xiaomimimo.com", "xiaomi", _NOV, "platform.xiaomimimo.com/docs" + _QUOTED, _BOTH),
    Host("ark.*.volces.com", "volcengine", _NOV, "www.volcengine.com/docs/82379" + _QUOTED,
         {**_openai("/api/v3"), "anthropic": "/api/compatible"}),
    Host("api.perplexity.ai", "perplexity", _NOV, "docs.perplexity.ai" + _QUOTED, {"chat": ""}),
    # Hosts that serve the models of several makers under keys of their own
    Host("api.groq.com", "groq", _NOV, "console.groq.com/docs/openai", _openai("/openai/v1")),
    Host("api.cerebras.ai", "cerebras", _NOV, "inference-docs.cerebras.ai/resources/openai", {"chat": "/v1"}),
    Host("api.fireworks.ai", "fireworks", _NOV, "docs.fireworks.ai: response-api, anthropic-compatibility",
         {**_openai("/inference/v1"), "anthropic": "/inference"}),
    Host("api.together.xyz", "together", _NOV, "docs.together.ai" + _QUOTED, {"chat": "/v1"}),
    Host("api.together.ai", "together", _NOV, "docs.together.ai" + _QUOTED, {"chat": "/v1"}),
    Host("integrate.api.nvidia.com", "nvidia", _NOV, "docs.api.nvidia.com" + _QUOTED, {"chat": "/v1"}),
    Host("api.deepinfra.com", "deepinfra", _NOV, "docs.deepinfra.com" + _QUOTED, {"chat": "/v1/openai"}),
    # Gateways
    Host("openrouter.ai", "openrouter", _NOV, "openrouter.ai/docs: claude-code-integration, responses",
         {**_openai("/api/v1"), "anthropic": "/api"}, is_gateway=True),
    Host("router.huggingface.co", "huggingface", _NOV, "huggingface.co/docs/inference-providers", _openai(),
         is_gateway=True),
    # A login of Claude passes, with the key of the gateway in x-ai-gateway-api-key.
    Host("ai-gateway.vercel.sh", "vercel", _NOV, "vercel.com/docs/ai-gateway/coding-agents/claude-code",
         {**_openai(), "anthropic": ""}, is_gateway=True, takes_keys=("anthropic",)),
    Host("gateway.ai.cloudflare.com", "cloudflare", _NOV, "developers.cloudflare.com/ai-gateway/integrations", {},
         is_gateway=True, takes_keys=("*",)),
    Host("opencode.ai", "opencode", _NOV, "opencode.ai/docs/zen", {**_openai("/zen/v1"), "anthropic": "/zen"},
         is_gateway=True),
    Host("opencode.ai/zen/go", "opencode", _NOV, "opencode.ai/docs/go",
         {**_openai("/zen/go/v1"), "anthropic": "/zen/go"}, is_gateway=True, is_subscription=True),
    Host("bedrock-runtime.*.amazonaws.com", "aws", _NOV, "docs.aws.amazon.com/bedrock, inference-responses-api",
         {**_openai("/openai/v1"), "anthropic": "/anthropic"}, is_gateway=True),
    Host("bedrock-mantle.*.api.aws", "aws", _NOV, "docs.aws.amazon.com/bedrock, inference-responses-api",
         {**_openai(), "anthropic": "/anthropic"}, is_gateway=True),
    Host("*aiplatform.googleapis.com", "google", _OCT, "cloud.google.com/vertex-ai/docs" + _QUOTED, {},
         is_gateway=True),
    Host("*.openai.azure.com", "azure", _NOV, "learn.microsoft.com/azure/ai-foundry/openai", _openai("/openai/v1"),
         is_gateway=True),
    Host("*.cognitiveservices.azure.com", "azure", _NOV, "learn.microsoft.com/azure/ai-foundry/openai" + _QUOTED,
         _openai("/openai/v1"), is_gateway=True),
    Host("*.services.ai.azure.com", "azure", _NOV, "learn.microsoft.com/azure/ai-foundry: endpoints, claude", _AZURE,
         is_gateway=True),
    Host("api.githubcopilot.com", "github", _NOV, "docs.github.com/copilot" + _QUOTED, _COPILOT, is_gateway=True,
         is_subscription=True),
    Host("api.*.githubcopilot.com", "github", _NOV, "docs.github.com/copilot" + _QUOTED, _COPILOT, is_gateway=True,
         is_subscription=True),
    Host("models.github.ai", "github", _NOV, "docs.github.com/github-models", {"chat": "/inference"}, is_gateway=True),
)  # fmt: skip
"""The known hosts. Of several rows that an address fits, the one with the longest path is its row."""

TITLES = {
    "anthropic": "Anthropic", "openai": "OpenAI", "google": "Google", "deepseek": "DeepSeek", "moonshot": "Kimi",
    "zai": "Z.ai", "alibaba": "Alibaba", "minimax": "MiniMax", "xai": "xAI", "mistral": "Mistral", "xiaomi": "Xiaomi",
    "volcengine": "Volcengine", "perplexity": "Perplexity", "groq": "Groq", "cerebras": "Cerebras",
    "fireworks": "Fireworks", "together": "Together", "nvidia": "NVIDIA", "deepinfra": "DeepInfra",
    "openrouter": "OpenRouter", "huggingface": "Hugging Face", "vercel": "Vercel", "cloudflare": "Cloudflare",
    "opencode": "OpenCode", "aws": "Amazon", "azure": "Azure", "github": "GitHub",
}  # fmt: skip
"""The names of makers and gateways, as people write them."""

# How keys begin, and whose they are (in November 2026, by the pages of the makers, and by the rules with which
# GitHub and gitleaks look for leaked keys). What begins with `sk-` alone may be anybody's.
_KEYS = {
    "sk-ant-": "anthropic",
    "sk-proj-": "openai", "sk-svcacct-": "openai", "sk-admin-": "openai",
    "AIza": "google", "AQ.": "google", "ya29.": "google",
    "sk-kimi-": "moonshot",
    "sk-sp-": "alibaba",
    "sk-cp-": "minimax",
    "xai-": "xai",
    "gsk_": "groq",
    "csk-": "cerebras",
    "fw_": "fireworks",
    "tgp_": "together",
    "nvapi-": "nvidia",
    "pplx-": "perplexity",
    "sk-or-": "openrouter",
    "hf_": "huggingface",
    "vck_": "vercel",
    "ABSK": "aws", "bedrock-api-key-": "aws",
    "gho_": "github", "ghu_": "github", "ghs_": "github", "ghp_": "github", "github_pat_": "github", "tid=": "github",
}  # fmt: skip
_KEY_OF_ZAI = re.compile(r"[0-9a-f]{32}\.[A-Za-z0-9]{16}")

# How names of models begin, without what is before a slash, and whose models they are.
_MODELS = {
    "anthropic": ("claude-",),
    "openai": ("gpt-", "chatgpt-", "codex-", "o1", "o3", "o4-", "davinci-", "babbage-"),
    "google": ("gemini-", "gemma-"),
    "deepseek": ("deepseek-",),
    "moonshot": ("kimi-", "moonshot-"),
    "zai": ("glm-", "chatglm"),
    "alibaba": ("qwen", "qwq-", "qvq-"),
    "minimax": ("minimax-", "abab"),
    "xai": ("grok-",),
    "mistral": ("mistral-", "codestral", "devstral", "magistral-", "ministral-", "pixtral-", "open-mistral-",
                "open-mixtral-", "mixtral-"),
    "xiaomi": ("mimo-",),
    "volcengine": ("doubao-",),
    "perplexity": ("sonar",),
}  # fmt: skip


def host_row(url: str) -> Host | None:
    """Find the row of an address; None if its host is not known.

    Example:
        >>> from recede._hosts import host_row
        >>> host_row("https://api.z.ai/api/coding/paas/v4").is_subscription, host_row("http://127.0.0.1:8080")
        (True, None)
    """
    try:
        parts = urllib.parse.urlsplit(url)
        name = parts.hostname or ""
    except ValueError:
        return None
    return _row(name.rstrip("."), parts.path)


@cache
def _patterns() -> list[tuple[re.Pattern[str], str, Host]]:
    # The longest path first; a name before one with `*`.
    rows = sorted(HOSTS, key=lambda row: (-row.host.count("/"), -len(row.host.partition("/")[2]), "*" in row.host))
    halves = ((*row.host.partition("/")[::2], row) for row in rows)
    return [(re.compile(re.escape(name).replace(r"\*", ".*")), path and f"/{path}", row) for name, path, row in halves]


def _row(name: str, path: str) -> Host | None:
    for pattern, start, row in _patterns():
        if pattern.fullmatch(name) and f"{path}/".startswith(f"{start}/"):
            return row
    return None


def base_url(host: str, form: str) -> str | None:
    """Return the base URL of a form at a host of the table; None if it is not known.

    Example:
        >>> from recede._hosts import base_url
        >>> base_url("api.deepseek.com", "anthropic")
        'https://api.deepseek.com/anthropic'
    """
    row = host_row(f"https://{host}")
    path = None if row is None else row.paths.get(form)
    return None if path is None else f"https://{host.partition('/')[0]}{path}"


def base_urls(maker: str, form: str) -> list[str]:
    """List the base URLs of a form at the hosts of a maker; hosts with ``*`` are left out."""
    found = (base_url(row.host, form) for row in HOSTS if row.maker == maker and "*" not in row.host)
    return list(dict.fromkeys(url for url in found if url is not None))


def key_maker(key: str) -> str | None:
    """Find whose a key is by how it looks; None if it does not say so."""
    if _KEY_OF_ZAI.fullmatch(key):
        return "zai"
    return next((maker for start, maker in _KEYS.items() if key.startswith(start)), None)


def takes_key(row: Host, key: str) -> bool:
    """Whether a key may go to a host: unless it is recognizably another maker's that this host does not ask for."""
    maker = key_maker(key)
    return maker in (None, row.maker, *row.takes_keys) or "*" in row.takes_keys


def model_maker(model: str) -> str | None:
    """Find whose a model is by its name; None if nobody knows it."""
    name = model.strip().lower().rpartition("/")[2].removeprefix("ft:")
    return next((maker for maker, starts in _MODELS.items() if name.startswith(starts)), None)
