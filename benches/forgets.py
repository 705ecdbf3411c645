"""What a limit forgets of what was said once: `python benches/forgets.py`; docs/quality.md has its table.

compaction-conformance-kit (`pip install compaction-conformance-kit`, no model) plants rules, facts, goals and wishes in
sessions, compacts each five times to a part of its size, and looks for them. Its own compactors stand beside recede's.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import recede
from formatting import markdown

NOT_HERE = 77
BUDGETS = (0.1, 0.2, 0.3, 0.5)


class Reduced:
    """`recede.reduce` as a compactor of the kit, applied to its own view again in each round."""

    name = "`recede.reduce`"

    def __init__(self) -> None:
        self.view: list[Any] = []

    def compact(self, turns: list[Any], round_num: int = 1, budget_chars: int | None = None) -> Any:
        if round_num == 1:  # later ones are given the text of the view before
            self.view = [{"role": turn.role, "content": turn.text} for turn in turns]
        most = budget_chars or 10**9
        for percent in range(100, 0, -5):  # the kit counts the names of roles, too
            view = recede.reduce(self.view, max_input_tokens=max(1, most * percent // 400)).messages
            text = "\n".join(f"[{one['role']}] {one['content']}" for one in view)
            if len(text) <= most:
                break
        self.view = view
        return import_module("compaction_kit").CompactedContext(text, self.name, round_num)


def main() -> int:
    """Print the table."""
    try:
        kit: Any = import_module("compaction_kit")
    except ImportError:
        return NOT_HERE
    compactors = {
        "`recede.reduce`": Reduced,
        "a summary and the newest turns": kit.SummaryTailCompactor,
        "truncation": kit.LossyTruncationCompactor,
        "a checklist that knows the kit's words": kit.ChecklistCompactor,
    }
    found = kit.run_budget_benchmark(compactors, budgets=BUDGETS)
    survival = {
        (one["compactor"], one["budget_fraction"]): one["randomized"]["overall_final_survival"]
        for one in found["entries"]
    }
    rows = [[name, *(f"{survival[name, budget]:.0%}" for budget in BUDGETS)] for name in compactors]
    print(markdown(["of the size", *(f"{budget:.0%}" for budget in BUDGETS)], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
