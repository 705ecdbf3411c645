"""Cost comparison of policies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from statistics import mean, median
from typing import NamedTuple

from recede.costs._policies import is_optimum, optimum_of, window_of
from recede.costs._prices import Prices, Usage

__all__ = ["PolicyCost", "cheapest_policy", "costs_of", "worst_moment"]


class PolicyCost(NamedTuple):
    """The cost of a policy over one or several sessions.

    Attributes:
        policy: its name and numbers.
        usage: the summed characters that it sent.
        cost: the cost with a prompt cache, in the currency of the prices, including summary calls.
        cost_uncached: the cost without a prompt cache.
        of_raw: `cost` as a share of sending the raw history.
        of_raw_uncached: the same for `cost_uncached`.
        mean_of_raw: the mean of that share over the sessions.
        median_of_raw: its median.
        worst_of_raw: the largest share of any session.
        dearer_count: the number of sessions in which it costs more than the raw history.
        of_optimum: `cost` as a share of the optimum with the same window; None if that was not replayed, or the policy
            does more than mask.
        summary_cost: the part of both costs that summary calls account for.
        worst_moment: the largest share of raw that all requests of a session so far have cost, at any of its requests.

    Example:
        >>> import recede
        >>> recede.costs.replay([], prices=recede.costs.Prices(output=0)).costs[0].usage[:5]
        (0, 0, 0, 0, 0)
    """

    policy: str
    usage: Usage
    cost: float
    cost_uncached: float
    of_raw: float
    of_raw_uncached: float
    mean_of_raw: float
    median_of_raw: float
    worst_of_raw: float
    dearer_count: int
    of_optimum: float | None
    summary_cost: float = 0.0
    worst_moment: float = 1.0

    @property
    def is_optimum(self) -> bool:
        """Whether the policy is the offline lower bound, which knows the future."""
        return is_optimum(self.policy)

    @property
    def window(self) -> int | None:
        """How many of the newest results a mask leaves raw; None if the policy does anything else than mask."""
        return window_of(self.policy)


def costs_of(
    names: Sequence[str],
    usages: Sequence[Sequence[Usage]],
    prices: Sequence[tuple[Prices, Prices | None]],
    moments: Sequence[float],
) -> tuple[PolicyCost, ...]:
    """The cost of each policy, raw first, from the usage of each session under each policy and its prices.

    `moments` are the worst moments of the policies.
    """
    sessions = [[_cost(usage, *both) for usage in session] for session, both in zip(usages, prices, strict=True)]
    columns = [list(column) for column in zip(*sessions, strict=True)]
    totals = [_Cost(*map(sum, zip(*column, strict=True))) for column in columns]
    raw = totals[0]
    optima = {name: total.cost for name, total in zip(names, totals, strict=True) if is_optimum(name)}

    def cost_of(place: int, name: str) -> PolicyCost:
        total, optimum = totals[place], optima.get(optimum_of(name) or name)
        shares = [_share(cost.cost, raw.cost) for cost, raw in zip(columns[place], columns[0], strict=True)]
        return PolicyCost(
            policy=name,
            usage=Usage.total(session[place] for session in usages),
            cost=total.cost,
            cost_uncached=total.cost_uncached,
            of_raw=_share(total.cost, raw.cost),
            of_raw_uncached=_share(total.cost_uncached, raw.cost_uncached),
            mean_of_raw=mean(shares),
            median_of_raw=median(shares),
            worst_of_raw=max(shares),
            dearer_count=sum(cost.cost > raw.cost for cost, raw in zip(columns[place], columns[0], strict=True)),
            of_optimum=None if optimum is None else _share(total.cost, optimum),
            summary_cost=total.summary_cost,
            worst_moment=moments[place],
        )

    return tuple(cost_of(place, name) for place, name in enumerate(names))


def worst_moment(requests: Iterable[Usage], raw: Iterable[Usage], prices: tuple[Prices, Prices | None]) -> float:
    """The largest share of raw that all requests of a session so far have cost, at any of them."""
    so_far, raw_so_far = (accumulate(one.cost(*prices) for one in turns) for turns in (requests, raw))
    return max(map(_share, so_far, raw_so_far), default=1.0)


class _Cost(NamedTuple):
    """What one policy cost in one session."""

    cost: float
    cost_uncached: float
    summary_cost: float


def _cost(usage: Usage, prices: Prices, summary_prices: Prices | None) -> _Cost:
    both = prices, summary_prices
    return _Cost(usage.cost(*both), usage.cost_uncached(*both), usage.summary_cost(summary_prices or prices))


def cheapest_policy(costs: Iterable[PolicyCost]) -> PolicyCost:
    """The cheapest policy with a prompt cache, the first of equals; never the optimum.

    Args:
        costs: the costs of the policies, as `compare_costs` returns them; at least one.

    Raises:
        ValueError: there are none, or only the optimum.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> sessions = [recede.costs.replay(history, ["sliding:window=10", "optimum:window=10"])]
        >>> recede.costs.cheapest_policy(recede.costs.compare_costs(sessions)).policy
        'raw'
    """
    rules = [cost for cost in costs if not cost.is_optimum]
    if not rules:
        raise ValueError("there is no policy to choose from")
    return min(rules, key=lambda cost: cost.cost)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0
