"""The result of a replay with options: tables and sentences for people, figures for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recede.cli.notices import counted
from recede.cli.played import Session
from recede.cli.quoted import misses_as_json, quoted_shares
from recede.cli.tables import prose, share, table
from recede.cli.words import gain, money, percent, tenths, words_of
from recede.costs import CACHES, PRESETS, PolicyCost, Replay, cheapest_policy, compare_costs
from recede.designs import approx_tokens

# The columns that a narrow screen lacks, the first to go first; that of no cache goes with its share of raw.
_OPTIONAL = "mean,worst,worst moment,no cache,summaries,from cache,tokens sent,losses,policy,quoted".split(",")


def for_people(sessions: Sequence[Session], said: list[str], elongation: float) -> str:
    replays = [session.replay for session in sessions]
    costs = compare_costs(replays, elongation)
    lines = [*_verdict(costs, sessions), *_notes(costs, len(sessions), elongation)]
    lines += [*_over_limit(replays), *said, price_line(replays)]
    return f"{_costs_table(costs, replays)}\n{prose(lines)}\n"


def price_line(replays: Sequence[Replay]) -> str:
    prices = replays[0].prices
    others = replays[0].summary_prices or prices
    *names, _ = prices._fields
    figures = ", ".join(f"{name} ${price:.4g}" for name, price in zip(names, prices, strict=False))
    known = [name for name, preset in PRESETS.items() if preset == prices]
    figures += f"; under {prices.min_cached_tokens:,} tokens no cache" + (f" ({known[0]})" if known else "")
    if any(replay.prices != prices for replay in replays):
        figures = "by the models of each session (recede prices)"
    used = dict.fromkeys(replay.cache for replay in replays)
    caches = ", ".join(next((name for name, cache in CACHES.items() if cache == one), one.rule) for one in used)
    line = f"prices for a million tokens: {figures}; cache: {caches}"
    if (others != prices or not others.output) and any(
        policy.usage.summary_calls for replay in replays for policy in replay.policies
    ):
        line += f"; summaries: input ${others.input:g}, output ${others.output:g}"
    return line


def _verdict(costs: Sequence[PolicyCost], sessions: Sequence[Session]) -> list[str]:
    raw, best = costs[0], cheapest_policy(costs)
    if not raw.usage.requests:
        return ["no request was made: the history holds no message of an agent"]
    amount, is_logged = sum(session.paid for session in sessions), any(session.is_logged for session in sessions)
    source = f"; the raw history is estimated at {money(raw.cost)}" if is_logged else ", as estimated"
    lines = [f"you paid: {money(amount)}{source}"]
    if best is raw:
        return [*lines, "cheapest: as it was sent; masking pays off later, or never, in so short a session"]
    return [*lines, f"cheapest: {money(best.cost)}, {gain(best.of_raw)}: {words_of(best.policy)}"]


def _notes(costs: Sequence[PolicyCost], sessions: int, elongation: float) -> list[str]:
    raw, best = costs[0], cheapest_policy(costs)
    lines = []
    if best.usage.summary_calls:
        calls = f"{counted(best.usage.summary_calls, 'call')} of a model for {money(best.summary_cost)}"
        more = f"too: {percent(elongation)} more" if elongation else "is not (--set elongation=0.15 charges it)"
        lines.append(
            f"summaries: {calls} are included; that agents with summaries take more turns, 13 to 18 % in the "
            f"research, {more}"
        )
    if sessions > 1 and best is not raw and best.loss_count:
        lines.append(f"the cheapest cost more than raw in {best.loss_count} of {sessions} sessions")
    return lines


def _over_limit(replays: Sequence[Replay]) -> list[str]:
    """Lines on each budget: for how many of the requests over it masks alone were enough."""
    lines = []
    for same in zip(*(replay.policies for replay in replays), strict=True):
        masks, *others = map(sum, zip(*(one.over_limit for one in same), strict=True))
        if total := masks + sum(others):
            needed = zip(("results cut", "a summary", "messages dropped"), others, strict=True)
            rest = "".join(f", {counted(count, 'request')} had {what}" for what, count in needed if count)
            over = f"{percent(masks / total)} of {counted(total, 'request')} over the limit"
            lines.append(f"{same[0].policy}: masks alone were enough for {over}{rest}")
    return lines


def _costs_table(costs: tuple[PolicyCost, ...], replays: Sequence[Replay]) -> str:
    sessions, shares = len(replays), quoted_shares(replays)
    columns = [
        ("choice", [words_of(cost.policy) for cost in costs]),
        ("tokens sent", [f"{approx_tokens(cost.usage.sent_chars):,}" for cost in costs]),
        ("from cache", [share(cost.usage.cached_chars, cost.usage.sent_chars) for cost in costs]),
        ("cost", [money(cost.cost) for cost in costs]),
        ("of raw", [percent(cost.of_raw) for cost in costs]),
        ("no cache", [money(cost.cost_uncached) for cost in costs]),
        ("of raw", [percent(cost.of_raw_uncached) for cost in costs]),
    ]
    if any(cost.usage.summary_calls for cost in costs):
        calls = [money(cost.summary_cost) if cost.usage.summary_calls else "-" for cost in costs]
        columns.append(("summaries", calls))
    if sessions > 1:
        columns.append(("mean", [percent(cost.mean_of_raw) for cost in costs]))
        columns.append(("worst", [percent(cost.worst_of_raw) for cost in costs]))
        columns.append(("losses", [str(cost.loss_count) for cost in costs]))
    columns.append(("worst moment", [percent(cost.worst_moment) for cost in costs]))
    if shares:
        columns.append(("quoted", [tenths(shares.get(cost.policy)) for cost in costs]))
    columns.append(("policy", [cost.policy for cost in costs]))
    headings, rows = [heading for heading, _ in columns], list(zip(*(cells for _, cells in columns), strict=True))
    wanted = [headings.index(name) for name in _OPTIONAL if name in headings]
    uncached = headings.index("no cache")
    wanted.insert(wanted.index(uncached), uncached + 1)
    of_sessions = f" of {sessions:,} sessions" if sessions > 1 else ""
    drawn = table(headings, rows, optional=wanted, best=costs.index(cheapest_policy(costs)), is_last_name=True)
    return f"{counted(costs[0].usage.requests, 'request')}{of_sessions}\n\n{drawn}"


def session_as_json(session: Session, elongation: float) -> dict[str, Any]:
    report = costs_as_json(compare_costs([session.replay], elongation))
    return {**report, "quoted": quoted_shares([session.replay]), "misses": misses_as_json(session)}


def costs_as_json(costs: tuple[PolicyCost, ...]) -> dict[str, Any]:
    policies = [{**cost._asdict(), "usage": cost.usage._asdict()} for cost in costs]
    return {"requests": costs[0].usage.requests, "cheapest": cheapest_policy(costs).policy, "policies": policies}
