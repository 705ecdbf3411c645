"""A replay as one picture in PNG, drawn with matplotlib (the extra `plot`)."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Sequence
from typing import Any

import click

from recede.cli.chart import Source, compact, emphasized, shortened, sources, ticks
from recede.cli.timeline import changes, columns, figures, shown
from recede.cli.verdict import Session, money, percent
from recede.costs import PolicyCost, PolicyReplay, cheapest_policy, compare_costs

__all__ = ["plot"]

_INK = "#1a1d21"
_SOFT = "#5a626b"
_STRONG = "#0a5fb0"
_PALE = "#c3dbf2"
_WRITTEN = "#b3450b"
# Color, dashes and marker of the highlighted lines; raw first. They are distinct without colors too.
_LINES = (
    (_INK, "-", ""),
    (_STRONG, "-", "s"),
    ("#b3450b", "--", "^"),
    ("#2c7a3f", ":", "D"),
    ("#7a3fa0", "-.", "o"),
)


def plot(sessions: Sequence[Session], context_window: int = 200_000) -> bytes:
    """The most expensive session request by request, the costs by policy and the sources of characters, as a PNG.

    Args:
        sessions: replayed under the same policies and prices; at least one.

    Raises:
        click.UsageError: matplotlib is not installed.
    """
    matplotlib = _matplotlib()
    costs = compare_costs(session.replay for session in sessions)
    found = sources(sessions)
    costliest = max(sessions, key=lambda session: session.replay.costs[0].cost)
    panels = shown(costliest.replay) if len(costliest.replay.policies[0].turns) > 1 else []
    heights = [5.0, 1 + 0.5 * len(costs), 1 + 0.32 * len(found), *[1.8] * len(panels)]
    # A Figure of its own: no window, and no state that others share. Its canvas for PNG is Agg.
    figure = matplotlib.Figure(figsize=(11, sum(heights)), dpi=120, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.15, w_pad=0.15)
    axes = figure.subplots(len(heights), 1, height_ratios=heights)
    _draw_growth(axes[0], costliest, emphasized(costs))
    _draw_costs(axes[1], costs)
    _draw_sources(axes[2], found)
    tops = [max(turn.view_tokens for turn in panel.turns) for panel in panels]
    for place, panel in enumerate(panels):
        _draw_timeline(axes[3 + place], panel, costliest, place)
        # The raw history has a scale of its own, the others have one together.
        axes[3 + place].set_ylim(0, 1.05 * max(tops[1:] if place else tops))
    for drawn in axes[4:]:
        drawn.sharex(axes[3])
    for drawn in axes:
        drawn.spines[["top", "right"]].set_visible(False)
    png = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that the font lacks becomes a box; that is no news to whoever runs the command.
        warnings.simplefilter("ignore")
        figure.savefig(png, format="png")
    return png.getvalue()


def _matplotlib() -> Any:
    # By name, so that types can be checked where the extra is not installed.
    try:
        importlib.import_module("matplotlib")
        return importlib.import_module("matplotlib.figure")
    except ImportError:
        raise click.UsageError("--png needs matplotlib: pip install 'recede[plot]'") from None


def _draw_growth(axes: Any, session: Session, strong: Sequence[int]) -> None:
    policies = session.replay.policies
    name = session.name if len(session.name) <= 40 else f"…{session.name[-39:]}"  # the end of a path says most
    axes.set_title("Tokens of each request", loc="left", fontweight="bold")
    axes.set_title(_plain(name), loc="right", fontsize="small", color=_SOFT)
    turns = range(1, len(policies[0].turns) + 1)
    if not turns:
        _say(axes, "no request was made")
        return
    series = [[turn.view_tokens for turn in replayed.turns] for replayed in policies]
    for place, tokens in enumerate(series):
        if place not in strong:
            axes.plot(turns, tokens, color=_SOFT, linewidth=0.5, alpha=0.7)
    for rank, place in reversed(list(enumerate(strong))):
        color, dashes, marker = _LINES[rank]
        step = max(1, len(turns) // 8)
        axes.plot(
            turns,
            series[place],
            color=color,
            linestyle=dashes,
            linewidth=2,
            marker=marker or ("." if len(turns) == 1 else ""),
            # Marks at other turns than those of the other lines, so that they do not hide each other.
            markevery=(rank * step // len(strong), step),
            markersize=7,
            markeredgecolor="white",
            label=_plain(policies[place].policy),
            zorder=9 - rank,
        )
    handles, labels = axes.get_legend_handles_labels()
    others = len(policies) - len(strong)
    title = f"thin: the {others} {'other' if others == 1 else 'others'}" if others else None
    # Outside of the plot, where no line crosses it.
    outside: Any = {"loc": "upper left", "bbox_to_anchor": (0, -0.1), "ncols": 2, "frameon": False, "alignment": "left"}
    axes.legend(handles[::-1], labels[::-1], title=title, **outside)
    rows = ticks(max(map(max, series)), 5)
    axes.set_yticks(rows, [compact(row) for row in rows])
    axes.set_ylim(0, rows[-1])
    axes.set_xlim(*((1, len(turns)) if len(turns) > 1 else (0, 2)))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("turn", loc="right")
    axes.set_ylabel("tokens")
    axes.grid(axis="y", color="#dfe3e8")
    axes.set_axisbelow(True)


def _draw_costs(axes: Any, costs: Sequence[PolicyCost]) -> None:
    axes.set_title("Cost by policy, as a share of raw", loc="left", fontweight="bold")
    if not costs[0].usage.requests:
        _say(axes, "no request was made")
        return
    places = range(len(costs))
    cached = axes.barh(
        [place - 0.2 for place in places],
        [cost.of_raw for cost in costs],
        height=0.36,
        color=["white" if cost.is_optimum else _STRONG for cost in costs],
        edgecolor=_STRONG,
        label="with a prompt cache",
    )
    uncached = axes.barh(
        [place + 0.2 for place in places],
        [cost.of_raw_uncached for cost in costs],
        height=0.36,
        facecolor="white",
        edgecolor=_SOFT,
        hatch="////",
        label="without a cache",
    )
    for place, bars in enumerate(zip(cached, uncached, strict=True)):
        for bar in bars if costs[place].is_optimum else ():
            # An outline: what a rule can be measured by is none to choose.
            bar.set(linestyle="--", hatch=None)
    # On a ground of their own, so that the line of raw does not run through them.
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    words = [_plain(f"{money(cost.cost)}, {percent(cost.of_raw)}") for cost in costs]
    axes.bar_label(cached, words, padding=4, bbox=ground)
    words = [_plain(f"{money(cost.cost_uncached)}, {percent(cost.of_raw_uncached)}") for cost in costs]
    axes.bar_label(uncached, words, padding=4, bbox=ground)
    axes.axvline(1, color=_INK, linestyle="--", linewidth=1.2, label="raw")
    best = costs.index(cheapest_policy(costs))
    axes.set_yticks(places, [_plain(cost.policy) for cost in costs])
    for place, name in enumerate(axes.get_yticklabels()):
        name.set(
            fontweight="bold" if place == best else "normal", style="italic" if costs[place].is_optimum else "normal"
        )
    axes.xaxis.set_major_formatter(lambda share, _: percent(share))
    axes.margins(x=0.16, y=0.02)
    axes.invert_yaxis()
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, borderaxespad=0)


def _draw_sources(axes: Any, found: Sequence[Source]) -> None:
    axes.set_title("Where the characters come from", loc="left", fontweight="bold")
    whole = sum(source.chars for source in found) or 1
    bars = axes.barh(
        range(len(found)),
        [source.chars for source in found],
        color=[_STRONG if source.is_tool else "white" for source in found],
        edgecolor=_SOFT,
    )
    axes.bar_label(bars, [f"{source.chars:,}, {percent(source.chars / whole)}" for source in found], padding=4)
    axes.set_yticks(range(len(found)), [_plain(shortened(source.name)) for source in found])
    largest = ticks(max(source.chars for source in found), 5)
    axes.set_xticks(largest, [compact(chars) for chars in largest])
    axes.set_xlim(0, largest[-1] * 1.14)
    axes.invert_yaxis()


def _draw_timeline(axes: Any, panel: PolicyReplay, session: Session, place: int) -> None:
    found = columns(panel.turns)
    count = len(panel.turns)
    edges = [0.5 + count * share for share in (0, *(column.end for column in found))]
    turns = [column.turn for column in found]
    # From the whole to the part, each on top of the one before.
    for chars, style in (
        ([turn.view_chars for turn in turns], {"facecolor": "white", "edgecolor": _SOFT, "linestyle": ":"}),
        ([turn.cached_chars + turn.written_chars for turn in turns], {"facecolor": _WRITTEN}),
        ([turn.cached_chars for turn in turns], {"facecolor": _PALE, "edgecolor": _STRONG, "linewidth": 0.5}),
    ):
        axes.stairs([each / 4 for each in chars], edges, fill=True, **style)
    name = _plain(panel.policy)
    head = name if place else f"Request by request, with a cache: {name}"
    axes.set_title(head, loc="left", fontweight="bold", fontsize="large" if not place else "medium")
    axes.set_title(figures(panel, session.replay).replace("$", r"\$"), loc="right", fontsize="small", color=_SOFT)
    moved = [turn + 1 for turn in changes(panel.turns)]
    # Below the axis, where they cover no column.
    across = axes.get_xaxis_transform()
    axes.vlines(moved, -0.13, -0.05, color=_INK, linewidth=1, transform=across, clip_on=False)
    if moved:
        axes.annotate("moved", (0, -0.13), (-8, 0), "axes fraction", "offset points", ha="right", fontsize="small")
    axes.tick_params(axis="x", pad=14)
    axes.set_xlim(0.5, count + 0.5)
    axes.yaxis.set_major_formatter(lambda tokens, _: compact(round(tokens)))
    axes.set_ylabel("tokens")
    if not place:
        patches = importlib.import_module("matplotlib.patches").Patch
        keys = [
            patches(facecolor=_WRITTEN, label="written to the cache"),
            patches(facecolor=_PALE, edgecolor=_STRONG, label="served from the cache"),
        ]
        if any(turn.view_chars > turn.cached_chars + turn.written_chars for turn in panel.turns):
            keys.append(patches(facecolor="white", edgecolor=_SOFT, linestyle=":", label="sent uncached"))
        axes.legend(handles=keys, loc="upper left", frameon=False)


def _say(axes: Any, words: str) -> None:
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, color=_SOFT)
    axes.set_xticks([])
    axes.set_yticks([])


def _plain(text: str) -> str:
    """The text with its dollars kept from being read as the marks of a formula."""
    return shortened(text, 40).replace("$", r"\$")
