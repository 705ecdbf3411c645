"""Tables and figures for people, and plain words: what a policy does, amounts, shares and counts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime

import click
from rich.cells import cell_len, set_cell_size

from recede._errors import printable
from recede.cli.notices import has_colors
from recede.costs import parse_policy
from recede.designs import approx_tokens
from recede.reduction import ToolReport

_USUAL_WINDOW = 10  # the default of `keep`, which needs no word

_KINDS = {
    "raw": "as it was sent",
    "sliding": "masked at every request",
    "stepped": "masked in steps of {chunk} results",
    "break_even": "masked when it pays",
    "high_water": "masked from {chars} characters on",
    "clear_tool_uses": "Anthropic's context editing",
    "clip": "results cut to {chars} characters",
    "keep_last": "the newest {messages} messages only",
    "summary": "summaries of old turns alone",
    "hybrid": "summaries, and {mask}",
    "budget": "a limit of {limit}",
}
_MASKS = {"sliding": "masked at every request", "stepped": "masked in steps", "break_even": "masked when it pays"}


def words_of(policy: str) -> str:
    """Describe a policy in a few words; windows are named unless they are the default."""
    kind, values = parse_policy(policy)
    unit = "tokens" if values.get("tokens") else "chars"
    numbers = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
    numbers["mask"] = _MASKS.get(str(values.get("boundary")), "")
    numbers["limit"] = f"{numbers.get(unit)} {'tokens' if unit == 'tokens' else 'characters'}"
    words = _KINDS[kind].format(**numbers)
    if values.get("at", values.get("every")) == "break_even":
        words += ", made when they pay"
    if values.get("at") == "never":
        words = f"{numbers['mask']}, by turns"
    window = values.get("window", _USUAL_WINDOW)
    words += "" if window == _USUAL_WINDOW else f", newest {window} raw"
    return words + (", with a mark" if values.get("cache_breakpoint") == "boundary" else "")


def money(amount: float | None) -> str:
    """An amount with two decimals, or as many as a small one needs; a dash where it is not known."""
    if amount is None:
        return "-"
    if amount and abs(amount) < 0.01:
        return f"${amount:.2g}" if abs(amount) >= 0.0001 else f"${amount:.1e}"
    return f"${amount:,.2f}"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def tenths(share: float | None) -> str:
    """A share in percent to a tenth, since few requests quote; a dash where it is not known."""
    return "-" if share is None else f"{100 * share:.1f} %"


def gain(cost: float, raw: float = 1.0) -> str:
    """Say how much less or more `cost` is than `raw`, or how many times as much; under half a percent is nothing."""
    of_raw = cost / raw if raw else 1.0
    if of_raw >= 2:
        return f"{of_raw:.1f} times"
    if abs(1 - of_raw) < 0.005:
        return "no less"
    return f"{percent(abs(1 - of_raw))} {'less' if of_raw < 1 else 'more'}"


def compact(number: float) -> str:
    """A number in few letters: 20k, 1.5M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * unit:
            return f"{number / unit:.3g}{letter}"
    return f"{number:.0f}"


def middle(name: str, columns: int) -> str:
    """A name of at most so many columns: what is too long loses its middle. East Asian letters take two."""
    if cell_len(name) <= columns:
        return name
    head = (columns - 1) // 2
    tail = set_cell_size(name[::-1], columns - 1 - head)[::-1]
    return f"{set_cell_size(name, head)}…{tail}"


_MOST_LETTERS = 18  # of a name that a line of the screen has room for


def first_of(names: Sequence[str]) -> str:
    """Name the first of these names, and count the others: "mystery-1 and 2 more"."""
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return middle(printable(names[0]), _MOST_LETTERS) + more


def span_of(times: Sequence[float]) -> str:
    """The days from the first to the last of these moments: "Nov 2 to 21"; empty without any."""
    if not times:
        return ""
    first, last = (datetime.fromtimestamp(found(times)).date() for found in (min, max))
    is_now = first.year == last.year == date.today().year
    begin = _day(first, has_year=not is_now and first.year != last.year)
    if first == last:
        return _day(last, has_year=not is_now)
    end = str(last.day) if (first.year, first.month) == (last.year, last.month) else _day(last, has_year=False)
    return f"{begin} to {end}" + ("" if is_now else f", {last.year}")


def _day(day: date, *, has_year: bool) -> str:
    return f"{day:%b} {day.day}" + (f", {day.year}" if has_year else "")


_UNLIMITED = 1 << 20
_LEAST_NAME = 12


def size(chars: int) -> str:
    return f"{chars:,} chars, about {approx_tokens(chars):,} tokens"


def orphans(indices: tuple[int, ...]) -> str:
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
