"""Policy: the plain parameters of a reduction, validated by recede.reduction._policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from oracle.provider import ProviderCache
from recede.reduction._options import OPTIONS

NOW = 1 << 60
"""The current request, among those with a cold cache."""


class Policy(SimpleNamespace):
    """The parameters, with the names and defaults of `src/policy/mod.rs`.

    `boundary` is a name with how many observations or characters, or what a token costs to read and to write;
    `placeholder` the literal texts of a template, each with the field that follows it or "".
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        defaults: dict[str, Any] = {name: option.parameter for name, option in OPTIONS.items()}
        defaults |= {"goal": "mask", "is_off": False, "keep_results": 0}
        defaults |= {"provider": "", "terms_by_shape": (), "pins_boundary": False, "summaries": None}
        defaults |= {"verifies_reasoning": False, "counts_reasoning": False, "tokens": None}
        defaults |= {"max_cost": None, "is_limit": False, "trigger": 0, "fill_millionths": None, "clip_results": None}
        defaults |= {"summary_max_chars": 1_400, "ask_summary": False, "model": None}
        defaults |= {"least_removed": 64, "image_chars": 6_400, "markers": (), "stubs": ()}
        defaults |= {"keep_messages": None, "keep_turns": None, "masks_unseen": False, "skips_masks": False}
        defaults |= {"max_observation_chars": None, "lines_form": False, "keeps_dispatch": False, "min_masked_chars": 0}
        defaults |= {"strict_pairs": False, "summary_role": None}
        defaults |= {"cold": (), "max_cost_since": (), "trigger_since": (), "summaries_at": None}
        defaults |= {"marks_elsewhere": 2, "automatic_mark": None}
        super().__init__(**{**defaults, **parameters, "cache": ProviderCache(*parameters["cache"])})

    def of(self, shapes: Iterable[str]) -> Policy:
        """The policy of a history, whose first call or result has the first of these shapes."""
        terms = dict(self.terms_by_shape).get(next(iter(shapes), ""))
        if terms is None:
            return self
        names = ("provider", "boundary", "cache", "summaries", "pins_boundary", "verifies_reasoning", "tokens")
        return Policy({**vars(self), **dict(zip(names, terms, strict=True))})

    def limit_at(self, messages: int) -> int | None:
        """The limit of a request after this many messages."""
        return self.max_cost_at(messages) if self.is_limit else None

    @property
    def remembers(self) -> bool:
        """Whether the view depends on earlier requests."""
        has_limit = self.is_limit and self.max_cost is not None
        remembers = self.boundary[0] not in ("sliding", "stepped") or self.summaries is not None
        return bool(remembers or self.verifies_reasoning or self.trigger > 0 or has_limit)

    def trigger_at(self, messages: int) -> int:
        """The trigger of a request after this many messages; 0 without one."""
        return [trigger for since, trigger in [(0, self.trigger), *self.trigger_since] if since <= messages][-1]

    def max_cost_at(self, messages: int) -> int | None:
        """The budget of a request after this many messages."""
        budgets: list[tuple[int, int | None]] = [(0, self.max_cost), *self.max_cost_since]
        return [max_cost for since, max_cost in budgets if since <= messages][-1]
