"""What masks did to solve rates, task by task: `python benches/outcomes.py FILE`; docs/quality.md has its tables.

FILE is `auxiliary-data/experiment_instance_costs_combined.csv` of the code of "The Complexity Trap" (arXiv 2508.21433,
MIT), or $OUTCOMES. Each task is paired with itself: raw against masks, by the same agent and model.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from formatting import markdown

NOT_HERE = 77
WINDOW = 10
SETUPS = {
    "Qwen3-Coder 480B": "local-Qwen3-Coder_480B_A35B_Instruct_FP8-baseline_{}.0-verified-500",
    "Qwen3-32B": "local-qwen3-32b-baseline_{}.0-verified-500",
    "Qwen3-32B, thinking": "local-Qwen3-32B_thinking-baseline_{}-collect_reasoning.0-verified-500",
    "Gemini 2.5 Flash": "gemini_2.5_flash-agent-t_0.8-baseline_{}.0-verified-500",
    "Gemini 2.5 Flash, thinking": "gemini_2.5_flash_thinking-agent-t_0.8-baseline_{}.0-verified-500",
}
OPENHANDS = "gemini-2.5-flash_maxiter_250_N_v0.43.0-no-hint-{}-run_1"
OPENHANDS_WINDOW = re.compile(r".*-observation_masking-M_(\d+)-verified_50-")


class Task(NamedTuple):
    """One try of a task."""

    is_solved: bool
    dollars: float
    turns: int


Run = dict[str, Task]


class Compared(NamedTuple):
    """Tasks that two runs share: what one of them alone solved, dollars and turns a task."""

    tasks: int
    solved: tuple[int, int]
    only: tuple[int, int]
    dollars: tuple[float, float]
    turns: tuple[float, float]

    def points(self) -> tuple[float, float]:
        """How many points more were solved with masks, and half of the interval of 95 % for paired tasks."""
        lost, won = self.only
        difference = (won - lost) / self.tasks
        deviation = math.sqrt((lost + won) / self.tasks - difference**2)
        return 100 * difference, 196 * deviation / math.sqrt(self.tasks)


def compared(pairs: Iterable[tuple[Task, Task]]) -> Compared:
    """Raw and masked tries of the same tasks."""
    known = list(pairs)
    n = len(known)
    return Compared(
        n,
        (sum(raw.is_solved for raw, _ in known), sum(masked.is_solved for _, masked in known)),
        (
            sum(raw.is_solved and not masked.is_solved for raw, masked in known),
            sum(masked.is_solved and not raw.is_solved for raw, masked in known),
        ),
        (sum(raw.dollars for raw, _ in known) / n, sum(masked.dollars for _, masked in known) / n),
        (sum(raw.turns for raw, _ in known) / n, sum(masked.turns for _, masked in known) / n),
    )


def paired(raw: Run, masked: Run) -> list[tuple[Task, Task]]:
    """Tries of the tasks that both runs have."""
    return [(raw[name], masked[name]) for name in raw if name in masked]


def longest_quarter(setups: Iterable[tuple[Run, Run]]) -> list[tuple[Task, Task]]:
    """The tasks that took most turns raw, over all setups: no run chooses its own tasks."""
    tries: dict[str, list[tuple[Task, Task]]] = defaultdict(list)
    for raw, masked in setups:
        for name in raw.keys() & masked.keys():
            tries[name].append((raw[name], masked[name]))
    by_turns = sorted(tries, key=lambda name: -sum(raw.turns for raw, _ in tries[name]) / len(tries[name]))
    return [pair for name in by_turns[: len(tries) // 4] for pair in tries[name]]


def read(path: Path) -> dict[str, Run]:
    """Each experiment of the file."""
    runs: dict[str, Run] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            dollars = float(row["cost"]) + float(row["summary_cost"] or 0)
            task = Task(row["outcome"] == "1", dollars, int(row["turn_count"]))
            runs[row["experiment"]][row["instance_id"]] = task
    return runs


def row(name: str, found: Compared) -> list[str]:
    """A line of a table."""
    points, half = found.points()
    (raw, masked), (lost, won), (before, after) = found.solved, found.only, found.turns
    return [
        name,
        f"{found.tasks:,}",
        f"{100 * raw / found.tasks:.1f} %",
        f"{100 * masked / found.tasks:.1f} %",
        f"{lost}, {won}",
        f"{points:+.1f} ± {half:.1f}",
        f"{before:.0f}, {after:.0f}",
        f"{100 * found.dollars[1] / found.dollars[0]:.0f} %",
    ]


def by_setup(runs: dict[str, Run]) -> list[list[str]]:
    """SWE-agent: each model, all of them, and the tasks that take most turns."""
    setups = {
        name: (runs[pattern.format("raw")], runs[pattern.format(f"N_1_M_{WINDOW}")]) for name, pattern in SETUPS.items()
    }
    rows = [row(name, compared(paired(*one))) for name, one in setups.items()]
    rows.append(row("all", compared(pair for one in setups.values() for pair in paired(*one))))
    rows.append(row("the quarter of longest tasks", compared(longest_quarter(setups.values()))))
    return rows


def by_window(runs: dict[str, Run]) -> list[list[str]]:
    """OpenHands: each window."""
    raw, raw_50 = runs[OPENHANDS.format("raw_agent")], runs[OPENHANDS.format("raw_agent-verified_50")]
    masked = "observation_masking{}-observation_masking_for_eval"
    windows = [(int(found[1]), run) for name, run in runs.items() if (found := OPENHANDS_WINDOW.match(name))]
    rows = [row(f"{window}", compared(paired(raw_50, run))) for window, run in sorted(windows, key=lambda one: one[0])]
    for window, name in ((WINDOW, ""), (72, "-M_72")):
        rows.append(row(f"{window}, all tasks", compared(paired(raw, runs[OPENHANDS.format(masked.format(name))]))))
    return rows


TABLES = {"setups": ("SWE-agent, a window of 10", by_setup), "windows": ("OpenHands, a window of", by_window)}


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description="what masks did to solve rates, task by task")
    parser.add_argument("file", nargs="?", default=os.environ.get("OUTCOMES"), help="the published CSV")
    parser.add_argument("--table", choices=TABLES, default="setups")
    asked = parser.parse_args()
    if asked.file is None or not (path := Path(asked.file)).is_file():
        return NOT_HERE
    first, rows = TABLES[asked.table]
    head = [first, "tasks", "raw", "masks", "lost, won", "points", "turns", "cost of raw"]
    print(markdown(head, rows(read(path))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
