"""Options of a `Masker` that has a provider's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["with_defaults"]

_OF_PROVIDER = ("cache", "cache_breakpoint")  # None: as the provider's cache works


def with_defaults(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options, and the defaults of those that are not given."""
    given = {name: value for name, value in options.items() if value is not None or name not in _OF_PROVIDER}
    return {**defaults, **given}
