"""Options of a `Masker` that has a provider's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recede.providers import Provider

__all__ = ["ModelProvider", "with_defaults"]

_MOST_NAME = 100  # characters of a model's name
_UNSAID = (("provider", "auto"), ("cache_breakpoint", None))  # as the provider's cache works


def with_defaults(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options, and the defaults of those that are not given."""
    given = {name: value for name, value in options.items() if (name, value) not in _UNSAID}
    return {**defaults, **given}


class ModelProvider:
    """A provider at the prices of the model of each request.

    If the options name a provider, that is for all requests; without a provider nothing is known.
    """

    def __init__(self, provider: str | None, options: Mapping[str, Any]) -> None:
        self._provider = provider if options.get("provider", "auto") == "auto" else None

    def of(self, model: Any) -> Provider | None:
        """That of a model by its name, at its usual prices if that is not known; None for that of the options."""
        if self._provider is None:
            return None
        return Provider.of(self._provider, model[:_MOST_NAME] if isinstance(model, str) else None)
