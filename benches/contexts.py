"""Draws how large a context is as turns come, by manager: `python benches/contexts.py docs/contexts.svg`."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure
from pictures import save

import recede

TURNS = 1_000
# A turn of the research: 1,800 tokens, 84 % of them observation, 8 % each reasoning and action.
REASONING, ACTION, OBSERVATION = "word " * 144, "word " * 144, "word " * 1_512


def main() -> None:
    """Count the words of each context, and write the picture."""
    managers = {
        "raw": ("k:", recede.designs.ObservationMaskingContextManager(TURNS)),
        "masking, M = 10": ("k--", recede.designs.ObservationMaskingContextManager()),
        "hybrid, 10 / 43 / 10": ("k-", recede.designs.HybridContextManager(lambda turns, previous: "word " * 1_000)),
    }
    found: dict[str, list[int]] = {}
    for name, (_, manager) in managers.items():
        for _ in range(TURNS):
            manager.add_turn(REASONING, ACTION, OBSERVATION)
        found[name] = [turn.sent_tokens for turn in manager.report().turns]
    raw, masked = found["raw"][100], found["masking, M = 10"][100]
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for name, (style, _) in managers.items():
        axes.semilogy(range(1, TURNS), found[name][1:], style, label=name)
    axes.annotate(
        f"turn 100: {masked:,} of {raw:,}, {masked / raw:.0%}",
        (100, masked),
        (330, masked / 8),
        arrowprops={"arrowstyle": "->"},
    )
    axes.set(xlabel="turn", ylabel="words of the context", title="A context as turns come (84 % observations)")
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
