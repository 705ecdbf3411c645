"""The pictures of one session in a PNG."""

from __future__ import annotations

import importlib
import textwrap
from typing import Any

from recede import approx_tokens
from recede.cli.anatomy import KINDS, Anatomy
from recede.cli.chart import compact, shortened
from recede.cli.request import layers
from recede.cli.timeline import changes, columns, figures
from recede.cli.verdict import Session, percent
from recede.costs import PolicyReplay

COLORS = {"ink": "#1a1d21", "soft": "#5a626b", "strong": "#0a5fb0", "pale": "#c3dbf2", "written": "#b3450b"}
_LAYERS = ("#98a1ab", "#0a5fb0", "#b3450b", "#2c7a3f", "#7a3fa0", "#c3dbf2", "#dfe3e8")
_KIND_COLORS = {"masked": COLORS["written"], "result": COLORS["strong"], "text": "#98a1ab"}


def plain(words: str, columns: int = 120) -> str:
    """Words whose dollars are not read as the marks of a formula."""
    return shortened(words, columns).replace("$", r"\$")


def head(axes: Any, words: str, **style: Any) -> None:
    """Write what a picture shows above it."""
    axes.set_title(plain(words, 90), loc="left", fontweight="bold", **style)


def draw_layers(axes: Any, found: Anatomy) -> None:
    """The raw history by tool."""
    head(axes, "The raw history by tool")
    names = layers(found.samples)
    turns = [sample.turn + 1 for sample in found.samples]
    tokens = [[chars / 4 for chars in layer] for _, layer in names]
    if len(turns) == 1:  # an area all the same
        turns, tokens = [turns[0] - 1, turns[0]], [[each[0]] * 2 for each in tokens]
    axes.stackplot(turns, tokens, labels=[plain(name, 24) for name, _ in names], colors=_LAYERS)
    axes.set_xlim(turns[0], turns[-1])
    axes.yaxis.set_major_formatter(lambda tokens, _: compact(round(tokens)))
    axes.set_ylabel("tokens")
    axes.set_xlabel("turn", loc="right")
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14), ncols=3, frameon=False)


def draw_sizes(axes: Any, found: Anatomy) -> None:
    """The results by size, and how many are masked."""
    head(axes, f"Results by size, and which {found.policy} masks")
    bins = found.bins()
    chars = sum(found.sizes) or 1
    heights = [len(one.sizes) for one in bins]
    bars = axes.bar(range(len(bins)), heights, facecolor="white", edgecolor=COLORS["soft"], label="raw at the end")
    axes.bar(
        range(len(bins)), [sum(one.are_masked) for one in bins], color=COLORS["written"], label="masked at the end"
    )
    axes.bar_label(bars, [f"{len(one.sizes):,}" for one in bins], padding=2)
    labels = [f"{one.name}\n{percent(sum(one.sizes) / chars)}" for one in bins]
    axes.set_xticks(range(len(bins)), labels)
    axes.set_ylim(0, 1.15 * max(heights))
    axes.set_xlabel("characters, and the share of all", loc="right")
    axes.legend(loc="upper right", frameon=False)


def draw_strips(axes: Any, found: Anatomy) -> None:
    """The last request before and after."""
    head(axes, f"The last request, raw and under {found.policy}")
    for row, sizes in enumerate(([one.before for one in found.blocks], [one.after for one in found.blocks])):
        start = 0
        for block, size in zip(found.blocks, sizes, strict=True):
            axes.barh(row, size, left=start, height=0.6, color=_KIND_COLORS[block.kind])
            start += size
    ends = [sum(one.before for one in found.blocks), sum(one.after for one in found.blocks)]
    names = [f"{name}\n{approx_tokens(end):,} tokens" for name, end in zip(("raw", "sent"), ends, strict=True)]
    axes.set_yticks([0, 1], names)
    axes.set_xticks([])
    axes.invert_yaxis()
    patches = importlib.import_module("matplotlib.patches").Patch
    keys = [patches(facecolor=_KIND_COLORS[kind], label=words) for kind, words in KINDS.items()]
    axes.legend(handles=keys, loc="upper left", bbox_to_anchor=(0, -0.02), ncols=3, frameon=False)


def draw_timeline(axes: Any, panel: PolicyReplay, session: Session, place: int) -> None:
    """What each request wrote to the cache and read from it."""
    found = columns(panel.turns)
    count = len(panel.turns)
    edges = [0.5 + count * share for share in (0, *(column.end for column in found))]
    turns = [column.turn for column in found]
    # From the whole to the part, each on top of the one before.
    for chars, style in (
        ([turn.view_chars for turn in turns], {"facecolor": "white", "edgecolor": COLORS["soft"], "linestyle": ":"}),
        ([turn.cached_chars + turn.written_chars for turn in turns], {"facecolor": COLORS["written"]}),
        (
            [turn.cached_chars for turn in turns],
            {"facecolor": COLORS["pale"], "edgecolor": COLORS["strong"], "linewidth": 0.5},
        ),
    ):
        axes.stairs([each / 4 for each in chars], edges, fill=True, **style)
    name = panel.policy if place else f"Request by request, with a cache: {panel.policy}"
    words = textwrap.wrap(figures(panel, session.replay), 130)
    head(axes, name, fontsize="medium" if place else "large", pad=20)  # above the figures
    axes.text(0, 1.02, plain(words[0], 200), transform=axes.transAxes, fontsize="small", color=COLORS["soft"])
    moved = [turn + 1 for turn in changes(panel.turns)]
    # Below the axis, where they cover no column.
    across = axes.get_xaxis_transform()
    axes.vlines(moved, -0.13, -0.05, color=COLORS["ink"], linewidth=1, transform=across, clip_on=False)
    if moved:
        axes.annotate("moved", (0, -0.13), (-8, 0), "axes fraction", "offset points", ha="right", fontsize="small")
    axes.tick_params(axis="x", pad=14)
    axes.set_xlim(0.5, count + 0.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.set_major_formatter(lambda tokens, _: compact(round(tokens)))
    axes.set_ylabel("tokens")
    if not place:
        patches = importlib.import_module("matplotlib.patches").Patch
        keys = [
            patches(facecolor=COLORS["written"], label="written to the cache"),
            patches(facecolor=COLORS["pale"], edgecolor=COLORS["strong"], label="served from the cache"),
        ]
        if any(turn.view_chars > turn.cached_chars + turn.written_chars for turn in panel.turns):
            keys.append(patches(facecolor="white", edgecolor=COLORS["soft"], linestyle=":", label="sent uncached"))
        axes.legend(handles=keys, loc="upper left", frameon=False)
