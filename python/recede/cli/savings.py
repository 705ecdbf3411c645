"""What the cheapest policy saves in each session: sorted, and by the length of the session."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from recede.cli.chart import at, column, element, hint, label, level, picture, shortened
from recede.cli.notices import counted
from recede.cli.verdict import Session, money, percent

_HEIGHT = 200


class Saving(NamedTuple):
    """What a policy saves in a session.

    Attributes:
        name: of the session.
        requests: how many it has.
        share: of what the raw history costs; below 0 where the policy costs more.
        raw: what the raw history costs.
        cost: what the policy costs.
    """

    name: str
    requests: int
    share: float
    raw: float
    cost: float

    @property
    def words(self) -> str:
        """The figures, for a title."""
        gain = f"{percent(abs(self.share))} {'less' if self.share >= 0 else 'more'}"
        return (
            f"{self.name}: {counted(self.requests, 'request')}, {money(self.cost)} instead of {money(self.raw)}, {gain}"
        )


def of_sessions(sessions: Sequence[Session], policy: str) -> list[Saving]:
    """The sessions with requests, the one that saves the largest share first."""
    found = []
    for session in sessions:
        raw, *_ = costs = session.replay.costs
        cost = next(cost for cost in costs if cost.policy == policy)
        if raw.usage.requests:
            found.append(Saving(session.name, raw.usage.requests, 1 - cost.of_raw, raw.cost, cost.cost))
    return sorted(found, key=lambda saving: -saving.share)


def savings_chart(key: str, savings: Sequence[Saving]) -> str:
    """A column for each session, upwards where it saves and downwards where it costs more."""
    low, high = scale_of(savings)
    zero = _HEIGHT * high / (high - low)
    wide = 100 / len(savings)
    drawn = [
        column(
            wide * place + 0.1 * wide,
            0.8 * wide,
            zero - max(0.0, saving.share) * zero / high,
            max(1.0, abs(saving.share) * zero / high),
            "cached" if saving.share >= 0 else "cached costlier",
            saving.words,
        )
        for place, saving in enumerate(savings)
    ]
    description = (
        f"{sum(saving.share > 0 for saving in savings):,} of {len(savings):,} sessions cost less; "
        f"the most saves {percent(savings[0].share)}, the least {percent(savings[-1].share)}"
    )
    return picture(key, "Saved in each session", f"{description}.", _HEIGHT, "plot", *_grid(low, high), *drawn)


def scatter_chart(key: str, savings: Sequence[Saving]) -> str:
    """A point for each session: its requests to the right, what it saves upwards."""
    low, high = scale_of(savings)
    most = max(saving.requests for saving in savings)
    powers = max(1, math.ceil(math.log10(most)))

    def across(requests: int) -> float:
        return 100 * math.log10(requests) / powers

    marks = [
        at(
            f"{across(10**power):.4g}%",
            element("line", class_="grid", x1=0, x2=0, y1=0, y2=_HEIGHT),
            label(f"{10**power:,}", 0, _HEIGHT + 19, "left" if power == powers else "middle"),
        )
        for power in range(powers + 1)
    ]
    points = [
        element(
            "circle",
            hint(shortened(saving.words, 200)),
            class_="point" if saving.share >= 0 else "point costlier",
            cx=f"{across(saving.requests):.4g}%",
            cy=f"{_HEIGHT * (high - saving.share) / (high - low):.4g}",
            r=5,
        )
        for saving in savings
    ]
    description = f"{len(savings):,} sessions of {min(saving.requests for saving in savings):,} to {most:,} requests"
    return picture(
        key,
        "Saved by length of the session",
        f"{description}.",
        _HEIGHT,
        "plot",
        *_grid(low, high),
        *marks,
        *points,
        at("100%", label("requests", 0, _HEIGHT + 37, "left")),
    )


def scale_of(savings: Sequence[Saving]) -> tuple[float, float]:
    """The least and the most of the axis: tenths or fifths of the cost of raw, or more, and 0 among them."""
    most = max(0.0, *(saving.share for saving in savings))
    least = min(0.0, *(saving.share for saving in savings))
    step = _step(most - least)
    return step * math.floor(least / step), step * max(1, math.ceil(most / step))


def _step(extent: float) -> float:
    return next((step for step in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0) if extent <= 6 * step), extent / 4)


def _grid(low: float, high: float) -> list[str]:
    step = _step(high - low)
    return [
        level(_HEIGHT * (high - number * step) / (high - low), percent(number * step), "grid" if number else "axis")
        for number in range(round(low / step), round(high / step) + 1)
    ]
