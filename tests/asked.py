"""When a summarizer is asked again that failed, from the rule's words alone."""

from __future__ import annotations

import asyncio
from typing import Any

import published

import recede

WAITS = (1, 2, 4, 8, 16, 32, 64)
FAILING = ["raises", "empty", "no text", "long"]
LONG = "so many words " * 400


class Asked:
    """A summarizer that answers each call as it is told to, and notes after how many messages or turns it was asked."""

    def __init__(self, answers: list[str]) -> None:
        self.answers = answers
        self.calls: list[tuple[int, list[Any], str | None]] = []
        self.length = 0

    def __call__(self, items: list[Any], previous: str | None) -> Any:
        answer = self.answers[min(len(self.calls), len(self.answers) - 1)]
        self.calls.append((self.length, items, previous))
        if answer == "raises":
            raise OSError("no model")
        return {"empty": " \n", "no text": 5, "long": LONG}.get(answer, f"summary {len(self.calls)}")

    async def awaited(self, items: list[Any], previous: str | None) -> Any:
        await asyncio.sleep(0)
        return self(items, previous)


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

    def rebased(self, before: float, after: float) -> None:
        """The session cost so much before a cut, and so much after it: what was new stays new."""
        if self.failures:
            turns, cost = self.failures[-1]
            self.failures[-1] = turns, after - (before - cost)


class Reducing:
    """The views of a session that is reduced whole each time: without stage 2 as long as a failure is waited for.

    A view that drops messages is the session from then on: what a caller then gives is that and what follows.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = {"fill": None, **options}
        self.waiting = Waiting()
        self.turns_before = 0  # dropped from the session
        self._seen: tuple[list[Any], Any, recede.Reduction] | None = None

    def view(self, messages: list[Any], cold: Any = None) -> recede.Reduction:
        """Asked once for the same messages; again it gives the same."""
        if self._seen is None or self._seen[:2] != (messages, cold):
            self.options = self.options if cold is None else {**self.options, "cold": cold}
            self._seen = [*messages], cold, self._reduced(messages)
        return self._seen[2]

    def _reduced(self, messages: list[Any]) -> recede.Reduction:
        reduction, cost = self._reduced_by_rule(messages)
        if reduction.reduction_stage in ("summarization", "fallback"):
            left = published.reduce(reduction.messages, max_input_chars=0, enabled=False)
            self.turns_before += reduction.turns - left.turns
            self.waiting.rebased(cost, self._cost(reduction.messages, left.chars_before))
        if reduction.reduction_stage == "summarization":
            self.waiting = Waiting()
        return reduction

    def _reduced_by_rule(self, messages: list[Any]) -> tuple[recede.Reduction, float]:
        """And what the messages cost."""
        asked = []

        def probe(*_: Any) -> str:
            asked.append(True)
            raise ValueError("only a probe")

        without = published.reduce(messages, **{**self.options, "summarizer": probe})
        cost = self._cost(messages, without.chars_before)
        turns = self.turns_before + without.turns
        budget = self.options.get("max_input_chars", self.options.get("max_input_tokens", 0))
        if not asked or not self.waiting.is_over(turns, cost, budget):
            return without, cost
        reduction = published.reduce(messages, **self.options)
        if reduction.reduction_stage != "summarization":
            self.waiting.failed(turns, cost)
        return reduction, cost

    def _cost(self, messages: list[Any], chars: int) -> float:
        return chars if "max_input_chars" in self.options else self._tokens(messages, chars)

    def _tokens(self, messages: list[Any], chars: int) -> float:
        """What the messages cost: the least budget that they fit, where a counter says so."""
        counter = self.options.get("token_counter")
        if counter is None:
            return chars / 4
        options = {"token_counter": counter, "image_chars": self.options.get("image_chars", 6_400), "enabled": False}
        least, most = 0, 1
        while not published.reduce(messages, max_input_tokens=most, **options).within_limit:
            least, most = most, 2 * most
        while least < most:
            middle = (least + most) // 2
            fits = published.reduce(messages, max_input_tokens=middle, **options).within_limit
            least, most = (least, middle) if fits else (middle + 1, most)
        return most
