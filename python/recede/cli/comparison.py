"""The result of a replay as text for people, and as figures for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recede.cli.quoted import misses_as_json, quoted_shares, tenths
from recede.cli.tables import cost_columns, of_columns, percent_or_dash, prose, share, table
from recede.cli.verdict import PASTE, Session, notes, percent, price_line, requests_of, verdict
from recede.costs import PolicyCost, Replay, cheapest_policy, compare_costs

# The columns that a narrow screen lacks, the first to go first.
_OPTIONAL = (
    "mean",
    "worst",
    "worst moment",
    "no cache",
    "summaries",
    "from cache",
    "tokens sent",
    "losses",
    "of optimum",
    "quoted",
)


def for_people(sessions: list[Session], said: list[str], *, by_format: bool, turns: bool, has_notes: bool) -> str:
    """The tables and sentences that the options ask for, and what was said of the logs."""
    replays = [session.replay for session in sessions]
    parts = []
    if turns:
        parts += [_turns_table(session, len(sessions)) for session in sessions]
    lines = []
    if by_format:
        parts.append(_format_table(sessions))
    else:
        costs = compare_costs(replays)
        parts.append(_costs_table(costs, replays))
        lines = verdict_lines(costs, sessions)
        lines += notes(costs, len(sessions)) if has_notes else []
    return "\n".join([*parts, prose([*lines, *said, price_line(replays)]) + "\n"])


def verdict_lines(costs: Sequence[PolicyCost], sessions: Sequence[Session]) -> list[str]:
    """The sentences of the verdict, the line to paste below its own, so that it can be copied whole."""
    found = verdict(costs, sessions)
    return [
        part
        for line in found
        for part in ([PASTE.rstrip(), f"    {line.removeprefix(PASTE)}"] if line.startswith(PASTE) else [line])
    ]


def _costs_table(costs: tuple[PolicyCost, ...], replays: Sequence[Replay]) -> str:
    sessions = len(replays)
    requests = costs[0].usage.requests
    columns = cost_columns(costs, "no cache")
    if sessions > 1:
        columns.append(("mean", [percent(cost.mean_of_raw) for cost in costs]))
        columns.append(("worst", [percent(cost.worst_of_raw) for cost in costs]))
        columns.append(("losses", [str(cost.loss_count) for cost in costs]))
    columns.append(("worst moment", [percent_or_dash(cost.worst_moment) for cost in costs]))
    shares = quoted_shares(replays)
    if shares:
        columns.append(("quoted", [tenths(shares.get(cost.policy)) for cost in costs]))
    headings, rows = of_columns(columns)
    wanted = [headings.index(name) for name in _OPTIONAL if name in headings]
    uncached = wanted.index(headings.index("no cache"))
    wanted.insert(uncached, headings.index("no cache") + 1)  # its share of raw
    best = costs.index(cheapest_policy(costs))
    head = requests_of(requests, sessions)
    return f"{head}\n\n{table(headings, rows, optional=wanted, best=best)}"


def _turns_table(session: Session, sessions: int) -> str:
    """A row for each request: the tokens sent under each policy, and the share that the cache would serve."""
    policies = session.replay.policies
    rows = []
    for number, turns in enumerate(zip(*(replayed.turns for replayed in policies), strict=True), 1):
        cells = (f"{turn.view_tokens:,} {share(turn.cached_chars, turn.view_chars):>5}" for turn in turns)
        rows.append([str(number), *cells])
    head = f"{prose([session.name])}\n" if sessions > 1 else ""
    return head + table(["turn", *(replayed.policy for replayed in policies)], rows)


def _format_table(sessions: list[Session]) -> str:
    """For each format, and for all, a row for each policy but raw."""
    groups: dict[str, list[Session]] = {}
    for session in sessions:
        groups.setdefault(session.format, []).append(session)
    headings = ["format", "policy", "sessions", "requests", "of raw", "mean", "median", "worst", "losses"]
    headings += ["of optimum", "no cache"]
    rows = []
    for name, group in [*groups.items(), ("total", sessions)]:
        raw, *others = compare_costs(session.replay for session in group)
        counts = [f"{len(group):,}", f"{raw.usage.requests:,}"]
        for cost in others:
            shares = (cost.of_raw, cost.mean_of_raw, cost.median_of_raw, cost.worst_of_raw)
            figures = list(map(percent, shares))
            figures += [str(cost.loss_count), percent_or_dash(cost.of_optimum), percent(cost.of_raw_uncached)]
            rows.append([name, cost.policy, *counts, *figures])
            name, counts = "", ["", ""]
    return table(headings, rows, names=2)


def session_as_json(session: Session, turns: bool) -> dict[str, Any]:
    """The figures of a session."""
    report = costs_as_json(session.replay.costs)
    if turns:
        for policy, replayed in zip(report["policies"], session.replay.policies, strict=True):
            policy["turns"] = [turn._asdict() for turn in replayed.turns]
    return {**report, "quoted": quoted_shares([session.replay]), "misses": misses_as_json(session)}


def costs_as_json(costs: tuple[PolicyCost, ...]) -> dict[str, Any]:
    """The figures of each policy."""
    policies = [{**cost._asdict(), "usage": cost.usage._asdict()} for cost in costs]
    return {"requests": costs[0].usage.requests, "cheapest": cheapest_policy(costs).policy, "policies": policies}
