"""Tables and figures for people."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recede import approx_tokens
from recede.cli.verdict import money, percent
from recede.costs import PolicyCost
from recede.reduction import ToolReport

__all__ = ["cost_table", "orphans", "share", "size", "table", "tools_table"]


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


def cost_table(costs: Sequence[PolicyCost], without_cache: str) -> tuple[list[str], list[list[str]]]:
    """The headings and a row for each policy; `without_cache` is the heading of what no cache costs."""
    headings = ["policy", "tokens sent", "from cache", "cost", "of raw", without_cache, "of raw"]
    rows = [
        [
            cost.policy,
            f"{approx_tokens(cost.usage.sent_chars):,}",
            share(cost.usage.cached_chars, cost.usage.sent_chars),
            money(cost.cost),
            percent(cost.of_raw),
            money(cost.cost_uncached),
            percent(cost.of_raw_uncached),
        ]
        for cost in costs
    ]
    if any(cost.usage.summary_calls for cost in costs):
        headings.append("summaries")
        for row, cost in zip(rows, costs, strict=True):
            row.append(money(cost.summary_cost) if cost.usage.summary_calls else "-")
    if any(cost.is_optimum for cost in costs):
        headings.append("of optimum")
        for row, cost in zip(rows, costs, strict=True):
            row.append("-" if cost.of_optimum is None else percent(cost.of_optimum))
    return headings, rows


def tools_table(tools: Mapping[str, ToolReport]) -> str:
    """A line for each tool, in order of first use, after an empty line; empty without tools."""
    if not tools:
        return ""
    rows = [
        ((name if name.isprintable() else ascii(name)) or "(unknown)", *(f"{number:,}" for number in figures))
        for name, figures in tools.items()
    ]
    return "\n" + table(("tool", "results", "masked", "chars", "removed"), rows)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1) -> str:
    """One name or several, then figures."""
    drawn = Table(box=None, pad_edge=False)
    for heading in headings[:names]:
        drawn.add_column(heading, overflow="fold")
    for heading in headings[names:]:
        drawn.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        drawn.add_row(*map(Text, row[:names]), *row[names:])
    text = io.StringIO()
    # Long names are folded for a screen only: in a file or a pipe each row is one line.
    Console(file=text, width=None if sys.stdout.isatty() else 1_000).print(drawn)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
