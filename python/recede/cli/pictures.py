"""The pictures of a replay: how the requests of a session grow, and what each session costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recede.cli.chart import at, bar, element, label, legend, text, thinned, ticks
from recede.cli.notices import counted
from recede.cli.played import Session
from recede.cli.screen import Asked
from recede.cli.words import compact, gain, money, tenths
from recede.costs import ReplayedTurn

_HEIGHT = 240
_MOST_SESSIONS = 40


class SessionRow(NamedTuple):
    """A session, or several together: what it cost, and would have cost masked, in dollars; the share that quotes."""

    name: str
    paid: float
    masked: float
    quoted: float | None


def by_saving(sessions: Sequence[Session], asked: Asked) -> list[Session]:
    """The sessions that matter first: those that save or lose most, then those that cost most."""

    def worth(session: Session) -> tuple[float, float]:
        return -abs(session.paid - session.would_pay(asked.masked)), -session.paid

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
        )
        for session in by_saving(sessions, asked)
    ]
    if len(rows) <= _MOST_SESSIONS:
        return rows
    others = rows[_MOST_SESSIONS:]
    sums = (sum(row.paid for row in others), sum(row.masked for row in others))
    return [*rows[:_MOST_SESSIONS], SessionRow(f"{len(others):,} others", *sums, None)]


def sessions_table(rows: Sequence[SessionRow]) -> str:
    """A row for each session: what it cost, what masking saves, and how often it would have been missed."""
    widest = max(max(row.paid, row.masked) for row in rows) or 1
    body = []
    for name, amount, masked, quoted in rows:
        bars = [bar(amount / widest, "raw"), bar(min(amount, masked) / widest, "sent")]
        if masked > amount:
            more = bar((masked - amount) / widest, "more")
            bars.append(element("svg", more, x=f"{100 * amount / widest:.2f}%", overflow="visible"))
        drawn = element("svg", *bars, class_="bars", width="100%", height=8, aria_hidden="true")
        words = money(amount), gain(masked / amount if amount else 1.0), tenths(quoted)
        body.append(
            element("tr", element("th", text(name), drawn, scope="row"), *(element("td", one) for one in words))
        )
    head = element("tr", *(element("th", one, scope="col") for one in ("session", "paid", "masked", "quoted")))
    table = element("table", element("thead", head), element("tbody", *body), class_="sessions")
    return legend(("bar sent", "masked when it pays"), ("bar raw", "saved")) + table
