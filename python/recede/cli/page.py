"""A replay as one self-contained HTML page: no scripts, readable without color, on paper and on a phone.

It has two pictures: how the requests of a session grow, and what each session costs. A picture has no horizontal scale:
positions are percentages and labels have the size of the surrounding text, so the same picture is readable everywhere.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from recede._errors import printable
from recede.cli.notices import counted
from recede.cli.record import Growth, Record, SessionCost
from recede.cli.screen import screen
from recede.cli.tables import compact, gain, money, tenths

_TITLE = "What you paid, and what masking would have cost"
_STYLE = Path(__file__).with_name("page.css")
_HEIGHT = 240
_MOST_SESSIONS = 40


def page(record: Record) -> str:
    """The first screen, how the requests of a session grow, rows for sessions and days that say more, and the notes.

    The page can be encoded as UTF-8, whatever the names of files and tools are.
    """
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="recede replay">\n'
        f"<title>{_TITLE}</title>\n<style>\n{_STYLE.read_text('utf-8')}</style>\n"
    )
    typed = {one.line for one in (*record.advice, *record.summary_advice)}
    commands = sorted(typed, key=len, reverse=True)
    body = [
        element("h1", _TITLE),
        element("div", *_blocks(screen(record, names_html=False), commands), class_="screen"),
        *(element("section", element("h2", text(title)), *parts) for title, parts in _sections(record)),
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


def _sections(record: Record) -> Iterator[tuple[str, tuple[str, ...]]]:
    if record.growth is not None:
        requests = counted(len(record.growth.raw), "request")
        words = f"{record.growth.name}, {requests}: the session that masking changes most."
        yield "How requests grow", (element("p", text(words)), element("figure", growth_picture(record.growth)))
    if sum(row.requests > 0 for row in record.sessions) > 1:
        yield "Each session", (element("figure", sessions_table(session_rows(record))),)
    if record.asked.notes:
        yield "Notes", (element("ul", *(element("li", text(note)) for note in record.asked.notes), class_="notes"),)


# Pictures


def session_rows(record: Record) -> list[SessionCost]:
    """A row for each session with requests, those that matter first; of many, the others are one row."""
    rows = sorted((row for row in record.sessions if row.requests), key=lambda row: row.rank)
    others = rows[_MOST_SESSIONS:]
    if not others:
        return rows
    paid, masked = sum(row.paid or 0.0 for row in others), sum(row.masked or 0.0 for row in others)
    together = others[0]._replace(name=f"{len(others):,} others", days="", quoted=None, paid=paid, masked=masked)
    return [*rows[:_MOST_SESSIONS], together._replace(of_raw=masked / paid if paid else 1.0)]


def growth_picture(growth: Growth) -> str:
    """The tokens of each request of a session, raw, masked and with summaries, and where the boundary moved."""
    drawn_lines = [("line-raw", "as it was sent", growth.raw), ("line-sent", "masked when it pays", growth.masked)]
    if growth.summarized:
        drawn_lines.append(("line-summarized", "with summaries of old turns too", growth.summarized))
    rows = ticks(max(max(tokens) for _, _, tokens in drawn_lines), 4)
    count, last = len(growth.raw), max(1, len(growth.raw) - 1)

    def height(tokens: int) -> float:
        return _HEIGHT * (1 - tokens / rows[-1])

    def line(class_: str, tokens: Sequence[int]) -> str:
        places = [*thinned(tokens), (1, tokens[-1])] if count == 1 else thinned(tokens)  # a point would not be drawn
        points = " ".join(f"{1000 * place / last:.0f},{10 * height(value):.0f}" for place, value in places)
        return element("polyline", class_=class_, points=points)

    triangle = element("path", class_="move", d=f"M0 {_HEIGHT + 4}l4 9h-9z")
    named = sorted({1, count, *(turn for turn in ticks(count, 4) if count / 10 < turn < 0.9 * count)})
    said = "; ".join(f"{name}: {tokens[-1]:,} tokens in the last request" for _, name, tokens in drawn_lines)
    drawn = [
        element("title", "Tokens of each request", id="growth-title"),
        element("desc", f"{said}; the boundary moved {counted(len(growth.moves), 'time')}.", id="growth-description"),
        *(
            element("line", class_="grid", x1=0, x2="100%", y1=f"{height(row):.4g}", y2=f"{height(row):.4g}")
            for row in rows
        ),
        *(label(compact(row), -8, height(row) + 4, "left") for row in rows),
        # 1,000 units wide and ten times as many high as it has pixels, as wide as the picture.
        element(
            "svg",
            *(line(class_, tokens) for class_, _, tokens in drawn_lines),
            viewBox=f"0 0 1000 {10 * _HEIGHT}",
            preserveAspectRatio="none",
            width="100%",
            height=_HEIGHT,
            overflow="visible",
        ),
        *(at(f"{100 * place / last:.4g}%", triangle) for place in growth.moves),
        *(at(f"{100 * (turn - 1) / last:.4g}%", label(f"{turn:,}", 0, _HEIGHT + 28, "middle")) for turn in named),
        label("tokens", -48, -14),
        at("100%", label("request; a triangle is a move of the boundary", 0, _HEIGHT + 46, "left")),
    ]
    names = {"aria_labelledby": "growth-title", "aria_describedby": "growth-description"}
    picture = element(
        "svg", *drawn, class_="chart plot", role="img", **names, width="100%", height=_HEIGHT, overflow="visible"
    )
    return legend(*((class_, name) for class_, name, _ in drawn_lines)) + picture


def sessions_table(rows: Sequence[SessionCost]) -> str:
    """A row for each session: what it cost, what masking saves, and how often it would have been missed."""
    widest = max(max(row.paid or 0.0, row.masked or 0.0) for row in rows) or 1
    body = []
    for row in rows:
        amount, masked = row.paid or 0.0, row.masked or 0.0
        bars = [bar(amount / widest, "raw"), bar(min(amount, masked) / widest, "sent")]
        if masked > amount:
            more = bar((masked - amount) / widest, "more")
            bars.append(element("svg", more, x=f"{100 * amount / widest:.2f}%", overflow="visible"))
        drawn = element("svg", *bars, class_="bars", width="100%", height=8, aria_hidden="true")
        name = f"{row.name} ({row.days})" if row.days and row.days not in row.name else row.name
        body.append((text(name) + drawn, money(row.paid), gain(row.of_raw), tenths(row.quoted)))
    table = rows_table(("session", "paid", "masked", "quoted"), body)
    return legend(("bar sent", "masked when it pays"), ("bar raw", "saved")) + table


def rows_table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = (element("tr", element("th", row[0], scope="row"), *(element("td", one) for one in row[1:])) for row in rows)
    head = element("tr", *(element("th", one, scope="col") for one in names))
    return element("table", element("thead", head), element("tbody", *body), class_="sessions")


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
