"""Addresses: where requests go, and from where they are accepted."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Iterable

from recede.proxy._routes import OF_MESSAGES

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
