"""The five pictures of a replay: choices, windows, growth, the last request, sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from recede.cli.chart import at, bar, element, label, legend, level, picture, stretched, thinned, ticks
from recede.cli.last_request import LastRequest, Part
from recede.cli.notices import counted
from recede.cli.played import EACH_TIME, MASKED, SUMMARIZED, Session
from recede.cli.quoted import PICTURED
from recede.cli.screen import Asked, Choice, paid, would_pay
from recede.cli.words import compact, gain, middle, money, percent, tenths
from recede.costs import WindowChoice, window_curve

_HEIGHT = 240
_ROW = 44  # pixels of a name and the bar below it
_NAME = 38  # characters of a name on a phone
_PHONE = 260  # pixels of a plot there
_MOST_TOOLS = 10
_MOST_SESSIONS = 40
_NAMES = {
    "raw": "as it was sent",
    MASKED: "masked when it pays",
    SUMMARIZED: "with summaries of old turns too",
    EACH_TIME: "masked at every request",
}


class SessionRow(NamedTuple):
    """A session, or several together, as they are drawn.

    Attributes:
        name: of the session.
        paid: what it cost, in dollars.
        masked: what it would have cost, masked when it pays.
        quoted: the share of its requests that quote what was masked; None if that is not known.
    """

    name: str
    paid: float
    masked: float
    quoted: float | None


def by_saving(sessions: Sequence[Session], asked: Asked) -> list[Session]:
    """The sessions that matter first: those that save or lose most, then those that cost most."""

    def worth(session: Session) -> tuple[float, float]:
        amount = paid(session, is_flat=asked.is_flat)
        return -abs(amount - would_pay(session, MASKED, is_flat=asked.is_flat)), -amount

    return sorted((session for session in sessions if session.requests), key=worth)


def choices_picture(choices: Sequence[Choice]) -> str:
    """A bar for each choice: what it would have cost."""
    raw = choices[0].dollars
    rows = []
    for one in choices:
        words = "" if one.policy == "raw" else f", {gain(one.dollars / raw if raw else 1.0)}"
        class_ = "more" if one.dollars > raw else "raw" if one.policy == "raw" else "sent"
        rows.append((_NAMES[one.policy], one.dollars, f"{money(one.dollars)}{words}", class_))
    widest = max(amount for _, amount, _, _ in rows) or 1
    drawn = [
        label(name, 0, _ROW * place + 14, "name")
        + bar(_ROW * place + 20, amount / widest, class_)
        + at(f"{100 * amount / widest:.2f}%", label(words, 7, _ROW * place + 32))
        for place, (name, amount, words, class_) in enumerate(rows)
    ]
    said = "; ".join(f"{name}: {words}" for name, _, words, _ in rows)
    return picture("choices", "Cost by choice", f"{said}.", _ROW * len(rows), "bars", *drawn)


def windows_picture(sessions: Sequence[Session]) -> str:
    """Cost against quotations by window, the chosen one marked; empty where no texts were read."""
    curve = window_curve([session.under(("raw", *PICTURED)).replay for session in sessions]).choices
    found = [(one, one.quoted) for one in curve if one.quoted is not None]
    if not found:
        return ""
    least, most = min(one.cost.of_raw for one, _ in found), max(1.0, *(one.cost.of_raw for one, _ in found))
    top = max(0.01, *(quoted for _, quoted in found))
    rows = ticks(1000 * top, 4)  # in tenths of a percent
    step = next((size for size in (0.05, 0.1, 0.2) if most - least <= 4 * size), 0.5)
    low, high = math.floor(min(least, 0.95) / step) * step, math.ceil(round(most / step, 6)) * step

    def across(choice: WindowChoice) -> float:
        return 1000 * (choice.cost.of_raw - low) / (high - low)

    def down(quoted: float) -> float:
        return _HEIGHT * (1 - 1000 * quoted / rows[-1])

    points = [(across(one), down(quoted)) for one, quoted in found]
    line = " ".join(f"{x:.0f},{10 * y:.0f}" for x, y in points)
    named: list[tuple[float, float, float]] = []  # where names are, on a phone: left, right, down
    marks = []
    for (one, _), (x, y) in sorted(zip(found, points, strict=True), key=lambda each: each[0][0].cost.policy != MASKED):
        is_chosen = one.cost.policy == MASKED
        words = f"{one.window}, the default" if is_chosen else str(one.window)
        place, wide = _PHONE * x / 1000, 10 + 8 * len(words)
        has_room = place + wide < _PHONE + 15  # to the right
        left, right = (place, place + wide) if has_room else (place - wide, place)
        class_, radius = ("chosen", 7) if is_chosen else ("point", 4)
        parts = [element("circle", class_=class_, cx=0, cy=f"{y:.4g}", r=radius)]
        if all(right < begin or left > end or abs(y - down) > 18 for begin, end, down in named):
            named.append((left, right, y))
            class_ = ("name" if is_chosen else "") + ("" if has_room else " left")
            parts.append(label(words, 10 if has_room else -10, y - 6, class_.strip()))
        marks.append(at(f"{x / 10:.4g}%", *parts))
    steps = [low + step * part for part in range(round((high - low) / step) + 1)]
    said = "; ".join(f"{one.window}: {percent(one.cost.of_raw)}, {tenths(quoted)} quoted" for one, quoted in found)
    return picture(
        "windows",
        "Cost against quotations, by window",
        f"{said}.",
        _HEIGHT,
        "plot",
        *(level(_HEIGHT * (1 - row / rows[-1]), f"{row / 10:g} %") for row in rows),
        *(
            at(f"{100 * place / (len(steps) - 1):.4g}%", label(percent(share), 0, _HEIGHT + 20, "middle"))
            for place, share in enumerate(steps)
        ),
        stretched(element("polyline", class_="line-sent", points=line), height=_HEIGHT),
        *reversed(marks),
        label("quoted", -48, -14),
        at("100%", label("of what it cost as it was sent", 0, _HEIGHT + 38, "left")),
    )


def growth_picture(session: Session) -> str:
    """The tokens of each request of a session, raw and sent, and where the boundary moved."""
    raw, sent = (
        next(one.turns for one in session.replay.policies if one.policy == policy) for policy in ("raw", MASKED)
    )
    rows = ticks(max(turn.view_tokens for turn in (*raw, *sent)), 4)
    count = len(raw)

    def line(tokens: list[int], class_: str) -> str:
        places = [*thinned(tokens), (1, tokens[-1])] if count == 1 else thinned(tokens)  # a point would not be drawn
        points = " ".join(
            f"{1000 * place / max(1, count - 1):.0f},{10 * _HEIGHT * (1 - value / rows[-1]):.0f}"
            for place, value in places
        )
        return element("polyline", class_=class_, points=points)

    before = [0, *(turn.masked_count for turn in sent)]
    moves = [place for place, turn in enumerate(sent) if turn.masked_count > before[place]]
    ends = [("as it was sent", raw[-1].view_tokens), ("masked", sent[-1].view_tokens)]
    triangles = [
        at(
            f"{100 * place / max(1, count - 1):.4g}%",
            element("path", class_="move", d=f"M0 {_HEIGHT + 4}l4 9h-9z"),
        )
        for place in moves
    ]
    named = sorted({1, count, *(turn for turn in ticks(count, 4) if count / 10 < turn < 0.9 * count)})
    said = "; ".join(f"{name}: {tokens:,} tokens in the last request" for name, tokens in ends)
    return legend(("line-raw", "as it was sent"), ("line-sent", "masked when it pays")) + picture(
        "growth",
        "Tokens of each request",
        f"{said}; the boundary moved {counted(len(moves), 'time')}.",
        _HEIGHT,
        "plot",
        *(level(_HEIGHT * (1 - row / rows[-1]), compact(row)) for row in rows),
        stretched(
            line([turn.view_tokens for turn in raw], "line-raw"),
            line([turn.view_tokens for turn in sent], "line-sent"),
            height=_HEIGHT,
        ),
        *triangles,
        *(
            at(f"{100 * (turn - 1) / max(1, count - 1):.4g}%", label(f"{turn:,}", 0, _HEIGHT + 28, "middle"))
            for turn in named
        ),
        label("tokens", -48, -14),
        at("100%", label("request; a triangle is a move of the boundary", 0, _HEIGHT + 46, "left")),
    )


def request_picture(last: LastRequest) -> str:
    """The last request of a session by tool: what it had, and what of this is left when masked."""
    parts = list(last.parts[:_MOST_TOOLS])
    others = last.parts[_MOST_TOOLS:]
    if others:
        sums = (sum(part.before for part in others), sum(part.after for part in others))
        parts.append(Part(f"{len(others)} others", *sums))
    widest = max((part.before for part in parts), default=0) or 1
    drawn, said = [], []
    for place, (name, before, after) in enumerate(parts):
        y = _ROW * place
        words = compact(before) if before - after < 0.5 else f"{compact(before)} to {compact(after)}"
        drawn += [label(middle(name or "(unknown)", _NAME), 0, y + 14, "name"), bar(y + 20, before / widest, "raw")]
        drawn += [bar(y + 20, after / widest, "sent")] if after >= 0.5 else []
        drawn.append(at(f"{100 * before / widest:.2f}%", label(words, 7, y + 32)))
        said.append(f"{name}: {words} tokens")
    return legend(("bar sent", "sent when masked"), ("bar raw", "masked away")) + picture(
        "request",
        "The last request before and after, by tool",
        f"{'; '.join(said)}.",
        _ROW * len(parts),
        "bars",
        *drawn,
    )


def session_rows(sessions: Sequence[Session], asked: Asked) -> list[SessionRow]:
    """A row for each session, those that matter first; of many, the others are one row."""
    rows = [
        SessionRow(
            session.name,
            paid(session, is_flat=asked.is_flat),
            would_pay(session, MASKED, is_flat=asked.is_flat),
            None if session.replay.misses is None else session.replay.misses.share_under(MASKED),
        )
        for session in by_saving(sessions, asked)
    ]
    if len(rows) <= _MOST_SESSIONS:
        return rows
    others = rows[_MOST_SESSIONS:]
    sums = (sum(row.paid for row in others), sum(row.masked for row in others))
    return [*rows[:_MOST_SESSIONS], SessionRow(f"{len(others):,} others", *sums, None)]


def sessions_picture(rows: Sequence[SessionRow]) -> str:
    """A row for each session: what it cost, what masking saves, and how often it would have been missed."""
    widest = max(max(row.paid, row.masked) for row in rows) or 1
    drawn, said = [], []
    for place, (name, amount, masked, quoted) in enumerate(rows):
        y = _ROW * place
        share = masked / amount if amount else 1.0
        words = f"{money(amount)}, {gain(share)}" + ("" if quoted is None else f", {tenths(quoted)} quoted")
        drawn += [label(middle(name, _NAME), 0, y + 14, "name"), bar(y + 20, amount / widest, "raw")]
        drawn.append(bar(y + 20, min(amount, masked) / widest, "sent"))
        if masked > amount:
            more = bar(0, (masked - amount) / widest, "more")
            drawn.append(element("svg", more, x=f"{100 * amount / widest:.2f}%", y=y + 20, overflow="visible"))
        drawn.append(at(f"{100 * max(amount, masked) / widest:.2f}%", label(words, 7, y + 32)))
        said.append(f"{name}: {words}")
    title = "Cost, saving and quotations of each session"
    drawn_rows = picture("sessions", title, f"{'; '.join(said)}.", _ROW * len(rows), "bars", *drawn)
    return legend(("bar sent", "masked when it pays"), ("bar raw", "saved")) + drawn_rows
