"""Run the commands beside the measured tables of README.md and docs, and write what they print: `make figures`.

The command of a table stands in a comment above it, with how far its figures may move, or that they are times of a
machine:

    <!-- figures: python benches/tokens.py; may move 0 % -->
    <!-- figures: python benches/load.py --table bodies; timed -->

What follows to the end of the table, or of the last of several in a row, is what the command prints. Where it prints
fewer columns than the table has, only their cells are written, in the rows that begin alike. A listing that begins with
`$ recede … .corpus/*/*` has its command in its first line. `--check` writes nothing, runs no timed command, and fails
where a figure has moved by more than it may. A comment that ends with `; slow` is of a command that takes minutes: it
is left out like those of times, unless `--only` names it. One that exits with 77 cannot be run on this machine, and
leaves its table as it is.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from recorded import ROOT, files

PAGES = [*sorted(ROOT.glob("docs/**/*.md")), ROOT / "README.md"]  # which repeats some of their figures
EVERY_FILE = ".corpus/*/*"
_MARKER = re.compile(
    r"<!-- figures: (?P<command>.+?); (?:may move (?P<percent>[\d.]+) %|(?P<timed>timed))(?P<slow>; slow)? -->"
)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
NOT_HERE = 77
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


class Figures(NamedTuple):
    """Lines of a page that a command prints, and by how many percent they may move; None for times of a machine.

    A command that is slow is run where all are, or where it is named.
    """

    page: Path
    command: str
    may_move: float | None
    first: int
    end: int
    shown: str
    is_slow: bool = False


class FiguresError(Exception):
    """A marker that has no table, or a command that fails or prints none."""


class NotHereError(Exception):
    """A command that cannot be run on this machine."""


def main() -> None:
    """Write the tables, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where a figure has moved too far")
    parser.add_argument("--only", default="", help="parts of the names of pages or commands, with commas between")
    parser.add_argument("--not-timed", action="store_true", help="leave out the times of a machine")
    given = parser.parse_args()
    only = [part for part in given.only.split(",") if part]
    failed = 0
    for page in PAGES:
        # From the end of the page, so that the lines of those before stay where they are.
        for one in reversed(list(figures(page))):
            name = f"{page.relative_to(ROOT)}: {one.command}"
            is_left_out = one.may_move is None or (one.is_slow and not only)
            if is_left_out and (given.check or given.not_timed):
                continue
            if only and not any(part in name for part in only):
                continue
            try:
                new = printed(one)
                found = moved(one.shown, new, one.may_move or 0) if given.check else write(one, new)
            except NotHereError as error:
                found = [f"not run: {error}"]
            except FiguresError as error:
                found = [str(error)]
                failed += 1
            else:
                failed += bool(given.check and found)
            print(name, *(f"    {line}" for line in found), sep="\n", flush=True)
    if failed:
        sys.exit(f"{failed} tables are not what their commands print")


def figures(page: Path) -> Iterator[Figures]:
    """The measured tables and listings of a page."""
    lines = page.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines):
        found = _MARKER.fullmatch(line)
        if found:
            first, end = number + 2, end_of_tables(lines, number + 1)
            if end is None or lines[number + 1]:
                raise FiguresError(f"{page.name}, line {number + 1}: a table belongs below an empty line")
            may_move = None if found["timed"] else float(found["percent"])
            shown = "\n".join(lines[first:end])
            yield Figures(page, found["command"], may_move, first, end, shown, found["slow"] is not None)
        elif "<!-- figures" in line:
            raise FiguresError(f"{page.name}, line {number + 1}: no marker has this form")
        elif line.startswith("$ recede ") and line.endswith(f" {EVERY_FILE}"):
            end = lines.index("```", number)
            yield Figures(page, line[2:], 0, number + 1, end, "\n".join(lines[number + 1 : end]))


def end_of_tables(lines: list[str], at: int) -> int | None:
    """Where the next table ends, and others that follow it with nothing between; None if a heading comes first."""
    end = None
    for number in range(at, len(lines)):
        if lines[number].startswith("|"):
            end = number + 1
        elif lines[number] and (end is not None or lines[number].startswith(("#", "<!--", "```"))):
            break
    return end


def printed(one: Figures) -> str:
    """What the command prints, in place of what the page shows."""
    words = shlex.split(one.command)
    program = {"recede": [sys.executable, "-m", "recede.cli"], "python": [sys.executable]}[words[0]]
    recorded = files()
    if EVERY_FILE in words and not recorded:
        raise FiguresError("there are no recorded sessions: make corpus")
    arguments = [part for word in words[1:] for part in (recorded if word == EVERY_FILE else [word])]
    done = subprocess.run([*program, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == NOT_HERE:
        raise NotHereError(done.stderr.strip())
    if done.returncode:
        raise FiguresError(f"it failed: {done.stderr.strip()}")
    new = done.stdout.strip("\n")
    is_table = one.shown.splitlines()[-1].startswith("|")
    if is_table and not new.rpartition("\n")[2].startswith("|"):
        raise FiguresError("what it prints does not end with a table")
    return merged(one.shown, new) if is_table else new


def merged(shown: str, new: str) -> str:
    """The table shown, with the cells that a table of fewer columns has for them."""
    lines, others = shown.split("\n"), [line for line in new.split("\n") if line.startswith("|")]
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    columns, given = cells(lines[first]), cells(others[0])
    if len(given) >= len(columns):
        return new
    rows = {key(line): number for number, line in enumerate(lines) if number > first}
    for line in others[2:]:
        if key(line) not in rows or not set(given[1:]) <= set(columns):
            raise FiguresError(f"the table has no such row, or not all columns of {given}: {line}")
        number = rows[key(line)]
        values = dict(zip(given[1:], cells(line)[1:], strict=True))
        row = [values.get(column, cell) for column, cell in zip(columns, cells(lines[number]), strict=True)]
        lines[number] = f"| {' | '.join(row)} |"
    return "\n".join(lines)


def cells(line: str) -> list[str]:
    """The cells of a row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def key(line: str) -> str:
    """The first cell of a row, without what only its form needs."""
    return re.sub(r"[*`]", "", _LINK.sub(r"\1", line.split("|")[1])).strip() if line.startswith("|") else ""


def moved(shown: str, new: str, percent: float) -> list[str]:
    """The new lines of which words are others, or a figure is another by more percent than it may be."""
    old_lines, new_lines = shown.split("\n"), new.split("\n")
    if len(old_lines) != len(new_lines):
        return [f"{len(new_lines)} lines, and the page has {len(old_lines)}"]
    return [line for old, line in zip(old_lines, new_lines, strict=True) if not is_near(old, line, percent)]


def is_near(old: str, new: str, percent: float) -> bool:
    """If two lines have the same words, and figures that are near to each other."""
    if percent == 0 or old == new:
        return old == new
    words = [" ".join(_NUMBER.sub("0", line).split()) for line in (old, new)]
    pairs = zip(*([float(one.replace(",", "")) for one in _NUMBER.findall(line)] for line in (old, new)), strict=False)
    return words[0] == words[1] and all(abs(b - a) <= percent / 100 * abs(a) for a, b in pairs)


def write(one: Figures, new: str) -> list[str]:
    """Put it in place of what the page shows; return the lines that are others."""
    if new == one.shown:
        return []
    lines = one.page.read_text(encoding="utf-8").split("\n")
    lines[one.first : one.end] = new.split("\n")
    one.page.write_text("\n".join(lines), encoding="utf-8")
    return [line for line in new.split("\n") if line not in one.shown.split("\n")]


if __name__ == "__main__":
    main()
