"""What a masker decides of a request before it plans: its cache, which requests found that cold, and its policy.

A replay of a session asks the same, with what its log says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from recede._agents import Agent
from recede.providers import Provider
from recede.proxy._caches import Caches, RequestCache
from recede.proxy._ledger import ColdRequests
from recede.proxy._routes import Route


class Marked(Protocol):
    """The cache marks of a request."""

    @property
    def caches_messages(self) -> bool:
        """Whether a message has one, or the body one for its end."""

    @property
    def ttl(self) -> str | None:
        """The time to live of the newest."""

    @property
    def retention(self) -> str | None:
        """OpenAI's setting for all."""


class Course:
    """Decides the course of each request of a masker.

    Args:
        caches: finds whose cache serves a request.
        ledger: the requests so far.
        clock: seconds since 1970.
    """

    def __init__(self, caches: Caches, ledger: ColdRequests, clock: Callable[[], float]) -> None:
        self._caches, self._ledger, self._clock = caches, ledger, clock

    def of(
        self,
        route: Route,
        model: str,
        request: Marked,
        points: list[tuple[int, bytes]],
        static_of: Callable[[Provider], int],
        noted: Provider | None,
        verifies: bool,
        agent: Agent | None,
        *,
        plain: bytes = b'{"messages": []}',
        upstream: str = "",
        is_off: bool = False,
    ) -> tuple[RequestCache, list[int], tuple[Any, ...]]:
        """Decide it, and note the request as sent unless it only counts tokens or is off.

        `static_of` gives what system prompt and tools take of a limit or an entry at a provider. Returns the cache, how
        many messages precede each request that found it cold, and the arguments of `Policies.of`.
        """
        cache = self._caches.of_request(route, model, request, points, plain, upstream, noted, verifies)
        provider = cache.provider
        cold = self._ledger.cold_requests(
            points,
            ttl_seconds=cache.ttl_seconds,
            now=self._clock(),
            note=not route.is_counted and not is_off,
            is_cold=cache.is_missing,
            provider=provider if cache.is_found else None,
        )
        return (
            cache,
            cold,
            (provider, static_of(provider), agent, route.provider, is_off, model or None, cache.is_found),
        )
