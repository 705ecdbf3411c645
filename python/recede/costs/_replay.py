"""Replay of a finished session under several policies: what each request would have sent and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from operator import attrgetter, mul
from typing import TYPE_CHECKING, Any, NamedTuple

from recede import _engine
from recede._bodies import dumps
from recede._report import OverLimit
from recede.costs._calibration import Calibration, calibrated
from recede.costs._compare import PolicyCost, ReplayUsage, cheapest_policy, costs_of, worst_moment
from recede.costs._policies import DEFAULT_POLICIES, PlayedDoor, PlayedHistory, compiled_policies
from recede.costs._prices import CACHES, Cache, Prices, Usage, cache_facts, named_cache
from recede.costs._quotations import Misses, misses_of
from recede.costs._turn import ReplayedTurn
from recede.reduction._input import as_bytes, ask_engine
from recede.reduction._kinds import CHARS_PER_TOKEN, whole_number
from recede.reduction._policy import SUMMARY_CHARS, image_chars_of

if TYPE_CHECKING:
    from recede.reduction._input import Json

SYSTEM_CHARS = 12_000
"""The assumed length of the system prompt and tool schemas, which logs omit from each request: about 3,000 tokens."""

# What is added up and has a price; and a `Usage` of one character of each.
_PRICED = attrgetter(
    "view_chars", "cached_chars", "written_chars", "answer_chars", "summary_input_chars", "summary_output_chars"
)
_UNITS = [Usage._make((0, *(kind == place for place in range(4)), 0, kind == 4, kind == 5)) for kind in range(6)]


class PolicyReplay(NamedTuple):
    """A session under one policy.

    Attributes:
        policy: its name and numbers, such as ``stepped:window=10,chunk=5``.
        turns: a `ReplayedTurn` for each request, in order.

    Example:
        >>> import recede
        >>> turns = recede.costs.ReplayedTurn(1, 100, 0, 100, 9, 0), recede.costs.ReplayedTurn(3, 150, 100, 50, 5, 0)
        >>> recede.costs.PolicyReplay("raw", turns).usage[:5]
        (2, 250, 100, 150, 14)
    """

    policy: str
    turns: tuple[ReplayedTurn, ...]

    @property
    def usage(self) -> Usage:
        """The usage of all requests."""
        calls = sum(turn.summary_input_chars > 0 for turn in self.turns)
        *sent, asked, summaries = map(sum, zip((0,) * 6, *map(_PRICED, self.turns), strict=True))
        return Usage._make((len(self.turns), *sent, calls, asked, summaries))

    @property
    def over_limit(self) -> OverLimit:
        """Requests over a budget, by what they needed."""
        return OverLimit(*map([turn.needed for turn in self.turns].count, OverLimit._fields))


class Replay(NamedTuple):
    """A session under several policies.

    Attributes:
        policies: a `PolicyReplay` for each, ``raw`` first.
        prices: the prices for the costs.
        summary_prices: the prices of the summarizing model; None: the same.
        cache: how the provider caches prompts.
        misses: what the requests quote from results, if that was asked for.
        has_dollars: False where a model has no known price: `prices` are good for shares alone.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> session = recede.costs.replay(history, ["sliding:window=10"])
        >>> session
        <Replay: 1 requests, cheapest raw at 100% of raw>
        >>> turn = session.policies[0].turns[0]
        >>> turn.messages, turn.view_chars, turn.written_chars, turn.answer_chars
        (1, 12002, 12002, 5)
    """

    policies: tuple[PolicyReplay, ...]
    prices: Prices
    summary_prices: Prices | None = None
    cache: Cache = CACHES["anthropic"]
    misses: Misses | None = None
    has_dollars: bool = True

    @property
    def costs(self) -> tuple[PolicyCost, ...]:
        """The cost of each policy, in the order of the policies."""
        return compare_costs([self])

    @property
    def usage(self) -> ReplayUsage:
        """The usage under each policy, in sum."""
        usage = {one.policy: one.usage for one in self.policies}
        return ReplayUsage(usage, self.prices, self.summary_prices, self.has_dollars)

    @property
    def cheapest(self) -> PolicyCost:
        """The cheapest policy with a prompt cache, the first of equals."""
        return cheapest_policy(self.costs)

    def __repr__(self) -> str:
        requests = len(self.policies[0].turns)
        best = self.cheapest
        return f"<Replay: {requests} requests, cheapest {best.policy} at {best.of_raw:.0%} of raw>"


def replay(
    messages: list[Any],
    policies: Iterable[str] = DEFAULT_POLICIES,
    *,
    prices: Prices = Prices(),  # noqa: B008 - an immutable tuple
    cache: Cache | str = "anthropic",
    times: Mapping[int, float] | None = None,
    system_chars: int = SYSTEM_CHARS,
    summary_prices: Prices | None = None,
    summary_chars: int = SUMMARY_CHARS,
    calibration: Calibration | None = None,
    with_misses: bool = False,
) -> Replay:
    """Replay a finished session, request by request, under several policies.

    Each run of agent messages is the answer to one request. ``break_even``, and ``hybrid`` with break-even boundary and
    summaries, are what a `recede.History` with this `keep` sends.

    Args:
        messages: the raw history, as for `reduce`; the `.messages` of a transcript.
        policies: the policies to compare, each written ``name:key=value,key=value``; `recede.costs` has a list. ``raw``
            is always included.
        prices: per million tokens; see `Prices` for the defaults. Others, or another cache, are told to the `History`.
        cache: how the provider caches prompts: a `Cache`, or its name in `CACHES`.
        times: when requests were made, in seconds since any moment, by how many messages came before each. A request
            without a time follows at once. None: no pause lets the cache grow cold.
        system_chars: the length of the system prompt and tool schemas, which logs omit from each request.
        summary_prices: the prices of the summarizing model; None: the same.
        summary_chars: the length of a summary that a model writes; 0: the built-in summary, which is free and has its
            actual length. With a budget, a view has at most 1,400 of them.
        calibration: what the log of the session says of its tokens (`calibrate`); then `system_chars` is not used, and
            what are characters in the result are quarters of tokens as the provider counts them.
        with_misses: find what the requests quote from results, too: `Replay.misses`.

    Returns:
        A `Replay`: for each policy, what each request sent, how much of it a prompt cache would have served, and the
        total cost.

    Raises:
        TranscriptError: the input is not a history.
        TypeError, ValueError: a policy, a price or a number is wrong; says which.

    Time is linear in the text. In the number of messages it is quadratic for ``keep_last``, and for policies with
    summaries of turns, each of which begins the view again; with a small constant (a few milliseconds for a thousand
    turns).

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "Find the bug."}]
        >>> for number in range(60):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     history.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
        ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "line\\n" * 800})
        >>> result = recede.costs.replay(history, ["sliding:window=10", "stepped:window=10,chunk=10"])
        >>> result
        <Replay: 60 requests, cheapest stepped:window=10,chunk=10 at 80% of raw>
        >>> [(cost.policy, round(cost.of_raw, 2), round(cost.of_raw_uncached, 2)) for cost in result.costs]
        [('raw', 1.0, 1.0), ('sliding:window=10', 2.53, 0.38), ('stepped:window=10,chunk=10', 0.8, 0.5)]
        >>> last = result.policies[1].turns[-1]
        >>> last.view_chars, last.cached_chars, last.masked_count
        (55792, 12000, 49)
    """
    asked = policies, prices, cache, times, system_chars, summary_prices, summary_chars, calibration
    is_priced = prices != Prices() or cache != "anthropic"
    return replayed(messages, *asked, with_misses=with_misses, is_priced=is_priced)


def replay_json(
    data: Json,
    policies: Iterable[str] = DEFAULT_POLICIES,
    *,
    prices: Prices = Prices(),  # noqa: B008 - an immutable tuple
    cache: Cache | str = "anthropic",
    times: Mapping[int, float] | None = None,
    system_chars: int = SYSTEM_CHARS,
    summary_prices: Prices | None = None,
    summary_chars: int = SUMMARY_CHARS,
    calibration: Calibration | None = None,
    with_misses: bool = False,
) -> Replay:
    """Replay a serialized history; see `replay`.

    Example:
        >>> import recede
        >>> recede.costs.replay_json(b'[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]')
        <Replay: 1 requests, cheapest raw at 100% of raw>
    """
    asked = policies, prices, cache, times, system_chars, summary_prices, summary_chars, calibration
    is_priced = prices != Prices() or cache != "anthropic"
    return replayed(data, *asked, is_json=True, with_misses=with_misses, is_priced=is_priced)


def compare_costs(replays: Iterable[Replay | ReplayUsage], elongation: float = 0.0) -> tuple[PolicyCost, ...]:
    """Add up what each policy costs over several sessions.

    Args:
        replays: sessions replayed under the same policies, each at its own prices, or their usage; at least one. They
            may come from a generator: none is kept.
        elongation: by what share agents with summaries take more turns, which their costs then include: 0.13 to 0.18
            in the research.

    Returns:
        A `PolicyCost` for each policy, in order.

    Raises:
        ValueError: there are none, their policies differ, or raw is missing.

    Example:
        >>> import recede
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> session = recede.costs.replay(history, ["sliding:window=10"], prices=recede.costs.Prices(output=0))
        >>> raw, sliding = recede.costs.compare_costs([session, session])
        >>> sliding.policy, round(sliding.cost, 6), sliding.of_raw, sliding.loss_count
        ('sliding:window=10', 0.022504, 1.0, 0)
    """
    found = ((one.usage, _moments(one)) if isinstance(one, Replay) else (one, {}) for one in replays)
    return costs_of(found, elongation)


def _moments(session: Replay) -> dict[str, float | None]:
    both = session.prices, session.summary_prices
    prices = [unit.cost(*both) for unit in _UNITS]  # of a character: a `Usage` of each turn would take longer
    so_far = {
        one.policy: list(accumulate(sum(map(mul, prices, _PRICED(turn))) for turn in one.turns))
        for one in session.policies
    }
    return {name: worst_moment(costs, so_far.get("raw", [])) for name, costs in so_far.items()}


def replayed(
    history: Any,
    specs: Iterable[str],
    prices: Prices,
    cache: Cache | str,
    times: Mapping[int, float] | None,
    system_chars: int,
    summary_prices: Prices | None,
    summary_chars: int,
    calibration: Calibration | None,
    *,
    is_json: bool = False,
    shown: int = 0,
    with_misses: bool = False,
    door: PlayedDoor | None = None,
    is_priced: bool = False,
) -> Replay:
    """Replay a history, serialized or not, whose first `shown` messages belong to an earlier context.

    Without a `door` it is that of a `History`, which is told the prices only if they are `is_priced`.
    """
    for name, found in (("prices", prices), ("summary_prices", summary_prices)):
        if isinstance(found, Prices):
            found.checked()
        elif found is not None or name == "prices":
            raise TypeError(f"{name} must be recede.costs.Prices, not {type(found).__name__}")
    if calibration is not None:
        system_chars = calibration.system_chars
    summary_chars = whole_number()("summary_chars", summary_chars)
    cache = named_cache(cache)
    per_token = CHARS_PER_TOKEN if calibration is None else 1 / calibration.tokens_per_char
    facts = cache_facts(cache, prices, times, whole_number()("system_chars", system_chars), per_token)
    door = PlayedHistory.at(prices if is_priced else None, facts) if door is None else door
    policies = compiled_policies(specs, prices, summary_prices or prices, summary_chars, facts, door)
    asked = list(policies.values()), image_chars_of({}), facts
    if is_json:
        data = as_bytes(history)
        played = _engine.engine.replay_json(data[0], data[1], *asked)
    else:
        played, forms = ask_engine("replay", history, *asked)
        data = as_bytes(dumps(history if forms is None else forms.messages)) if with_misses else (b"", False)
    return Replay(
        tuple(
            PolicyReplay(name, tuple(sent) if calibration is None else calibrated(sent, name, calibration))
            for name, sent in zip(policies, played, strict=True)
        ),
        prices,
        summary_prices,
        cache,
        misses_of(data, policies, shown) if with_misses else None,
    )
