"""Draws what a turn costs as a session grows: `python benches/turns.py docs/turns.svg`. It takes about a minute."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure
from pictures import save

from measuring import in_child

MARKS = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000]
ORACLE_UNTIL = 1_000


def main() -> None:
    """Measure, and write the picture."""
    found = in_child("turns", marks=MARKS, oracle_until=ORACLE_UNTIL)
    lines = {
        "reducing anew, pure-Python oracle": ("v:", [found[f"bytes {mark}"].get("oracle") for mark in MARKS]),
        "reducing anew, core": ("s--", [found[f"bytes {mark}"]["core"] for mark in MARKS]),
        "History, dicts": (
            "^-.",
            [found[f"dicts {mark}"]["append"] + found[f"dicts {mark}"]["view"] for mark in MARKS],
        ),
        "History, bytes": ("o-", [found[f"bytes {mark}"]["append"] + found[f"bytes {mark}"]["view"] for mark in MARKS]),
    }
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for name, (style, seconds) in lines.items():
        known = [(mark, one) for mark, one in zip(MARKS, seconds, strict=True) if one is not None]
        axes.loglog(*zip(*known, strict=True), style, color="black", markersize=5, label=name)
    axes.set(xlabel="turn", ylabel="seconds", title="Two messages appended and a view taken, as a session grows")
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
