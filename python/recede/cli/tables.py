"""Tables and figures for people."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence

import click
from rich.cells import cell_len

from recede._printable import printable
from recede.cli.notices import has_colors
from recede.cli.words import middle
from recede.designs import approx_tokens
from recede.reduction import ToolReport

_UNLIMITED = 1 << 20
_LEAST_NAME = 12


def size(chars: int) -> str:
    """The characters, and about how many tokens they are."""
    return f"{chars:,} chars, about {approx_tokens(chars):,} tokens"


def orphans(indices: tuple[int, ...]) -> str:
    """The messages that hold a call without result or a result without call."""
    if not indices:
        return "none"
    rest = f" and {len(indices) - 5} more" if len(indices) > 5 else ""
    return f"in message {', '.join(map(str, indices[:5]))}{rest}"


def share(part: int, whole: int) -> str:
    """A part in percent; a dash where there is nothing."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def tools_table(tools: Mapping[str, ToolReport]) -> str:
    """A line for each tool, in order of first use, after an empty line; empty without tools."""
    if not tools:
        return ""
    rows = [(name or "(unknown)", *(f"{number:,}" for number in figures)) for name, figures in tools.items()]
    return "\n" + table(("tool", "results", "masked", "chars", "removed"), rows)


def prose(lines: Iterable[str]) -> str:
    return "\n".join(map(printable, lines))


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    names: int = 1,
    *,
    optional: Sequence[int] = (),  # the columns that a narrow screen may lack, the first to go first
    best: int | None = None,  # the row to highlight on a terminal
    is_last_name: bool = False,  # whether the last column is a name, too
) -> str:
    """Format a table: one name or several, which lose their middle where they do not fit, then figures.

    The cells may hold what others wrote.
    """
    headings = [printable(heading) for heading in headings]
    rows = [[printable(cell) for cell in row] for row in rows]
    # In a file or a pipe each row is one line, however long.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _UNLIMITED
    kept = list(range(len(headings)))
    for column in optional:
        if _width(headings, rows, kept) > width:
            kept.remove(column)
    last = [len(headings) - 1] if is_last_name and kept[-1] == len(headings) - 1 else []
    for column in (*last, *range(names)):
        longest = max(cell_len(row[column]) for row in (headings, *rows))
        wanted = min(longest, max(_LEAST_NAME, longest + width - _width(headings, rows, kept)))
        rows = [[*row[:column], middle(row[column], wanted), *row[column + 1 :]] for row in rows]
    widths = [max(cell_len(row[column]) for row in (headings, *rows)) for column in kept]
    lefts = [column < names or (is_last_name and column == len(headings) - 1) for column in kept]
    lines = []
    for place, row in enumerate([headings, *rows], -1):
        cells = zip((row[column] for column in kept), widths, lefts, strict=True)
        line = "  ".join(
            cell + " " * (wide - cell_len(cell)) if is_left else " " * (wide - cell_len(cell)) + cell
            for cell, wide, is_left in cells
        ).rstrip()
        lines.append(click.style(line, fg="green", bold=True) if place == best and has_colors() else line)
    return "\n".join(lines) + "\n"


def _width(headings: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int]) -> int:
    return sum(max(cell_len(row[column]) for row in (headings, *rows)) + 2 for column in columns) - 2
