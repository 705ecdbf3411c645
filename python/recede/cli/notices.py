"""Output beside the results: warnings, folded by kind, and whether there are colors."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from recede.cli.errors import BadFile
from recede.cli.options import all_of

_COLOR = "recede.color"
_VERBOSITY = "recede.verbosity"
_COUNTED = re.compile(r"(?P<kind>.*?)(?:: (?P<count>\d+) times)?(?:(?:, first in|:) line (?P<line>\d+))?", re.DOTALL)


def _remembered(key: str, value: Any, *names: str, help: str) -> Callable[[Any], Any]:
    """A flag that leaves a value in the context's ``meta``."""

    def store(ctx: click.Context, param: click.Parameter, is_given: bool) -> None:
        if is_given:
            ctx.meta[key] = value

    return click.option(*names, is_flag=True, expose_value=False, callback=store, help=help)


output_options = all_of(
    _remembered(_VERBOSITY, -1, "-q", "--quiet", help="No warnings."),
    _remembered(_VERBOSITY, 1, "-v", "--verbose", help="Each warning of each file; without it one line for each kind."),
    _remembered(_COLOR, False, "--no-color", help="No colors; NO_COLOR in the environment does the same."),
)
"""The options that say how much is printed, and whether in color."""


def counted(number: int, noun: str) -> str:
    """A number of things."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


@contextmanager
def log_shown(show: Callable[[str], Any], level: int = logging.WARNING) -> Iterator[None]:
    """Show what the library logs inside the block from this level on, line by line."""
    handler = logging.Handler(level)
    handler.emit = lambda record: show(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("recede")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def has_colors() -> bool:
    """Whether standard output is a terminal that shows colors."""
    context = click.get_current_context(silent=True)
    allowed = context is None or context.meta.get(_COLOR, True)
    return bool(allowed and not os.environ.get("NO_COLOR") and sys.stdout.isatty())


def verbosity() -> int:
    """How much is printed: 1 with ``-v``, -1 with ``-q``."""
    return int(click.get_current_context().meta.get(_VERBOSITY, 0))


def warning_lines(warnings: Sequence[tuple[str, Sequence[str]]], failed: Sequence[BadFile]) -> list[str]:
    """Format the warnings as the options want them.

    Args:
        warnings: a session, and the warnings of its reader.
        failed: errors of files that were found, not named.

    Returns:
        A line for each kind; with ``-v`` one for each warning and error, with ``-q`` none.
    """
    if verbosity() < 0:
        return []
    if verbosity() > 0:
        lines = [f"{name}: warning: {warning}" for name, found in warnings for warning in found]
        return [*lines, *(f"warning: left out: {error.message}" for error in failed)]
    return [*_folded(warnings), *_left_out(failed)]


def _folded(warnings: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """A line for each kind of warning: how often there is one, and the first place."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, found in warnings:
        for warning in found:
            kinds.setdefault(_counted(warning)["kind"], []).append((name, warning))
    lines = []
    for kind, places in kinds.items():
        name, warning = places[0]
        if len(places) == 1:
            lines.append(f"{name}: warning: {warning}")
            continue
        times = sum(int(_counted(other)["count"] or 1) for _, other in places)
        line = _counted(warning)["line"]
        first = f"{name}, line {line}" if line else name
        lines.append(f"warning: {kind}: {times:,} times in {len(places):,} sessions, first in {first}")
    return lines


def _counted(warning: str) -> re.Match[str]:
    found = _COUNTED.fullmatch(warning)
    assert found is not None, "all but the kind is optional"
    return found


def _left_out(failed: Sequence[BadFile]) -> list[str]:
    kinds: dict[str, list[BadFile]] = {}
    for error in failed:
        kinds.setdefault(error.kind, []).append(error)
    return [
        f"warning: left out: {errors[0].message}"
        if len(errors) == 1
        else f"warning: {len(errors):,} files left out: {kind}; the first: {errors[0].message}"
        for kind, errors in kinds.items()
    ]
