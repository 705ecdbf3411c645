"""Timeline of one session: what the cache served, what was written to it, and where the boundary moved.

A total does not show why a sliding mask is expensive. The columns do: a sliding mask writes the tail again at each
request, while one that rarely moves reads nearly everything from the cache and pays for an occasional move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from recede.cli.chart import at, breakable, compact, element, kind_of, label, level, picture, stretched, ticks
from recede.cli.lines import turn_ticks
from recede.cli.markup import key_of, legend, swatch
from recede.cli.notices import counted
from recede.cli.verdict import money
from recede.costs import PolicyReplay, Prices, Replay, ReplayedTurn, cheapest_policy
from recede.designs import approx_tokens
from recede.reduction._kinds import CHARS_PER_TOKEN

_COLUMNS = 150
_HEIGHT = 140
_WIDTH = 3_000
_RESTING = ("stepped", "break_even", "high_water")
# How much higher than the masks the raw history may be before it gets its own scale.
_MOST_HEIGHT = 1.5


class Column(NamedTuple):
    """A request as it is drawn.

    Attributes:
        start: where it begins, as a share of the width.
        end: where it ends.
        turn: the request.
    """

    start: float
    end: float
    turn: ReplayedTurn


# What is shown


def shown(replay: Replay) -> list[PolicyReplay]:
    """The raw history, the cheapest policy, the cheapest mask that rests, and the sliding one with the same window.

    The last two only where they move at all; where no sliding mask has that window, it is the cheapest that slides.
    """
    costs = replay.costs
    resting = [cost for cost in costs if kind_of(cost.policy) in _RESTING]
    sliding = [cost for cost in costs if kind_of(cost.policy) == "sliding"]
    rest = cheapest_policy(resting).policy if resting else ""
    rest_window = cheapest_policy(resting).window if resting else None
    same = [cost for cost in sliding if cost.window == rest_window]
    slide = cheapest_policy(same or sliding).policy if sliding else ""
    found = {replayed.policy: replayed for replayed in replay.policies}
    moving = [name for name in (rest, slide) if name and moves(found[name].turns)]
    return [found[name] for name in dict.fromkeys([costs[0].policy, cheapest_policy(costs).policy, *moving])]


def moves(turns: Sequence[ReplayedTurn]) -> list[int]:
    """The places of the requests whose mask covers more results than that of the request before."""
    before = [0, *(turn.masked_count for turn in turns)]
    return [place for place, turn in enumerate(turns) if turn.masked_count > before[place]]


def changes(turns: Sequence[ReplayedTurn]) -> list[int]:
    """The places of the requests at which the boundary moved or a summary was made."""
    return sorted({*moves(turns), *summaries(turns)})


def moved(panel: PolicyReplay) -> int | None:
    """How often the boundary moved; None where there is none: leaving messages out masks nothing, nor do summaries."""
    return None if kind_of(panel.policy) in ("raw", "keep_last", "summary") else len(moves(panel.turns))


def summaries(turns: Sequence[ReplayedTurn]) -> list[int]:
    """The places of the requests whose summary is another one than that of the request before."""
    before = [0, *(turn.summarized_turns for turn in turns)]
    return [place for place, turn in enumerate(turns) if turn.summarized_turns != before[place]]


def columns(turns: Sequence[ReplayedTurn], most: int = _COLUMNS) -> list[Column]:
    """A column for each request; of many, in each part of the session those that wrote the most and the least.

    The most alone would let a mask that moves in one request of twenty look like one that moves in each.
    """
    count = len(turns)
    if count <= 2 * most:
        return [Column(place / count, (place + 1) / count, turn) for place, turn in enumerate(turns)]
    found = []
    for part in range(most):
        places = range(part * count // most, (part + 1) * count // most)
        least = min(places, key=lambda place: turns[place].written_chars)
        largest = max(places, key=lambda place: turns[place].written_chars)
        both = sorted({least, largest})
        for number, place in enumerate(both):
            start, end = part + number / len(both), part + (number + 1) / len(both)
            found.append(Column(start / most, end / most, turns[place]))
    return found


def extents(panels: Sequence[PolicyReplay]) -> list[tuple[float, list[int]]]:
    """The height of each panel and its rows; all on one scale, but for a raw history that would be far too high."""
    tops = [max(turn.view_tokens for turn in panel.turns) for panel in panels]
    shared = ticks(max(tops[1:] or tops), 3)
    step = shared[1]
    found = [list(range(0, top + step, step)) for top in tops]
    if found[0][-1] > _MOST_HEIGHT * shared[-1]:
        own = ticks(tops[0], 3)
        return [(_HEIGHT, own), *((_HEIGHT * rows[-1] / shared[-1], rows) for rows in found[1:])]
    return [(_HEIGHT * rows[-1] / shared[-1], rows) for rows in found]


def figures(panel: PolicyReplay, replay: Replay) -> str:
    """How often the boundary moved, how many summaries were made, and what was written and read for how much."""
    usage, prices = panel.usage, replay.prices
    plain = usage.sent_chars - usage.cached_chars - usage.written_chars

    def priced(chars: int, price: float) -> str:
        if not chars:
            return "nothing"
        return f"{approx_tokens(chars):,} tokens for {money(chars * price / 4_000_000)}"

    parts = [f"wrote {priced(usage.written_chars, prices.write)}, read {priced(usage.cached_chars, prices.cached)}"]
    if plain:
        parts.append(f"sent {priced(plain, prices.input)} uncached")
    made = len(summaries(panel.turns))
    if made:
        calls = f" for {money(usage.summary_cost(replay.summary_prices or prices))}" if usage.summary_calls else ""
        parts.insert(0, f"made {counted(made, 'summary')}{calls}")
    count = moved(panel)
    if count is not None:
        parts.insert(0, f"moved {counted(count, 'time')}" if count else "never moved")
    return "; ".join(parts)


# How it is drawn


def timeline(key: str, replay: Replay) -> str:
    """A panel for each policy that is shown, below a legend; nothing for fewer than two requests."""
    panels = shown(replay)
    if len(panels[0].turns) < 2:
        return ""
    best = cheapest_policy(replay.costs).policy
    costs = {cost.policy: cost.cost for cost in replay.costs}
    sizes = extents(panels)
    drawn = []
    for number, (panel, (height, rows)) in enumerate(zip(panels, sizes, strict=True)):
        name = f"{panel.policy}, the cheapest" if panel.policy == best else panel.policy
        words = figures(panel, replay)
        note = (
            element("span", " Drawn on a smaller scale than those below.", class_="note")
            if _differs(sizes, number)
            else ""
        )
        sentence = f": {money(costs[panel.policy])}. {words[0].upper()}{words[1:]}."
        caption = element("figcaption", element("b", breakable(name)), sentence, note)
        chart = _panel(f"{key}-{number}", panel, height, rows, f"{words}.", is_last=number == len(panels) - 1)
        drawn.append(element("figure", caption, chart, class_="panel"))
    return "".join([element("p", _words(replay.prices)), _legend(panels), *drawn])


def _words(prices: Prices) -> str:
    ratio = prices.write / prices.cached if prices.cached else 0
    dear = f", and a token written costs {ratio:.3g} times one that is served" if ratio > 1 else ""
    return (
        "Each column is a request: below, what the cache served; on top, what was written to it. When the boundary "
        f"moves, everything after it is written again{dear}."
    )


def _differs(sizes: Sequence[tuple[float, list[int]]], number: int) -> bool:
    height, rows = sizes[number]
    last, others = sizes[-1]
    return height * others[-1] < 0.99 * last * rows[-1]


def _legend(panels: Sequence[PolicyReplay]) -> str:
    keys = [(swatch("written"), "written to the cache"), (swatch("served"), "served from the cache")]
    if any(_plain(turn) for panel in panels for turn in panel.turns):
        keys.append((swatch("plain"), "sent uncached, too short for the cache"))
    if any(changes(panel.turns) for panel in panels):
        words = "the boundary moved"
        if any(summaries(panel.turns) for panel in panels):
            words += ", or a summary was made"
        keys.append((key_of(element("path", class_="move", d="M4 4v8M14 4v8M24 4v8")), words))
    most = max(len(panel.turns) for panel in panels)
    note = ""
    if most > 2 * _COLUMNS:
        note = (
            f"Of {most:,} requests, in {_COLUMNS} parts, those are drawn that wrote the most and the least of each "
            "part. The longer a mark, the more of the requests there moved the boundary."
        )
    return legend(keys) + (element("p", note, class_="note") if note else "")


def _panel(
    key: str, panel: PolicyReplay, height: float, rows: Sequence[int], description: str, *, is_last: bool
) -> str:
    turns = panel.turns
    found = columns(turns)
    scale = 10 * height / rows[-1] / CHARS_PER_TOKEN

    def area(class_: str, chars: Sequence[int]) -> str:
        # Relative whole numbers between rounded absolute positions, so that rounding errors do not add up.
        x, y = 0, round(10 * height)
        bottom, path = y, [f"M0 {y}"]
        for column, count in zip(found, chars, strict=True):
            top, end = round(10 * height - count * scale), round(_WIDTH * column.end)
            path.append(f"v{top - y}h{end - x}")
            x, y = end, top
        return element("path", class_=class_, d=f"{''.join(path)}V{bottom}z")

    # From the whole to the part, each on top of the one before.
    areas = [
        area("written", [turn.cached_chars + turn.written_chars for _, _, turn in found]),
        area("served", [turn.cached_chars for _, _, turn in found]),
    ]
    if any(_plain(turn) for turn in turns):
        areas.insert(0, area("plain", [turn.view_chars for _, _, turn in found]))
    marks = [
        f"M{_WIDTH * place:.0f} {10 * height + 80:.0f}v{90 * long:.0f}"
        for place, long in _marks(changes(turns), len(turns))
    ]
    drawn_marks = [element("path", class_="move", d="".join(marks))] if marks else []
    return picture(
        key,
        f"{panel.policy}: tokens written to the cache and served from it, request by request",
        description,
        round(height),
        "timeline last" if is_last else "timeline",
        *(level(height * (1 - row / rows[-1]), compact(row)) for row in rows),
        label("tokens", -52, -14),
        stretched(_WIDTH, 10 * height, *areas, *drawn_marks, height=f"{height:.4g}", overflow="visible"),
        *([label("moved" if moves(turns) else "made", -8, height + 18, "left")] if marks else []),
        *(
            at(f"{100 * (turn - 0.5) / len(turns):.4g}%", label(f"{turn:,}", 0, height + 36, "middle"))
            for turn in turn_ticks(len(turns))
            if is_last
        ),
        *([at("100%", label("turn", 22, height + 36))] if is_last else []),
    )


def _marks(places: Sequence[int], count: int) -> list[tuple[float, float]]:
    """The position and length of each mark, as shares; of many, one for each part, long where most requests move.

    Else a mask that moves once in each part would look like one that moves in each request.
    """
    if count <= 2 * _COLUMNS:
        return [((place + 0.5) / count, 1.0) for place in places]
    found = Counter(place * _COLUMNS // count for place in places)
    return [
        ((part + 0.5) / _COLUMNS, 0.2 + 0.8 * min(1.0, often * _COLUMNS / count))
        for part, often in sorted(found.items())
    ]


def _plain(turn: ReplayedTurn) -> int:
    return turn.view_chars - turn.cached_chars - turn.written_chars
