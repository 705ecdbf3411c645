"""Stage 1: masks every observation older than the window, up to the boundary."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from recede._pure.clip import clip, is_clipped
from recede._pure.placeholder import stays_whole
from recede._pure.plan.facts import Facts, Plan


def boundaries(facts: Facts) -> list[int]:
    """The boundaries to try: rounded down to a whole chunk, then unrounded."""
    boundary = 1 + max((place for place, is_older in enumerate(_older(facts)) if is_older), default=-1)
    rule, chunk, _ = facts.policy.boundary
    rounded = boundary // int(chunk) * int(chunk) if rule == "stepped" else boundary
    return [rounded] if rounded == boundary else [rounded, boundary]


def mask_observations(facts: Facts, raw: Plan, boundary: int) -> Plan:
    """Mask the older observations before the boundary."""
    older, is_exempt = _older(facts), exempt(facts)
    masked = {}
    removed = 0
    for result in facts.outline.results[:boundary]:
        if older[result.index] and not is_exempt[result.index]:
            replacement = facts.mask(result)
            if replacement is not None:
                masked[result.index] = replacement
                removed += facts.observation_chars[result.index] - replacement.chars
    if removed < facts.policy.min_masked_chars:
        return raw
    return Plan(kept=raw.kept, stage="masking" if masked else None, boundary=boundary, masked=masked)


def clip_results(facts: Facts, before: Plan) -> Plan:
    """Cut raw results in the window, largest first, then oldest first, until the view fits."""
    policy, masked, cost = facts.policy, dict(before.masked), facts.cost(before)
    older, is_exempt = _older(facts), exempt(facts)
    # The placeholder names the number by which an observation can be recalled.
    template = policy.placeholder or ()
    has_recall_handles = any(text.endswith("recall #") and field == "number" for text, field in template)
    for result in sorted(facts.outline.results, key=lambda result: -facts.observation_chars[result.index]):
        if cost <= policy.max_cost:
            break
        place, text = result.index, result.observation
        stays = older[place] or is_exempt[place] or place in masked or result.images or result.json is not None
        if not stays and len(text) > policy.clip_results and not is_clipped(text) and not stays_whole(text, policy):
            recall = facts.number_of(result) if has_recall_handles else None
            masked[place] = clip(text, policy.clip_results, recall=recall)
            cost += facts.observation_cost(place, masked[place]) - facts.observation_cost(place, None)
    return replace(before, masked=dict(sorted(masked.items())))


def _older(facts: Facts) -> list[bool]:
    """Whether no measure keeps an observation, for each."""
    older = [place < facts.observation_bound for place in range(len(facts.tools))]
    for place, (window, own, newer) in own_windows(facts).items():
        older[place] = window is not None and len(own) - newer >= window
    return older


def own_windows(facts: Facts) -> dict[int, tuple[int | None, Sequence[int], int]]:
    """For each observation whose tool has its own window: that window, and the places of its results.

    Those are the messages of all results of the tool, and the place among them from which on they are newer.
    """
    windows = dict(facts.policy.keep_by_tool)
    pattern_of = _matches(facts.tools, tuple(windows))
    messages: dict[str | None, list[int]] = {tool: [] for tool in pattern_of}
    for result in facts.outline.results:
        if facts.tools[result.index] in pattern_of:
            messages[facts.tools[result.index]].append(result.message)
    found: dict[int, tuple[int | None, Sequence[int], int]] = {}
    seen: Counter[str | None] = Counter()
    for place, tool in enumerate(facts.tools):
        if tool in pattern_of:
            seen[tool] += 1
            found[place] = windows[pattern_of[tool]], messages[tool], seen[tool]
    return found


def exempt(facts: Facts) -> list[bool]:
    """Whether an observation is never masked, for each."""
    excluded = _matches(facts.tools, facts.policy.exclude_tools)
    policy = facts.policy
    return [
        facts.tools[result.index] in excluded
        or (policy.keep_errors and result.is_error)
        or any(_fits(pattern, result.observation) for pattern in policy.keep_matching)
        for result in facts.outline.results
    ]


def _fits(pattern: str, text: str) -> bool:
    """Whether a text begins with the pattern, or with `*` matches it as a whole."""
    first, *parts = pattern.split("*")
    if not parts or not text.startswith(first):
        return text.startswith(first)
    at = len(first)
    for part in parts[:-1]:
        at = text.find(part, at) + len(part)
        if at < len(part):
            return False
    return text.endswith(parts[-1]) and len(text) - len(parts[-1]) >= at


def _matches(tools: Sequence[str | None], patterns: Sequence[str]) -> dict[str | None, str]:
    """The pattern of each tool that one matches: its exact name, or the first one with `*` and `?`."""
    names = set(patterns)
    globs = [
        (pattern, re.compile(fnmatch.translate(pattern.replace("[", "[[]"))))
        for pattern in patterns
        if "*" in pattern or "?" in pattern
    ]
    matches: dict[str | None, str] = {}
    for tool in set(tools) - {None}:
        assert tool is not None
        fitting = tool if tool in names else next((pattern for pattern, glob in globs if glob.match(tool)), None)
        if fitting is not None:
            matches[tool] = fitting
    return matches
