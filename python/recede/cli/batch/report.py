"""What came of a job: sums, costs of policies, a suggestion."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from recede._files import write_whole
from recede.cli.batch.work import Job, Outcome
from recede.cli.comparison import costs_as_json
from recede.cli.suggestion import sentences, suggestion_as_json, tables_of
from recede.cli.tables import cost_table, share, table
from recede.costs import ReplayUsage, Suggestion, Usage, cheapest_policy, compare_costs

__all__ = ["report_of"]

# What sums of usage do not say.
_OF_SESSIONS = ("mean_of_raw", "median_of_raw", "worst_of_raw", "loss_count")


def report_of(job: Job, options: dict[str, Any], outcomes: Iterable[Outcome]) -> tuple[dict[str, Any], list[str]]:
    """The sums over the units, and lines for people; usage is written as usage.jsonl, too."""
    rows = 0
    figures: dict[str, int] = {}
    usage: dict[tuple[Any, ...], list[int]] = {}
    for outcome in outcomes:
        rows += outcome.rows
        for name, value in outcome.figures.items():
            figures[name] = figures.get(name, 0) + value
        for row in outcome.usage:
            key, values = tuple(row[: len(job.by) + 1]), row[len(job.by) + 1 :]
            held = usage.get(key, [0] * len(values))
            usage[key] = [one + more for one, more in zip(held, values, strict=True)]
    summary: dict[str, Any] = {"command": job.command, "rows": rows, **figures}
    if not job.replays:
        return summary, _lines(job.command, figures)
    names = (*job.by, "policy", "sessions", *Usage._fields)
    written = [json.dumps(dict(zip(names, (*key, *values), strict=True))).encode() for key, values in usage.items()]
    write_whole(Path(job.out, "usage.jsonl"), (line + b"\n" for line in written), 0o666)
    summary["sessions"] = sum(sessions for (*_, policy), (sessions, *_) in usage.items() if policy == "raw")
    groups: dict[tuple[Any, ...], dict[str, Usage]] = {}
    for (*group, policy), (_, *values) in usage.items():
        groups.setdefault(tuple(group), {})[policy] = Usage(*values)
    if not groups:
        return summary, []
    sums = [ReplayUsage(found, options["prices"], None) for found in groups.values()]
    costs = compare_costs(sums)
    summary |= costs_as_json(costs)
    for policy in summary["policies"]:
        for name in _OF_SESSIONS:
            del policy[name]
    if job.command == "suggest":
        suggestion = Suggestion.of_usage(sums)
        summary["suggestion"] = suggestion_as_json(suggestion)
        return summary, ["", tables_of(suggestion, summary["sessions"]), *sentences(suggestion)]
    headings, rows_of_costs = cost_table(costs, "no cache")
    return summary, ["", table(headings, rows_of_costs, best=costs.index(cheapest_policy(costs))).rstrip()]


def _lines(command: str, figures: dict[str, int]) -> list[str]:
    """The same for people."""
    found = {name: figures.get(name, 0) for name in ("messages", "turns", "masked_count", "dropped_count")}
    if command == "stats":
        counts = f"messages: {found['messages']:,} in {found['turns']:,} turns"
        return [counts, _sizes(figures, "raw_chars", "masked_view_chars", "masked views")]
    counts = f"masked: {found['masked_count']:,} results; dropped: {found['dropped_count']:,} messages"
    return [_sizes(figures, "chars_before", "chars_after", "views"), counts]


def _sizes(figures: dict[str, int], before: str, after: str, views: str) -> str:
    chars, left = figures.get(before, 0), figures.get(after, 0)
    return f"characters: {chars:,}; in {views} {left:,}, {share(left, chars)}"
