"""How the pictures of the pages are saved: one file for the same figures, and dark where the reader's system is."""

from __future__ import annotations

import logging
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

_STYLE = '<style type="text/css">'
_DARK = "@media (prefers-color-scheme: dark) {svg {filter: invert(0.88) hue-rotate(180deg)}} "


def save(figure: Figure, path: Path) -> None:
    """Save a figure as SVG."""
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    mpl.rcParams["svg.hashsalt"] = "recede"
    figure.savefig(path, metadata={"Date": None})
    path.write_text(path.read_text().replace(_STYLE, _STYLE + _DARK, 1))
