"""Parts of the page that are no pictures: tables, legends, counted words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from recede.cli.chart import breakable, element, text
from recede.cli.notices import counted
from recede.cli.tables import cost_columns, of_columns, share
from recede.cli.verdict import Session
from recede.costs import PolicyCost, cheapest_policy

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
    columns = cost_columns(costs, "cost without cache")
    if sessions > 1:
        columns.append(("sessions over raw", [f"{cost.loss_count:,}" for cost in costs]))
    marks = {cost.policy: "reference" for cost in costs if cost.is_optimum} | {cheapest_policy(costs).policy: "best"}
    return table(key, caption, *of_columns(columns), marks)


def legend(keys: Iterable[tuple[str, str]]) -> str:
    """A list of pieces of markup, each with its words."""
    return element("ul", *(element("li", drawn, text(words)) for drawn, words in keys), class_="legend")


def swatch(class_: str) -> str:
    """A piece of a bar for a legend."""
    return key_of(element("rect", class_=class_, x=1, y=2, width=26, height=12))


def key_of(drawn: str) -> str:
    """What a legend explains, as small as a line of it."""
    return element("svg", drawn, class_="key", width=28, height=16, aria_hidden="true")


def observations(sessions: Sequence[Session]) -> str:
    """How much of the characters masking can take away."""
    chars = sum(session.chars for session in sessions)
    results = sum(tool.chars for session in sessions for tool in session.tools.values())
    return f"Of {counted(chars, 'character')} tools gave {share(results, chars)}: this is what masking can take away."
