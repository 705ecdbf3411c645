"""Process many files: a bad one does not stop the others."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import Progress

from recede import transcripts
from recede.cli.files import BadFile, Transcript, read, write

__all__ = ["finish", "format_option", "max_bytes_option", "named", "over", "write_report"]

_Done = TypeVar("_Done")

format_option = click.option(
    "--format",
    "format_name",
    type=click.Choice(transcripts.FORMATS),
    metavar="NAME",
    help="Read the files as this format instead of detecting it from the content.",
)

max_bytes_option = click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    default=transcripts.MAX_BYTES,
    show_default=True,
    metavar="N",
    help="Read at most N bytes of text from a file, unpacked.",
)


def over(
    files: Sequence[str], format: str | None, max_bytes: int, work: Callable[[Transcript], _Done]
) -> tuple[list[tuple[Transcript, _Done]], list[BadFile]]:
    """Do the work for each history of each file, with a bar on a terminal where there are several."""
    done: list[tuple[Transcript, _Done]] = []
    failed: list[BadFile] = []
    hidden = len(files) < 2 or not sys.stderr.isatty()
    with Progress(console=Console(stderr=True), transient=True, disable=hidden) as bar:
        for file in bar.track(files, description="reading"):
            try:
                histories = read(file, format, max_bytes)
                done += [(_without_text(history), work(history)) for history in histories]
            except BadFile as error:
                failed.append(error)
    return done, failed


def _without_text(history: Transcript) -> Transcript:
    return Transcript(**{**vars(history), "data": b"", "json": b""})


def named(history: Transcript) -> str:
    """The name of the file, with the number of the history if there are several."""
    name = history.name if history.name.isprintable() else ascii(history.name)
    return name if history.siblings == 1 else f"{name}#{history.index + 1}"


def write_report(histories: list[dict[str, Any]], total: dict[str, Any], failed: list[BadFile]) -> None:
    """The JSON report, of the same form for any number of files."""
    report = {"histories": histories, "total": total, "failed": [error.message for error in failed]}
    write(None, json.dumps(report, indent=2).encode() + b"\n")


def finish(done: list[tuple[Transcript, _Done]], failed: list[BadFile], warn: bool) -> None:
    """Report errors on standard error, and exit with 1 if a file was bad."""
    if warn:
        for history, _ in done:
            for warning in history.warnings:
                click.echo(f"recede: {named(history)}: warning: {warning}", err=True)
    for error in failed:
        error.show()
    if failed:
        click.get_current_context().exit(1)
