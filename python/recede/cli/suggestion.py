"""The results of `recede replay --suggest`: how the cost depends on the window, the chunk and the summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from recede.cli.chart import BAR_ROW, bar_row, picture
from recede.cli.tables import table
from recede.cli.verdict import money, percent, requests_of
from recede.costs import Choice, Suggestion

# As shares of the least: how much more a value may cost to be near it, and the most expensive one of a flat choice.
_NEAR = 0.1
_FLAT = 0.2


class Curve(NamedTuple):
    """How the cost depends on one number, the others being at their best.

    Attributes:
        name: of the number.
        meaning: what it counts.
        choices: its values.
    """

    name: str
    meaning: str
    choices: tuple[Choice, ...]

    @property
    def near(self) -> list[Choice]:
        """The values that cost hardly more than the least."""
        return [choice for choice in self.choices if choice.over_least <= _NEAR]


def curves(suggestion: Suggestion) -> list[Curve]:
    """The three curves of a suggestion."""
    return [
        Curve("window", "turns whose observations stay raw", suggestion.windows),
        Curve("chunk", "observations by which the boundary moves at once", suggestion.chunks),
        Curve("summaries", "turns from one summary to the next", suggestion.summaries),
    ]


def sentences(suggestion: Suggestion) -> list[str]:
    """How much each choice matters; the verdict says what to take."""
    raw, best = suggestion.costs[0], suggestion.best
    if not raw.usage.requests or best.cost >= raw.cost:
        return []
    lines = []
    for curve in curves(suggestion):
        if len(curve.choices) < 2:
            continue
        most = max(choice.over_least for choice in curve.choices)
        near = [str(choice.value) for choice in curve.near]
        kind = "flat" if most <= _FLAT else "sharp"
        line = f"{curve.name}: a {kind} choice, none costs more than {percent(most)} over the least"
        if len(near) < len(curve.choices):
            line += f"; {_listed(near)} at most {percent(_NEAR)} more"
        if curve.name == "window" and len(near) > 1:
            line += f"; of these {near[-1]} forgets least"
        lines.append(line)
    if best.usage.summary_calls:
        lines.append("that agents with summaries take more turns, 13 to 18 % in the research, is not included")
    return lines


def _listed(values: Sequence[str]) -> str:
    if len(values) == 1:
        return f"only {values[0]} costs"
    return f"{', '.join(values[:-1])} and {values[-1]} cost"


def rows(curve: Curve) -> tuple[list[str], list[list[str]]]:
    """The headings and a row for each value."""
    headings = [curve.name, "cost", "of raw", "over least", "no cache, of raw", "at its best with"]
    return headings, [
        [
            str(choice.value),
            money(choice.cost.cost),
            percent(choice.cost.of_raw),
            f"+{percent(choice.over_least)}",
            percent(choice.cost.of_raw_uncached),
            choice.cost.policy,
        ]
        for choice in curve.choices
    ]


def tables_of(suggestion: Suggestion, sessions: int) -> str:
    """A table for each curve."""
    requests = suggestion.costs[0].usage.requests
    head = requests_of(requests, sessions)
    head += f", {len(suggestion.costs) - 1:,} policies beside raw\n"
    return "\n".join([head, *(table(*rows(curve)) for curve in curves(suggestion))])


def suggestion_as_json(suggestion: Suggestion) -> dict[str, Any]:
    """The figures for programs."""

    def choices(found: Sequence[Choice]) -> list[dict[str, Any]]:
        return [
            {
                "value": choice.value,
                "policy": choice.cost.policy,
                "cost": choice.cost.cost,
                "of_raw": choice.cost.of_raw,
                "of_raw_uncached": choice.cost.of_raw_uncached,
                "over_least": choice.over_least,
            }
            for choice in found
        ]

    return {
        "policy": suggestion.best.policy,
        "window": suggestion.window,
        "chunk": suggestion.chunk,
        "summarize_at": suggestion.summarize_at,
        "cost": suggestion.best.cost,
        "of_raw": suggestion.best.of_raw,
        **{curve.name + "_curve": choices(curve.choices) for curve in curves(suggestion)},
    }


def curve_chart(key: str, curve: Curve, widest: float) -> str:
    """A bar for each value, as a share of the cost of the raw history; those near the least are highlighted."""
    near = curve.near
    widest *= 1.3  # leaves room for the figures, which are longer here
    drawn = []
    for place, choice in enumerate(curve.choices):
        classes = ("name best", "cached") if choice in near else ("name", "rest")
        words = f"{money(choice.cost.cost)}, {percent(choice.cost.of_raw)}"
        if choice.over_least > 0:
            words += f", +{percent(choice.over_least)}"
        share = choice.cost.of_raw / widest
        drawn.append(bar_row(place, str(choice.value), classes[0], share, classes[1], words))
    description = "; ".join(f"{choice.value}: {percent(choice.cost.of_raw)} of raw" for choice in curve.choices)
    title = f"Cost by {curve.name}"
    return picture(key, title, f"{description}.", BAR_ROW * len(curve.choices), "bars", *drawn)
