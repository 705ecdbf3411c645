"""A replay as one picture in PNG, drawn with matplotlib (the extra `plot`)."""

from __future__ import annotations

import importlib
import io
import textwrap
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import click

from recede.cli.chart import CharSource, compact, emphasized, shortened, sources, ticks, wrapped
from recede.cli.lines import dollars, has_limit
from recede.cli.notices import counted
from recede.cli.page import CONTEXT_WINDOW
from recede.cli.plot_session import COLORS, draw_layers, draw_sizes, draw_strips, draw_timeline, head, plain
from recede.cli.savings import Saving, of_sessions, scale_of
from recede.cli.timeline import shown
from recede.cli.verdict import Session, money, percent, verdict
from recede.costs import PolicyCost, cheapest_policy, compare_costs

_INK, _SOFT, _STRONG, _WRITTEN = COLORS["ink"], COLORS["soft"], COLORS["strong"], COLORS["written"]
# Color, dashes and marker of the highlighted lines; raw first. They are distinct without colors too.
_LINES = (
    (_INK, "-", ""),
    (_STRONG, "-", "s"),
    (_WRITTEN, "--", "^"),
    ("#2c7a3f", ":", "D"),
    ("#7a3fa0", "-.", "o"),
)

# The height of a picture in inches, and what draws it.
_Picture = tuple[float, Callable[[Any], None]]


def plot(sessions: Sequence[Session], context_window: int = CONTEXT_WINDOW) -> bytes:
    """The verdict, the costs, what is saved in each session, and the most expensive session, as a PNG.

    Args:
        sessions: replayed under the same policies and prices; at least one.
        context_window: the tokens that the model takes.

    Raises:
        click.UsageError: matplotlib is not installed.
    """
    png = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that the font lacks becomes a box; that is no news to whoever runs the command.
        warnings.simplefilter("ignore")
        drawn(sessions, context_window).savefig(png, format="png")
    return png.getvalue()


def drawn(sessions: Sequence[Session], context_window: int = CONTEXT_WINDOW) -> Any:
    """The figure of matplotlib that is saved."""
    matplotlib = _matplotlib()
    costs = compare_costs(session.replay for session in sessions)
    pictures = _pictures(sessions, costs, context_window)
    heights = [height for height, _ in pictures]
    # A Figure of its own: no window, and no state that others share. Its canvas for PNG is Agg.
    figure = matplotlib.Figure(figsize=(11, sum(heights) + 1.2), dpi=120, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.15, w_pad=0.15)
    words = [plain(line) for found in verdict(costs, sessions) for line in _lines_of(found)]
    figure.suptitle("\n".join(words), x=0.02, ha="left", fontsize="medium")
    axes = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    for each, (_, draw) in zip(axes, pictures, strict=True):
        draw(each)
        each.spines[["top", "right"]].set_visible(False)
    return figure


def _lines_of(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, 105, subsequent_indent="    ", break_on_hyphens=False)


def _pictures(sessions: Sequence[Session], costs: Sequence[PolicyCost], context_window: int) -> list[_Picture]:
    """What is drawn, from above: all sessions first, then the most expensive one."""
    found = sources(sessions)
    costliest = max(sessions, key=lambda session: session.replay.costs[0].cost)
    strong = emphasized(costs)
    rows = sum(len(wrapped(cost.policy)) for cost in costs)
    pictures: list[_Picture] = [
        (1.2 + 0.33 * rows, lambda axes: _draw_costs(axes, costs, is_cached=True)),
        (1.2 + 0.33 * rows, lambda axes: _draw_costs(axes, costs, is_cached=False)),
    ]
    best = cheapest_policy(costs).policy
    if len(sessions) > 1 and best != "raw":
        pictures += [(2.6, lambda axes: _draw_savings(axes, sessions, best))]
        pictures += [(2.8, lambda axes: _draw_scatter(axes, sessions, best))]
    pictures.append((1 + 0.32 * len(found), lambda axes: _draw_sources(axes, found)))
    pictures.append((5.0, lambda axes: _draw_growth(axes, costliest, strong, context_window)))
    if costliest.replay.policies[0].turns:
        pictures.append((3.4, lambda axes: _draw_dollars(axes, costliest, strong)))
    if costliest.anatomy is not None and costliest.anatomy.samples:
        anatomy = costliest.anatomy
        pictures.append((3.0, lambda axes: draw_layers(axes, anatomy)))
        if anatomy.sizes and anatomy.policy is not None:
            pictures += [(2.6, lambda axes: draw_sizes(axes, anatomy)), (2.0, lambda axes: draw_strips(axes, anatomy))]
    panels = shown(costliest.replay) if len(costliest.replay.policies[0].turns) > 1 else []
    tops = [max(turn.view_tokens for turn in panel.turns) for panel in panels]
    for place, panel in enumerate(panels):
        # The raw history has a scale of its own, the others have one together.
        top = 1.05 * max(tops[1:] if place else tops)

        def draw(axes: Any, place: int = place, panel: Any = panel, top: float = top) -> None:
            draw_timeline(axes, panel, costliest, place)
            axes.set_ylim(0, top)

        pictures.append((2.2, draw))
    return pictures


def _matplotlib() -> Any:
    # By name, so that types can be checked where the extra is not installed.
    try:
        importlib.import_module("matplotlib")
        return importlib.import_module("matplotlib.figure")
    except ImportError:
        raise click.UsageError("--png needs matplotlib: pip install 'recede[plot]'") from None


def _draw_growth(axes: Any, session: Session, strong: Sequence[int], context_window: int) -> None:
    name = session.name if len(session.name) <= 30 else f"…{session.name[-29:]}"  # the end of a path says most
    head(axes, f"Tokens of each request of {name}")
    policies = session.replay.policies
    series: list[list[float]] = [[turn.view_tokens for turn in replayed.turns] for replayed in policies]
    if not series[0]:
        _say(axes, "no request was made")
        return
    limit = context_window if has_limit(session.replay, context_window) else None
    rows = ticks(int(max(*map(max, series), limit or 0)), 5)
    if limit is not None:
        axes.axhline(limit, color=_INK, linestyle="--", linewidth=1, label=f"context window, {limit:,} tokens")
    _draw_lines(axes, session, strong, series, below=0.12)
    axes.set_yticks(rows, [compact(row) for row in rows])
    axes.set_ylim(0, rows[-1])
    axes.set_ylabel("tokens")


def _draw_dollars(axes: Any, session: Session, strong: Sequence[int]) -> None:
    head(axes, "Dollars up to each request")
    series = [
        dollars(replayed, session.replay) if place in strong else []
        for place, replayed in enumerate(session.replay.policies)
    ]
    _draw_lines(axes, session, strong, series, below=0.24)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda cost, _: rf"\${cost:g}")


def _draw_lines(
    axes: Any, session: Session, strong: Sequence[int], series: Sequence[Sequence[float]], below: float
) -> None:
    """The lines, and their names so far below the axis, as a share of its height."""
    policies = session.replay.policies
    turns = range(1, len(policies[0].turns) + 1)
    thin = [values for place, values in enumerate(series) if place not in strong and values]
    for values in thin:
        axes.plot(turns, values, color=_SOFT, linewidth=0.5, alpha=0.7)
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
            label="\n".join(map(plain, wrapped(policies[place].policy, 44))),
            zorder=9 - rank,
        )
    handles, labels = axes.get_legend_handles_labels()
    title = f"thin: the {counted(len(thin), 'other')}" if thin else None
    # Outside of the plot, where no line crosses it.
    outside: Any = {"loc": "upper left", "bbox_to_anchor": (0, -below), "alignment": "left"}
    axes.legend(handles[::-1], labels[::-1], title=title, ncols=2, frameon=False, **outside)
    axes.set_xlim(*((1, len(turns)) if len(turns) > 1 else (0, 2)))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("turn", loc="right")
    axes.grid(axis="y", color="#dfe3e8")
    axes.set_axisbelow(True)


def _draw_costs(axes: Any, costs: Sequence[PolicyCost], *, is_cached: bool) -> None:
    kind = "with a prompt cache" if is_cached else "without a cache, where 100 % is another amount"
    head(axes, f"Cost by policy {kind}")
    if not costs[0].usage.requests:
        _say(axes, "no request was made")
        return
    shares = [cost.of_raw if is_cached else cost.of_raw_uncached for cost in costs]
    amounts = [cost.cost if is_cached else cost.cost_uncached for cost in costs]
    best = shares.index(min(share for share, cost in zip(shares, costs, strict=True) if not cost.is_optimum))
    bars = axes.barh(
        range(len(costs)),
        shares,
        height=0.55,
        color=[
            "white" if cost.is_optimum or not is_cached else _WRITTEN if share > 1 else _STRONG
            for cost, share in zip(costs, shares, strict=True)
        ],
        edgecolor=_STRONG if is_cached else _SOFT,
        hatch=None if is_cached else "////",
    )
    for bar, cost in zip(bars, costs, strict=True):
        if cost.is_optimum:  # an outline: what a rule can be measured by is none to choose
            bar.set(linestyle="--", hatch=None)
    # On a ground of their own, so that the line of raw does not run through them.
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    words = [plain(f"{money(amount)}, {percent(share)} of raw") for amount, share in zip(amounts, shares, strict=True)]
    axes.bar_label(bars, words, padding=4, bbox=ground)
    axes.axvline(1, color=_INK, linestyle="--", linewidth=1.2)
    axes.set_yticks(range(len(costs)), ["\n".join(map(plain, wrapped(cost.policy))) for cost in costs])
    for place, name in enumerate(axes.get_yticklabels()):
        name.set(
            fontweight="bold" if place == best else "normal", style="italic" if costs[place].is_optimum else "normal"
        )
    axes.xaxis.set_major_formatter(lambda share, _: percent(share))
    axes.set_xlim(0, 1.28 * max(1.0, *shares))
    axes.margins(y=0.02)
    axes.invert_yaxis()


def _draw_savings(axes: Any, sessions: Sequence[Session], policy: str) -> None:
    savings = of_sessions(sessions, policy)
    head(axes, f"Saved in each session by {policy}")
    axes.bar(range(len(savings)), [saving.share for saving in savings], color=_scaled(axes, savings))
    axes.set_xticks([])
    axes.axhline(0, color=_SOFT, linewidth=1)
    axes.set_xlabel("sessions, the one that saves most first", loc="right")


def _draw_scatter(axes: Any, sessions: Sequence[Session], policy: str) -> None:
    savings = of_sessions(sessions, policy)
    head(axes, "Saved by length of the session")
    requests, shares = [saving.requests for saving in savings], [saving.share for saving in savings]
    axes.scatter(requests, shares, color=_scaled(axes, savings), alpha=0.7, edgecolors="white")
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda requests, _: f"{requests:,.0f}")
    axes.grid(color="#dfe3e8")
    axes.set_axisbelow(True)
    axes.set_xlabel("requests", loc="right")


def _scaled(axes: Any, savings: Sequence[Saving]) -> list[str]:
    """Make the upward axis that of savings; their colors."""
    axes.set_ylim(*scale_of(savings))
    axes.yaxis.set_major_formatter(lambda share, _: percent(share))
    return [_STRONG if saving.share >= 0 else _WRITTEN for saving in savings]


def _draw_sources(axes: Any, found: Sequence[CharSource]) -> None:
    head(axes, "Where the characters come from")
    whole = sum(source.chars for source in found) or 1
    bars = axes.barh(
        range(len(found)),
        [source.chars for source in found],
        color=[_STRONG if source.is_tool else "white" for source in found],
        edgecolor=_SOFT,
    )
    axes.bar_label(bars, [f"{source.chars:,}, {percent(source.chars / whole)}" for source in found], padding=4)
    axes.set_yticks(range(len(found)), [plain(shortened(source.name)) for source in found])
    largest = ticks(max(source.chars for source in found), 5)
    axes.set_xticks(largest, [compact(chars) for chars in largest])
    axes.set_xlim(0, largest[-1] * 1.14)
    axes.invert_yaxis()


def _say(axes: Any, words: str) -> None:
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, color=_SOFT)
    axes.set_xticks([])
    axes.set_yticks([])
