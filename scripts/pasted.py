"""Pastes the blocks of Python of a page into an interpreter, as a reader does; their comments are what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPTS = re.compile(r"^(?:>>> |\.\.\. )+", re.MULTILINE)


def pasted(page: str, python: str = sys.executable) -> int:
    """Paste each block of a page into a new interpreter; return how many lines these are.

    Lines that begin with ``#`` are what a block prints. Raises AssertionError where it prints anything else.
    """
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONSTARTUP", "PYTHONINSPECT")}
    blocks = _BLOCK.findall(page)
    for block in blocks:
        done = subprocess.run(
            [python, "-q", "-i"],
            input=block + "\n",
            capture_output=True,
            text=True,
            encoding="utf-8",
            env={**kept, "PYTHON_BASIC_REPL": "1", "PYTHONIOENCODING": "utf-8"},
        )
        errors = _PROMPTS.sub("", done.stderr).strip()
        assert not errors, f"{errors}\nis what {python} says to this block:\n{block}"
        expected = "".join(f"{line[2:]}\n" for line in block.splitlines() if line.startswith("# "))
        assert done.stdout == expected, f"{python} prints\n{done.stdout}for this block:\n{block}"
    return sum(block.count("\n") for block in blocks)
