"""Where requests go, and from whom they are taken: addresses, and nothing of what is in a request."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterable

__all__ = ["UPSTREAMS", "checked_upstream", "is_address", "name_of", "network_proxies", "refuse_loop"]

UPSTREAMS = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""Where requests go, by provider."""


def name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    return (host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]).lower()


def is_address(name: str) -> bool:
    """Whether a name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def checked_upstream(url: str) -> str:
    """The URL of an upstream, without a slash at its end; ValueError if it is none."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"an upstream must be a URL such as https://api.anthropic.com, not {url!r}")
    if parts.username is not None:
        raise ValueError("an upstream must have no user and password; clients send their own keys")
    return url.rstrip("/")


def network_proxies(urls: Iterable[str]) -> dict[str, str]:
    """The proxies of the network by upstream, as the environment has them."""
    known = urllib.request.getproxies()
    found = {}
    for url in urls:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme in known and not urllib.request.proxy_bypass(parts.hostname or ""):
            found[url] = known[parts.scheme]
    return found


async def refuse_loop(loop: asyncio.AbstractEventLoop, url: str, host: str, port: int) -> None:
    """Raise ValueError if an upstream, or a proxy of the network, is this proxy."""
    parts = urllib.parse.urlsplit(url)
    if (parts.port or {"http": 80, "https": 443}.get(parts.scheme)) != port:
        return
    with contextlib.suppress(OSError):
        infos = await loop.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        own = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        mine = {info[4][0] for info in own}
        for info in infos:
            address = ipaddress.ip_address(info[4][0])
            if str(address) in mine or (address.is_loopback and mine & {"0.0.0.0", "::", "127.0.0.1", "::1"}):
                raise ValueError(
                    f"{parts.scheme}://{parts.hostname}:{port}, where requests would be sent, is this proxy itself; "
                    "give the address of the provider (--upstream), or of the proxy of the network (HTTPS_PROXY)"
                )
