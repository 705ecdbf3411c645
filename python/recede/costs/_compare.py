"""Cost comparison of policies."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from statistics import median
from typing import Any, NamedTuple

from recede.costs._policies import summarizes, window_of
from recede.costs._prices import Prices, Usage

_NO_DOLLARS: dict[str, Any] = dict.fromkeys(("cost", "cost_uncached", "summary_cost"))


class PolicyCost(NamedTuple):
    """The cost of a policy over one or several sessions.

    Attributes:
        policy: its name and numbers.
        usage: the summed characters that it sent.
        cost: the cost with a prompt cache, in the currency of the prices, including summary calls; None where a
            model has no known price.
        cost_uncached: the cost without a prompt cache; None as for `cost`.
        of_raw: the cost as a share of sending the raw history; the share of its tokens where that costs nothing.
        of_raw_uncached: the same for `cost_uncached`.
        mean_of_raw: the mean of that share over the sessions.
        median_of_raw: its median.
        worst_of_raw: the largest share of any session.
        loss_count: the number of sessions in which it costs more than the raw history.
        summary_cost: the part of both costs that summary calls account for; None as for `cost`.
        worst_moment: the largest share of raw that all requests of a session so far have cost, at any of its requests;
            None where only sums are known, or the raw history costs nothing.

    Example:
        >>> import recede
        >>> recede.costs.replay([], prices=recede.costs.Prices(output=0)).costs[0].usage[:5]
        (0, 0, 0, 0, 0)
    """

    policy: str
    usage: Usage
    cost: float | None
    cost_uncached: float | None
    of_raw: float
    of_raw_uncached: float
    mean_of_raw: float
    median_of_raw: float
    worst_of_raw: float
    loss_count: int
    summary_cost: float | None = 0.0
    worst_moment: float | None = None

    @property
    def window(self) -> int | None:
        """The window of a policy that only masks: how many of the newest results stay raw; None for others."""
        return window_of(self.policy)


class ReplayUsage(NamedTuple):
    """The usage of one or several replayed sessions under each policy; prices are applied last.

    Attributes:
        usage: the usage by policy; ``raw`` is one of them.
        prices: the prices for the costs.
        summary_prices: the prices of the summarizing model; None: the same.
        has_dollars: False where a model has no known price: `prices` are good for shares alone.

    Example:
        >>> from recede.costs import PRESETS, compare_costs, replay
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> used = replay(history, ["sliding:window=10"]).usage
        >>> used.usage["raw"][:5]
        (1, 12002, 0, 12002, 5)
        >>> [round(compare_costs([one])[0].cost, 6) for one in (used, used._replace(prices=PRESETS["gemini"]))]
        [0.011271, 0.006016]
    """

    usage: Mapping[str, Usage]
    prices: Prices = Prices()
    summary_prices: Prices | None = None
    has_dollars: bool = True


def costs_of(
    sessions: Iterable[tuple[ReplayUsage, Mapping[str, float | None]]], elongation: float = 0.0
) -> tuple[PolicyCost, ...]:
    """Compute the cost of each policy, as `compare_costs`, from usage and worst moments of sessions."""
    sums: dict[str, _Sum] = {}
    have_dollars = True
    for session, moments in sessions:
        have_dollars &= session.has_dollars
        if not sums:
            if "raw" not in session.usage:
                raise ValueError("the sessions must be replayed under raw too")
            sums = {name: _Sum() for name in ("raw", *session.usage)}
        if session.usage.keys() != sums.keys():
            raise ValueError("the sessions must be replayed under the same policies")
        raw = session.usage["raw"]
        raw_cost, _, _ = _costs(raw, session)
        for name, total in sums.items():
            longer, moment = 1 + elongation * summarizes(name), moments.get(name)
            costs = [longer * part for part in _costs(session.usage[name], session)]
            share = costs[0] / raw_cost if raw_cost else _share(session.usage[name].sent_chars, raw.sent_chars)
            total.add(session.usage[name], costs, share, None if moment is None else longer * moment)
    if not sums:
        raise ValueError("there is no session to compare")
    found = tuple(total.under(name, sums["raw"]) for name, total in sums.items())
    return found if have_dollars else tuple(one._replace(**_NO_DOLLARS) for one in found)


def worst_moment(so_far: Sequence[float], raw_so_far: Sequence[float]) -> float | None:
    """The largest share of raw that the requests up to one of them have cost; None if they cost nothing."""
    if raw_so_far and not raw_so_far[-1]:
        return None
    return max(map(_share, so_far, raw_so_far), default=1.0)


def _costs(usage: Usage, session: ReplayUsage) -> tuple[float, float, float]:
    """With a cache, without one, and of summaries."""
    both = session.prices, session.summary_prices
    return usage.cost(*both), usage.cost_uncached(*both), usage.summary_cost(both[1] or both[0])


class _Sum:
    """Running sums of one policy over any number of sessions."""

    def __init__(self) -> None:
        self.usage = Usage.total([])
        self.costs = [0.0, 0.0, 0.0]
        self.loss_count = 0
        self.moment: float | None = 0.0
        self._shares = array("d")

    def add(self, usage: Usage, costs: Sequence[float], share: float, moment: float | None) -> None:
        self.usage = Usage.total([self.usage, usage])
        self.costs = list(map(add, self.costs, costs))
        self.loss_count += share > 1
        self.moment = None if moment is None or self.moment is None else max(self.moment, moment)
        self._shares.append(share)

    def under(self, policy: str, raw: _Sum) -> PolicyCost:
        shares = self._shares
        cost, uncached, summaries = self.costs
        of_raw, of_raw_uncached, _ = map(_share, self.costs, raw.costs)
        if not raw.costs[0]:
            of_raw = of_raw_uncached = _share(self.usage.sent_chars, raw.usage.sent_chars)
        of_sessions = sum(shares) / len(shares), median(shares), max(shares), self.loss_count
        paid = policy, self.usage, cost, uncached, of_raw, of_raw_uncached
        return PolicyCost(*paid, *of_sessions, summaries, self.moment)


def cheapest_policy(costs: Iterable[PolicyCost]) -> PolicyCost:
    """Find the cheapest policy with a prompt cache, the first of equals.

    Args:
        costs: the costs of the policies, as `compare_costs` returns them; at least one.

    Raises:
        ValueError: there are none.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> sessions = [recede.costs.replay(history, ["sliding:window=10"])]
        >>> recede.costs.cheapest_policy(recede.costs.compare_costs(sessions)).policy
        'raw'
    """
    found = list(costs)
    if not found:
        raise ValueError("there is no policy to choose from")
    return min(found, key=lambda cost: cost.of_raw)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0
