"""Models whose prices are not known, which are named once each."""

from __future__ import annotations

import logging

_MOST = 20

_log = logging.getLogger("recede")


class UnknownModels:
    """The first names of models without prices, which come from requests and answers.

    Attributes:
        names: those that were named so far.
    """

    def __init__(self) -> None:
        self.names: list[str] = []

    def note(self, model: str, provider: str) -> None:
        """Log once that a provider's usual prices are used for this model."""
        if model not in self.names and len(self.names) < _MOST:
            self.names.append(model)
            _log.warning("the prices of %s are not known: those usual for %s are taken", named(model), provider)


def named(model: str) -> str:
    """Return a model's name in printable form: it comes from a request or an answer."""
    return ascii(model) if model else "a model without a name"
