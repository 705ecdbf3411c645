"""Parts of the page that are no pictures: tables, legends, counted words."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from recede.cli.chart import breakable, element, printable
from recede.cli.tables import cost_table, share
from recede.cli.verdict import Session
from recede.costs import PolicyCost, cheapest_policy

__all__ = ["costs_table", "count", "figure_of", "legend", "observations", "swatch", "table", "text"]

_NO_MARKS: Mapping[str, str] = {}


def table(
    key: str, caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]], marks: Mapping[str, str] = _NO_MARKS
) -> str:
    """A table with a name and figures in each row; some rows have a CSS class.

    A wide table scrolls by itself, also with the keyboard.
    """
    head = "".join(element("th", text(heading), scope="col") for heading in headings)
    lines = []
    for name, *figures in rows:
        cells = element("th", breakable(name), scope="row") + "".join(element("td", text(figure)) for figure in figures)
        lines.append(element("tr", cells, **({"class_": marks[name]} if name in marks else {})))
    drawn = element(
        "table",
        element("caption", text(caption), id=key),
        element("thead", element("tr", head)),
        element("tbody", "\n".join(lines) or " "),
    )
    return element("div", drawn, class_="scroll", role="region", aria_labelledby=key, tabindex=0)


def costs_table(key: str, caption: str, costs: Sequence[PolicyCost], sessions: int) -> str:
    """What each policy costs; the cheapest is bold, an optimum in italics."""
    headings, rows = cost_table(costs, "cost without cache")
    if sessions > 1:
        headings.append("sessions over raw")
        rows = [[*row, f"{cost.loss_count:,}"] for row, cost in zip(rows, costs, strict=True)]
    marks = {cost.policy: "reference" for cost in costs if cost.is_optimum} | {cheapest_policy(costs).policy: "best"}
    return table(key, caption, headings, rows, marks)


def figure_of(key: str, title: str, words: str, *parts: str, level: str = "h3") -> str:
    """A picture with its heading and what it shows; `key` is for links."""
    return element("div", element(level, text(title)), element("p", words), element("figure", *parts), id=key)


def legend(keys: Iterable[tuple[str, str]]) -> str:
    """A list of pieces of markup, each with its words."""
    return element("ul", *(element("li", drawn, text(words)) for drawn, words in keys), class_="legend")


def swatch(class_: str) -> str:
    """A piece of a bar for a legend."""
    box = element("rect", class_=class_, x=1, y=2, width=26, height=12)
    return element("svg", box, class_="key", width=28, height=16, aria_hidden="true")


def observations(sessions: Sequence[Session]) -> str:
    """How much of the characters masking can take away."""
    chars = sum(session.chars for session in sessions)
    results = sum(tool.chars for session in sessions for tool in session.tools.values())
    return f"Of {count(chars, 'character')} tools gave {share(results, chars)}: this is what masking can take away."


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def text(words: str) -> str:
    """Words as markup."""
    return html.escape(printable(words))
