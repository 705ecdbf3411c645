"""Options of a `Masker` that has a provider's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recede.providers import Provider

__all__ = ["ModelPrices", "with_defaults"]

_OF_PRICES = ("cache_read", "cache_write")
_MOST_NAME = 100  # characters of a model's name
_OF_PROVIDER = ("cache", "cache_breakpoint")  # None: as the provider's cache works


def with_defaults(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options, and the defaults of those that are not given."""
    given = {name: value for name, value in options.items() if value is not None or name not in _OF_PROVIDER}
    return {**defaults, **given}


class ModelPrices:
    """What reading from a provider's cache and writing to it cost with the model of a request.

    If the options name prices, these are for all requests; without a provider nothing is known.
    """

    def __init__(self, provider: str | None, options: Mapping[str, Any]) -> None:
        self._provider = None if any(name in options for name in _OF_PRICES) else provider

    def of(self, model: Any) -> tuple[float, float] | None:
        """Those of a model by its name, the provider's usual ones if it is not known; None for those of the options."""
        if self._provider is None:
            return None
        found = Provider.of(self._provider, model[:_MOST_NAME] if isinstance(model, str) else None)
        return found.read, found.write
