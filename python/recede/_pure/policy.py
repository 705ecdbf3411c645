"""Policy: the plain parameters of a reduction, validated before they come here (recede._policy)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Goal = Literal["reduce", "mask", "summarize", "truncate"]


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
    mask_chunk: int | None
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
