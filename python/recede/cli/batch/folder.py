"""The folder of results: whose job it is, what is done, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from recede._files import write_whole
from recede.cli.batch.units import Unit
from recede.cli.batch.work import DONE, Outcome
from recede.cli.errors import bad_file, errors_of


def begin(out: str, job: dict[str, Any]) -> None:
    """Create the folder, or reuse that of the same job.

    Raises:
        UsageError: it has the results of another job, or something else.
    """
    folder, note = Path(out), Path(out, DONE, "job.json")
    text = json.dumps(job, indent=1)
    with errors_of(out, "cannot be written: "):
        if note.exists():
            before, now = _noted(note), json.loads(text)
            if before != now:
                changed = ", ".join(name for name in now if before.get(name) != now[name])
                raise click.UsageError(f"{out} has the results of another job ({changed} differ): take another folder")
            return
        if folder.exists() and any(one.name != DONE for one in folder.iterdir()):
            raise click.UsageError(f"{out} has files of something else: take an empty folder, or one of the same job")
        note.parent.mkdir(parents=True, exist_ok=True)
        write_whole(note, [text.encode()], 0o666)


def _noted(note: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(note.read_bytes()))
    except ValueError:
        raise bad_file(str(note), "is damaged: remove the folder") from None


def waiting(out: str, units: Sequence[Unit]) -> list[Unit]:
    """The units that are not done; what a killed worker has left is removed."""
    for left in Path(out, DONE).glob("*.part"):
        left.unlink(missing_ok=True)
    return [unit for unit in units if not Path(out, DONE, f"{unit.name}.json").exists()]


def outcomes(out: str, units: Sequence[Unit]) -> Iterator[Outcome]:
    """What came of each unit that is done, in order."""
    for unit in units:
        path = Path(out, DONE, f"{unit.name}.json")
        if path.exists():
            yield Outcome(**json.loads(path.read_bytes()))


def finish(out: str, failed: Sequence[dict[str, Any]], summary: dict[str, Any]) -> None:
    """Write errors.jsonl and summary.json."""
    lines = [json.dumps(one).encode() + b"\n" for one in failed]
    errors = Path(out, "errors.jsonl")
    if lines:
        write_whole(errors, lines, 0o666)
    else:
        errors.unlink(missing_ok=True)
    write_whole(Path(out, "summary.json"), [json.dumps(summary, indent=1).encode() + b"\n"], 0o666)
