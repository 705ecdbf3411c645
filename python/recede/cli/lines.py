"""Lines over the requests of a session: what each request sends, and what all up to it have cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from recede.cli.chart import (
    at,
    compact,
    element,
    hint,
    label,
    level,
    picture,
    short_names,
    shortened,
    stretched,
    thinned,
    ticks,
)
from recede.cli.verdict import money
from recede.costs import PolicyReplay, Replay

_HEIGHT = 280
_HOVERS = 40
_MARKERS = (
    "",
    "M-4-4H4V4H-4Z",
    "M0-5.5 5 4H-5Z",
    "M0-5.5 5.5 0 0 5.5-5.5 0Z",
    "M-4.5 0A4.5 4.5 0 1 1 4.5 0 4.5 4.5 0 1 1-4.5 0Z",
)
_MICRO = 1_000_000  # dollars are drawn as whole millionths


def growth_chart(key: str, replay: Replay, strong: Sequence[int], limit: int | None = None) -> str:
    """The tokens of each request under each policy: the strong ones with marks and names, the others thin.

    Args:
        key: of the picture.
        replay: the session.
        strong: the places of the policies that are highlighted.
        limit: the tokens that the model takes, drawn as a line where a request comes near.
    """
    series = [[turn.view_tokens for turn in replayed.turns] for replayed in replay.policies]
    shown = limit if limit is not None and has_limit(replay, limit) else None
    title = "Tokens of each request, turn by turn"
    return _line_chart(key, "growth", title, ("tokens", compact, "{:,} tokens".format), replay, strong, series, shown)


def has_limit(replay: Replay, limit: int) -> bool:
    """Whether a request comes near the limit of a model, so that it belongs into the picture."""
    return max((turn.view_tokens for replayed in replay.policies for turn in replayed.turns), default=0) > 0.4 * limit


def dollars_chart(key: str, replay: Replay, strong: Sequence[int]) -> str:
    """What all requests up to each have cost under each of the strong policies."""
    chosen = replay._replace(policies=tuple(replay.policies[place] for place in strong))
    series = [[round(_MICRO * cost) for cost in dollars(replayed, replay)] for replayed in chosen.policies]
    unit = ("dollars", _round_money, lambda cost: money(cost / _MICRO))
    title = "Dollars up to each request"
    return _line_chart(key, "dollars", title, unit, chosen, range(len(strong)), series, None)


def dollars(replayed: PolicyReplay, replay: Replay) -> list[float]:
    """What all requests up to each have cost."""
    alone = (PolicyReplay(replayed.policy, (turn,)).usage for turn in replayed.turns)
    return list(accumulate(usage.cost(replay.prices, replay.summary_prices) for usage in alone))


def _round_money(cost: int) -> str:
    return f"${cost / _MICRO:g}"


def _line_chart(
    key: str,
    class_: str,
    title: str,
    unit: tuple[str, Callable[[int], str], Callable[[int], str]],
    replay: Replay,
    strong: Sequence[int],
    series: Sequence[Sequence[int]],
    limit: int | None,
) -> str:
    """Lines with their names beside their ends; `unit` is its name, and the forms of round and of exact values."""
    policies = replay.policies
    what, round_form, exact_form = unit
    turns = len(series[0])
    rows = ticks(max(*map(max, series), limit or 0), 5)
    names = [shortened(name, 16) for name in short_names([policies[place].policy for place in strong])]

    def across(place: int, width: float) -> float:
        return width * place / (turns - 1) if turns > 1 else width / 2

    def down(value: float) -> float:
        return _HEIGHT * (1 - value / rows[-1])

    def line(place: int, class_: str) -> str:
        # In tenths of a pixel downwards, so that whole numbers do for the places.
        points = [f"{across(turn, 1000):.0f},{10 * down(value):.0f}" for turn, value in thinned(series[place])]
        if turns == 1:  # a line all the same, since a point would not be drawn
            points = [f"{x},{10 * down(series[place][0]):.0f}" for x in (0, 1000)]
        return element("polyline", hint(policies[place].policy), class_=class_, points=" ".join(points))

    def marks(rank: int, place: int) -> str:
        # Each line has its marks at other turns, so that they do not hide each other.
        fractions = [(part + rank / len(strong)) / 4 for part in range(4)] if turns > 1 else [0.0]
        found = sorted({round(fraction * (turns - 1)) for fraction in fractions})
        return "".join(
            at(
                f"{across(turn, 100):.2f}%",
                element("path", d=_MARKERS[rank], class_=f"mark-{rank}", transform=f"translate(0 {down(value):.1f})"),
            )
            for turn, value in ((turn, series[place][turn]) for turn in found)
            if _MARKERS[rank]
        )

    thin = [line(place, "thin") for place in range(len(policies)) if place not in strong]
    bold = [line(place, f"line-{rank}") for rank, place in reversed(list(enumerate(strong)))]
    description = "; ".join(
        f"{policies[place].policy}: at most {exact_form(max(series[place]))}, last {exact_form(series[place][-1])}"
        for place in strong
    )

    def words(turn: int) -> str:
        values = (f"{name} {exact_form(series[place][turn])}" for name, place in zip(names, strong, strict=True))
        return f"turn {turn + 1:,}: {', '.join(values)}"

    return picture(
        key,
        title,
        f"{description}.",
        _HEIGHT,
        f"lines {class_}",
        *(level(down(row), round_form(row)) for row in rows),
        *(
            at(
                f"{across(turn - 1, 100):.4g}%",
                element("line", class_="tick", x1=0, x2=0, y1=_HEIGHT, y2=_HEIGHT + 5)
                + label(f"{turn:,}", 0, _HEIGHT + 19, "middle"),
            )
            for turn in turn_ticks(turns)
        ),
        stretched(1000, 10 * _HEIGHT, *thin, *bold, height=_HEIGHT, overflow="visible"),
        *(marks(rank, place) for rank, place in reversed(list(enumerate(strong)))),
        *([] if limit is None else [level(down(limit), class_="raw-mark")]),
        hover_columns(turns, _HEIGHT, words),
        at("100%", *_line_ends([down(series[place][-1]) for place in strong], names)),
        label(what, -44, -14),
        at("100%", label("turn", 30, _HEIGHT + 19)),
        # The room that the names beside the line ends need.
        style=f"--right: {max(64, 20 + 9 * max(map(len, names)))}px",
    )


def hover_columns(count: int, height: float, words: Callable[[int], str]) -> str:
    """Invisible columns over a picture whose titles a browser shows on hover; of many turns, some are named."""
    columns = min(count, _HOVERS)
    width = 100 / columns if columns else 0
    return "".join(
        element(
            "rect",
            hint(words(column * (count - 1) // max(1, columns - 1))),
            class_="hover",
            x=f"{width * column:.4g}%",
            width=f"{width:.4g}%",
            height=f"{height:.4g}",
        )
        for column in range(columns)
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
