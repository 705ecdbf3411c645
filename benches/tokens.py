"""How far off four characters a token are: `python benches/tokens.py` prints the table of docs/measured.md.

It counts the recorded sessions (`make corpus`) with OpenAI's vocabulary o200k_base, which bpe-openai has in its
package, and by a quarter of the characters. Both leave out what providers put around messages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from recorded import files

from recede import transcripts
from recede.designs import Budget, approx_tokens

# What is smaller says more about its one or two messages than about a format.
LEAST_TOKENS = 1_000


class Counted(NamedTuple):
    """A session by both counts."""

    exact: int
    approximate: int

    @property
    def error(self) -> float:
        """How much too many (or, below 0, too few) the approximation has."""
        return self.approximate / self.exact - 1


def counter() -> Callable[[str], int]:
    """From a text to its number of tokens."""
    from bpe_openai import get_encoding  # which reads its vocabularies

    encode = get_encoding("o200k_base").encode_ordinary
    # Half a surrogate pair has no bytes, and counts as the character that stands for it.
    return lambda text: len(encode(text.encode("utf-8", "replace").decode()))


def counted(paths: Iterable[Path]) -> dict[str, list[Counted]]:
    """Every session of these files, by format."""
    budget = Budget(token_counter=counter())
    found: dict[str, list[Counted]] = {}
    for path in paths:
        for one in transcripts.read_all(path):
            session = Counted(budget.tokens(one.messages), approx_tokens(one.messages))
            if session.exact >= LEAST_TOKENS:
                found.setdefault(one.format, []).append(session)
    return found


def table(formats: dict[str, list[Counted]]) -> str:
    """The table, as it stands in the document."""
    lines = [
        "| format | sessions | tokens | all together | median | from | to |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    every = [session for sessions in formats.values() for session in sessions]
    for name, sessions in [*sorted(formats.items()), ("all", every)]:
        together = Counted(*map(sum, zip(*sessions, strict=True)))
        errors: list[Any] = [session.error for session in sessions]
        figures = [together.error, median(errors), min(errors), max(errors)]
        cells = [name, str(len(sessions)), f"{together.exact:,}", *(f"{figure:+.0%}" for figure in figures)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table(counted(files())))
