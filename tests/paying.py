"""Histories and prices with which summaries of old turns pay within a few turns."""

from __future__ import annotations

from typing import Any

from recede import Provider

Messages = list[dict[str, Any]]

# Prices at which summaries pay within a few turns, and those of a provider.
CHEAP = Provider("cheap", cache="ideal", read=0.9, write=1.0, min_tokens=0, output=0.1)
FREE = Provider("free", cache="none", read=1.0, write=1.0, min_tokens=0, output=0.0)


def long(messages: Messages, times: int) -> Messages:
    """The history again and again, with its texts so long that summaries pay."""

    def longer(value: Any, number: int) -> Any:
        if isinstance(value, list):
            return [longer(one, number) for one in value]
        if not isinstance(value, dict):
            return value
        wide = {
            name: f"{text} {number} " * 40 if name in ("text", "content") and isinstance(text, str) else text
            for name, text in value.items()
        }
        return {name: longer(one, number) for name, one in wide.items()}

    return [longer(message, number) for number in range(times) for message in messages]


class Told:
    """A summarizer that always says the same, but fails at some calls."""

    def __init__(self, fails: set[int]) -> None:
        self.fails, self.calls = fails, 0
        self.given: list[Messages] = []

    def __call__(self, messages: Messages, previous: str | None) -> str:
        self.calls += 1
        self.given.append(messages)
        if self.calls in self.fails:
            raise OSError("no model")
        return "What was done."
