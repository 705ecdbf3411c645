"""How figures look to a person."""

from __future__ import annotations

import io
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recede import ToolReport, approx_tokens

__all__ = ["orphans", "size", "tools_table"]


def size(chars: int) -> str:
    """The characters, and about how many tokens they are."""
    return f"{chars:,} chars, about {approx_tokens(chars):,} tokens"


def orphans(indices: tuple[int, ...]) -> str:
    """The messages that hold a call without result or a result without call."""
    if not indices:
        return "none"
    rest = f" and {len(indices) - 5} more" if len(indices) > 5 else ""
    return f"in message {', '.join(map(str, indices[:5]))}{rest}"


def tools_table(tools: Mapping[str, ToolReport]) -> str:
    """A line for each tool, in order of first use, behind an empty line; nothing where there are no tools."""
    if not tools:
        return ""
    table = Table(box=None, pad_edge=False)
    table.add_column("tool", overflow="fold")
    for heading in ("results", "masked", "chars", "removed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, figures in tools.items():
        shown = name if name.isprintable() else ascii(name)
        table.add_row(Text(shown or "(unknown)"), *(f"{number:,}" for number in figures))
    text = io.StringIO()
    Console(file=text).print(table)
    return "\n" + "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
