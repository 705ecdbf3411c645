"""The peak memory of a worker of `recede batch`, by how a Parquet file is laid out: `python benches/pages.py`.

It writes files of large rows into a temporary folder, runs the commands over them with one process each, and prints the
table of docs/corpora.md. `--mb 2` takes smaller rows.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from formatting import markdown, measured_here

COMMANDS = {
    "reduce, views are short": ["reduce", "--max-input-tokens", "32000"],
    "reduce, views are as long as rows": ["reduce", "--max-input-tokens", "1000000000"],
    "stats": ["stats"],
}
RESULT_CHARS = 100_000


class Layout(NamedTuple):
    """Rows in megabytes, and how many are on a page and in a row group."""

    rows: Callable[[float], list[float]]
    on_a_page: int = 1
    in_a_group: int = 1_000
    has_dictionary: bool = False


def growing(most: float) -> list[float]:
    """A hundred rows, most of them short."""
    return [most * 0.002 + most * 0.998 * (number / 99) ** 8 for number in range(100)]


LINES = "JSON Lines, zstd"
LAYOUTS = {
    "a page for each row, no dictionary": Layout(lambda most: [most] * 8),
    "a row group for each row": Layout(lambda most: [most] * 8, in_a_group=1),
    "8 rows on a page, no dictionary": Layout(lambda most: [most] * 8, 8),
    "8 rows on a page, a dictionary": Layout(lambda most: [most] * 8, 8, has_dictionary=True),
    "100 rows of many lengths on a page, no dictionary": Layout(growing, 100),
    "100 rows of many lengths on a page, a dictionary": Layout(growing, 100, has_dictionary=True),
}


def history(megabytes: float, seed: int) -> str:
    """A history of about this size, of text that no other has and that can be packed."""
    rng = random.Random(seed)
    words = [f"{rng.randrange(10**8)}" for _ in range(500)]
    lines = [" ".join(rng.choices(words, k=12)) for _ in range(400)]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the bug."}]
    for number in range(max(1, round(megabytes * 1e6 / RESULT_CHARS))):
        call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
        text = "\n".join(rng.choices(lines, k=RESULT_CHARS // 110))
        messages.append({"role": "tool", "tool_call_id": str(number), "content": text})
    return json.dumps(messages)


def texts(layout: Layout, most: float) -> Iterator[str]:
    """The rows of a file."""
    return (history(size, seed) for seed, size in enumerate(layout.rows(most)))


def write_parquet(path: Path, layout: Layout, most: float) -> None:
    """A file with this layout."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("messages", pa.large_string())])
    page = 1 << 40 if layout.on_a_page > 1 else 1  # a page ends with the first batch of rows above this
    options: dict[str, Any] = {
        "compression": "zstd",
        "write_batch_size": layout.on_a_page,
        "data_page_size": page,
        "use_dictionary": layout.has_dictionary,
        "dictionary_pagesize_limit": 1 << 30,
    }
    rows = list(texts(layout, most))
    with pq.ParquetWriter(path, schema, **options) as writer:
        for at in range(0, len(rows), layout.in_a_group):
            writer.write_table(pa.table({"messages": rows[at : at + layout.in_a_group]}, schema=schema))


def write_lines(path: Path, most: float) -> None:
    """The same as JSON Lines, packed by zstd."""
    import pyarrow as pa

    with pa.output_stream(str(path), compression="zstd") as out:
        for text in texts(LAYOUTS["a row group for each row"], most):
            out.write(f'{{"messages": {text}}}\n'.encode())


def peak_megabytes(file: Path, command: list[str]) -> str:
    """The largest resident memory of the command and its workers."""
    with tempfile.TemporaryDirectory() as out:
        program = [sys.executable, "-m", "recede.cli", "batch", command[0], "-o", str(Path(out, "out")), "--jobs", "1"]
        child = subprocess.Popen([*program, *command[1:], str(file)], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"it failed: {' '.join(command)}")
    return f"{used.ru_maxrss / 1e3:,.0f}"


def table(most: float) -> str:
    """Layouts down, commands across."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for title in (*LAYOUTS, LINES):
            file = Path(folder, "rows.jsonl.zst" if title == LINES else "rows.parquet")
            # In a process of its own: the largest memory of a child is at least that of the process that starts it.
            subprocess.run([sys.executable, __file__, "--mb", str(most), "--write", title, str(file)], check=True)
            rows.append([title, *(peak_megabytes(file, command) for command in COMMANDS.values())])
    return markdown(["peak memory in MB", *COMMANDS], rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=float, default=25, help="megabytes of the largest row (default: 25)")
    parser.add_argument("--write", nargs=2, metavar=("LAYOUT", "FILE"), help="only write a file")
    given = parser.parse_args()
    if given.write:
        title, file = given.write
        if title == LINES:
            write_lines(Path(file), given.mb)
        else:
            write_parquet(Path(file), LAYOUTS[title], given.mb)
        return
    short, total = f"{given.mb * 0.002:g} to {given.mb:g} MB", f"{sum(growing(given.mb)):,.0f} MB"
    rows = f"Rows of {given.mb:g} MB; the 100 rows are of {short}, {total} in all."
    print(f"{measured_here()} {rows}\n\n{table(given.mb)}")


if __name__ == "__main__":
    main()
