"""When a summary is asked for again that failed."""

from __future__ import annotations

from typing import NamedTuple

_MOST_TURNS = 64
_MOST_UNFINISHED = 2


class Attempts(NamedTuple):
    """Summaries that failed in a row since the last one that did not; turns and cost of the session at the last."""

    failures: int = 0
    turns: int = 0
    cost: int = 0
    unfinished: int = 0  # answers of a model in a row

    def failed(self, turns: int, cost: int, *, is_unfinished: bool) -> Attempts:
        return Attempts(self.failures + 1, turns, cost, self.unfinished + 1 if is_unfinished else 0)

    def may_ask(self, turns: int, cost: int, budget: int) -> bool:
        """After the first failure once 1 turn is new, then 2, 4 and so on; and a quarter of the budget."""
        if not self.failures:
            return True
        if self.unfinished >= _MOST_UNFINISHED:
            return False
        wait = min(_MOST_TURNS, 2 ** (self.failures - 1))
        return turns - self.turns >= wait and 4 * (cost - self.cost) >= budget
