"""Parts of SVG pictures.

A picture has no horizontal scale: positions are percentages and labels have the size of the surrounding text, so the
same picture is readable on a phone and on a wide screen.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from recede._printable import printable


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
    """Words as markup; characters of `keep` are not escaped."""
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
    """Words in a picture."""
    classes = {"class_": class_} if class_ else {}
    return element("text", text(words), x=x, y=f"{y:.4g}", **classes)


def level(y: float, words: str = "") -> str:
    """A line across a picture, with words to its left."""
    line = element("line", class_="grid", x1=0, x2="100%", y1=f"{y:.4g}", y2=f"{y:.4g}")
    return line + (label(words, -8, y + 4, "left") if words else "")


def at(x: str, *children: str) -> str:
    """Parts of a picture that begin at a percentage of its width."""
    return element("svg", *children, x=x, overflow="visible")


def stretched(*children: str, height: float) -> str:
    """A part of a picture, 1,000 units wide and ten times as many high as it has pixels, as wide as the picture."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 1000 {10 * height:.4g}",
        preserveAspectRatio="none",
        width="100%",
        height=f"{height:.4g}",
        overflow="visible",
    )


def bar(y: float, share: float, class_: str, thick: float = 8) -> str:
    """A bar over a share of the width."""
    return element("rect", class_=f"bar {class_}", x=0, y=f"{y:.4g}", width=f"{100 * share:.2f}%", height=thick)


def picture(key: str, title: str, description: str, height: float, class_: str, *children: str) -> str:
    """A picture with a text alternative."""
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
        height=f"{height:.4g}",
        overflow="visible",
    )


def swatch(class_: str) -> str:
    """A piece of a bar or of a line, for a legend."""
    drawn = element("rect", class_=class_, x=1, y=2, width=26, height=12)
    if class_.startswith("line"):
        drawn = element("line", class_=class_, x1=1, x2=27, y1=8, y2=8)
    return element("svg", drawn, class_="key", width=28, height=16, aria_hidden="true")


def legend(*keys: tuple[str, str]) -> str:
    """A list of classes, each as it is drawn, with its words."""
    return element("ul", *(element("li", swatch(class_), text(words)) for class_, words in keys), class_="legend")
