"""A finished session played again under several policies: what each request would have sent, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from recede import _engine
from recede._api import as_bytes
from recede._cost import Prices, Usage
from recede._policy import image_chars_of
from recede._replay_policies import DEFAULT_POLICIES, compiled_policies, is_optimum, window_of

if TYPE_CHECKING:
    from recede._api import Json

__all__ = [
    "SYSTEM_CHARS",
    "PolicyCost",
    "PolicyReplay",
    "Replay",
    "ReplayedTurn",
    "cheapest_policy",
    "compare_costs",
    "replay",
    "replay_json",
]

SYSTEM_CHARS = 12_000
"""What a log leaves out of each request: the system prompt and the schemas of the tools. An agent's are some 3,000
tokens."""


class ReplayedTurn(NamedTuple):
    """One request of a session under one policy, and its answer.

    Attributes:
        messages: how many messages of the history came before it.
        view_chars: characters of what was sent, the system prompt included.
        cached_chars: of these, what the request before began with as well, message by message: what a
            prompt cache would serve.
        written_chars: of these, what would be written to it: the rest, or nothing where a request is too short.
        answer_chars: characters of the answer.
        masked_count: observations that were masked in the view.

    Example:
        >>> import recede
        >>> recede.ReplayedTurn(1, 12_400, 12_000, 400, 80, 0).view_tokens
        3100
    """

    messages: int
    view_chars: int
    cached_chars: int
    written_chars: int
    answer_chars: int
    masked_count: int

    @property
    def view_tokens(self) -> int:
        """About how many tokens were sent, at four characters each."""
        return -(-self.view_chars // 4)


class PolicyReplay(NamedTuple):
    """A session under one policy.

    Attributes:
        policy: its name and numbers, such as ``stepped:window=10,chunk=5``.
        turns: a `ReplayedTurn` for each request, in order.

    Example:
        >>> import recede
        >>> turns = recede.ReplayedTurn(1, 100, 0, 100, 9, 0), recede.ReplayedTurn(3, 150, 100, 50, 5, 0)
        >>> recede.PolicyReplay("raw", turns).usage
        Usage(requests=2, sent_chars=250, cached_chars=100, written_chars=150, answer_chars=14)
    """

    policy: str
    turns: tuple[ReplayedTurn, ...]

    @property
    def usage(self) -> Usage:
        """All requests added up."""
        columns = list(zip(*self.turns, strict=True)) or [()] * 6
        return Usage(len(self.turns), *map(sum, columns[1:5]))


class PolicyCost(NamedTuple):
    """What a policy costs, over one session or several.

    Attributes:
        policy: its name and numbers.
        usage: the characters that it sent, added up.
        cost: what that costs with a prompt cache, in the currency of the prices.
        cost_uncached: what it costs without one.
        of_raw: `cost` as a share of sending the raw history.
        of_raw_uncached: the same for `cost_uncached`.
        mean_of_raw: the same share of single sessions, on average.
        worst_of_raw: the same share of the session in which it is largest.
        dearer_count: in how many of the sessions it costs more than the raw history.
        of_optimum: `cost` as a share of the optimum's with the same window; None where that was not played.

    Example:
        >>> import recede
        >>> recede.replay([], prices=recede.Prices(output=0)).costs[0].usage
        Usage(requests=0, sent_chars=0, cached_chars=0, written_chars=0, answer_chars=0)
    """

    policy: str
    usage: Usage
    cost: float
    cost_uncached: float
    of_raw: float
    of_raw_uncached: float
    mean_of_raw: float
    worst_of_raw: float
    dearer_count: int
    of_optimum: float | None

    @property
    def is_optimum(self) -> bool:
        """Whether the policy is the one that knows the future, which no rule can do."""
        return is_optimum(self.policy)


class Replay(NamedTuple):
    """A session under several policies.

    Attributes:
        policies: a `PolicyReplay` for each, ``raw`` first.
        prices: what the costs are reckoned with.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> session = recede.replay(history, ["sliding:window=10"])
        >>> session
        <Replay: 1 requests, cheapest raw at 100% of raw>
        >>> session.policies[0].turns[0]
        ReplayedTurn(messages=1, view_chars=12002, cached_chars=0, written_chars=12002, answer_chars=5, masked_count=0)
    """

    policies: tuple[PolicyReplay, ...]
    prices: Prices

    @property
    def costs(self) -> tuple[PolicyCost, ...]:
        """What each policy costs, in the order of the policies."""
        return compare_costs([self])

    @property
    def cheapest(self) -> PolicyCost:
        """The policy that costs least with a prompt cache, of equal ones the first; never the optimum."""
        return cheapest_policy(self.costs)

    def __repr__(self) -> str:
        requests = len(self.policies[0].turns)
        best = self.cheapest
        return f"<Replay: {requests} requests, cheapest {best.policy} at {best.of_raw:.0%} of raw>"


def replay(
    messages: list[Any],
    policies: Iterable[str] = DEFAULT_POLICIES,
    *,
    prices: Prices = Prices(),  # noqa: B008 - a tuple, which nobody can change
    system_chars: int = SYSTEM_CHARS,
) -> Replay:
    """Play a finished session again, request by request, under several policies side by side.

    A request was made before each run of agent messages, which is its answer.

    Args:
        messages: the raw history, as for `reduce`; the `.messages` of a transcript.
        policies: what is compared, each spelt ``name:key=value,key=value``; ``raw`` is always among them.

            - ``raw``: everything is sent.
            - ``sliding:window=10``: all observations but the newest 10 are masked.
            - ``stepped:window=10,chunk=5``: the same, but the boundary moves by 5 observations at once.
            - ``break_even:window=10``: the boundary moves when it has paid for itself at these prices.
            - ``high_water:window=10,chars=200000``: it moves when the view is larger.
            - ``optimum:window=10``: it moves when that costs least, knowing what comes: what a rule can be
              measured by, but none can do.
            - ``keep_last:messages=20``: the system messages, the first user message, the last 20 messages and
              what pairs with them; the rest is left out.
        prices: for a million tokens; their docstring says what the defaults are.
        system_chars: what logs leave out of each request: the system prompt and the schemas of the tools.

    Returns:
        A `Replay`: for each policy what each request sent, how much of it a prompt cache would have served, and
        what all of it costs.

    Raises:
        TranscriptError: the input is no history.
        TypeError, ValueError: a policy, a price or a number is wrong; says which.

    Time is linear in the text, and for ``keep_last`` quadratic in the number of messages (with a small factor: a
    thousand turns take some milliseconds).

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "Find the bug."}]
        >>> for number in range(60):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     history.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
        ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "line\\n" * 800})
        >>> result = recede.replay(history, ["sliding:window=10", "stepped:window=10,chunk=10"])
        >>> result
        <Replay: 60 requests, cheapest stepped:window=10,chunk=10 at 79% of raw>
        >>> [(cost.policy, round(cost.of_raw, 2), round(cost.of_raw_uncached, 2)) for cost in result.costs]
        [('raw', 1.0, 1.0), ('sliding:window=10', 2.44, 0.38), ('stepped:window=10,chunk=10', 0.79, 0.5)]
        >>> last = result.policies[1].turns[-1]
        >>> last.view_chars, last.cached_chars, last.masked_count
        (55400, 15067, 49)
    """
    engine = _engine.engine
    names, compiled = compiled_policies(policies, _checked(prices))
    replayed = engine.replay(messages, compiled, image_chars_of({}))
    return _replay(names, replayed, prices, system_chars)


def replay_json(
    data: Json,
    policies: Iterable[str] = DEFAULT_POLICIES,
    *,
    prices: Prices = Prices(),  # noqa: B008 - a tuple, which nobody can change
    system_chars: int = SYSTEM_CHARS,
) -> Replay:
    """`replay` for a serialized history, as `reduce_json` is `reduce` for one.

    Example:
        >>> import recede
        >>> recede.replay_json(b'[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]')
        <Replay: 1 requests, cheapest raw at 100% of raw>
    """
    engine = _engine.engine
    names, compiled = compiled_policies(policies, _checked(prices))
    replayed = engine.replay_json(*as_bytes(data), compiled, image_chars_of({}))
    return _replay(names, replayed, prices, system_chars)


def compare_costs(replays: Iterable[Replay]) -> tuple[PolicyCost, ...]:
    """Add up what each policy costs over several sessions.

    Args:
        replays: sessions that were played again under the same policies and prices; one at least.

    Returns:
        A `PolicyCost` for each policy, in their order.

    Raises:
        ValueError: there are none, or their policies or prices differ.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> session = recede.replay(history, ["sliding:window=10"], prices=recede.Prices(output=0))
        >>> raw, sliding = recede.compare_costs([session, session])
        >>> sliding.policy, round(sliding.cost, 6), sliding.of_raw, sliding.dearer_count
        ('sliding:window=10', 0.022504, 1.0, 0)
    """
    sessions = list(replays)
    if not sessions:
        raise ValueError("there is no session to compare")
    names = [replayed.policy for replayed in sessions[0].policies]
    prices = sessions[0].prices
    for session in sessions:
        if [replayed.policy for replayed in session.policies] != names or session.prices != prices:
            raise ValueError("the sessions must have been played again under the same policies and prices")
    usages = [[replayed.usage for replayed in session.policies] for session in sessions]
    raw, *_ = totals = [Usage.total(column) for column in zip(*usages, strict=True)]
    optima = {window_of(name): usage for name, usage in zip(names, totals, strict=True) if is_optimum(name)}

    def cost_of(place: int, name: str) -> PolicyCost:
        usage, window = totals[place], window_of(name)
        shares = [_share(session[place].cost(prices), session[0].cost(prices)) for session in usages]
        return PolicyCost(
            policy=name,
            usage=usage,
            cost=usage.cost(prices),
            cost_uncached=usage.cost_uncached(prices),
            of_raw=_share(usage.cost(prices), raw.cost(prices)),
            of_raw_uncached=_share(usage.cost_uncached(prices), raw.cost_uncached(prices)),
            mean_of_raw=sum(shares) / len(shares),
            worst_of_raw=max(shares),
            dearer_count=sum(session[place].cost(prices) > session[0].cost(prices) for session in usages),
            of_optimum=_share(usage.cost(prices), optima[window].cost(prices)) if window in optima else None,
        )

    return tuple(cost_of(place, name) for place, name in enumerate(names))


def cheapest_policy(costs: Iterable[PolicyCost]) -> PolicyCost:
    """The policy that costs least with a prompt cache, of equal ones the first; never the optimum.

    Args:
        costs: of several policies, as `compare_costs` gives them; one at least.

    Raises:
        ValueError: there are none, or the optimum alone.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> sessions = [recede.replay(history, ["sliding:window=10", "optimum:window=10"])]
        >>> recede.cheapest_policy(recede.compare_costs(sessions)).policy
        'raw'
    """
    rules = [cost for cost in costs if not cost.is_optimum]
    if not rules:
        raise ValueError("there is no policy to choose from")
    return min(rules, key=lambda cost: cost.cost)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


def _checked(prices: Prices) -> Prices:
    if not isinstance(prices, Prices):
        raise TypeError(f"prices must be recede.Prices, not {type(prices).__name__}")
    return prices.checked()


def _replay(names: list[str], replayed: tuple[Any, Any], prices: Prices, system_chars: int) -> Replay:
    if not isinstance(system_chars, int) or isinstance(system_chars, bool):
        raise TypeError(f"system_chars must be a whole number, not {type(system_chars).__name__}")
    if system_chars < 0:
        raise ValueError(f"system_chars must be at least 0, not {system_chars}")
    requests, by_policy = replayed
    least = 4 * prices.min_cached_tokens
    policies = []
    for name, sent in zip(names, by_policy, strict=True):
        turns = []
        before = 0  # what the cache holds of the request before; at first nothing, not even the system prompt
        for (messages, answer_chars), (chars, same, masked_count) in zip(requests, sent, strict=True):
            view = chars + system_chars
            cached = min(same + system_chars, before)
            cached = cached if cached >= least else 0
            written = view - cached if view >= least else 0
            turns.append(ReplayedTurn(messages, view, cached, written, answer_chars, masked_count))
            before = cached + written
        policies.append(PolicyReplay(name, tuple(turns)))
    return Replay(tuple(policies), prices)
