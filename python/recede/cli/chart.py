"""SVG charts of a replay, and the choice of what they show.

A chart has no horizontal scale: positions are percentages and labels have the size of the surrounding text, so the
same chart is readable on a phone and on a wide screen. Labels to the left and right are outside of its box, where the
style sheet of the page leaves room.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from recede._printable import printable
from recede.cli.verdict import Session
from recede.costs import PolicyCost

BAR_ROW, BAR_THICK = 42, 15
"""The pixels of a row with a bar, and of the bar."""

TEXT = "text, reasoning and calls"
"""What a history has besides the results of tools."""

_MOST_TOOLS = 10
_MOST_STRONG = 5


class CharSource(NamedTuple):
    """A source of characters in the histories.

    Attributes:
        name: the name of the tool, or a label for other sources.
        chars: the number of characters.
        is_tool: whether it is one tool.
    """

    name: str
    chars: int
    is_tool: bool


# What is shown


def emphasized(costs: Sequence[PolicyCost]) -> list[int]:
    """The indices of the highlighted policies: raw, the cheapest, then the best of each other kind; no optimum."""
    raw, *others = (place for place, cost in enumerate(costs) if not cost.is_optimum)
    ranked = sorted(others, key=lambda place: costs[place].cost)
    if len(ranked) < _MOST_STRONG:
        return [raw, *ranked]
    best: dict[str, int] = {}
    for place in ranked:
        best.setdefault(kind_of(costs[place].policy), place)
    return [raw, *best.values()][:_MOST_STRONG]


def short_names(policies: Sequence[str]) -> list[str]:
    """The kind of each policy, with its numbers where the kind alone is ambiguous."""
    kinds = Counter(map(kind_of, policies))
    return [kind_of(policy) if kinds[kind_of(policy)] == 1 else _numbered(policy) for policy in policies]


def kind_of(policy: str) -> str:
    """The name of a policy without its numbers."""
    return policy.partition(":")[0]


def _numbered(policy: str) -> str:
    kind, _, keys = policy.partition(":")
    return f"{kind} {'/'.join(key.partition('=')[2] for key in keys.split(','))}"


def sources(sessions: Iterable[Session]) -> list[CharSource]:
    """The largest tools, the other tools as one, and the rest of the histories."""
    tools: Counter[str] = Counter()
    chars = 0
    for session in sessions:
        chars += session.chars
        for name, report in session.tools.items():
            tools[name] += report.chars
    largest = tools.most_common(_MOST_TOOLS)
    found = [CharSource(name or "(unknown)", count, True) for name, count in largest]
    left = len(tools) - len(largest)
    if left:
        found.append(CharSource(f"other tools ({left:,})", tools.total() - sum(count for _, count in largest), False))
    return [*found, CharSource(TEXT, max(0, chars - tools.total()), False)]


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


def ticks(largest: int, wanted: int) -> list[int]:
    """Round numbers from 0 to the first that is not below the largest, about as many as are wanted."""
    rough = max(1.0, largest / wanted)
    power = 10 ** math.floor(math.log10(rough))
    step = int(power * next(factor for factor in (1, 2, 5, 10) if factor * power >= 0.8 * rough))
    return list(range(0, max(largest, 1) + step, step))


def compact(number: int) -> str:
    """A round number in few letters: 20k, 1.5M."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= unit:
            return f"{number / unit:g}{letter}"
    return str(number)


# Words


def text(words: str) -> str:
    """Words as markup."""
    return html.escape(printable(words))


def breakable(words: str) -> str:
    """Words as markup that may wrap within the name of a policy."""
    return text(words).replace(",", ",<wbr>")


def shortened(text: str, columns: int = 40) -> str:
    """The text, truncated to a number of columns; East Asian wide characters take two."""
    text = printable(text)
    width = 0
    for place, character in enumerate(text):
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width > columns:
            return text[: place - 1] + "…"
    return text


def wrapped(name: str, columns: int = 40) -> list[str]:
    """The name of a policy in lines that a phone has room for, broken at its commas."""
    lines = [""]
    for part in re.findall(r"[^,]*,|[^,]+$", shortened(name, 3 * columns)):
        if lines[-1] and len(lines[-1]) + len(part) > columns:
            lines.append("")
        lines[-1] += part
    return [shortened(line, columns) for line in lines]


def element(name: str, *children: str, **attributes: object) -> str:
    """An element, empty without children; the attributes are escaped, the children are markup already.

    An underscore at the end of an attribute's name is left out, another is a hyphen.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(printable(str(value)))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{pairs}>{''.join(children)}</{name}>" if children else f"<{name}{pairs}/>"


def hint(words: str) -> str:
    """Words that a browser shows on hover."""
    return element("title", text(words))


def label(words: str, x: object, y: float, class_: str = "") -> str:
    """Words in a picture."""
    classes = {"class_": class_} if class_ else {}
    return element("text", text(words), x=x, y=f"{y:.4g}", **classes)


def level(y: float, words: str = "", class_: str = "grid") -> str:
    """A line across a picture, with words to its left."""
    line = element("line", class_=class_, x1=0, x2="100%", y1=f"{y:.4g}", y2=f"{y:.4g}")
    return line + label(words, -8, y + 4, "left") if words else line


def stretched(wide: int, high: float, *children: str, **attributes: object) -> str:
    """What fills the picture, drawn on a ground of this size in places of its own."""
    return element("svg", *children, viewBox=f"0 0 {wide} {high:.0f}", preserveAspectRatio="none", **attributes)


def at(x: str, *children: str) -> str:
    """What is drawn in pixels from a place that is a percent."""
    return element("svg", *children, x=x, overflow="visible")


def picture(key: str, title: str, description: str, height: int, class_: str, *children: str, style: str = "") -> str:
    """A chart with a text alternative."""
    return element(
        "svg",
        element("title", text(title), id=f"{key}-title"),
        element("desc", text(description), id=f"{key}-description"),
        *children,
        class_=f"chart {class_}",
        role="img",
        aria_labelledby=f"{key}-title",
        aria_describedby=f"{key}-description",
        width="100%",
        height=height,
        overflow="visible",
        **({"style": style} if style else {}),
    )


def bar(share: float, y: int, thick: int, class_: str, words: str = "") -> str:
    """A bar over a share of the width, with words that a browser shows on hover."""
    hints = [hint(words)] if words else []
    return element("rect", *hints, class_=f"bar {class_}", x=0, y=y, width=f"{100 * share:.2f}%", height=thick)


def column(x: float, wide: float, y: float, height: float, class_: str, words: str) -> str:
    """A column, placed and as wide as percents say, with words that a browser shows on hover."""
    return element(
        "rect",
        hint(shortened(words, 200)),
        class_=f"bar {class_}",
        x=f"{x:.4g}%",
        y=f"{y:.4g}",
        width=f"{wide:.4g}%",
        height=f"{height:.4g}",
    )


def bar_row(place: int, name: str, name_class: str, share: float, bar_class: str, words: str) -> str:
    """A bar with its name above it and its figures after its end, `BAR_ROW` pixels below the one before."""
    y = BAR_ROW * place
    above = label(name, 0, y + 13, name_class)
    return above + bar(share, y + 19, BAR_THICK, bar_class) + figure(share, y + 19, BAR_THICK, words)


def figure(share: float, y: int, thick: int, words: str) -> str:
    """The figure after the end of a bar."""
    # On a background about as wide as the text, so that no line runs through it.
    ground = element("rect", class_="ground", x=4, y=y, width=7 * len(words) + 6, height=thick)
    return at(f"{100 * share:.2f}%", ground, label(words, 7, y + thick - 3))
