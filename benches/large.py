"""What large inputs take: `recede replay` over one large session, and over many small ones.

`python benches/large.py [--megabytes 200] [--files 700]` writes sessions as Codex does into a temporary folder, runs
the command in a child, and prints its CPU seconds (its own and those of its processes) and its largest resident memory.
With `taskset -c 0` before it, one core does all.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_COMMAND = [sys.executable, "-m", "recede.cli", "replay", "-q"]


def session(file: Path, size: int) -> None:
    """Write a session of about so many bytes."""
    with file.open("w") as out:
        out.write(json.dumps({"type": "session_meta", "payload": {"id": file.stem}}) + "\n")
        number = written = 0
        while written < size:
            call = {"type": "function_call", "call_id": str(number), "name": "shell", "arguments": '{"command": "ls"}'}
            text = f"{number}: a line of the output of a tool\n" * (20 + number * 37 % 160)
            output = {"type": "function_call_output", "call_id": str(number), "output": text}
            for payload in (call, output):
                written += out.write(json.dumps({"type": "response_item", "payload": payload}) + "\n")
            number += 1


def measured(folder: Path) -> str:
    """Replay a folder in a child; its figures."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([*_COMMAND, str(folder)], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.perf_counter() - start
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # The largest of all children so far: the large session is measured last.
    return f"{cpu:.1f} s of CPU, {seconds:.1f} s, at most {after.ru_maxrss / 1_000:,.0f} MB of memory"


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200, help="of the large session, and of all small ones")
    parser.add_argument("--files", type=int, default=700, help="how many small ones")
    asked = parser.parse_args()
    size = asked.megabytes * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small"), Path(folder, "large")
        for each in (small, large):
            each.mkdir()
        for number in range(asked.files):
            session(small / f"{number}.jsonl", size // asked.files)
        session(large / "one.jsonl", size)
        print(f"{asked.files:,} sessions of {asked.megabytes:,} MB in all: {measured(small)}")
        print(f"one session of {asked.megabytes:,} MB: {measured(large)}")


if __name__ == "__main__":
    main()
