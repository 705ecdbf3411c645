"""Draws how much of a session is kept at each budget: `python benches/budgets.py docs/budgets.svg`."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure
from pictures import save

import recede
from recede.designs import HistoryReducer

SESSION = Path(__file__).parents[1] / "examples" / "session.json"
TOKENS = range(250, 30_001, 250)
RULES = {"published rule, fill=None": ("k--", None), "fill=0.9": ("k-", 0.9)}


def main() -> None:
    """Reduce the session to each budget, and write the picture."""
    session = SESSION.read_bytes()
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(TOKENS, TOKENS, "k:", linewidth=0.8, label="budget")
    for name, (style, fill) in RULES.items():
        views = [HistoryReducer(fill=fill, max_input_tokens=tokens).reduce_json(session) for tokens in TOKENS]
        axes.plot(TOKENS, [recede.designs.approx_tokens(view.chars_after) for view in views], style, label=name)
    axes.set(xlabel="budget in tokens", ylabel="tokens of the view", title="What is kept of examples/session.json")
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
