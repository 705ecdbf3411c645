"""The provider of a client or a framework, at the prices of the model of each request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recede._models import UnknownModels, model_row
from recede.providers import Provider

_MOST_NAME = 100  # characters of a model's name


class ModelProvider:
    """A provider at the prices of the model of each request.

    If the options name a provider, that is for all requests. Without a provider nothing is known, or, with `by_name`,
    what the names of models say.
    """

    def __init__(self, provider: str | None, options: Mapping[str, Any], *, by_name: bool = False) -> None:
        self._is_auto = options.get("provider", "auto") == "auto"
        self._provider = provider
        self._by_name = by_name
        self._unknown_models = UnknownModels()

    def assumed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options with this provider, where no model is named."""
        if self._provider is None or not self._is_auto:
            return dict(options)
        return {**options, "provider": self._provider}

    def of(self, model: Any) -> Provider | None:
        """The provider of a model, at its usual prices if the model is not known; None: that of the options."""
        name = model[:_MOST_NAME] if isinstance(model, str) else None
        if not self._is_auto:
            return None
        provider: Provider | None = None
        if self._provider is not None:
            provider = Provider.of(self._provider, name)
        elif self._by_name and name:
            provider = Provider.of_model(name)
        if provider is not None and name and model_row(name) is None:
            self._unknown_models.note(name, provider.name)
        return provider
