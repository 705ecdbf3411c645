"""Who serves a request: whose prompt cache it is, by the host, the model and the form of the request."""

from __future__ import annotations

import ipaddress
import math
import urllib.parse
from functools import lru_cache
from typing import NamedTuple

from recede._hosts import TITLES, Host, host_row
from recede._models import model_row, named
from recede.providers import MARKED, PROVIDERS, UNKNOWN, Provider, checked_provider, lifetime, provider_of_model

# Makers of hosts whose provider has another name.
_PROVIDERS_OF = {"google": "gemini"}
_AWS, _AZURE = "aws", "azure"
# The makers of hosts that serve Claude by Anthropic's rules: without a mark nothing is cached.
_OF_CLAUDE = frozenset({"anthropic", _AWS, _AZURE, "google"})
_MOST_URLS, _MOST_SAID = 512, 64  # with models, whose providers are remembered, and of which a line tells


_KINDS = {
    "marks": "cache at marks",
    "prefix": "prefix cache",
    "entries": "cache of whole entries",
    "ideal": "ideal cache",
}


class Serving(NamedTuple):
    """Whose cache serves a request, and which word decides. `is_assumed` says that neither host nor model is known."""

    provider: Provider
    because: str
    url: str = ""
    host: Host | None = None
    is_assumed: bool = False

    @property
    def needs_marks(self) -> bool:
        """Whether a request without a mark on a message has no cache: of Claude, by Anthropic's rules."""
        by_its_rules = not self.url if self.host is None else self.host.maker in _OF_CLAUDE
        return self.provider.name in ("anthropic", "bedrock") and by_its_rules

    @property
    def if_served(self) -> Provider:
        """The same for a conversation without marks that an answer has shown to have a cache nevertheless."""
        return self.provider._replace(cache="prefix")

    def is_priced(self, model: str) -> bool:
        """Whether requests may have a price in dollars: of other names than those of the table not on this network."""
        return model_row(model, host=self.provider.name) is not None or not is_local(self.url)

    def marked(self, model: str, is_for_an_hour: bool = False) -> Serving:
        """The same for a request that has marks, where they count: also where nothing else is known."""
        provider = self.provider
        if provider == UNKNOWN or (provider.name == "anthropic" and is_for_an_hour):
            provider = Provider.of("anthropic_1h" if is_for_an_hour else "anthropic", model)
        start, marked = MARKED.get(provider.name, ("", None))
        return self._replace(provider=marked if marked is not None and start in model.lower() else provider)


@lru_cache(maxsize=_MOST_URLS)
def serving(model: str, url: str, form: str) -> Serving:
    """Find who serves a model at an address, which may be "", for a form: the provider that is usual for a path.

    The host says most; at a gateway the model's maker; then the model's row or family, and last the form.
    """
    row = host_row(url) if url else None
    if row is not None and not row.is_gateway:
        name = _PROVIDERS_OF.get(row.maker, row.maker)
        known = Provider.of(name, model) if name in PROVIDERS else None
        return Serving(known or UNKNOWN, "by the host", url, row, is_assumed=known is None)
    found = provider_of_model(model)
    if found is not None and row is not None:
        return Serving(_at_gateway(row, found, model), "a gateway has the cache of the model's maker", url, row)
    if found is not None:
        return Serving(found, "by the name of the model", url)
    by_form = "by the form of requests"
    if not url or form == "gemini" or (form != "anthropic" and is_local(url)):
        return Serving(Provider.of(form, model), by_form, url, row)
    if row is not None and form == "anthropic" and row.maker in _OF_CLAUDE:  # an alias of a deployment
        return Serving(Provider.of("bedrock" if row.maker == _AWS else form), by_form, url, row, is_assumed=True)
    return Serving(UNKNOWN, "neither host nor model is known", url, row, is_assumed=True)


def serving_as(name: str, model: str, url: str) -> Serving:
    """Who serves a model at a host of one's own that serves as a provider, a maker or a model does."""
    provider = Provider.of(name, model) if name in PROVIDERS else checked_provider("provider", name)
    return Serving(provider, "by your settings", url)


def host_name(url: str) -> str:
    """Return the name of the host of an address; "" if it has none."""
    try:
        return urllib.parse.urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _at_gateway(row: Host, provider: Provider, model: str) -> Provider:
    """The provider of a model at a gateway: mostly the maker's cache and prices."""
    if row.maker == _AWS:
        is_of_claude = provider.name == "anthropic"
        return Provider.of("bedrock", model) if is_of_claude else provider._replace(write=PROVIDERS["bedrock"].write)
    if row.maker == _AZURE and provider.name == "deepseek":
        return Provider.of("none", model)
    return provider


_said: set[tuple[str, str]] = set()


def say(found: Serving, model: str) -> None:
    """Log once in a process what is assumed of a model at a host: as a warning if neither is known."""
    key = model, found.url
    if key not in _said and len(_said) < _MOST_SAID:
        import logging  # lazily: it takes longer to import than the table

        _said.add(key)
        level = logging.WARNING if found.is_assumed else logging.INFO
        logging.getLogger("recede").log(level, "%s", described(found, model))


def is_local(url: str) -> bool:
    """Whether an address is of this machine or of a private network, where nothing has a price."""
    name = host_name(url)
    try:
        return name == "localhost" or name.endswith(".local") or ipaddress.ip_address(name).is_private
    except ValueError:
        return False


def described(found: Serving, model: str) -> str:
    """Say in one line what is assumed of a model at a host."""
    provider, row = found.provider, found.host
    place = host_name(found.url)
    where = (f" at {place}" if place else "") + (f" ({TITLES[row.maker]})" if row is not None else "")
    if provider.cache == "none":
        cache = "no prompt cache"
    else:
        kind = _KINDS[provider.cache]
        cache = f"a cached token costs {provider.read:.2g}, {kind}, {_lifetime(lifetime(provider))}"
    bound = "; with a smaller price masks may cost more than 110 % of raw" if found.is_assumed else ""
    return f"{named(model)}{where}: {cache} ({found.because}{bound})"


def _lifetime(seconds: float) -> str:
    if seconds == math.inf:
        return "never cold"
    minutes = seconds / 60
    count, unit = (minutes / 60, "hour") if minutes >= 60 else (minutes, "minute")
    return f"{count:g} {unit}{'' if count == 1 else 's'}"
