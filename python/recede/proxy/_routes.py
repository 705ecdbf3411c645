"""The paths whose requests have a history that can be masked, the provider of a request, and addresses of upstreams."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from recede import _engine
from recede._bodies import KEPT_BY_PROVIDER, KEPT_INTERACTION, loads
from recede._hosts import Host, host_row
from recede.proxy._keys import gemini_key, has_login

UNKNOWN = (
    "neither the path nor the headers of this request identify its provider, so it is not sent: check the base URL of "
    "the client (OpenAI's ends in /v1), or give the proxy its address with --upstream"
)
"""The error for a request whose provider is not known."""


class Route(NamedTuple):
    """A kind of request that has a history."""

    provider: str  # a name of `recede.costs.PRESETS`
    is_counted: bool = False  # tokens are only counted: nothing is sent to a model
    names_model: bool = False  # the path has the model, and says nothing of the host: that of a cloud
    kept: tuple[str, ...] = KEPT_BY_PROVIDER  # fields by which the provider keeps the history


_ROUTES = {
    "/v1/messages": Route("anthropic"),
    "/v1/messages/count_tokens": Route("anthropic", is_counted=True),
    "/chat/completions": Route("openai"),
    "/responses": Route("openai"),
    "/responses/input_tokens": Route("openai", is_counted=True),
    "/responses/compact": Route("openai"),
    "/interactions": Route("gemini", kept=KEPT_INTERACTION),
    ":generateContent": Route("gemini"),
    ":streamGenerateContent": Route("gemini"),
}


# Claude on Vertex and on Bedrock.
_OF_CLOUDS = {
    re.compile(r"/publishers/anthropic/models/count-tokens:rawPredict$"): Route("anthropic", True, True),
    re.compile(r"/publishers/anthropic/models/[^/]+:(?:stream)?[rR]awPredict$"): Route("anthropic", names_model=True),
    re.compile(r"/model/[^/]*anthropic\.[^/]+/invoke(?:-with-response-stream)?$"): Route("anthropic", names_model=True),
}

OF_MESSAGES = ("/messages", "/messages/count_tokens")
"""Paths of clients of Anthropic that take the version for a part of the base URL."""
_OF_GEMINI = ("/v1beta/", "/upload/v1beta/")
_INTERACTIONS = re.compile(r"/v1[a-z]*/interactions(?:/|$)")
_WITHOUT_VERSION = frozenset({"/models", *_ROUTES})


def route_of(path: str) -> Route | None:
    """Find the route of a path; None if no request there has a history. A base URL may prefix the provider's path."""
    path = path.partition("?")[0].replace("%3A", ":")
    path = f"/v1{path}" if path in OF_MESSAGES else path
    route = next((route for end, route in _ROUTES.items() if path.endswith(end)), None)
    route = route or next((route for pattern, route in _OF_CLOUDS.items() if pattern.search(path)), None)
    return route._replace(provider="gemini") if route is not None and path.startswith(_OF_GEMINI) else route


# Gemini, Vertex; Bedrock; Azure.
_MODELS = re.compile(r"/models/([^/?]{1,300}):\w+$|/model/([^/?]{1,300})/|/deployments/([^/?]{1,300})/")
_MOST_NAME = 100  # characters of a model's name


def model_of(path: str, named: str | None) -> str | None:
    """Find the model that a request names: in its body, or in its path."""
    if named is not None:
        return named[:_MOST_NAME]
    found = _MODELS.search(path.partition("?")[0].replace("%3A", ":"))
    # What precedes the name of a model is where it is served.
    return urllib.parse.unquote(next(filter(None, found.groups())))[-_MOST_NAME:] if found else None


def model_in(body: bytes) -> str | None:
    """Find the model that a body without a history names."""
    try:
        named = loads(body)["model"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return named if isinstance(named, str) else None


def fields_of(body: bytes, *names: str) -> dict[str, Any]:
    """Read these fields of a body that was scanned, as far as it has them."""
    values = zip(names, _engine.engine.fields(body, False, [*names]), strict=True)
    return {name: loads(value) for name, value in values if value is not None}


def provider_of(method: str, path: str, headers: Mapping[str, str], route: Route | None) -> str | None:
    """Find the provider of a request by its headers, path and route; None if they name none, or two.

    What says whose the key is comes before the path. Whether it may have the key, `refused_key` says.
    """
    names = {name.lower() for name in headers}
    place = path.partition("?")[0]
    keys = set()
    is_place = place.startswith(_OF_GEMINI) or _INTERACTIONS.match(place)
    if is_place or gemini_key(path) or any(name.startswith("x-goog-") for name in names):
        keys.add("gemini")
    if "x-api-key" in names or any(name.startswith("anthropic-") for name in names):
        keys.add("anthropic")
    if "chatgpt-account-id" in names:
        keys.add("chatgpt")
    if keys:
        return keys.pop() if len(keys) == 1 else None
    if route is not None:
        return None if route.names_model else route.provider
    if place == "/api/hello" or (method == "HEAD" and place == "/"):  # Claude Code asks whether there is a network
        return "anthropic"
    is_of_openai = place.startswith("/v1/") and headers.get("Authorization", "").lower().startswith("bearer ")
    return "openai" if is_of_openai else None


UPSTREAMS = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "chatgpt": "https://chatgpt.com/backend-api/codex",  # Codex with a login of ChatGPT
}
"""The URL that requests go to, by provider."""


_VERSION = re.compile(r"/v\d+(?:(?:alpha|beta)\d*)?(?=/|$)")


def form_of(provider: str, path: str) -> str:
    """Return the form of a request to a provider, as `recede._hosts` has it."""
    route = route_of(path)
    provider = provider if route is None else route.provider
    is_of_responses = provider == "chatgpt" or "/responses" in path.partition("?")[0]
    return provider if provider not in ("openai", "chatgpt") else "responses" if is_of_responses else "chat"


def url_to(upstream: str, path: str, provider: str) -> str:
    """Return the URL of a request at an upstream: clients differ in whether a base URL includes the version.

    A host of the table has its own path for each form, whichever of its base URLs was given. Elsewhere the ``/v1`` of
    OpenAI's forms falls away if any segment of the upstream is a version.
    """
    place, form = path.partition("?")[0], form_of(provider, path)
    own, route = urllib.parse.urlsplit(upstream).path, route_of(path)
    row = None if route is not None and route.names_model else host_row(upstream)
    origin = upstream.removesuffix(own)
    is_of_openai, has_version = form in ("chat", "responses"), bool(_VERSION.search(own))
    if row is not None and (own in ("", *row.paths.values()) or _VERSION.fullmatch(own)):
        bases = (base for base in row.paths.values() if base and not _VERSION.fullmatch(base))
        if any(place.startswith(f"{base}/") for base in bases):  # it is the whole path
            return origin + path
        if is_of_openai and form in row.paths:
            has_version = place.startswith("/v1/") or place in _WITHOUT_VERSION
            if not has_version:
                return origin + path
        own = row.paths.get(form, own)
    if place in OF_MESSAGES:
        path = f"/v1{path}"
    falls_away = own.endswith(("/v1", "/backend-api/codex")) or (is_of_openai and has_version)
    return origin + own + (path.removeprefix("/v1") if falls_away else path)


class Target(NamedTuple):
    """Where a request goes."""

    provider: str
    url: str  # an upstream, or an address of the agent's own
    row: Host | None  # that of its host; None if it is not known
    is_usual: bool  # nobody has named it
    is_whole: bool = False  # the path of a request is the whole one, as it would be without the proxy

    def has_price(self, headers: Mapping[str, str]) -> bool:
        """Whether its host bills tokens: it does not for a login, nor for the plain keys of a subscription."""
        is_plan = self.row is not None and self.row.is_subscription
        return not is_plan and not has_login({name.lower(): value for name, value in headers.items()})

    def url_of(self, path: str) -> str:
        """Return the URL of a request with this path."""
        return origin_of(self.url) + path if self.is_whole else url_to(self.url, path, self.provider)


def origin_of(url: str) -> str:
    return url.removesuffix(urllib.parse.urlsplit(url).path)


_WORD = re.compile(r"/+(?:@|%40)")


def taken_off(path: str, addresses: Mapping[str, str]) -> tuple[str, str | None] | None:
    """Return a path without the word of an address, and that address; None for a word that there is not.

    A path that begins with no word is returned as it is, without an address.
    """
    if not _WORD.match(path):
        return path, None
    word, slash, rest = path[2:].partition("/")
    return (f"/{rest}", addresses[word]) if slash and path.startswith("/@") and word in addresses else None


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
