"""Errors of files: a line each on standard error, that names the file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from recede import StoreError, TranscriptError
from recede._printable import printable


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
    """The line for an error of a reader."""
    return BadFile(str(error), str(TranscriptError(error.kind)))


def bad_file(name: str, reason: str) -> BadFile:
    """The error for a file that cannot be read or written."""
    return BadFile(f"{name}: {reason}", reason)


def name_of(path: str) -> str:
    """The name of a file in errors; `-` is standard input."""
    return "standard input" if path == "-" else path
