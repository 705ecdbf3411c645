"""The provider of a client or a framework, at the prices of the model of each request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recede.providers import Provider

__all__ = ["ModelProvider"]

_MOST_NAME = 100  # characters of a model's name


class ModelProvider:
    """A provider at the prices of the model of each request.

    If the options name a provider, that is for all requests; without a provider nothing is known.
    """

    def __init__(self, provider: str | None, options: Mapping[str, Any]) -> None:
        self._provider = provider if options.get("provider", "auto") == "auto" else None

    def assumed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options with this provider, where no model is named."""
        return dict(options) if self._provider is None else {**options, "provider": self._provider}

    def of(self, model: Any) -> Provider | None:
        """That of a model by its name, at its usual prices if that is not known; None for that of the options."""
        if self._provider is None:
            return None
        return Provider.of(self._provider, model[:_MOST_NAME] if isinstance(model, str) else None)
