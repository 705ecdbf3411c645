"""Sessions that were played again, each with what its log says: screen, tables and page are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recede.costs import Bill, BillCheck, PolicyReplay, Replay, SessionPrices
from recede.reduction import ToolReport
from recede.reduction._kinds import CHARS_PER_TOKEN

MASKED = "break_even:window=10"
"""The choice where no window is advised: `keep=10`, as at every door."""


def summarized(window: int) -> str:
    """The same with summaries of old turns when they pay: what a door with this `keep` and a summarizer sends."""
    return f"hybrid:window={window},at=break_even,tail={window},boundary=break_even"


_BOUNDARIES = ("", ",boundary=break_even")

STUDY = (
    *(f"{name}:window={window}" for name in ("sliding", "break_even") for window in (5, 10, 20, 58)),
    *(f"summary:every={size},tail=10" for size in (10, 21, 43)),
    *(f"summary:every=21,tail={tail}" for tail in (5, 20)),
    *(f"hybrid:window=10,at={size},tail=10{moves}" for moves in _BOUNDARIES for size in (21, 43, 86)),
    *(f"hybrid:window=10,at=43,tail={tail}{moves}" for moves in _BOUNDARIES for tail in (5, 20)),
)
"""Choices of the research, and their neighbors: windows of masks, turns in a summary, and turns that it leaves."""


class Logged(NamedTuple):
    """The figures that the log of a session has."""

    bill: Bill  # of its requests, but for copies of those that another file has
    # Of each request: what identifies it, its branch with how many messages precede its answer, and its cost.
    bills: tuple[tuple[str | None, tuple[int, int], Bill], ...]
    prices: SessionPrices
    times: tuple[float, ...] = ()  # of requests, in Unix seconds
    plan: str | None = None  # the subscription that paid for it
    timed: BillCheck | None = None  # the replay of the raw history against it, with pauses from time stamps
    as_logged: BillCheck | None = None  # the same, with a cache that is as cold as the log shows


class Session(NamedTuple):
    """A session that was played again."""

    name: str  # of the file, and which of its histories
    format: str
    replay: Replay
    tools: Mapping[str, ToolReport]
    log: Logged | None = None  # None where the file is no log
    is_flat: bool = False  # whether prices were given, at which the logged tokens are not paid

    @property
    def requests(self) -> int:
        return len(self.replay.policies[0].turns)

    @property
    def results(self) -> int:
        return sum(tool.observations for tool in self.tools.values())

    @property
    def is_plan(self) -> bool:
        """Whether a subscription has paid for it, by its log."""
        return self.log is not None and bool(self.log.plan)

    @property
    def is_logged(self) -> bool:
        """Whether its log says what was paid."""
        return self.log is not None and self.log.bill.requests > 0 and not self.is_flat

    @property
    def paid(self) -> float:
        """What was paid by its log; where that does not say it, what its replay estimates."""
        return self.log.bill.cost if self.log is not None and self.is_logged else self.cost("raw")

    def would_pay(self, policy: str, *, of_summaries: bool = False) -> float:
        """The cost that it would have had, or its summaries: the share of raw as replayed, of what was paid."""
        raw, cost = self.cost("raw"), self.cost(policy, of_summaries=of_summaries)
        return self.paid * (cost / raw if raw else float(not of_summaries))

    def cost(self, policy: str, *, of_summaries: bool = False) -> float:
        """The cost under a policy as replayed, or that of its summaries alone."""
        usage, both = self.played(policy).usage, (self.replay.prices, self.replay.summary_prices)
        return usage.summary_cost(both[1] or both[0]) if of_summaries else usage.cost(*both)

    def tokens(self, policy: str) -> float:
        return self.played(policy).usage.sent_chars / CHARS_PER_TOKEN

    def played(self, policy: str) -> PolicyReplay:
        return next(one for one in self.replay.policies if one.policy == policy)

    def instead_of(self, policy: str, other: str) -> Session:
        """The session as if another policy had been played under this name."""
        found = self.replay
        misses = found.misses and found.misses._replace(by_policy={policy: found.misses.by_policy[other]})
        policies = (found.policies[0], self.played(other)._replace(policy=policy))
        return self._replace(replay=found._replace(policies=policies, misses=misses))

    def under(self, policies: Sequence[str]) -> Session:
        """The session as if only these policies had been played."""
        kept = tuple(one for one in self.replay.policies if one.policy in policies)
        return self._replace(replay=self.replay._replace(policies=kept))
