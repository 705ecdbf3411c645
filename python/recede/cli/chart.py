"""SVG charts of a replay, and the choice of what they show.

A chart has no horizontal scale: positions are percentages and labels have the size of the surrounding text, so the
same chart is readable on a phone and on a wide screen. Labels to the left and right are outside of its box, where the
style sheet of the page leaves room.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from recede.cli.verdict import Session, money, percent
from recede.costs import PolicyCost, Replay, cheapest_policy

__all__ = [
    "Source",
    "at",
    "bar",
    "breakable",
    "compact",
    "cost_chart",
    "element",
    "emphasized",
    "figure",
    "growth_chart",
    "kind_of",
    "label",
    "picture",
    "printable",
    "sample",
    "short_names",
    "shortened",
    "sources",
    "sources_chart",
    "thinned",
    "ticks",
    "turn_ticks",
]

_HEIGHT = 280
_MOST_TOOLS = 10
_MOST_STRONG = 5
_MARKERS = (
    "",
    "M-4-4H4V4H-4Z",
    "M0-5.5 5 4H-5Z",
    "M0-5.5 5.5 0 0 5.5-5.5 0Z",
    "M-4.5 0A4.5 4.5 0 1 1 4.5 0 4.5 4.5 0 1 1-4.5 0Z",
)


class Source(NamedTuple):
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


def sources(sessions: Iterable[Session]) -> list[Source]:
    """The largest tools, the other tools as one, and the rest of the histories."""
    tools: Counter[str] = Counter()
    chars = 0
    for session in sessions:
        chars += session.chars
        for name, report in session.tools.items():
            tools[name] += report.chars
    largest = tools.most_common(_MOST_TOOLS)
    found = [Source(name or "(unknown)", count, True) for name, count in largest]
    left = len(tools) - len(largest)
    if left:
        found.append(Source(f"other tools ({left:,})", tools.total() - sum(count for _, count in largest), False))
    return [*found, Source("text, reasoning and calls", max(0, chars - tools.total()), False)]


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


def printable(text: str) -> str:
    """The text with an escape for each character that cannot be seen, or that no file in UTF-8 may hold."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def breakable(words: str) -> str:
    """Text as markup that may wrap within the name of a policy."""
    return html.escape(printable(words)).replace(",", ",<wbr>")


def shortened(text: str, columns: int = 40) -> str:
    """The text, truncated to a number of columns; East Asian wide characters take two."""
    text = printable(text)
    width = 0
    for place, character in enumerate(text):
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width > columns:
            return text[: place - 1] + "…"
    return text


def element(name: str, *children: str, **attributes: object) -> str:
    """An element, empty without children; the attributes are escaped, the children are markup already.

    An underscore at the end of an attribute's name is left out, another is a hyphen.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(printable(str(value)))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{pairs}>{''.join(children)}</{name}>" if children else f"<{name}{pairs}/>"


def label(text: str, x: object, y: float, class_: str = "") -> str:
    """Words in a picture."""
    classes = {"class_": class_} if class_ else {}
    return element("text", html.escape(text), x=x, y=f"{y:.4g}", **classes)


def at(x: str, *children: str) -> str:
    """What is drawn in pixels from a place that is a percent."""
    return element("svg", *children, x=x, overflow="visible")


def picture(key: str, title: str, description: str, height: int, class_: str, *children: str, style: str = "") -> str:
    """A chart with a text alternative."""
    return element(
        "svg",
        element("title", html.escape(printable(title)), id=f"{key}-title"),
        element("desc", html.escape(printable(description)), id=f"{key}-description"),
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


# Lines


def growth_chart(key: str, replay: Replay, strong: Sequence[int]) -> str:
    """The tokens of each request under each policy: the strong ones with marks and names, the others thin."""
    policies = replay.policies
    series = [[turn.view_tokens for turn in replayed.turns] for replayed in policies]
    turns = len(series[0])
    rows = ticks(max(map(max, series)), 5)
    names = [shortened(name, 16) for name in short_names([policies[place].policy for place in strong])]

    def across(place: int, width: float) -> float:
        return width * place / (turns - 1) if turns > 1 else width / 2

    def down(tokens: float) -> float:
        return _HEIGHT * (1 - tokens / rows[-1])

    def line(place: int, class_: str) -> str:
        # In tenths of a pixel downwards, so that whole numbers do for the places.
        points = [f"{across(turn, 1000):.0f},{10 * down(tokens):.0f}" for turn, tokens in thinned(series[place])]
        if turns == 1:  # a line all the same, since a point would not be drawn
            points = [f"{x},{10 * down(series[place][0]):.0f}" for x in (0, 1000)]
        title = element("title", html.escape(printable(policies[place].policy)))
        return element("polyline", title, class_=class_, points=" ".join(points))

    def marks(rank: int, place: int) -> str:
        # Each line has its marks at other turns, so that they do not hide each other.
        fractions = [(part + rank / len(strong)) / 4 for part in range(4)] if turns > 1 else [0.0]
        found = sorted({round(fraction * (turns - 1)) for fraction in fractions})
        return "".join(
            at(
                f"{across(turn, 100):.2f}%",
                element("path", d=_MARKERS[rank], class_=f"mark-{rank}", transform=f"translate(0 {down(tokens):.1f})"),
            )
            for turn, tokens in ((turn, series[place][turn]) for turn in found)
            if _MARKERS[rank]
        )

    thin = [line(place, "thin") for place in range(len(policies)) if place not in strong]
    bold = [line(place, f"line-{rank}") for rank, place in reversed(list(enumerate(strong)))]
    description = "; ".join(
        f"{policies[place].policy} sends {max(series[place]):,} at most and {series[place][-1]:,} at the end"
        for place in strong
    )
    return picture(
        key,
        "Tokens of each request, turn by turn",
        f"{description}.",
        _HEIGHT,
        "growth",
        *(
            element("line", class_="grid", x1=0, x2="100%", y1=f"{down(row):.4g}", y2=f"{down(row):.4g}")
            + label(compact(row), -8, down(row) + 4, "left")
            for row in rows
        ),
        *(
            at(
                f"{across(turn - 1, 100):.4g}%",
                element("line", class_="tick", x1=0, x2=0, y1=_HEIGHT, y2=_HEIGHT + 5)
                + label(f"{turn:,}", 0, _HEIGHT + 19, "middle"),
            )
            for turn in turn_ticks(turns)
        ),
        element(
            "svg",
            *thin,
            *bold,
            viewBox=f"0 0 1000 {10 * _HEIGHT}",
            preserveAspectRatio="none",
            height=_HEIGHT,
            overflow="visible",
        ),
        *(marks(rank, place) for rank, place in reversed(list(enumerate(strong)))),
        at("100%", *_line_ends([down(series[place][-1]) for place in strong], names)),
        label("tokens", -44, -14),
        at("100%", label("turn", 30, _HEIGHT + 19)),
        # The room that the names beside the line ends need.
        style=f"--right: {max(64, 20 + 9 * max(map(len, names)))}px",
    )


def turn_ticks(turns: int) -> list[int]:
    """The first turn and round ones; none so near to another that their numbers would touch."""
    rounds = [turn for turn in ticks(turns, 4) if turns / 12 < turn <= turns]
    return [1, *(turn for turn in rounds if turn > 1)]


def _line_ends(heights: Sequence[float], names: Sequence[str]) -> list[str]:
    """The name of each line beside its end, moved apart where they would cover each other."""
    gap = 16
    placed: dict[int, float] = {}
    lowest = float(_HEIGHT)
    ranked = sorted(range(len(heights)), key=heights.__getitem__, reverse=True)
    for number, rank in enumerate(ranked):
        # Those above need room below the upper edge as well.
        highest = gap * (len(ranked) - 1 - number)
        placed[rank] = lowest = max(min(lowest, heights[rank]), min(lowest, highest))
        lowest -= gap
    return [
        element("path", class_="leader", d=f"M2 {heights[rank]:.1f} 12 {place:.1f}")
        + label(names[rank], 15, place + 4, f"end end-{rank}")
        for rank, place in sorted(placed.items())
    ]


def sample(rank: int | None) -> str:
    """A piece of a line for the legend; None for the thin ones."""
    drawn = element("line", class_="thin" if rank is None else f"line-{rank}", x1=1, x2=39, y1=8, y2=8)
    if rank is not None and _MARKERS[rank]:
        drawn += element("path", d=_MARKERS[rank], class_=f"mark-{rank}", transform="translate(20 8)")
    return element("svg", drawn, class_="sample", width=40, height=16, aria_hidden="true")


# Bars


def cost_chart(key: str, costs: Sequence[PolicyCost]) -> str:
    """Two bars for each policy, with a prompt cache and without, as shares of what the raw history costs."""
    row, thick, top = 62, 15, 30
    widest = max(1.0, *(max(cost.of_raw, cost.of_raw_uncached) for cost in costs))
    best = cheapest_policy(costs)
    height = top + row * len(costs)
    bars, marks, words = [], [], []
    for place, cost in enumerate(costs):
        y = top + row * place
        class_ = "name best" if cost is best else "name aside" if cost.is_optimum else "name"
        note = " — cheapest" if cost is best else " — a reference, no rule" if cost.is_optimum else ""
        name = shortened(cost.policy) + note
        words.append(label(name, 0, y + 13, class_))
        pairs = ((cost.of_raw, cost.cost, "cached"), (cost.of_raw_uncached, cost.cost_uncached, "uncached"))
        for offset, (of_raw, amount, kind) in zip((19, 37), pairs, strict=True):
            class_ = f"{kind} reference" if cost.is_optimum else f"{kind} costlier" if of_raw > 1 else kind
            bars.append(bar(of_raw / widest, y + offset, thick, class_))
            words.append(figure(of_raw / widest, y + offset, thick, f"{money(amount)}, {percent(of_raw)}"))
        # In pieces, so that it crosses no name.
        marks.append(element("line", class_="raw-mark", x1=0, x2=0, y1=y + 17 if place else 16, y2=y + 54))
    marks.append(label("raw = 100 %", 0, 10, "middle" if widest > 1.3 else "left"))
    mark = at(f"{100 / widest:.2f}%", *marks)
    description = "; ".join(
        f"{cost.policy}: {percent(cost.of_raw)} of raw with a cache, {percent(cost.of_raw_uncached)} without"
        for cost in costs
    )
    # Only this picture needs the pattern, so the page holds its name once.
    hatch = element("path", d="M-2 2 2-2M0 8 8 0M6 10 10 6", class_="hatch")
    pattern = element("pattern", hatch, id="hatch", width=8, height=8, patternUnits="userSpaceOnUse")
    drawn = (element("defs", pattern), *bars, mark, *words)
    return picture(key, "Cost of each policy", f"{description}.", height, "bars", *drawn)


def sources_chart(key: str, found: Sequence[Source]) -> str:
    """A bar for each source of characters, as a share of all."""
    row, thick = 42, 15
    whole = sum(source.chars for source in found) or 1
    widest = max(source.chars for source in found) or 1
    drawn = []
    for place, source in enumerate(found):
        y = row * place
        words = f"{source.chars:,}, {percent(source.chars / whole)}"
        drawn.append(label(shortened(source.name), 0, y + 13, "name tool" if source.is_tool else "name"))
        drawn.append(bar(source.chars / widest, y + 19, thick, "source" if source.is_tool else "rest"))
        drawn.append(figure(source.chars / widest, y + 19, thick, words))
    description = "; ".join(f"{shortened(source.name)}: {source.chars:,} characters" for source in found)
    return picture(key, "Where the characters come from", f"{description}.", row * len(found), "bars", *drawn)


def bar(share: float, y: int, thick: int, class_: str) -> str:
    """A bar over a share of the width."""
    return element("rect", class_=f"bar {class_}", x=0, y=y, width=f"{100 * share:.2f}%", height=thick)


def figure(share: float, y: int, thick: int, words: str) -> str:
    """The figure after the end of a bar."""
    # On a background about as wide as the text, so that no line runs through it.
    ground = element("rect", class_="ground", x=4, y=y, width=7 * len(words) + 6, height=thick)
    return at(f"{100 * share:.2f}%", ground, label(words, 7, y + thick - 3))
