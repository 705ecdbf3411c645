"""What came of a job: sums, costs of policies, a suggestion."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from recede._files import write_whole
from recede.cli.batch.work import Job, Sums
from recede.cli.comparison import costs_as_json
from recede.cli.suggestion import sentences, suggestion_as_json, tables_of
from recede.cli.tables import cost_columns, of_columns, share, table
from recede.costs import ReplayUsage, Suggestion, Usage, cheapest_policy, compare_costs

# What sums of usage do not say.
_OF_SESSIONS = ("mean_of_raw", "median_of_raw", "worst_of_raw", "loss_count")


def report_of(job: Job, options: dict[str, Any], sums: Sums) -> tuple[dict[str, Any], list[str]]:
    """The sums over the units, and lines for people; usage is written as usage.jsonl, too."""
    usage = sums.usage
    summary: dict[str, Any] = {"command": job.command, "rows": sums.rows, **sums.figures}
    if not job.replays:
        return summary, _lines(job.command, sums.figures)
    names = (*job.by, "policy", "sessions", *Usage._fields)
    written = [json.dumps(dict(zip(names, (*key, *values), strict=True))).encode() for key, values in usage.items()]
    write_whole(Path(job.out, "usage.jsonl"), (line + b"\n" for line in written), 0o666)
    summary["sessions"] = sum(sessions for (*_, policy), (sessions, *_) in usage.items() if policy == "raw")
    groups: dict[tuple[Any, ...], dict[str, Usage]] = {}
    for (*group, policy), (_, *values) in usage.items():
        groups.setdefault(tuple(group), {})[policy] = Usage(*values)
    if not groups:
        return summary, []
    replays = [ReplayUsage(found, options["prices"], None) for found in groups.values()]
    costs = compare_costs(replays)
    summary |= costs_as_json(costs)
    for policy in summary["policies"]:
        for name in _OF_SESSIONS:
            del policy[name]
    if job.command == "suggest":
        suggestion = Suggestion.of_usage(replays)
        summary["suggestion"] = suggestion_as_json(suggestion)
        return summary, ["", tables_of(suggestion, summary["sessions"]), *sentences(suggestion)]
    headings, rows = of_columns(cost_columns(costs, "no cache"))
    return summary, ["", table(headings, rows, best=costs.index(cheapest_policy(costs))).rstrip()]


def _lines(command: str, figures: Counter[str]) -> list[str]:
    """The same for people."""
    if command == "stats":
        counts = f"messages: {figures['messages']:,} in {figures['turns']:,} turns"
        return [counts, _sizes(figures["raw_chars"], figures["masked_view_chars"], "masked views")]
    counts = f"masked: {figures['masked_count']:,} results; dropped: {figures['dropped_count']:,} messages"
    return [_sizes(figures["chars_before"], figures["chars_after"], "views"), counts]


def _sizes(chars: int, left: int, views: str) -> str:
    return f"characters: {chars:,}; in {views} {left:,}, {share(left, chars)}"
