"""Measures recede against its rivals in one run, and prints what it set out to reach: `python benches/table.py`.

The answers are compared first. Contenders take turns, on one core where the system allows it, with the garbage
collector off; what counts is the best of many. Each table is measured in a process of its own (benches/jobs.py).
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import economy
import maskers
import providers
import reasoning

import cost
import formatting
import plain
import speed
import stores
from claims import FULL, QUICK, Claim, Plan, Section

SECTIONS: list[Callable[[Plan], Section]] = [
    speed.bytes_to_bytes,
    speed.untouched,
    speed.dicts_to_dicts,
    speed.two_threads,
    speed.small,
    speed.break_even,
    speed.sessions,
    speed.contexts,
    cost.memory,
    cost.session_memory,
    cost.stored_turns,
    cost.instructions,
    cost.against_copies,
    cost.hostile,
    stores.stores,
    economy.economy,
    providers.providers,
    reasoning.reasoning,
    maskers.masker,
    plain.python,
]

NOTES = """\
Synthetic histories of `benches/histories.py`. In the tables all results but the last 4 are masked, as
`recede.reduce(history, keep=4, boundary="sliding", provider="none")` does. Best of many runs (of one, where it takes
over {share:.2g} s), contenders in turns, garbage collector off. Answers were compared first: all views are equal, and
the tuned loops tell what recede tells. Neither the simplest loops nor msgspec check pairs or count, and no loop decides
when masking pays. README quotes "Bytes to bytes" at 20 MB and "Dicts to dicts" at 1,000 and 10,000 messages. Why what
is missed is missed, and what was tried: docs/decisions/0012-what-the-core-does-not-reach.md."""

REPEAT = """\
## To repeat it

- `make bench WRITE=1`: all of the above, written here; it takes some ten minutes, 4 GB of memory and 1 GB of disk.
- `make bench QUICK=1`: smaller and shorter, in about a minute. `ONLY=small,hostile` takes some of the sections:
  {sections}.
- `cargo bench`: the core alone; `RECEDE_BENCH_FILE=history.json` another history. `RECEDE_SCANNER=word` (`sse2`,
  `avx2`, `neon`) forces an instruction set, here and in Python.
- `pytest benches/test_reduce.py`: single comparisons. That rivals answer as recede does is among the tests.
- `make fuzz SECONDS=600`: the scanner against a full parser, and the core against the oracle.

Memory is told by /proc, and instructions by valgrind's callgrind; where either is missing, its lines say so. The lines
of the threads mean something only while nothing else needs the second core."""


def repeat() -> str:
    """How to measure it again."""
    sections = ", ".join(f"`{section.__name__}`" for section in SECTIONS)
    return REPEAT.format(sections=textwrap.fill(sections, 116).replace("\n", "\n  "))


def verdict(claim: Claim) -> str:
    """In a word."""
    return "" if claim.is_met is None else "met" if claim.is_met else "**missed**"


def progress(words: str) -> None:
    """Tell who waits; the table itself goes to standard output."""
    print(words, file=sys.stderr, flush=True)


def report(plan: Plan, only: list[str]) -> str:
    """Everything, as Markdown."""
    claims: list[Claim] = []
    details: list[str] = []
    where = formatting.surroundings()
    for section in SECTIONS:
        if only and section.__name__ not in only:
            continue
        start = perf_counter()
        found = section(plan)
        claims += found.claims
        details += [found.details] if found.details else []
        progress(f"{section.__name__}: {perf_counter() - start:.0f} s")
    claims.sort(key=lambda claim: claim.line)
    judged = [claim for claim in claims if claim.is_met is not None]
    rows = [[claim.line, claim.what, claim.figure, claim.target, verdict(claim)] for claim in claims]
    parts = [
        "# Results of `make bench`",
        "A quick run: sizes are smaller, and times less certain.\n" if plan == QUICK else "",
        where,
        NOTES.format(share=plan.seconds / 3),
        f"## What to reach\n\n{sum(bool(claim.is_met) for claim in judged)} of {len(judged)} met.",
        formatting.markdown(["line", "what", "figure", "target", ""], rows).replace("---:", "---"),
        *details,
        repeat(),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def main() -> None:
    """Measure, print, and write if asked."""
    parser = argparse.ArgumentParser(description="Measure recede against what one would write without it.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and shorter times")
    parser.add_argument("--seconds", type=float, help="time for each table and size")
    parser.add_argument("--only", default="", help="some sections, with commas between")
    parser.add_argument("--write", action="store_true", help="write benches/RESULTS.md too")
    arguments = parser.parse_args()
    plan = QUICK if arguments.quick else FULL
    if arguments.seconds is not None:
        plan = plan._replace(seconds=arguments.seconds)
    only = [name for name in arguments.only.split(",") if name]
    unknown = set(only) - {section.__name__ for section in SECTIONS}
    if unknown:
        parser.error(f"no section: {', '.join(sorted(unknown))}")
    text = report(plan, only)
    print(text, end="")
    if arguments.write:
        Path(__file__).with_name("RESULTS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
