"""Runs the code cells of examples/notebooks one after the other and writes what they print under them.

A cell prints; nothing else is kept. One that is tagged `raises-exception` must raise. `--check` compares instead and
ends with 1 where an output is another one. A notebook whose packages are not installed is left as it is.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parent.parent / "examples" / "notebooks"


def missing(notebook: dict[str, Any]) -> list[str]:
    """The packages that the notebook needs besides recede, as far as they are not installed."""
    return [name for name in notebook["metadata"].get("needs", ()) if importlib.util.find_spec(name) is None]


def played(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The notebook with the outputs that its cells have when they run in this folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    with contextlib.chdir(folder) if hasattr(contextlib, "chdir") else _in_folder(folder):
        for number, cell in enumerate(notebook["cells"], 1):
            if cell["cell_type"] == "code":
                code = compile("".join(cell["source"]), f"cell {number}", "exec")
                has_to_raise = "raises-exception" in cell["metadata"].get("tags", ())
                cell = {**cell, "outputs": _raised(code, names) if has_to_raise else _printed(code, names)}
            cells.append(cell)
    return {**notebook, "cells": cells}


def _printed(code: Any, names: dict[str, Any]) -> list[Any]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    lines = printed.getvalue().splitlines(keepends=True)
    return [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []


def _raised(code: Any, names: dict[str, Any]) -> list[Any]:
    try:
        exec(code, names)
    except Exception as error:
        said = type(error).__name__, str(error)
        return [{"ename": said[0], "evalue": said[1], "output_type": "error", "traceback": [": ".join(said)]}]
    raise AssertionError("a cell that is to raise does not")


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
        if absent := missing(json.loads(text)):
            print(f"{path.name}: not run without {', '.join(absent)}")
            continue
        new = json.dumps(played(json.loads(text), NOTEBOOKS), indent=1, ensure_ascii=False) + "\n"
        if new != text:
            different.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    print(*(f"{name}: other outputs" for name in different), sep="\n", end="\n" if different else "")
    return 1 if different and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
