"""A model on paper: how long a corpus takes on 1 to 1,000 machines.

`python benches/cluster.py` prints the table of docs/corpora.md. The rates of a core are about those that
`benches/corpora.py` measures; the other figures are assumptions. Nothing here was run on a cluster.
"""

from __future__ import annotations

from typing import NamedTuple

from formatting import markdown

CORES = 16
TASKS_A_SECOND = 1_000  # that one driver hands out
START_SECONDS = 20.0  # of an engine and its workers
LOCAL_START_SECONDS = 1.0
STORAGE = 4.0  # GB of JSON a second that a machine reads: about 1 GB of parquet
RATES = {"reduce": 0.5, "replay, 19 policies": 0.1}  # GB of JSON a CPU second, with reading and writing
CORPORA = {"93 GB (CoderForge)": 93.0, "450 GB (SWE-ZERO)": 450.0, "1 PB": 1e6}
MACHINES = (1, 10, 100, 1_000)
TASK_GB = (0.5, 4.0)


class Estimate(NamedTuple):
    """How long a job takes, and which part of the cores' time is work."""

    seconds: float
    efficiency: float


def estimate(total_gb: float, machines: int, rate: float, task_gb: float) -> Estimate:
    """Cores work as fast as storage gives them data and the driver tasks, and all wait for the last task."""
    cores = machines * CORES
    work = total_gb / rate / cores
    busy = max(work, total_gb / STORAGE / machines)
    tasks = max(total_gb / task_gb, 1.0)
    start = LOCAL_START_SECONDS if machines == 1 else START_SECONDS
    # A single process has no driver; with fewer tasks than cores, some cores have none.
    dispatch = 0.0 if machines == 1 else tasks / TASKS_A_SECOND
    seconds = start + max(busy, dispatch) + min(task_gb, total_gb) / rate
    return Estimate(seconds, work / seconds)


def duration(seconds: float) -> str:
    """In the largest unit that it has two of."""
    for unit, size in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} s"


def table() -> str:
    """The time and the efficiency of each job, by machines."""
    rows = []
    for job, rate in RATES.items():
        for name, total in CORPORA.items():
            for task in TASK_GB:
                found = [estimate(total, machines, rate, task) for machines in MACHINES]
                cells = [f"{duration(one.seconds)}, {one.efficiency:.0%}" for one in found]
                rows.append([f"{job}, {name}, tasks of {task:g} GB", *cells])
    return markdown(["", *(f"{machines:,} machine{'s' * (machines > 1)}" for machines in MACHINES)], rows)


if __name__ == "__main__":
    print(table())
