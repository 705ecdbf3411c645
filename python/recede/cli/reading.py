"""The options that say how files are read."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from recede import transcripts
from recede.cli.options import all_of

# What is held in memory: a line, or a file that is one value. --max-bytes sets it, too.
_LINE_BYTES = 1_000_000_000
_FOUND_LINE_BYTES = 256_000_000  # of a file that was found, not named
_MOST_PACKED = 64  # times its size: sessions are packed to a fifth or a tenth

max_bytes_option = click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    default=transcripts.MAX_BYTES,
    show_default=True,
    metavar="N",
    help="Read at most N bytes of text from a file, unpacked.",
)


class Reading(NamedTuple):
    """How a file is read: the arguments of `recede.transcripts.read_all`."""

    format: str | None = None
    path: str | None = None
    text_mode: bool = False
    max_bytes: int = transcripts.MAX_BYTES
    max_line_bytes: int = _LINE_BYTES
    keep_texts: bool = True

    def of_found(self, size: int) -> Reading:
        """The limits for a file of this size that was found, not named: anybody may have put it there."""
        most = max(_FOUND_LINE_BYTES, _MOST_PACKED * size)
        return self._replace(
            max_bytes=min(self.max_bytes, most), max_line_bytes=min(self.max_line_bytes, _FOUND_LINE_BYTES)
        )


def reading_options(command: Any) -> Any:
    """Give a command these options, as one argument `reading`."""

    @functools.wraps(command)
    def collected(format_name: str | None, path: str | None, text_mode: bool, max_bytes: int, **options: Any) -> Any:
        given = click.get_current_context().get_parameter_source("max_bytes") is not ParameterSource.DEFAULT
        lines = max_bytes if given else _LINE_BYTES
        return command(reading=Reading(format_name, path, text_mode, max_bytes, lines), **options)

    return all_of(
        click.option(
            "--format",
            "format_name",
            type=click.Choice(transcripts.FORMATS),
            metavar="NAME",
            help="Read the files as this format instead of detecting it from the content.",
        ),
        click.option(
            "--path",
            metavar="NAME.NAME",
            help="Where the history is in the file, or in each line: messages, body.messages.",
        ),
        click.option(
            "--text-mode",
            is_flag=True,
            help="Take a user message that follows one of the agent without calls as its result.",
        ),
        max_bytes_option,
    )(collected)
