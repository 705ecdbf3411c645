"""A replay as one self-contained HTML page: no scripts, readable without color, on paper and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from recede.cli.chart import element, text
from recede.cli.notices import counted
from recede.cli.pictures import by_saving, growth_picture, is_masked, session_rows, sessions_table
from recede.cli.played import Session
from recede.cli.screen import Asked, screen

_TITLE = "What you paid, and what masking would have cost"
_STYLE = Path(__file__).with_name("page.css")


def page(sessions: Sequence[Session], asked: Asked) -> str:
    """The first screen, how the requests of a session grow, and a row for each session, as far as that says more.

    The page can be encoded as UTF-8, whatever the names of files and tools are.
    """
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="recede replay">\n'
        f"<title>{_TITLE}</title>\n<style>\n{_STYLE.read_text('utf-8')}</style>\n"
    )
    body = [
        element("h1", _TITLE),
        element("div", *_blocks(screen(sessions, asked._replace(names_html=False))), class_="screen"),
        *(element("section", element("h2", text(title)), *parts) for title, parts in _sections(sessions, asked)),
        element(
            "footer",
            "Tokens are those that the logs have, in every picture; where a log has none, four characters are a token. "
            "Dollars are those of the logs, and what would have been is the same share of them as in the replay.",
        ),
    ]
    main = "\n".join(body)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n<main>\n{main}\n</main>\n</body>\n</html>\n'
    )


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """The lines of the screen as markup: a table for each block of lines in columns, a paragraph for others."""
    for is_line, some in groupby(lines, key=bool):
        block = list(some)
        if is_line and block[0].startswith(" "):
            rows = (element("tr", *(element("td", text(cell, keep="\n")) for cell in row)) for row in _rows(block))
            yield element("table", *rows)
        elif is_line:
            yield element("p", text(" ".join(block)))


def _rows(block: Sequence[str]) -> list[list[str]]:
    """The cells of each line; two columns are apart where all lines have two spaces or more.

    A line without a label belongs to the one before.
    """
    width = max(map(len, block))
    ink = "".join("x" if any(line[place : place + 1].strip() for line in block) else " " for place in range(width))
    spans = [found.span() for found in re.finditer(r"x(?: ?x)*", ink)]
    rows: list[list[str]] = []
    for line in block:
        cells = [line[start:end].strip() for start, end in spans]
        if rows and not cells[0]:
            rows[-1] = ["\n".join(filter(None, pair)) for pair in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return rows


def _sections(sessions: Sequence[Session], asked: Asked) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The title and the parts of each picture that says more than the screen."""
    ranked = by_saving(sessions, asked)
    if ranked and is_masked(ranked[0], asked):
        first = ranked[0]
        words = f"{first.name}, {counted(first.requests, 'request')}: the session that masking changes most."
        yield "How requests grow", (element("p", text(words)), element("figure", growth_picture(first, asked)))
    if len(ranked) > 1:
        yield "Each session", (element("figure", sessions_table(session_rows(sessions, asked))),)
