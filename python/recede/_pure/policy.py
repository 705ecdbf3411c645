"""Policy: the plain parameters of a reduction, validated before they come here (recede.reduction._policy)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NOW = 1 << 60
"""Stands for the request that is being made, among those that found nothing in the cache."""

Boundary = Literal["sliding", "stepped", "break_even", "high_water", "optimum"]
Goal = Literal["reduce", "mask", "summarize", "truncate"]


Summaries = tuple["tuple[int, int] | None", "tuple[float, float, float, float] | None", int, "tuple[int, int] | None"]
"""In replays, summaries in the place of old turns.

They are due by turns (how many for the first, and for each later one), or when they have paid for themselves (what a
token costs to read from the cache, to write to it, to be given to the model that summarizes, to be written by it); then
the turns that stay, and of the model the chars of its summary and of its prompt (None: the built-in summary).
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    goal: Goal
    max_cost: int | None  # the budget; None: there is none
    enabled: bool
    # The window: the last messages that are not system messages, the last turns, the newest results.
    recent_messages: int | None
    recent_turns: int | None
    recent_results: int | None
    keep_by_tool: tuple[tuple[str, int | None], ...]  # pattern -> newest results; None: all of them
    exclude_tools: tuple[str, ...]
    keep_errors: bool
    boundary: tuple[Boundary, float, float]  # with how many observations or chars, or what a token costs to read, write
    cold_requests: tuple[int, ...]  # requests that found nothing in the cache: how many messages came before, or NOW
    observation_masking: bool
    max_observation_chars: int | None
    placeholder: tuple[tuple[str, str], ...] | None  # (literal, field) in order, field "" for none; None: built-in
    lines_form: bool  # the built-in placeholder counts lines instead of chars
    min_masked_chars: int
    image_chars: int
    strict_pairs: bool
    summary_max_chars: int
    summary_role: str | None
    ask_summary: bool  # ask for a summary where one is wanted, instead of taking the built-in one
    summaries: Summaries | None = None
