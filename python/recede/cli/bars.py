"""Bars: what each policy costs, where the characters come from, and how large results are."""

from __future__ import annotations

from collections.abc import Sequence

from recede.cli.anatomy import Anatomy
from recede.cli.chart import (
    BAR_ROW,
    BAR_THICK,
    CharSource,
    at,
    bar,
    bar_row,
    column,
    element,
    figure,
    label,
    picture,
    shortened,
    wrapped,
)
from recede.cli.verdict import money, percent
from recede.costs import PolicyCost, cheapest_policy

_SIZES_HEIGHT = 180


def cost_chart(key: str, costs: Sequence[PolicyCost]) -> str:
    """A bar for each policy under a prompt cache, as a share of what the raw history costs."""
    bars = [
        (cost.of_raw, f"{money(cost.cost)}, {percent(cost.of_raw)}", "costlier" if cost.of_raw > 1 else "")
        for cost in costs
    ]
    return _policies_chart(
        key, "Cost of each policy with a prompt cache", "cached", costs, bars, cheapest_policy(costs)
    )


def uncached_chart(key: str, costs: Sequence[PolicyCost]) -> str:
    """The same without a cache, on a scale of its own: there, all of the raw history costs more."""
    bars = [
        (cost.of_raw_uncached, f"{money(cost.cost_uncached)}, {percent(cost.of_raw_uncached)}", "") for cost in costs
    ]
    best = min((cost for cost in costs if not cost.is_optimum), key=lambda cost: cost.cost_uncached)
    return _policies_chart(key, "Cost of each policy without a cache", "uncached", costs, bars, best)


def _policies_chart(
    key: str,
    title: str,
    kind: str,
    costs: Sequence[PolicyCost],
    bars: Sequence[tuple[float, str, str]],
    best: PolicyCost,
) -> str:
    y = 34
    widest = max(1.0, *(share for share, _, _ in bars))
    drawn, marks, words = [], [], []
    for place, (cost, (share, figures, class_)) in enumerate(zip(costs, bars, strict=True)):
        note = " — cheapest" if cost is best else " — a reference, no rule" if cost.is_optimum else ""
        name = "name best" if cost is best else "name aside" if cost.is_optimum else "name"
        for line in wrapped(cost.policy + note):
            words.append(label(line, 0, y + 13, name))
            y += 17
        classes = f"{kind} {'reference' if cost.is_optimum else class_}".strip()
        drawn.append(bar(share / widest, y + 2, BAR_THICK, classes, f"{cost.policy}: {figures} of raw"))
        words.append(figure(share / widest, y + 2, BAR_THICK, figures))
        # In pieces, so that it crosses no name.
        marks.append(element("line", class_="raw-mark", x1=0, x2=0, y1=y + 1 if place else 20, y2=y + 18))
        y += 27
    marks.append(label("raw = 100 %", 0, 14, "middle" if widest > 1.3 else "left"))
    mark = at(f"{100 / widest:.2f}%", *marks)
    description = "; ".join(
        f"{cost.policy}: {figures} of raw" for cost, (_, figures, _) in zip(costs, bars, strict=True)
    )
    return picture(key, title, f"{description}.", y, "bars", *_hatch(kind), *drawn, mark, *words)


def _hatch(kind: str) -> list[str]:
    """The pattern of bars without a cache, which only their picture needs."""
    if kind != "uncached":
        return []
    lines = element("path", d="M-2 2 2-2M0 8 8 0M6 10 10 6", class_="hatch")
    pattern = element("pattern", lines, id="hatch", width=8, height=8, patternUnits="userSpaceOnUse")
    return [element("defs", pattern)]


def sources_chart(key: str, found: Sequence[CharSource]) -> str:
    """A bar for each source of characters, as a share of all."""
    whole = sum(source.chars for source in found) or 1
    widest = max(source.chars for source in found) or 1
    drawn = []
    for place, source in enumerate(found):
        classes = ("name tool", "source") if source.is_tool else ("name", "rest")
        words = f"{source.chars:,}, {percent(source.chars / whole)}"
        drawn.append(bar_row(place, shortened(source.name), classes[0], source.chars / widest, classes[1], words))
    description = "; ".join(f"{shortened(source.name)}: {source.chars:,} characters" for source in found)
    return picture(key, "Where the characters come from", f"{description}.", BAR_ROW * len(found), "bars", *drawn)


def sizes_chart(key: str, found: Anatomy) -> str:
    """How many results there are of each size, and how many of these are masked at the end."""
    bins = found.bins()
    most = max(len(one.sizes) for one in bins)
    chars = sum(found.sizes) or 1
    wide = 100 / len(bins)
    drawn = []
    for place, one in enumerate(bins):
        x, masked = wide * place, sum(one.are_masked)
        share = percent(sum(one.sizes) / chars)
        high, low = (_SIZES_HEIGHT * count / most for count in (len(one.sizes), masked))
        words = (
            f"{one.name} characters: {len(one.sizes):,} results, {masked:,} of them masked; {share} of all characters"
        )
        drawn.append(column(x + 0.1 * wide, 0.8 * wide, _SIZES_HEIGHT - high, high, "rest", words))
        if masked:
            drawn.append(column(x + 0.1 * wide, 0.8 * wide, _SIZES_HEIGHT - low, low, "written", words))
        middle = f"{x + wide / 2:.4g}%"
        drawn.append(at(middle, label(f"{len(one.sizes):,}", 0, _SIZES_HEIGHT - high - 6, "middle")))
        drawn.append(at(middle, label(one.name, 0, _SIZES_HEIGHT + 17, "middle")))
        drawn.append(at(middle, label(share, 0, _SIZES_HEIGHT + 35, "middle")))
    drawn.append(element("line", class_="tick", x1=0, x2="100%", y1=_SIZES_HEIGHT, y2=_SIZES_HEIGHT))
    description = "; ".join(f"{one.name}: {len(one.sizes):,}, {sum(one.are_masked):,} masked" for one in bins)
    return picture(key, "Results by size", f"{description}.", _SIZES_HEIGHT, "columns", *drawn)
