"""Two builds of the core, compared on whole calls: `python benches/builds.py OLD.so NEW.so`.

Each is a `_core.abi3.so` that its checkout built (`make release`). A process for each, on one core, in turns; a cell is
the CPU time of the new one divided by that of the old one: the median of pairs. `--instructions` adds, in brackets, the
same of the instructions that callgrind counts.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time_ns
from typing import Any

import formatting
import histories
import measuring

CALLS = ("dicts", "bytes")
PAIRS = 21
NANOSECONDS = 20_000_000  # that a side runs at a stretch, at least
PACKAGE = measuring.HERE.parent / "python" / "recede"


def call_of(name: str, path: str) -> Callable[[], Any]:
    """The call, on the history in a file, at half of its size: all that can be masked is, or nearly."""
    import recede

    data = Path(path).read_bytes()
    given = data if name == "bytes" else json.loads(data)
    return lambda: recede.reduce(given, boundary="sliding")


def side(name: str, path: str) -> None:
    """A process: for each line that it is given, the nanoseconds of a call, over so many calls."""
    measuring.pin()
    call = call_of(name, path)
    call()
    gc.disable()
    for line in sys.stdin:
        start = process_time_ns()
        for _ in range(int(line)):
            call()
        print((process_time_ns() - start) / int(line), flush=True)


def ratio(folders: list[str], name: str, path: str) -> float:
    """What the second build takes of the first one's time."""
    sides = [
        subprocess.Popen(
            [sys.executable, __file__, "--side", name, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": folder},
        )
        for folder in folders
    ]

    def run(index: int, calls: int) -> float:
        stdin, stdout = sides[index].stdin, sides[index].stdout
        assert stdin is not None and stdout is not None
        print(calls, file=stdin, flush=True)
        return float(stdout.readline())

    calls = max(1, round(NANOSECONDS / min(run(0, 1), run(0, 1))))
    ratios = []
    for pair in range(PAIRS):
        times = {index: run(index, calls) for index in ((0, 1) if pair % 2 else (1, 0))}
        ratios.append(times[1] / times[0])
    for process in sides:
        process.communicate()
    return statistics.median(ratios)


def instructions(folder: str, name: str, path: str) -> int:
    """Those of one call: of three calls, less those of two."""
    code = "import sys, builds; call = builds.call_of(*sys.argv[2:]); [call() for _ in range(int(sys.argv[1]))]"
    counts = []
    for calls in ("2", "3"):
        command = [sys.executable, "-c", code, calls, name, path]
        environment = {"PYTHONPATH": os.pathsep.join((folder, str(measuring.HERE))), "PYTHONHASHSEED": "0"}
        counts.append(measuring.collected(command, environment)[0])
    return counts[1] - counts[0]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("builds", nargs="*", type=Path)
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--instructions", action="store_true", help="as well, which takes minutes")
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 1_000, 10_000])
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=CALLS)
    arguments = parser.parse_args()
    if arguments.side:
        return side(*arguments.side)
    with tempfile.TemporaryDirectory() as temporary:
        folders = []
        for index, build in enumerate(arguments.builds):
            package = Path(temporary, str(index), "recede")
            package.mkdir(parents=True)
            for file in PACKAGE.iterdir():
                if not file.name.startswith("_core.") or file.suffix == ".pyi":
                    package.joinpath(file.name).symlink_to(file)
            package.joinpath("_core.abi3.so").symlink_to(build.resolve())
            folders.append(str(package.parent))
        rows = []
        for shape in ("openai", "anthropic"):
            for size in arguments.sizes:
                path = Path(temporary, f"{shape}-{size}.json")
                path.write_bytes(histories.serialized(size, shape=shape))
                row = [f"{shape}, {size:,} messages"]
                for name in arguments.calls:
                    cell = f"{ratio(folders, name, str(path)):.2f}"
                    if arguments.instructions:
                        old, new = (instructions(folder, name, str(path)) for folder in folders)
                        cell += f" ({new / old:.3f})"
                    row.append(cell)
                rows.append(row)
                print(*row, sep="\t", file=sys.stderr, flush=True)
    print(formatting.markdown(["new / old, CPU time (instructions)", *arguments.calls], rows))


if __name__ == "__main__":
    main()
