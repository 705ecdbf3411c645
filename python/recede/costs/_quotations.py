"""Misses: what the requests of a session quote from old tool results, which a mask would have hidden."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from recede import _engine
from recede._agents import USER_TOOLS
from recede.reduction._policy import replay_policy


class Quotation(NamedTuple):
    """A text that an agent wrote again, word for word, when nothing in its context had it but tool results.

    Attributes:
        request: the number of the request, from 0, whose answer has the text.
        result: the number of the result that has it, from 0; of several, of the newest.
        tool: the tool of this result; None if the log does not name it.
        distance: how many results between this one and the request are newer: a window that is no larger hides it.
        text: the text, without what is not compared: line numbers, marks of differences, all but one space in a row.

    Example:
        >>> from recede.costs import Quotation
        >>> Quotation(12, 4, "Read", 7, "def total(rows: list[Row]) -> float:").distance
        7
    """

    request: int
    result: int
    tool: str | None
    distance: int
    text: str


class Misses(NamedTuple):
    """Quotations in the requests of one or several sessions, from results that an earlier request has shown.

    Attributes:
        requests: the number of requests.
        results: the number of results.
        examined: the number of requests that were examined: all, but in contexts whose answers are very long.
        quoted: a list of `Quotation`, in order.
        by_policy: for each policy that was replayed, the numbers of the requests that quote what it had hidden.

    Example:
        >>> from recede.costs import Misses, Quotation
        >>> found = Misses(40, 38, 40, [Quotation(12, 4, "Read", 7, "def total(rows: list[Row]) -> float:")])
        >>> found.share(window=7), found.share(window=8)
        (0.025, 0.0)
    """

    requests: int
    results: int
    examined: int
    quoted: list[Quotation]
    by_policy: Mapping[str, frozenset[int]] = {}

    def share(self, window: int) -> float:
        """Compute the share of requests that quote a result hidden by a sliding mask with this window."""
        return self._share({one.request for one in self.quoted if one.distance >= window})

    def share_under(self, policy: str) -> float | None:
        """Compute the share of requests that quote what a replayed policy hid; None if unknown."""
        return None if policy not in self.by_policy else self._share(self.by_policy[policy])

    def _share(self, requests: Collection[int]) -> float:
        return len(requests) / self.examined if self.examined else 0.0

    def without(self, requests: Collection[int]) -> Misses:
        """Return these misses without some requests."""
        left = self.requests - len(requests)
        return Misses(
            left,
            self.results,
            min(self.examined, left),
            [one for one in self.quoted if one.request not in requests],
            {policy: quoted - set(requests) for policy, quoted in self.by_policy.items()},
        )

    @classmethod
    def total(cls, parts: Iterable[Misses]) -> Misses:
        """Add up the misses of contexts or sessions that follow each other, replayed under the same policies.

        Example:
            >>> from recede.costs import Misses, Quotation
            >>> one = Misses(40, 38, 40, [Quotation(12, 4, "Read", 7, "def total(rows: list[Row]) -> float:")])
            >>> total = Misses.total([one, one])
            >>> total.requests, [(quotation.request, quotation.result) for quotation in total.quoted]
            (80, [(12, 4), (52, 42)])
        """
        requests = results = examined = 0
        quoted: list[Quotation] = []
        by_policy: dict[str, set[int]] = {}
        for part in parts:
            quoted += [one._replace(request=one.request + requests, result=one.result + results) for one in part.quoted]
            for policy, of_part in part.by_policy.items():
                by_policy.setdefault(policy, set()).update(request + requests for request in of_part)
            requests, results, examined = requests + part.requests, results + part.results, examined + part.examined
        return cls(requests, results, examined, quoted, {name: frozenset(found) for name, found in by_policy.items()})


def misses_of(data: tuple[bytes, bool], policies: Mapping[str, Any], shown: int) -> Misses:
    """Find the misses of a serialized context, whose first `shown` messages belong to an earlier context."""
    # Whatever is ever masked; the user's own words in results are not.
    all_of_it = {"keep_results": 0, "exclude_tools": sorted(USER_TOOLS)}
    maskable = replay_policy(_engine.engine, "mask", all_of_it, masks_unseen=True)
    found = _engine.engine.quoted(data[0], data[1], maskable, list(policies.values()), shown)
    requests, results, examined, quotations, missed = found
    by_policy = {name: frozenset(numbers) for name, numbers in zip(policies, missed, strict=True)}
    return Misses(requests, results, examined, [Quotation(*one) for one in quotations], by_policy)
