"""The cheapest window, chunk and summaries for a set of sessions, and how much each choice matters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from recede.costs._bill import SessionPrices
from recede.costs._cache import Cache
from recede.costs._check import replay_transcript
from recede.costs._compare import PolicyCost, ReplayUsage, cheapest_policy, costs_of
from recede.costs._policies import values_of
from recede.costs._prices import SUMMARY_CHARS, Prices
from recede.costs._replay import SYSTEM_CHARS, Replay, compare_costs, replay, replay_json

__all__ = ["Choice", "Suggestion", "suggest_policies", "suggest_window"]

_WINDOWS = (3, 5, 7, 10, 14, 20, 30, 43, 58)
_CHUNKS = (1, 5, 10, 20, "break_even")
_SUMMARIZE_AT = (21, 30, 43, 60, 90, 130, "break_even", "never")
_TAIL = 10
_AS_NUMBERS: dict[int | str, float] = {"never": math.inf, "break_even": 1e18}


class Choice(NamedTuple):
    """One value of a window, a chunk or a number of turns, at its best.

    Attributes:
        value: the number, or ``"break_even"``, or ``"never"``.
        cost: the cost of the cheapest policy with this value.
        over_least: how much more that costs than the cheapest policy overall, as a share of the latter.

    Example:
        >>> from recede.costs import suggest_window
        >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        >>> [choice.value for choice in suggest_window([history]).chunks]
        [1, 5, 10, 20, 'break_even']
    """

    value: int | str
    cost: PolicyCost
    over_least: float


class Suggestion(NamedTuple):
    """The cheapest options over a set of sessions.

    Attributes:
        costs: the cost of each policy tried, raw first, not sorted by cost.
        prices: the prices for the costs.
        summary_prices: the prices of the summarizing model; None: the same.

    Example:
        >>> from recede.costs import suggest_window
        >>> history = [{"role": "user", "content": "Find the bug."}]
        >>> for number in range(60):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     history.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
        ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "line\\n" * 800})
        >>> found = suggest_window([history], windows=[5, 10, 20], chunks=["break_even"], summarize_at=["never"])
        >>> found
        <Suggestion: window 5, chunk 'break_even', summarize_at 'never', 66% of raw>
        >>> [(choice.value, f"{choice.over_least:+.0%}") for choice in found.windows]
        [(5, '+0%'), (10, '+27%'), (20, '+56%')]
    """

    costs: tuple[PolicyCost, ...]
    prices: Prices
    summary_prices: Prices | None = None

    @property
    def best(self) -> PolicyCost:
        """The cheapest policy; of equals, the one that forgets least. Never raw."""
        return cheapest_policy(self.costs[1:])

    @property
    def window(self) -> int:
        """The number of turns whose observations stay raw: `keep_turns`."""
        return int(values_of(self.best.policy)["window"])

    @property
    def chunk(self) -> int | str:
        """By how many observations the boundary moves at once: `mask_chunk`, 1 if it slides; or ``"break_even"``."""
        return _chunk_of(self.best)

    @property
    def summarize_at(self) -> int | str:
        """The number of turns to and between summaries; or ``"break_even"``, or ``"never"``."""
        return values_of(self.best.policy)["at"]

    @property
    def windows(self) -> tuple[Choice, ...]:
        """Each window at its best, the smallest first."""
        return self._choices("window")

    @property
    def chunks(self) -> tuple[Choice, ...]:
        """Each chunk at its best, the smallest first."""
        return self._choices("chunk")

    @property
    def summaries(self) -> tuple[Choice, ...]:
        """Each number of turns at its best, the smallest first."""
        return self._choices("at")

    def _choices(self, key: str) -> tuple[Choice, ...]:
        by_value: dict[int | str, list[PolicyCost]] = {}
        for cost in self.costs[1:]:
            value = _chunk_of(cost) if key == "chunk" else values_of(cost.policy)[key]
            by_value.setdefault(value, []).append(cost)
        least = self.best.cost
        found = []
        for value in sorted(by_value, key=lambda value: (isinstance(value, str), value)):
            cost = cheapest_policy(by_value[value])
            found.append(Choice(value, cost, cost.cost / least - 1 if least else 0.0))
        return tuple(found)

    @classmethod
    def total(cls, suggestions: Iterable[Suggestion]) -> Suggestion:
        """The sum of several suggestions with the same policies, each at its own prices; those of the first are kept.

        Raises:
            ValueError: there are none, or their policies differ.

        Example:
            >>> from recede.costs import Suggestion, suggest_window
            >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
            >>> one = suggest_window([history])
            >>> Suggestion.total([one, one]) == suggest_window([history, history])
            True
        """
        parts = list(suggestions)
        if not parts:
            raise ValueError("there is no session to compare")
        used = (
            (
                ReplayUsage({cost.policy: cost.usage for cost in part.costs}, *part[1:]),
                {cost.policy: cost.worst_moment for cost in part.costs},
            )
            for part in parts
        )
        return cls(costs_of(used), *parts[0][1:])

    @classmethod
    def of_usage(cls, sessions: Iterable[Replay | ReplayUsage]) -> Suggestion:
        """The suggestion that follows from the usage of sessions under `suggest_policies`, or of sums of them.

        The sessions may come from a generator: none is kept. The prices of the first are those of the result.

        Raises:
            ValueError: there are none, or they were not replayed under such policies.

        Example:
            >>> from recede.costs import Suggestion, replay, suggest_policies, suggest_window
            >>> history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
            >>> Suggestion.of_usage([replay(history, suggest_policies())]) == suggest_window([history])
            True
        """
        first: list[Replay | ReplayUsage] = []

        def noted() -> Iterator[Replay | ReplayUsage]:
            for session in sessions:
                first[:] = first or [session]
                yield session

        costs = compare_costs(noted())
        if any(not cost.policy.startswith("hybrid:") for cost in costs if cost.policy != "raw"):
            raise ValueError("the sessions must be replayed under the policies of suggest_policies")
        # Sums of a cluster come in any order; of equals the first one is the best.
        return cls(tuple(sorted(costs, key=_place)), first[0].prices, first[0].summary_prices)

    def __repr__(self) -> str:
        figures = f"window {self.window}, chunk {self.chunk!r}, summarize_at {self.summarize_at!r}"
        return f"<Suggestion: {figures}, {self.best.of_raw:.0%} of raw>"


def suggest_window(
    transcripts: Iterable[Any],
    *,
    windows: Iterable[int] = _WINDOWS,
    chunks: Iterable[int | str] = _CHUNKS,
    summarize_at: Iterable[int | str] = _SUMMARIZE_AT,
    tail: int = _TAIL,
    prices: Prices | None = None,
    cache: Cache | str | None = None,
    system_chars: int = SYSTEM_CHARS,
    summary_prices: Prices | None = None,
    summary_chars: int = SUMMARY_CHARS,
) -> Suggestion:
    """Find the cheapest window, chunk and number of turns between summaries for finished sessions.

    Every combination is replayed under a prompt cache. A smaller window is nearly always cheaper and always forgets
    more, so look at the curve: where it is flat, take the larger one.

    Args:
        transcripts: the sessions: lists of messages, serialized histories (bytes or str), or objects with
            `messages`, such as `recede.transcripts.read` returns.
        windows: the numbers of turns whose observations stay raw.
        chunks: by how many observations the boundary moves at once; 1 slides, ``"break_even"`` moves it when that
            breaks even.
        summarize_at: the turns to and between summaries; ``"break_even"`` makes one when that breaks even,
            ``"never"`` only masks.
        tail: how many turns a summary leaves; fewer than the least of `summarize_at`.
        prices: per million tokens; None: those of the models that the log of a transcript names, else `Prices()`.
        cache: how the provider caches prompts: a `Cache`, or its name in `CACHES`; None: as `prices`.
        system_chars: the length of the system prompt and tool schemas, which logs omit from each request.
        summary_prices: the prices of the summarizing model; None: the same.
        summary_chars: the length of a summary; 0: the built-in one, which is free.

    Returns:
        A `Suggestion`, with the cost of each combination.

    Raises:
        TranscriptError: a session is not a history.
        TypeError, ValueError: an option is wrong, or there is no session; says which.

    Each combination takes one replay: with the defaults, 360 of them, about a second per thousand requests.

    Example:
        >>> from recede.costs import suggest_window
        >>> history = [{"role": "user", "content": "Find the bug."}]
        >>> for number in range(60):
        ...     call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ...     history.append({"role": "assistant", "content": "Next. " * 300, "tool_calls": [call]})
        ...     history.append({"role": "tool", "tool_call_id": str(number), "content": "line\\n" * 800})
        >>> found = suggest_window([history], windows=[5, 10], chunks=[1, 10], summarize_at=[21, 43, "never"])
        >>> found.window, found.chunk, found.summarize_at, round(found.best.of_raw, 2)
        (5, 10, 'never', 0.98)
    """
    policies = suggest_policies(windows=windows, chunks=chunks, summarize_at=summarize_at, tail=tail)
    flat = Prices() if prices is None else prices
    options: dict[str, Any] = {"system_chars": system_chars, "summary_prices": summary_prices}
    options |= {"summary_chars": summary_chars}
    plain = {**options, "prices": flat, "cache": cache or "anthropic"}
    replay([], policies, **plain)  # checks them, even if there is no session

    def played(transcript: Any) -> Replay:
        if isinstance(transcript, (bytes, bytearray, memoryview, str)):
            return replay_json(transcript, policies, **plain)
        if getattr(transcript, "requests", ()):
            fixed = None if prices is None else SessionPrices(prices, "anthropic")
            return replay_transcript(transcript, policies, prices=fixed, cache=cache, **options)
        return replay(getattr(transcript, "messages", transcript), policies, **plain)

    return Suggestion.of_usage(map(played, transcripts))


def suggest_policies(
    *,
    windows: Iterable[int] = _WINDOWS,
    chunks: Iterable[int | str] = _CHUNKS,
    summarize_at: Iterable[int | str] = _SUMMARIZE_AT,
    tail: int = _TAIL,
) -> list[str]:
    """The policies that `suggest_window` compares: all combinations, those that forget least first.

    Args:
        windows: as for `suggest_window`.
        chunks: as for `suggest_window`.
        summarize_at: as for `suggest_window`.
        tail: as for `suggest_window`.

    Returns:
        The names for `replay`.

    Raises:
        TypeError, ValueError: an argument holds something else; says which.

    Example:
        >>> from recede.costs import suggest_policies
        >>> suggest_policies(windows=[5], chunks=[1], summarize_at=["never", 43])
        ['hybrid:window=5,at=never,tail=10', 'hybrid:window=5,at=43,tail=10']
    """
    boundaries = [
        ",boundary=break_even" if chunk == "break_even" else "" if chunk == 1 else f",chunk={chunk}"
        for chunk in _largest_first("chunks", chunks, "break_even")
    ]
    return [
        f"hybrid:window={window},at={at},tail={tail}{boundary}"
        for at in _largest_first("summarize_at", summarize_at, "never", "break_even")
        for window in _largest_first("windows", windows)
        for boundary in boundaries
    ]


def _place(cost: PolicyCost) -> tuple[float, ...]:
    """A key by which costs are in the order of `suggest_policies`, after raw."""
    if cost.policy == "raw":
        return ()
    values = values_of(cost.policy)
    return tuple(-float(_AS_NUMBERS.get(value, value)) for value in (values["at"], values["window"], _chunk_of(cost)))


def _largest_first(name: str, values: Iterable[int | str], *words: str) -> list[int | str]:
    if isinstance(values, str):
        raise TypeError(f"{name} must be a list, not one string")
    found = set(values)
    if not found:
        raise ValueError(f"{name} must have at least one value")
    for value in found - set(words):
        if not isinstance(value, int) or isinstance(value, bool):
            allowed = " or ".join(["whole numbers", *map(repr, words)])
            raise TypeError(f"{name} must hold {allowed}, not {value!r}")
    numbers = sorted((value for value in found if isinstance(value, int)), reverse=True)
    return [*(word for word in words if word in found), *numbers]


def _chunk_of(cost: PolicyCost) -> int | str:
    values = values_of(cost.policy)
    return "break_even" if values["boundary"] == "break_even" else values["chunk"] or 1
