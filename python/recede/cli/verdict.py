"""The result of a replay in sentences: what was paid, what would have been, and the line to paste."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recede.cli.anatomy import Anatomy
from recede.cli.notices import counted
from recede.cli.paste import line_for
from recede.costs import (
    CACHES,
    PRESETS,
    Bill,
    BillCheck,
    PolicyCost,
    Replay,
    SessionPrices,
    cheapest_policy,
)
from recede.reduction import ToolReport

PASTE = "to get it, before each request: "
"""What the sentence begins with that ends with the line to paste."""

# How much more than the cheapest a larger window may cost, as a share of raw.
_WORTH_OF_RAW = 0.1


class Logged(NamedTuple):
    """What the log of a session says.

    Attributes:
        bill: what its requests cost, but for copies of those that another file has.
        bills: of each request: what identifies it, how many messages precede its answer, and its cost.
        prices: those of its models.
        timed: the replay of the raw history against it, with pauses from time stamps; None unless asked for.
        as_logged: the same, with a cache that is as cold as the log shows.
    """

    bill: Bill
    bills: tuple[tuple[str | None, int, Bill], ...]
    prices: SessionPrices
    timed: BillCheck | None = None
    as_logged: BillCheck | None = None


class Session(NamedTuple):
    """A session that was played again.

    Attributes:
        name: the file, and which of its histories.
        format: the name that `recede.transcripts` has for its format.
        replay: what its requests would have sent under each policy.
        tools: its observations by tool.
        chars: characters of the whole history.
        log: what its log says; None where the file is no log.
        anatomy: what its text is drawn from; None where no pictures were asked for.
    """

    name: str
    format: str
    replay: Replay
    tools: Mapping[str, ToolReport]
    chars: int
    anatomy: Anatomy | None = None
    log: Logged | None = None


def money(amount: float) -> str:
    """An amount with two decimals, or as many as a small one needs."""
    if amount and amount < 0.01:
        return f"${amount:.2g}" if amount >= 0.0001 else f"${amount:.1e}"
    return f"${amount:,.2f}"


def requests_of(requests: int, sessions: int) -> str:
    """How many requests these are, and of how many sessions if of several."""
    return counted(requests, "request") + (f" of {sessions:,} sessions" if sessions > 1 else "")


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.0f} %"


def price_line(replays: Sequence[Replay]) -> str:
    """The prices of the costs."""
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


def verdict(costs: Sequence[PolicyCost], sessions: Sequence[Session]) -> list[str]:
    """What was paid, what would have been, and the line that does it: at most three sentences.

    Args:
        costs: of the policies; the first is the raw history.
        sessions: which they are the costs of.
    """
    raw = costs[0]
    if not raw.usage.requests:
        return ["no request was made: the history holds no message of an agent"]
    best = cheapest_policy(costs)
    paid = _paid(raw, sessions)
    if best is raw:
        reason = "masking pays off later, or never, in so short a session"
        return [paid, f"would have paid: no less under any other policy; {reason}"]
    would = f"would have paid: {money(best.cost)} with {best.policy}, {percent(1 - best.of_raw)} less"
    replayed = sessions[0].replay
    line = line_for(best.policy, replayed.prices, replayed.cache)
    return [paid, would] if line is None else [paid, would, f"{PASTE}{line}"]


def _paid(raw: PolicyCost, sessions: Sequence[Session]) -> str:
    """What was paid by the logs; where they say nothing, what the raw history is estimated at."""
    logged = [session for session in sessions if session.log is not None and session.log.bill.requests]
    of = requests_of(raw.usage.requests, len(sessions))
    if not logged:
        return f"paid: {money(raw.cost)} for {of}, as estimated for the raw history"
    estimated = raw.cost - sum(session.replay.costs[0].cost for session in logged)
    paid = estimated + sum(session.log.bill.cost for session in logged if session.log is not None)
    silent = len(sessions) - len(logged)
    but = f", {silent:,} of them as estimated" if silent else ""
    return f"paid: {money(paid)} for {of}, as logged{but}; the raw history is estimated at {money(raw.cost)}"


def notes(costs: Sequence[PolicyCost], sessions: int) -> list[str]:
    """What else the figures say: policies that cost more than raw, windows, summaries, the optimum."""
    raw, *others = [cost for cost in costs if not cost.is_optimum]
    best = cheapest_policy(costs)
    lines = []
    losing = [cost for cost in others if cost.cost > raw.cost]
    if losing and raw.usage.requests:
        named = ", ".join(f"{cost.policy} (+{percent(cost.of_raw - 1)})" for cost in losing)
        lines.append(f"costs more than raw: {named}: a change invalidates the prompt cache from there on")
    lines += _window([raw, *others])
    if best.usage.summary_calls:
        calls = f"{counted(best.usage.summary_calls, 'call')} of a model for {money(best.summary_cost)}"
        lines.append(
            f"summaries: {calls} are included; that agents with summaries take more turns, 13 to 18 % in the "
            "research, is not"
        )
    if best.of_optimum is not None and best is not raw:
        lines.append(f"optimum: knowing the future, the same window would have cost {_less(best.of_optimum)}")
    if sessions > 1 and best is not raw and best.loss_count:
        lines.append(f"the cheapest cost more than raw in {best.loss_count} of {sessions} sessions")
    return lines


def _less(of_optimum: float) -> str:
    gain = 1 - 1 / of_optimum
    return f"{percent(gain)} less" if gain >= 0.005 else "the same"


def _window(costs: Sequence[PolicyCost]) -> list[str]:
    """Which window to take: a larger one forgets less, and costs more."""
    best: dict[int, float] = {}
    for cost in costs:
        if cost.window is not None:
            best[cost.window] = min(best.get(cost.window, cost.of_raw), cost.of_raw)
    least = min(best.values(), default=1.0)
    if len(best) < 2 or least >= 1:
        return []
    largest = max(window for window, of_raw in best.items() if of_raw <= least + _WORTH_OF_RAW)
    curve = ", ".join(f"{window} costs {percent(of_raw)}" for window, of_raw in sorted(best.items()))
    return [
        f"window: {curve} of raw at its best; {largest} is the largest within a tenth of the least, and forgets less"
    ]
