"""Runs the code cells of examples/notebooks one after the other and writes what they print under them.

A cell prints; nothing else is kept. `--check` compares instead and ends with 1 where an output is another one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parent.parent / "examples" / "notebooks"


def played(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The notebook with the outputs that its cells have when they run in this folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    with contextlib.chdir(folder) if hasattr(contextlib, "chdir") else _in_folder(folder):
        for number, cell in enumerate(notebook["cells"], 1):
            if cell["cell_type"] == "code":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
                lines = printed.getvalue().splitlines(keepends=True)
                outputs = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
                cell = {**cell, "outputs": outputs}
            cells.append(cell)
    return {**notebook, "cells": cells}


@contextlib.contextmanager
def _in_folder(folder: Path) -> Any:  # Python 3.10
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def main() -> int:
    """Writes, or checks."""
    different = []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text = path.read_text(encoding="utf-8")
        new = json.dumps(played(json.loads(text), NOTEBOOKS), indent=1, ensure_ascii=False) + "\n"
        if new != text:
            different.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    print(*(f"{name}: other outputs" for name in different), sep="\n", end="\n" if different else "")
    return 1 if different and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
