"""The paths whose requests have a history that can be masked, the provider of a request, and addresses of upstreams."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import NamedTuple

UNKNOWN = (
    "neither the path nor the headers of this request identify its provider, or its key is for another one, so it is "
    "not sent: check the base URL of the client (OpenAI's ends in /v1), or give the proxy its address with --upstream"
)
"""The error for a request whose provider is not known."""


class Route(NamedTuple):
    """A kind of request that has a history."""

    provider: str  # a name of `recede.costs.PRESETS`
    is_counted: bool = False  # tokens are only counted: nothing is sent to a model


_ROUTES = {
    "/v1/messages": Route("anthropic"),
    "/v1/messages/count_tokens": Route("anthropic", is_counted=True),
    "/chat/completions": Route("openai"),
    "/responses": Route("openai"),
    "/responses/input_tokens": Route("openai", is_counted=True),
    "/responses/compact": Route("openai"),
    ":generateContent": Route("gemini"),
    ":streamGenerateContent": Route("gemini"),
}


OF_MESSAGES = ("/messages", "/messages/count_tokens")
"""Paths of clients of Anthropic that take the version for a part of the base URL."""
_OF_GEMINI = ("/v1beta/", "/upload/v1beta/")
_KEY = re.compile(r"[?&]key=([^&]*)")
_KEYS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
# How bearers begin that are no keys: logins of Claude, tokens of OAuth, of Google, of GitHub and its Copilot.
_LOGINS = ("sk-ant-oat", "eyJ", "ya29.", "gho_", "ghu_", "ghs_", "tid=")
# How keys begin, and the provider that they are for; "" is another company.
_KEYS_OF = {
    "sk-ant-": "anthropic",
    "sk-proj-": "openai",
    "AIza": "gemini",
    "sk-or-": "",  # OpenRouter
    "xai-": "",  # xAI
    "gsk_": "",  # Groq
    "csk-": "",  # Cerebras
    "fw_": "",  # Fireworks
    "hf_": "",  # Hugging Face
    "nvapi-": "",  # NVIDIA
    "pplx-": "",  # Perplexity
    "tgp_": "",  # Together
}


def route_of(path: str) -> Route | None:
    """Find the route of a path; None if no request there has a history. A base URL may prefix the provider's path."""
    path = path.partition("?")[0].replace("%3A", ":")
    path = f"/v1{path}" if path in OF_MESSAGES else path
    route = next((route for end, route in _ROUTES.items() if path.endswith(end)), None)
    return Route("gemini") if route is not None and path.startswith(_OF_GEMINI) else route


def provider_of(method: str, path: str, headers: Mapping[str, str], route: Route | None) -> str | None:
    """Find the provider of a request by its headers, path and route; None if they name none, or two.

    What says whose the key is comes before the path. Whether it may have the key, `may_have_key` says.
    """
    names = {name.lower() for name in headers}
    place = path.partition("?")[0]
    keys = set()
    if place.startswith(_OF_GEMINI) or _KEY.search(path) or any(name.startswith("x-goog-") for name in names):
        keys.add("gemini")
    if "x-api-key" in names or any(name.startswith("anthropic-") for name in names):
        keys.add("anthropic")
    if "chatgpt-account-id" in names:
        keys.add("chatgpt")
    if keys:
        return keys.pop() if len(keys) == 1 else None
    if route is not None:
        return route.provider
    if place == "/api/hello" or (method == "HEAD" and place == "/"):  # Claude Code asks whether there is a network
        return "anthropic"
    is_of_openai = place.startswith("/v1/") and headers.get("Authorization", "").lower().startswith("bearer ")
    return "openai" if is_of_openai else None


def may_have_key(provider: str, path: str, headers: Mapping[str, str]) -> bool:
    """Whether the keys of a request are for this provider, by how they begin; most do not say."""
    if "api-key" in headers and "authorization" not in headers:  # Azure's
        return False
    found = (
        next((owner for start, owner in _KEYS_OF.items() if key.startswith(start)), provider)
        for key in _keys(path, headers)
    )
    return all(owner == provider for owner in found)


def credentials(path: str, headers: Mapping[str, str]) -> list[str]:
    """Return what identifies the client of a request; names of headers are in small letters."""
    found = _KEY.search(path)
    return [*(headers.get(name, "") for name in _KEYS), found[1] if found else ""]


def _keys(path: str, headers: Mapping[str, str]) -> list[str]:
    """The keys among the credentials, without the word before them, which is "Bearer"."""
    given = [value.strip() for value in credentials(path, headers)]
    return [value.partition(" ")[2].lstrip() or value for value in given]


def has_login(headers: Mapping[str, str]) -> bool:
    """Whether a request has the login of a subscription, which belongs to its agent, instead of a key of an API.

    Names of headers are in small letters.
    """
    is_oauth = "oauth" in headers.get("anthropic-beta", "")
    return "chatgpt-account-id" in headers or is_oauth or any(key.startswith(_LOGINS) for key in _keys("", headers))


UPSTREAMS = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "chatgpt": "https://chatgpt.com/backend-api/codex",  # Codex with a login of ChatGPT
}
"""The URL that requests go to, by provider."""


def path_to(upstream: str, path: str) -> str:
    """Return a request's path at an upstream: clients differ in whether a base URL includes the version."""
    if upstream.endswith(("/backend-api/codex", "/v1")):
        return path.removeprefix("/v1")
    is_short = path.partition("?")[0] in OF_MESSAGES
    return f"/v1{path}" if is_short else path


def name_of(host: str) -> str:
    """Return the name in a Host header, without its port."""
    return (host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]).lower()


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def checked_upstream(url: str) -> str:
    """Return the URL of an upstream without a final slash; raise ValueError if it is no URL."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        parts = urllib.parse.urlsplit("")
    # A query may have a key in it, and what precedes the host a password.
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = re.split("[?#]", url)[0].rpartition("@")[2]
        raise ValueError(f"an upstream must be a URL such as https://api.anthropic.com, not {shown!r}")
    if parts.query or parts.fragment:
        raise ValueError(f"an upstream must be a URL without a query, such as {place_of(url)}")
    if parts.username is not None:
        raise ValueError("an upstream must have no user and password; clients send their own keys")
    return url.rstrip("/")


def network_proxies(urls: Iterable[str]) -> dict[str, str]:
    """Return the network proxies of the environment, by upstream."""
    import urllib.request  # lazily: what only names an upstream needs no client of http

    known = urllib.request.getproxies()
    found = {}
    for url in urls:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme in known and not urllib.request.proxy_bypass(parts.hostname or ""):
            found[url] = known[parts.scheme]
    return found


def place_of(url: str) -> str:
    """Return the address of a URL, without path, user and password."""
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
