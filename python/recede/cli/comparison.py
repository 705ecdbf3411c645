"""The tables of a replay, and figures for programs: of costs, of what logs say was paid, and of quotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from recede.cli.notices import counted
from recede.cli.played import Session, paid_parts
from recede.cli.record import DayCost, QuotedRequest, Record, costs_of
from recede.cli.tables import first_of, gain, money, percent, prose, share, table, tenths, words_of
from recede.costs import (
    CACHES,
    PRESETS,
    SYSTEM_CHARS,
    Bill,
    PolicyCost,
    Replay,
    WindowCurve,
    cheapest_policy,
    compare_costs,
    quoted_share,
)
from recede.costs._policies import MASKED
from recede.designs import approx_tokens

# The columns that a narrow screen lacks, the first to go first; that of no cache goes with its share of raw.
_OPTIONAL = "mean,worst,worst moment,no cache,summaries,from cache,tokens sent,losses,policy,quoted".split(",")


def for_people(sessions: Sequence[Session], said: list[str], elongation: float) -> str:
    replays = [session.replay for session in sessions]
    costs = compare_costs(replays, elongation)
    lines = [*_verdict(costs, sessions), *_notes(costs, len(sessions), elongation)]
    lines += [*_over_limit(replays), *said, price_line(sessions)]
    return f"{_costs_table(costs, replays)}\n{prose(lines)}\n"


def unpriced_models(sessions: Sequence[Session]) -> str:
    return first_of(list(dict.fromkeys(name for session in sessions for name in session.unpriced)))


def price_line(sessions: Sequence[Session]) -> str:
    replays = [session.replay for session in sessions]
    prices = replays[0].prices
    others = replays[0].summary_prices or prices
    *names, _ = prices._fields
    figures = ", ".join(f"{name} ${price:.4g}" for name, price in zip(names, prices, strict=False))
    known = [name for name, preset in PRESETS.items() if preset == prices]
    figures += f"; under {prices.min_cached_tokens:,} tokens no cache" + (f" ({known[0]})" if known else "")
    if any(replay.prices != prices for replay in replays):
        figures = "by the models of each session (recede prices)"
    if not all(session.has_dollars for session in sessions):
        figures = f"not known of {unpriced_models(sessions)}"
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
    lines = [_paid_line(raw.cost, sessions)]
    if best is raw:
        return [*lines, "cheapest: as it was sent; masking pays off later, or never, in so short a session"]
    cost = "" if best.cost is None else f"{money(best.cost)}, "
    return [*lines, f"cheapest: {cost}{gain(best.of_raw)}: {words_of(best.policy)}"]


def _paid_line(raw_cost: float | None, sessions: Sequence[Session]) -> str:
    """What was paid, beside the estimate that all costs of a table are compared with."""
    parts = paid_parts(sessions)
    amount = ", ".join(f"{money(dollars)} {_PAID[part]}" for part, dollars in parts.items())
    amount = amount if len(parts) > 1 else money(sum(parts.values()))
    if silent := [session for session in sessions if not session.has_dollars]:
        said = f"no dollars for {counted(len(silent), 'session')}: no price is known of {unpriced_models(silent)}"
        said += " (--prices FILE gives one)"
        return said + (f"; the others: {amount}" if len(silent) < len(sessions) else "")
    is_logged = any(session.is_logged for session in sessions)
    source = f"; the raw history is estimated at {money(raw_cost)}" if is_logged else ", as estimated"
    return f"you paid: {amount}{source}"


_PAID = {"logged": "logged", "estimated": "estimated", "subscription": "of a subscription, at API prices"}


def _notes(costs: Sequence[PolicyCost], sessions: int, elongation: float) -> list[str]:
    raw, best = costs[0], cheapest_policy(costs)
    lines = []
    if best.usage.summary_calls:
        calls = f"{counted(best.usage.summary_calls, 'call')} of a model"
        calls += "" if best.summary_cost is None else f" for {money(best.summary_cost)}"
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
    sessions, shares, in_dollars = len(replays), quoted_shares(replays), costs[0].cost is not None
    columns = [
        ("choice", [words_of(cost.policy) for cost in costs]),
        ("tokens sent", [f"{approx_tokens(cost.usage.sent_chars):,}" for cost in costs]),
        ("from cache", [share(cost.usage.cached_chars, cost.usage.sent_chars) for cost in costs]),
        *([("cost", [money(cost.cost) for cost in costs])] if in_dollars else []),
        ("of raw", [percent(cost.of_raw) for cost in costs]),
        ("no cache", [money(cost.cost_uncached) if in_dollars else percent(cost.of_raw_uncached) for cost in costs]),
        *([("of raw", [percent(cost.of_raw_uncached) for cost in costs])] if in_dollars else []),
    ]
    if in_dollars and any(cost.usage.summary_calls for cost in costs):
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
    if in_dollars:
        wanted.insert(wanted.index(uncached), uncached + 1)
    of_sessions = f" of {sessions:,} sessions" if sessions > 1 else ""
    drawn = table(headings, rows, optional=wanted, best=costs.index(cheapest_policy(costs)), is_last_name=True)
    return f"{counted(costs[0].usage.requests, 'request')}{of_sessions}\n\n{drawn}"


def session_as_json(session: Session, elongation: float) -> dict[str, Any]:
    report = costs_as_json(compare_costs([session.replay], elongation))
    return {
        "name": session.name,
        **report,
        "quoted": quoted_shares([session.replay]),
        "misses": misses_as_json(session),
    }


def costs_as_json(costs: tuple[PolicyCost, ...]) -> dict[str, Any]:
    policies = [{**cost._asdict(), "usage": cost.usage._asdict()} for cost in costs]
    return {"requests": costs[0].usage.requests, "cheapest": cheapest_policy(costs).policy, "policies": policies}


# Bills


_OFF = 0.15  # what a session may be off by without a reason


def logged_lines(sessions: Sequence[Session], system_chars: int) -> list[str]:
    """Lines on what was paid by the logs, and what they do not say; flat prices ask for no model."""
    logs = [session.log for session in sessions if session.log is not None]
    is_flat = any(session.is_flat for session in sessions)
    bill, priced = (
        Bill.total(log.bill for log in some) for some in (logs, [one for one in logs if not one.prices.unpriced])
    )
    lines = []
    if bill.requests:
        counts = Counter(model for log in logs for model in log.prices.models[:1])
        models = ", ".join(model for model, _ in counts.most_common())
        kinds = f"{bill.cached_tokens:,} read from the cache, {bill.fresh_tokens:,} other, {bill.output_tokens:,} out"
        dollars = money(priced.cost) if priced.requests else "no dollars"
        some = f"{priced.requests:,} of " if 0 < priced.requests < bill.requests else ""
        lines.append(f"logged: {dollars} for {some}{counted(bill.requests, 'request')}, tokens: {kinds} ({models})")
    silent = sum(session.log is None or not session.log.bill.requests for session in sessions)
    if silent:
        system = f"{approx_tokens(system_chars):,} tokens of system prompt and tools"
        system += " unless --set system_chars=N" if system_chars == SYSTEM_CHARS else ""
        lines.append(f"assumed: {counted(silent, 'session')} without usage: four characters a token, {system}")
    plans = sum(log.plan is not None for log in logs)
    if plans and not is_flat:
        lines.append(f"assumed: {counted(plans, 'session')} paid by a subscription: priced as the API")
    assumed = Counter(line for log in logs for line in log.prices.assumed)
    if not is_flat:
        lines += [f"assumed: {counted(count, 'session')}: {line}" for line, count in assumed.most_common()]
    return lines


def check_text(sessions: Sequence[Session]) -> str:
    """A row for each session with logged usage, their sum, and the reasons of those that are far off."""
    found = [
        (session.name, session.log.timed, session.log.as_logged)
        for session in sessions
        if session.log is not None and session.log.timed is not None and session.log.as_logged is not None
    ]
    if not found:
        return "no session has logged usage\n"
    headings = ["session", "requests", "input", "2nd half", "read", "not read", "output", "paid", "cost", "as served"]
    rows = [
        _check_row(name, timed.input_error, timed.second_half_error, timed.logged, timed.estimated, as_logged.estimated)
        for name, timed, as_logged in found
    ]
    mean = sum(timed.input_error for _, timed, _ in found) / len(found)
    worst = max((timed.second_half_error or 0.0 for _, timed, _ in found), default=0.0)
    sums = [Bill.total(part) for part in zip(*((t.logged, t.estimated, s.estimated) for _, t, s in found), strict=True)]
    rows.append(_check_row(counted(len(found), "session"), mean, worst, *sums))
    reasons = [
        f"{name}: {'; '.join(timed.notes)}"
        for name, timed, _ in found
        if timed.notes and _is_off(timed.logged, timed.estimated)
    ]
    return "\n".join([table(headings, rows), prose([*_WORDS, *(["", *reasons] if reasons else []), ""])])


_WORDS = (
    "input: error of a request's tokens; 2nd half: of the input, predicted from the first half (in all: the worst);",
    "read, not read, output, cost: estimated against logged, the cache by its rule and the time stamps alone;",
    "as served: the cost where the cache is also as cold as the log shows.",
)


def _check_row(name: str, error: float, half: float | None, paid: Bill, timed: Bill, as_logged: Bill) -> list[str]:
    kinds = ("cached_tokens", "fresh_tokens", "output_tokens")
    tokens = [_difference(getattr(paid, kind), getattr(timed, kind)) for kind in kinds]
    dollars = [
        money(paid.cost) if paid.cost else "-",
        _difference(paid.cost, timed.cost),
        _difference(paid.cost, as_logged.cost),
    ]
    return [name, f"{paid.requests:,}", tenths(error), tenths(half), *tokens, *dollars]


def _difference(paid: float, estimated: float) -> str:
    return f"{100 * (estimated / paid - 1):+.1f} %" if paid else "-"


def _is_off(paid: Bill, estimated: Bill) -> bool:
    kinds = ("cached_tokens", "fresh_tokens", "cost")
    return any(abs(getattr(estimated, kind) - getattr(paid, kind)) > _OFF * getattr(paid, kind) for kind in kinds)


# Quotations


_MOST_CHARS = 100

RECORDED = 0.047
"""The share under `MASKED` in recorded sessions of 30 results or more (`benches/misses.py --table break_even`)."""


def list_table(found: Sequence[QuotedRequest]) -> str:
    """A row for each quotation; requests and results count from 1, as people do."""
    rows = [
        [
            f"{one.number} {one.session}",
            one.tool or "(unknown)",
            f"{one.request:,}",
            f"{one.results_ago:,}",
            one.text if len(one.text) <= _MOST_CHARS else f"{one.text[: _MOST_CHARS - 1]}…",
        ]
        for one in found
    ]
    return table(["session", "tool", "request", "results ago", "text"], rows, names=2, is_last_name=True)


def misses_text(record: Record, sessions: Sequence[Session]) -> str:
    """The list, and whether the share of requests that quote is low or high beside that of the recorded sessions."""
    policy, share = record.asked.masked, quoted_share([session.replay for session in sessions], MASKED)
    if record.masked is None or record.masked.quoted is None or share is None:
        return "quoted: no texts were read\n"
    high = "low" if share < RECORDED / 2 else "high" if share > 2 * RECORDED else "usual"
    said = f"{tenths(share)} with a window of 10 is {high}: recorded sessions have {tenths(RECORDED)}"
    if policy != MASKED:
        here = tenths(record.masked.quoted)
        said = f"{here} with the advised window of {policy.rpartition('=')[2]}, as listed; {said}"
    if not record.quoted:
        nothing = "no request wrote text that masking had hidden by then"
        said = f"{nothing}; {said}" if share else nothing
    return "\n".join([*([list_table(record.quoted)] if record.quoted else []), prose([f"quoted: {said}", ""])])


def days_table(days: Sequence[DayCost], *, in_tokens: bool) -> str:
    """A row for each day and their sum: requests, what was paid, and what masking would have cost."""

    def row(day: DayCost) -> list[str]:
        paid, masked = costs_of(day, in_tokens=in_tokens)
        shown = [f"{one:,}" if in_tokens else money(one) for one in (paid, masked)]
        return [day.day or "(no time)", f"{day.requests:,}", *shown, gain(masked, paid)]

    total = DayCost("total", *map(sum, zip(*(day[1:] for day in days), strict=True))) if days else DayCost("total")
    headings = ["day", "requests", "tokens" if in_tokens else "paid", "masked when it pays", "saving"]
    return table(headings, map(row, [*days, total]))


def quoted_lines(sessions: Sequence[Session]) -> list[str]:
    """What the column `quoted` counts, and what was not measured."""
    measured = [session.replay.misses for session in sessions if session.replay.misses is not None]
    silent = len(sessions) - len(measured)
    lines = []
    if measured:
        examined = counted(sum(one.examined for one in measured), "request")
        sampled = ", a sample," if any(one.examined < one.requests for one in measured) else ""
        lines.append(
            f"quoted: the share of {examined}{sampled} that wrote again, word for word, what only results had that the "
            "choice had hidden by then"
        )
    if silent:
        lines.append(
            f"quoted: {counted(silent, 'session')} not measured, whose texts were not read (--misses reads them)"
        )
    return lines


def quoted_shares(replays: Sequence[Replay]) -> dict[str, float]:
    """The share of requests that quote what a policy had hidden, by policy, where that is known."""
    shares = {policy.policy: quoted_share(replays, policy.policy) for policy in replays[0].policies}
    return {policy: share for policy, share in shares.items() if share is not None}


def curve_text(curve: WindowCurve, sessions: Sequence[Session]) -> str:
    rows = [
        [f"{one.window}", money(one.cost.cost), percent(one.cost.of_raw), tenths(one.quoted)] for one in curve.choices
    ]
    drawn = table(["window", "cost", "of raw", "quoted"], rows)
    [raw] = compare_costs([session.under(["raw"]).replay for session in sessions])
    paid = _paid_line(raw.cost, sessions)
    return f"{drawn}\n{prose([paid, advice(curve), *quoted_lines(sessions), ''])}"


def advice(curve: WindowCurve) -> str:
    best = curve.advised()
    if best is not None:
        return (
            f"window: {best.window} saves most for each quotation of what it hides: "
            f"{percent(best.cost.of_raw)} of raw, {tenths(best.quoted)} quoted"
        )
    return f"window: no advice: it needs a saving, and five sessions with 30 results or more, here are {curve.sessions}"


def curve_as_json(curve: WindowCurve) -> dict[str, Any]:
    best = curve.advised()
    windows = [
        {
            "window": one.window,
            "cost": one.cost.cost,
            "of_raw": one.cost.of_raw,
            "quoted": one.quoted,
        }
        for one in curve.choices
    ]
    return {"window": None if best is None else best.window, "sessions": curve.sessions, "windows": windows}


def misses_as_json(session: Session) -> dict[str, Any] | None:
    found = session.replay.misses
    if found is None:
        return None
    quoted = [one._asdict() for one in found.quoted]
    return {"requests": found.requests, "results": found.results, "examined": found.examined, "quoted": quoted}
