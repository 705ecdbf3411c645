"""How things are measured: the best of many turns on one core, peak memory, start of a process, instructions."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

TURN_SECONDS = 0.02  # a short contender runs so long at a stretch, so that it finds its own data in the cache

HERE = Path(__file__).parent


def pin() -> bool:
    """Stay on one core, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return True


def best_times(contenders: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Seconds of the best run of each. They take turns, at least three; one that is slow is out after its first."""
    best = dict.fromkeys(contenders, float("inf"))
    racing = dict(contenders)
    gc.collect()
    gc.disable()
    end = perf_counter() + seconds
    turns = 0
    while turns < 3 or perf_counter() < end:
        turns += 1
        for name, contender in list(racing.items()):
            turn_end = perf_counter() + TURN_SECONDS
            start = stop = 0.0
            while stop < turn_end:
                start = perf_counter()
                contender()
                stop = perf_counter()
                best[name] = min(best[name], stop - start)
            if best[name] > seconds / 3:
                del racing[name]
    gc.enable()
    return best


def cpu_ratio(work: Callable[[], Any], other: Callable[[], Any], seconds: float) -> float:
    """What one takes of the processor for each second of the other: the median of pairs, which noise changes little."""
    ratios = []
    end = perf_counter() + seconds
    while len(ratios) < 9 or perf_counter() < end:
        before = process_time()
        other()
        between = process_time()
        work()
        ratios.append((process_time() - between) / (between - before))
    return statistics.median(ratios)


def in_child(job: str, is_pinned: bool = True, environment: dict[str, str] | None = None, **arguments: Any) -> Any:
    """The answer of a function of benches/jobs.py, run in a process of its own: no heap that others have used."""
    told = json.dumps({"job": job, "is_pinned": is_pinned, "arguments": arguments})
    child = subprocess.run(
        [sys.executable, str(HERE / "jobs.py"), told],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    if child.returncode:
        raise SystemExit(f"{job} {arguments} failed")  # the child has said why
    return json.loads(child.stdout)


# Memory. Not by resource.getrusage: a new process inherits the peak of the one that started it.


def _status(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"/proc/self/status has no {field}")
    return int(found[1]) * 1_024


def resident() -> int:
    """Bytes of memory that this process has now."""
    return _status("VmRSS")


def peak() -> int:
    """The most that it had since `forget_peak`."""
    return _status("VmHWM")


def forget_peak() -> None:
    """Let the peak begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def can_measure_memory() -> bool:
    """Whether the system tells peaks, and forgets them."""
    try:
        forget_peak()
        peak()
    except OSError:
        return False
    return True


# What a process has allocated, by the C library's count, headers included: resident memory also has what was freed.
# With these variables Python allocates there as well, and nothing freed is set aside.
COUNTING = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


class _Allocated(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def can_count_memory() -> bool:
    """Whether the C library counts what is allocated."""
    return hasattr(ctypes.CDLL(None), "mallinfo2")


def in_use() -> int:
    """Bytes that are allocated, in a child with `COUNTING`."""
    count = ctypes.CDLL(None).mallinfo2
    count.restype = _Allocated
    found = count()
    return int(found.uordblks + found.hblkhd)


# The start of a process


def start_times(codes: list[str], rounds: int) -> list[float]:
    """Seconds of the fastest of many Pythons that run each code and end; they take turns.

    Bytecode is there, as pip leaves it, also where the environment keeps Python from writing it.
    """
    best = [float("inf")] * len(codes)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(rounds + 1):
            for index, code in enumerate(codes):
                start = perf_counter()
                subprocess.run([sys.executable, "-c", code], check=True, env=environment)
                if turn:  # the first writes the bytecode
                    best[index] = min(best[index], perf_counter() - start)
    return best


# The core alone


def core_binary() -> Path | None:
    """What `cargo bench` runs, built if need be; None where there is no cargo."""
    if shutil.which("cargo") is None:
        return None
    build = subprocess.run(
        ["cargo", "bench", "--quiet", "--bench", "core", "--no-run", "--message-format=json-render-diagnostics"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=HERE.parent,
    )
    messages = [json.loads(line) for line in build.stdout.splitlines()]
    return next((Path(message["executable"]) for message in messages if message.get("executable")), None)


def core_times(binary: Path, history: Path, seconds: float) -> dict[str, float]:
    """Seconds of each thing that the core does with this history, without Python."""
    environment = {"RECEDE_BENCH_FILE": str(history), "RECEDE_BENCH_SECONDS": str(seconds)}
    told = subprocess.run(
        [str(binary)], stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **environment}
    ).stdout
    return {name.strip(): float(time) / 1e3 for name, time in re.findall(r"^(.{28}) +([0-9.]+) ms", told, re.MULTILINE)}


def has_callgrind() -> bool:
    """Whether valgrind is there."""
    return shutil.which("valgrind") is not None


def instructions(binary: Path, history: Path) -> tuple[int, str]:
    """Instructions of one reduction, from bytes to bytes, and by which scanner.

    Of a process that reduces twice, less those of one that reduces once: so the start of the process, the reading of
    the file and what is done once are not counted, and no symbols are needed.
    """
    counts, scanner = [], ""
    for runs in (1, 2):
        environment = {"RECEDE_BENCH_FILE": str(history), "RECEDE_BENCH_RUNS": str(runs)}
        count, told = collected([str(binary)], environment)
        counts.append(count)
        scanner = told.strip()
    return counts[1] - counts[0], scanner


def collected(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Instructions of a process, and what it prints."""
    told = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    count = re.search(r"Collected : (\d+)", told.stderr)
    if told.returncode or count is None:
        raise SystemExit(f"callgrind failed:\n{told.stderr}")
    return int(count[1]), told.stdout
