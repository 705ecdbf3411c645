"""Whose prompt cache serves a request: by its host, its model and its marks, and by what answers have shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from recede._models import UnknownModels, model_row
from recede._serving import Serving, host_name, say, serving, serving_as
from recede.providers import Provider, checked_provider, lifetime
from recede.proxy._ledger import ColdRequests
from recede.proxy._routes import Route, fields_of

_DAY = 86_400.0


class RequestCache(NamedTuple):
    """The prompt cache of a request.

    Attributes:
        provider: its rules, and the prices that decide.
        ttl_seconds: how long its entries live.
        is_found: whether it was found by the request, and not given for all.
        is_priced: whether the request may have a price in dollars.
    """

    provider: Provider
    ttl_seconds: float
    is_found: bool = False
    is_priced: bool = True

    @property
    def is_missing(self) -> bool:
        """Whether the request is found to have no cache."""
        return self.is_found and self.provider.cache == "none"


class Caches:
    """Finds the prompt cache of each request of a masker.

    Args:
        own: the provider of all requests, if it was given.
        hosts: names of hosts of the user's own, and the provider or model that each serves as.
        ledger: what was noted of earlier requests.
    """

    def __init__(self, own: Provider | None, hosts: Mapping[str, str], ledger: ColdRequests) -> None:
        for name in hosts.values():
            checked_provider("hosts", name)
        self._own, self._hosts, self._ledger = own, hosts, ledger
        self.unknown_models = UnknownModels()

    def of_request(
        self,
        route: Route,
        model: str,
        request: Any,
        points: list[tuple[int, bytes]],
        body: bytes,
        upstream: str,
        noted: Provider | None,
        verifies: bool,
    ) -> RequestCache:
        """Find the cache of a request to this upstream, whose conversation is `noted` to have had this provider.

        `verifies`: its reasoning is checked, whoever serves it, since that is the model's rule.
        """
        if self._own is not None:
            own = self._own._replace(verifies_reasoning=verifies)
            return RequestCache(own, lifetime(own))
        name = self._hosts.get(host_name(upstream)) if self._hosts else None
        found = serving(model, upstream, route.provider) if name is None else serving_as(name, model, upstream)
        own = self._of_marks(found, route, model, request, points, body)._replace(verifies_reasoning=verifies)
        # OpenAI keeps entries for a day on request.
        is_kept_a_day = own.name == "openai" and request.retention == "24h"
        return RequestCache(
            _standing(own, noted, route.is_counted),
            _DAY if is_kept_a_day else lifetime(own),
            is_found=True,
            is_priced=found.is_priced(model),
        )

    def _of_marks(
        self, found: Serving, route: Route, model: str, request: Any, points: list[tuple[int, bytes]], body: bytes
    ) -> Provider:
        """Find whose cache serves a request, by its marks and settings."""
        say(found, model)
        is_named = bool(model) and not found.is_assumed and found.provider.cache != "none"
        if is_named and model_row(model, host=found.provider.name) is None:
            self.unknown_models.note(model, found.provider.name)
        if request.caches_messages:
            return found.marked(model, request.ttl == "1h").provider
        if found.provider.name == "moonshot" and _lives_an_hour(body):
            return Provider.of("moonshot_1h", model)
        if route.provider != "anthropic" or not found.needs_marks or route.is_counted:
            return found.provider
        # Its cache needs marks: without one no message is cached, unless an answer has shown otherwise.
        return found.if_served if self._ledger.was_served(points) else Provider.of("none", model)


def _standing(own: Provider, noted: Provider | None, is_counted: bool) -> Provider:
    """Whose prices decide: those of the conversation so far, if the same cache serves it."""
    if noted is None or own.cache == "none" or (noted.name != own.name and not is_counted):
        return own
    return noted._replace(verifies_reasoning=own.verifies_reasoning)


def _lives_an_hour(body: bytes) -> bool:
    """Whether a body asks Kimi's cache for an hour."""
    options = fields_of(body, "prompt_cache_options").get("prompt_cache_options")
    return isinstance(options, dict) and options.get("ttl") in ("1h", 3_600, "3600s")
