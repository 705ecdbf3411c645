"""The tasks of a job: a file of lines, or a row group of Parquet, and where its result goes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from recede.cli.errors import BadFile, bad_file, errors_of, say
from recede.cli.sessions import chosen
from recede.cli.signatures import HEAD_BYTES, likeness

_SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".zst")
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


class Task(NamedTuple):
    """A unit of work, whose result is one file.

    Attributes:
        path: the file.
        target: where the result goes.
        packed: ``gzip`` or ``zstd`` for a file of lines that is.
        group: the row group of a Parquet file.
        first_row: the number of its first row in the file.
    """

    path: str
    target: str
    packed: str | None = None
    group: int | None = None
    first_row: int = 0

    @property
    def errors(self) -> str:
        """The file that lists the bad rows, one line of JSON for each."""
        return f"{self.target}.errors"

    def is_done(self) -> bool:
        """Whether the result exists and belongs to the file as it is now."""
        target = Path(self.target)
        return target.exists() and target.stat().st_mtime_ns >= Path(self.path).stat().st_mtime_ns


def tasks_of(inputs: Sequence[str], out: str) -> list[Task]:
    """List the tasks of files and folders, in order. Files in `out` are not inputs."""
    results, tasks = Path(out).resolve(), list[Task]()
    files = [file for file in chosen(inputs, suffixes=_SUFFIXES) if results not in Path(file.path).resolve().parents]
    if not files:
        raise click.UsageError(f"all files are in {out}, the folder of the results: choose another one")
    try:
        shared = os.path.commonpath([Path(file.path).resolve().parent for file in files])
    except ValueError:
        raise click.UsageError("the files are on several drives: run one job for each drive") from None
    for file in files:
        try:
            tasks += _tasks_of(file.path, results / Path(file.path).resolve().relative_to(shared))
        except BadFile as error:
            if file.is_named:
                raise
            say(f"warning: left out: {error.message}")
    return tasks


def _tasks_of(path: str, target: Path) -> Iterator[Task]:
    with errors_of(path), Path(path).open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(b"PAR1"):
        yield from _row_groups(path, target)
        return
    packed = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
    if packed is None and (looks := likeness(head)) is not None:
        raise bad_file(path, f"it looks like {looks}; batches are Parquet and JSON Lines")
    yield Task(path, str(target), packed)


def _row_groups(path: str, target: Path) -> Iterator[Task]:
    import pyarrow.parquet

    try:
        metadata: Any = pyarrow.parquet.read_metadata(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise bad_file(path, f"it cannot be read as Parquet: {error}") from None
    count, first = metadata.num_row_groups, 0
    for group in range(max(count, 1)):
        name = target if count < 2 else target.with_name(f"{target.stem}-{group:05}{target.suffix}")
        yield Task(path, str(name), None, group, first)
        first += metadata.row_group(group).num_rows if count else 0
