"""The options that say how files are read."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import click

from recede import transcripts
from recede.cli.options import all_of

max_bytes_option = click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    default=transcripts.MAX_BYTES,
    show_default=True,
    metavar="N",
    help="Read at most N bytes of text from a file, unpacked.",
)

text_mode_option = click.option(
    "--text-mode",
    is_flag=True,
    help="Take a user message that follows one of the agent without calls as its result.",
)


class Reading(NamedTuple):
    """How a file is read: the arguments of `recede.transcripts.read_all`."""

    format: str | None = None
    path: str | None = None
    text_mode: bool = False
    max_bytes: int = transcripts.MAX_BYTES
    keep_texts: bool = True


def reading_options(command: Any) -> Any:
    """Give a command these options, as one argument `reading`."""

    @functools.wraps(command)
    def collected(format_name: str | None, path: str | None, text_mode: bool, max_bytes: int, **options: Any) -> Any:
        return command(reading=Reading(format_name, path, text_mode, max_bytes), **options)

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
        text_mode_option,
        max_bytes_option,
    )(collected)
