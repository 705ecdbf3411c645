"""Draws what `recede replay` prints for the recorded session: `python scripts/report_picture.py > docs/report.svg`."""

from __future__ import annotations

import html
import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

COMMAND = "recede replay examples/session.json"
_COLUMNS, _ADVANCE, _LEADING, _MARGIN = 80, 7.8, 19, 16
_STYLE = (
    "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328}rect{fill:#f6f8fa}"
    "@media (prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#161b22}}"
)


def picture() -> str:
    """The command and its report as SVG, whose letters have one width in every font."""
    lines = [
        part
        for line in f"$ {COMMAND}\n{_report()}".splitlines()
        for part in textwrap.wrap(line, _COLUMNS, subsequent_indent="    ", break_on_hyphens=False) or [""]
    ]
    width, height = f"{2 * _MARGIN + _ADVANCE * _COLUMNS:g}", 2 * _MARGIN + _LEADING * len(lines)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    frame = '<rect width="100%" height="100%" rx="8"/>'
    texts = [_text(row, line) for row, line in enumerate(lines, 1) if line]
    return "\n".join([head, f"<style>{_STYLE}</style>", frame, *texts, "</svg>\n"])


def _report() -> str:
    program = [sys.executable, "-m", "recede.cli", *shlex.split(COMMAND)[1:]]
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "LC_ALL": "C.UTF-8"}
    root = Path(__file__).parent.parent
    return subprocess.run(program, cwd=root, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout


def _text(row: int, line: str) -> str:
    words = line.lstrip()
    x, y = f"{_MARGIN + _ADVANCE * (len(line) - len(words)):g}", _MARGIN + _LEADING * row - 5
    fitted = f'textLength="{_ADVANCE * len(words):g}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x}" y="{y}" xml:space="preserve" {fitted}>{html.escape(words)}</text>'


if __name__ == "__main__":
    sys.stdout.write(picture())
