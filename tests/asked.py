"""When a summarizer is asked again that failed, from the rule's words alone."""

from __future__ import annotations

from typing import Any

import recede

WAITS = (1, 2, 4, 8, 16, 32, 64)


class Waiting:
    """After each failure in a row so many new turns are waited for, and a quarter of the budget."""

    def __init__(self) -> None:
        self.failures: list[tuple[int, float]] = []

    def is_over(self, turns: int, cost: float = 0, budget: float = 0) -> bool:
        if not self.failures:
            return True
        turns_then, cost_then = self.failures[-1]
        return turns - turns_then >= WAITS[: len(self.failures)][-1] and cost - cost_then >= budget / 4

    def failed(self, turns: int, cost: float = 0) -> None:
        self.failures.append((turns, cost))


class Reducing:
    """The views of a session that is reduced whole each time: without stage 2 as long as a failure is waited for."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = {"fill": None, **options}
        self.waiting = Waiting()
        self._seen: tuple[int, recede.Reduction] | None = None

    def view(self, messages: list[Any]) -> recede.Reduction:
        """Asked once for each number of messages; again it gives the same."""
        if self._seen is None or self._seen[0] != len(messages):
            self._seen = len(messages), self._reduced(messages)
        return self._seen[1]

    def _reduced(self, messages: list[Any]) -> recede.Reduction:
        asked = []

        def probe(*_: Any) -> str:
            asked.append(True)
            raise ValueError("only a probe")

        without = recede.reduce(messages, **{**self.options, "summarizer": probe})
        if not asked:
            return without
        chars, tokens = self.options.get("max_input_chars"), self.options.get("max_input_tokens")
        in_chars = without.chars_before, chars
        cost, budget = (self._tokens(messages, without.chars_before), tokens) if chars is None else in_chars
        assert budget is not None
        if not self.waiting.is_over(without.turns, cost, budget):
            return without
        reduction = recede.reduce(messages, **self.options)
        if reduction.reduction_stage != "summarization":
            self.waiting.failed(without.turns, cost)
        return reduction

    def _tokens(self, messages: list[Any], chars: int) -> float:
        """What the messages cost: the least budget that they fit, where a counter says so."""
        counter = self.options.get("token_counter")
        if counter is None:
            return chars / 4
        options = {"token_counter": counter, "image_chars": self.options.get("image_chars", 6_400), "enabled": False}
        least, most = 0, 1
        while not recede.reduce(messages, max_input_tokens=most, **options).within_budget:
            least, most = most, 2 * most
        while least < most:
            middle = (least + most) // 2
            fits = recede.reduce(messages, max_input_tokens=middle, **options).within_budget
            least, most = (least, middle) if fits else (middle + 1, most)
        return most
