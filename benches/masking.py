"""`reduce` of dicts beside a plain loop that only masks, by CPU time in one run: `python benches/masking.py`.

The loop copies the list, and the dict of each result but the newest ten; it counts nothing, pairs nothing, and knows
one shape. A cell is the median of the ratios of pairs that run in turns.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from time import process_time_ns
from typing import Any

import histories
import measuring
import recede
from formatting import markdown

KEEP = 10
SIZES = (1_000, 10_000)
PAIRS = 31
NANOSECONDS = 10_000_000  # that a side runs at a stretch, at least
PLACEHOLDER = "[old tool output cleared to save context]"
LONGEST_RAW = len(PLACEHOLDER) + 63

Messages = list[dict[str, Any]]


def own(messages: Messages) -> Messages:
    """The view of recede."""
    return recede.reduce(messages, boundary="sliding").messages


def plain(messages: Messages) -> Messages:
    """The same view by a loop over chat messages."""
    results = [place for place, message in enumerate(messages) if message["role"] == "tool"]
    old = set(results[:-KEEP])
    return [
        {**message, "content": PLACEHOLDER} if place in old and len(message["content"]) > LONGEST_RAW else message
        for place, message in enumerate(messages)
    ]


def ratio(messages: Messages) -> tuple[float, float]:
    """What `reduce` takes of the time of the loop, and its nanoseconds."""

    def run(call: Callable[[Messages], Messages], count: int) -> float:
        start = process_time_ns()
        for _ in range(count):
            call(messages)
        return (process_time_ns() - start) / count

    count = max(1, int(NANOSECONDS // run(plain, 3)))
    pairs = [(run(own, count), run(plain, count)) for _ in range(PAIRS)]
    return statistics.median(one / other for one, other in pairs), statistics.median(one for one, _ in pairs)


def main() -> None:
    """Print the table."""
    measuring.pin()
    gc.disable()
    rows = []
    for size in SIZES:
        messages = histories.history(size)
        if own(messages) != plain(messages):
            raise SystemExit("the loop gives another view than recede, so the times would mean nothing")
        times, nanoseconds = ratio(messages)
        rows.append([f"{size:,}", f"{nanoseconds / 1e3:,.0f} µs", f"{times:.2f}"])
    print(markdown(["messages", "`reduce`", "of the time of the loop"], rows))


if __name__ == "__main__":
    main()
