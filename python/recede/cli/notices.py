"""Output beside the results: warnings, folded by kind, a line for each bad file, and whether there are colors."""

from __future__ import annotations

import gzip
import logging
import os
import re
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from recede import StoreError, TranscriptError
from recede._errors import printable
from recede.cli.options import all_of


def say(line: str) -> None:
    """Print a line beside the results; an end of a line in it is escaped, like all that a terminal interprets."""
    click.echo(f"recede: {printable(line)}", err=True)


class BadFile(click.ClickException):
    """Ends the work on a file with one line on standard error, and the command with exit code 1."""

    def __init__(self, message: str, kind: str | None = None) -> None:
        """The whole line; and what is wrong, without the name of the file and the place in it."""
        super().__init__(message)
        self.kind = kind or message

    def __reduce__(self) -> tuple[Any, ...]:
        return BadFile, (self.message, self.kind)

    def show(self, file: object = None) -> None:
        say(self.message)


@contextmanager
def errors_of(name: str, what: str = "") -> Iterator[None]:
    """Turn errors of reading or writing inside the block into the line that names the file, and says what failed."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader closed the pipe: click exits silently
    except StoreError as error:
        raise BadFile(str(error)) from None
    except TranscriptError as error:
        raise line_of(error) from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise line_of(TranscriptError("gzip", source=name)) from None
    except OSError as error:
        raise bad_file(name, f"{what}{error.strerror or error}") from None


def line_of(error: TranscriptError) -> BadFile:
    return BadFile(str(error), str(TranscriptError(error.kind)))


def bad_file(name: str, reason: str) -> BadFile:
    return BadFile(f"{name}: {reason}", reason)


def name_of(path: str) -> str:
    """The name of a file in errors; `-` is standard input."""
    return "standard input" if path == "-" else path


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
    context = click.get_current_context(silent=True)
    allowed = context is None or context.meta.get(_COLOR, True)
    return bool(allowed and not os.environ.get("NO_COLOR") and sys.stdout.isatty())


def verbosity() -> int:
    """How much is printed: 1 with ``-v``, -1 with ``-q``."""
    return int(click.get_current_context().meta.get(_VERBOSITY, 0))


def warning_lines(warnings: Sequence[tuple[str, Sequence[str]]], failed: Sequence[BadFile]) -> list[str]:
    """The warnings of each session, then of files that were found and are left out: a line for each kind.

    With ``-v`` there is one for each warning and error, with ``-q`` none.
    """
    if verbosity() < 0:
        return []
    places = [(name, warning) for name, found in warnings for warning in found]
    if verbosity() > 0:
        lines = [f"{name}: warning: {warning}" for name, warning in places]
        return [*lines, *(f"warning: left out: {error.message}" for error in failed)]
    by_kind, by_error = defaultdict(list), defaultdict(list)
    for name, warning in places:
        by_kind[_counted(warning)["kind"]].append((name, warning))
    for error in failed:
        by_error[error.kind].append(error.message)
    return [
        *(_folded(kind, some) for kind, some in by_kind.items()),
        *(
            f"warning: left out: {messages[0]}"
            if len(messages) == 1
            else f"warning: {len(messages):,} files left out: {kind}; the first: {messages[0]}"
            for kind, messages in by_error.items()
        ),
    ]


def _folded(kind: str, places: Sequence[tuple[str, str]]) -> str:
    """A line for a kind of warning: how often there is one, and the first place."""
    name, warning = places[0]
    if len(places) == 1:
        return f"{name}: warning: {warning}"
    times = sum(int(_counted(other)["count"] or 1) for _, other in places)
    line = _counted(warning)["line"]
    first = f"{name}, line {line}" if line else name
    return f"warning: {kind}: {times:,} times in {len(places):,} sessions, first in {first}"


def _counted(warning: str) -> re.Match[str]:
    found = _COUNTED.fullmatch(warning)
    assert found is not None, "all but the kind is optional"
    return found
