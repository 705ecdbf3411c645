"""Policy: the plain parameters of a reduction, validated by recede.reduction._policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from oracle.provider import ProviderCache

NOW = 1 << 60
"""The current request, among those with a cold cache."""


class Policy(SimpleNamespace):
    """The parameters, with the names and defaults of `src/policy.rs`.

    `boundary` is a name with how many observations or characters, or what a token costs to read and to write;
    `placeholder` the literal texts of a template, each with the field that follows it or "".
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        defaults = {"max_cost": None, "max_cost_since": (), "lines_form": False, "least_removed": None}
        defaults |= {"provider": "", "terms_by_shape": (), "pins_boundary": False}
        defaults |= {"marks_elsewhere": 2, "markers": (), "stubs": (), "max_result_chars": None}
        defaults |= {"is_limit": False, "trigger": 0, "keeps_dispatch": False}
        defaults |= {"summaries": None, "summaries_at": None, "model": None}
        super().__init__(**{**defaults, **parameters, "cache": ProviderCache(*parameters["cache"])})

    def of(self, shapes: Iterable[str]) -> Policy:
        """The policy of a history, whose first call or result has the first of these shapes."""
        terms = dict(self.terms_by_shape).get(next(iter(shapes), ""))
        if terms is None:
            return self
        names = ("provider", "boundary", "cache", "summaries", "pins_boundary")
        return Policy({**vars(self), **dict(zip(names, terms, strict=True))})

    def limit_at(self, messages: int) -> int | None:
        """The limit of a request after this many messages."""
        return self.max_cost_at(messages) if self.is_limit else None

    @property
    def remembers(self) -> bool:
        """Whether what is masked depends on earlier requests."""
        has_limit = self.is_limit and self.max_cost is not None
        remembers = self.boundary[0] not in ("sliding", "stepped") or self.summaries is not None
        return remembers or self.trigger > 0 or has_limit

    def max_cost_at(self, messages: int) -> int | None:
        """The budget of a request after this many messages."""
        budgets: list[tuple[int, int | None]] = [(0, self.max_cost), *self.max_cost_since]
        return [max_cost for since, max_cost in budgets if since <= messages][-1]
