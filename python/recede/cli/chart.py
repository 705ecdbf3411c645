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
