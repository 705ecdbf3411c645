"""When a summarizer is asked again that failed, from the rule's words alone."""

from __future__ import annotations

import asyncio
from typing import Any

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
