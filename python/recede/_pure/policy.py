"""Policy: the plain parameters of a reduction, validated before they come here (recede.reduction._policy)."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

NOW = 1 << 60
"""Stands for the request that is being made, among those that found nothing in the cache."""


class Policy(SimpleNamespace):
    """The parameters by the names that `src/policy.rs` declares; those that were not given have its defaults.

    `boundary` is a name with how many observations or characters, or what a token costs to read and to write;
    `placeholder` the literal texts of a template, each with the field that follows it or "".
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        super().__init__(**{"max_cost": None, "lines_form": False, "summaries": None, **parameters})
