"""Which requests have a history that can be masked, by method and path; and whose they are."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Route", "provider_of", "route_of"]


class Route(NamedTuple):
    """A kind of request that has a history."""

    provider: str  # a name of `recede.costs.PRESETS`
    is_counted: bool = False  # tokens are only counted: nothing is sent to a model


_ROUTES = {
    "/v1/messages": Route("anthropic"),
    "/v1/messages/count_tokens": Route("anthropic", is_counted=True),
    "/chat/completions": Route("openai"),
    "/responses": Route("openai"),
    "/responses/compact": Route("openai"),
    ":generateContent": Route("gemini"),
    ":streamGenerateContent": Route("gemini"),
}


def route_of(method: str, path: str) -> Route | None:
    """The route of a request; None if it has no history. A base URL may put anything before the provider's path."""
    if method != "POST":
        return None
    path = path.partition("?")[0].replace("%3A", ":")
    return next((route for end, route in _ROUTES.items() if path.endswith(end)), None)


def provider_of(path: str, names: frozenset[str]) -> str:
    """Whose any request is, by its path and the names of its headers in lower case."""
    route = route_of("POST", path)
    if route is not None:
        return route.provider
    if "anthropic-version" in names:
        return "anthropic"
    return "gemini" if "x-goog-api-key" in names or path.startswith("/v1beta/models") else "openai"
