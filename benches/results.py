"""What documents quote of benches/RESULTS.md: `python benches/results.py speed`, or `stores`.

`speed` is of README.md, `stores` of docs/store.md.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from formatting import markdown, ratio

RESULTS = Path(__file__).with_name("RESULTS.md").read_text(encoding="utf-8")


def measured() -> str:
    """When and where, as the file says."""
    date, machine = find(r"^- ([\d-]+) .*\n- (.+? cores)")
    return f"One run of `make bench` on {date}: {machine}"


def find(pattern: str) -> tuple[str, ...]:
    """The groups of a pattern that is there."""
    found = re.search(pattern, RESULTS, re.MULTILINE)
    if not found:
        raise SystemExit(f"benches/RESULTS.md has no {pattern}")
    return found.groups()


def cell(section: str, row: str, column: str, after: int = 0) -> str:
    """A cell of the first table of a section; `after`: so many columns to the right."""
    lines = find(rf"^## {section}\n([^#]*)")[0].split("\n")
    rows = [[one.strip(" *") for one in line.split("|")] for line in lines if line.startswith("|")]
    return next(one[rows[0].index(column) + after] for one in rows if one[1] == row)


def speed() -> str:
    """The headlines: times, and how many times as long the fastest loops that we know take."""
    bytes_at, tuned, simple = "20 MB: 9,200 messages", "tuned loop, same telemetry", "simplest loop"
    time, rate = (cell("Bytes to bytes", "recede.reduce", bytes_at, after) for after in (0, 1))
    loops = [cell("Bytes to bytes", f"orjson + {loop}", bytes_at, 2) for loop in (tuned, simple)]
    rows = [["bytes to bytes, 20 MB; loops with orjson", f"{time}, {rate}", *loops]]
    for size in ("1,000 messages", "10,000 messages"):
        loops = [cell("Dicts to dicts", loop, size, 2) for loop in (tuned, f"{simple}: no telemetry, no check")]
        rows.append([f"dicts to dicts, {size}", cell("Dicts to dicts", "recede.reduce", size), *loops])
    turns = [find(rf"a turn at turn {turn} \(bytes\): [^|]*\| ([\d.]+) µs")[0] for turn in ("100", "10,000")]
    times = f"{turns[0]} and {turns[1]} µs"
    rows.append(["a turn of a `History` on bytes, at turn 100 and at turn 10,000", times, "", ""])
    table = markdown(["", "recede", "a loop with the same report", "a loop that only masks"], rows)
    return f"{measured()} ([benches/RESULTS.md](benches/RESULTS.md)).\n\n{table}"


def stores() -> str:
    """The turn store beside sqlite3 and dbm, and as it grows."""
    beside, growing = find(r"^## Turns on disk\n\n((?:\|.*\n)*)\n((?:\|.*\n)*)")
    header, _, *rows = [[one.strip() for one in line.strip("|").split("|")] for line in beside.splitlines()]
    ratios = [[row[0], ratio(number(row[2]) / number(row[1])), *row[1:]] for row in rows]
    table = markdown([header[0], "sqlite3, FULL / TurnStore", *header[1:]], ratios)
    return f"{measured()} ([benches/RESULTS.md](../benches/RESULTS.md)).\n\n{table}\n\n{growing.strip()}"


def number(figure: str) -> float:
    """A time in seconds; what has no unit is a number."""
    amount, _, unit = figure.partition(" ")
    return float(amount) * {"": 1, "s": 1, "ms": 1e-3, "µs": 1e-6}[unit]


if __name__ == "__main__":
    print({"speed": speed, "stores": stores}[sys.argv[1]]())
