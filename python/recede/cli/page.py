"""A replay as one self-contained HTML page: no scripts, readable without color, on paper and on a phone.

It has two pictures: how the requests of a session grow, and what each session costs. A picture has no horizontal scale:
positions are percentages and labels have the size of the surrounding text, so the same picture is readable everywhere.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from recede._errors import printable
from recede.cli.notices import counted
from recede.cli.played import Session
from recede.cli.screen import Asked, advised_for, screen
from recede.cli.tables import compact, gain, money, tenths
from recede.costs import ReplayedTurn

_TITLE = "What you paid, and what masking would have cost"
_STYLE = Path(__file__).with_name("page.css")
_HEIGHT = 240
_MOST_SESSIONS = 40


def page(sessions: Sequence[Session], asked: Asked) -> str:
    """The first screen, how the requests of a session grow, and a row for each session, as far as that says more.

    The page can be encoded as UTF-8, whatever the names of files and tools are.
    """
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="recede replay">\n'
        f"<title>{_TITLE}</title>\n<style>\n{_STYLE.read_text('utf-8')}</style>\n"
    )
    typed = (one.line for summarizes in (True, False) for one in advised_for(sessions, asked, summarizes=summarizes))
    commands = sorted(set(typed), key=len, reverse=True)
    body = [
        element("h1", _TITLE),
        element("div", *_blocks(screen(sessions, asked._replace(names_html=False)), commands), class_="screen"),
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


def _blocks(lines: Sequence[str], commands: Sequence[str]) -> Iterator[str]:
    """The lines of the screen as markup: a table for each block of lines in columns, a paragraph for others."""
    for is_line, some in groupby(lines, key=bool):
        block = list(some)
        if is_line and block[0].startswith(" "):
            rows = (element("tr", *(element("td", _cell(cell, commands)) for cell in row)) for row in _rows(block))
            yield element("table", *rows)
        elif is_line:
            yield element("p", text(" ".join(block)))


def _cell(words: str, commands: Sequence[str]) -> str:
    """A cell as markup; a command stands at the end of a line, or before a note in a column of its own."""
    lines = []
    for line in words.split("\n"):
        found = (re.search(rf"(?:^|  ){re.escape(one)}(?=$|   )", line) for one in commands)
        pairs = zip(commands, found, strict=True)
        start, end = next(((match.end() - len(one), match.end()) for one, match in pairs if match), (0, 0))
        code = element("code", text(line[start:end])) if end else ""
        lines.append(text(line[:start]) + code + text(line[end:]))
    return "\n".join(lines)


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
    ranked = by_saving(sessions, asked)
    if ranked and is_masked(ranked[0], asked):
        first = ranked[0]
        words = f"{first.name}, {counted(first.requests, 'request')}: the session that masking changes most."
        yield "How requests grow", (element("p", text(words)), element("figure", growth_picture(first, asked)))
    if len(ranked) > 1:
        yield "Each session", (element("figure", sessions_table(session_rows(sessions, asked))),)


# Pictures


class SessionRow(NamedTuple):
    """A session, or several together: what it cost, and would have cost masked, in dollars; the share that quotes."""

    name: str
    paid: float
    masked: float
    quoted: float | None
    less: str  # what masking saves, in words
    has_dollars: bool = True


def by_saving(sessions: Sequence[Session], asked: Asked) -> list[Session]:
    """The sessions that matter first: those that save or lose most, then those that cost most."""

    def worth(session: Session) -> tuple[float, float, float]:
        fewer = session.tokens("raw") - session.tokens(asked.masked)
        return -abs(session.paid - session.would_pay(asked.masked)), -session.paid, -fewer

    return sorted((session for session in sessions if session.requests), key=worth)


def is_masked(session: Session, asked: Asked) -> bool:
    return any(turn.masked_count for turn in session.played(asked.masked).turns)


def growth_picture(session: Session, asked: Asked) -> str:
    """The tokens of each request of a session, raw and sent, and where the boundary moved."""
    raw, sent = (session.played(policy).turns for policy in ("raw", asked.masked))
    rows = ticks(max(turn.view_tokens for turn in (*raw, *sent)), 4)
    count, last = len(raw), max(1, len(raw) - 1)

    def height(tokens: int) -> float:
        return _HEIGHT * (1 - tokens / rows[-1])

    def line(turns: Sequence[ReplayedTurn], class_: str) -> str:
        tokens = [turn.view_tokens for turn in turns]
        places = [*thinned(tokens), (1, tokens[-1])] if count == 1 else thinned(tokens)  # a point would not be drawn
        points = " ".join(f"{1000 * place / last:.0f},{10 * height(value):.0f}" for place, value in places)
        return element("polyline", class_=class_, points=points)

    before = [0, *(turn.masked_count for turn in sent)]
    moves = [place for place, turn in enumerate(sent) if turn.masked_count > before[place]]
    triangle = element("path", class_="move", d=f"M0 {_HEIGHT + 4}l4 9h-9z")
    named = sorted({1, count, *(turn for turn in ticks(count, 4) if count / 10 < turn < 0.9 * count)})
    ends = [("as it was sent", raw[-1].view_tokens), ("masked", sent[-1].view_tokens)]
    said = "; ".join(f"{name}: {tokens:,} tokens in the last request" for name, tokens in ends)
    drawn = [
        element("title", "Tokens of each request", id="growth-title"),
        element("desc", f"{said}; the boundary moved {counted(len(moves), 'time')}.", id="growth-description"),
        *(
            element("line", class_="grid", x1=0, x2="100%", y1=f"{height(row):.4g}", y2=f"{height(row):.4g}")
            for row in rows
        ),
        *(label(compact(row), -8, height(row) + 4, "left") for row in rows),
        # 1,000 units wide and ten times as many high as it has pixels, as wide as the picture.
        element(
            "svg",
            line(raw, "line-raw"),
            line(sent, "line-sent"),
            viewBox=f"0 0 1000 {10 * _HEIGHT}",
            preserveAspectRatio="none",
            width="100%",
            height=_HEIGHT,
            overflow="visible",
        ),
        *(at(f"{100 * place / last:.4g}%", triangle) for place in moves),
        *(at(f"{100 * (turn - 1) / last:.4g}%", label(f"{turn:,}", 0, _HEIGHT + 28, "middle")) for turn in named),
        label("tokens", -48, -14),
        at("100%", label("request; a triangle is a move of the boundary", 0, _HEIGHT + 46, "left")),
    ]
    names = {"aria_labelledby": "growth-title", "aria_describedby": "growth-description"}
    picture = element(
        "svg", *drawn, class_="chart plot", role="img", **names, width="100%", height=_HEIGHT, overflow="visible"
    )
    return legend(("line-raw", "as it was sent"), ("line-sent", "masked when it pays")) + picture


def session_rows(sessions: Sequence[Session], asked: Asked) -> list[SessionRow]:
    """A row for each session, those that matter first; of many, the others are one row."""
    rows = [
        SessionRow(
            session.name,
            session.paid,
            session.would_pay(asked.masked),
            None if session.replay.misses is None else session.replay.misses.share_under(asked.masked),
            gain(session.of_raw(asked.masked)),
            session.has_dollars,
        )
        for session in by_saving(sessions, asked)
    ]
    if len(rows) <= _MOST_SESSIONS:
        return rows
    others = rows[_MOST_SESSIONS:]
    sums = (sum(row.paid for row in others), sum(row.masked for row in others))
    return [*rows[:_MOST_SESSIONS], SessionRow(f"{len(others):,} others", *sums, None, gain(sums[1], sums[0]))]


def sessions_table(rows: Sequence[SessionRow]) -> str:
    """A row for each session: what it cost, what masking saves, and how often it would have been missed."""
    widest = max(max(row.paid, row.masked) for row in rows) or 1
    body = []
    for name, amount, masked, quoted, less, has_dollars in rows:
        bars = [bar(amount / widest, "raw"), bar(min(amount, masked) / widest, "sent")]
        if masked > amount:
            more = bar((masked - amount) / widest, "more")
            bars.append(element("svg", more, x=f"{100 * amount / widest:.2f}%", overflow="visible"))
        drawn = element("svg", *bars, class_="bars", width="100%", height=8, aria_hidden="true")
        words = money(amount) if has_dollars else "-", less, tenths(quoted)
        body.append(
            element("tr", element("th", text(name), drawn, scope="row"), *(element("td", one) for one in words))
        )
    head = element("tr", *(element("th", one, scope="col") for one in ("session", "paid", "masked", "quoted")))
    table = element("table", element("thead", head), element("tbody", *body), class_="sessions")
    return legend(("bar sent", "masked when it pays"), ("bar raw", "saved")) + table


# Their parts


def thinned(values: Sequence[int], columns: int = 300) -> list[tuple[int, int]]:
    """The values with their indices; of many, only the least and largest of each column, which preserves spikes."""
    count = len(values)
    if count <= 2 * columns:
        return list(enumerate(values))
    kept = {0, count - 1}
    for column in range(columns):
        places = range(column * count // columns, (column + 1) * count // columns)
        kept |= {min(places, key=values.__getitem__), max(places, key=values.__getitem__)}
    return [(place, values[place]) for place in sorted(kept)]


def ticks(largest: float, wanted: int) -> list[int]:
    """Round numbers from 0 to the first that is not below the largest, about as many as are wanted."""
    rough = max(1.0, largest / wanted)
    power = 10 ** math.floor(math.log10(rough))
    step = int(power * next(factor for factor in (1, 2, 5, 10) if factor * power >= 0.8 * rough))
    return list(range(0, math.ceil(max(largest, 1)) + step, step))


def text(words: str, keep: str = "") -> str:
    return html.escape(printable(words, keep=keep))


def element(name: str, *children: str, **attributes: object) -> str:
    """An element, empty without children; the attributes are escaped, the children are markup already.

    An underscore at the end of an attribute's name is left out, another is a hyphen.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(printable(str(value)))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{pairs}>{''.join(children)}</{name}>" if children else f"<{name}{pairs}/>"


def label(words: str, x: object, y: float, class_: str = "") -> str:
    classes = {"class_": class_} if class_ else {}
    return element("text", text(words), x=x, y=f"{y:.4g}", **classes)


def at(x: str, *children: str) -> str:
    return element("svg", *children, x=x, overflow="visible")


def bar(share: float, class_: str) -> str:
    return element("rect", class_=f"bar {class_}", x=0, y=0, width=f"{100 * share:.2f}%", height=8)


def legend(*keys: tuple[str, str]) -> str:
    """A list of classes, each as it is drawn, with its words."""

    def drawn(class_: str) -> str:
        if class_.startswith("line"):
            return element("line", class_=class_, x1=1, x2=27, y1=8, y2=8)
        return element("rect", class_=class_, x=1, y=2, width=26, height=12)

    swatches = (
        element("svg", drawn(class_), class_="key", width=28, height=16, aria_hidden="true") for class_, _ in keys
    )
    items = (element("li", swatch, text(words)) for swatch, (_, words) in zip(swatches, keys, strict=True))
    return element("ul", *items, class_="legend")
