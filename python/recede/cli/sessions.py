"""Files to read, and how: those that are named, those in a folder, or the sessions in the usual places of agents."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from recede import transcripts
from recede._errors import printable
from recede.cli.notices import BadFile, say
from recede.cli.options import Whole, all_of
from recede.cli.tables import middle
from recede.transcripts._places import usual_places

# What is held in memory: a line, or a file that is one value. --max-bytes sets it, too.
_LINE_BYTES = 1_000_000_000
_FOUND_LINE_BYTES = 256_000_000  # of a file that was found, not named
_MOST_PACKED = 64  # times its size: sessions are packed to a fifth or a tenth

max_bytes_option = click.option(
    "--max-bytes",
    type=Whole(min=1),
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


_SUFFIXES = (".json", ".jsonl", ".traj", ".gz")
_UNITS = {"h": 3_600, "d": 86_400, "w": 7 * 86_400}
_COLUMNS = 80
_HEAD = 1 << 16  # bytes in which a session names its folder
_CWD = re.compile(rb'"cwd":\s*("(?:[^"\\]|\\.)*")')


class Chosen(NamedTuple):
    """A file to read, or a folder of events as OpenHands writes it; it was named, or found in a folder."""

    path: str
    is_named: bool
    is_of_agent: bool = False  # whether it was found in the usual place of an agent


def _since(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    if ago := re.fullmatch(r"(\d{1,6})([hdw])", value):
        return time.time() - int(ago[1]) * _UNITS[ago[2]]
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is neither a date such as 2026-01-31 nor 7d, 12h or 2w", ctx, param
        ) from None


since_option = click.option(
    "--since",
    callback=_since,
    metavar="WHEN",
    help="Only requests made since a date, or 7d, 12h, 2w ago; of sessions without times, those written since.",
)

project_option = click.option(
    "--project",
    metavar="TEXT",
    help="Of the sessions that are found, only those of projects whose path has this in it.",
)


def chosen(files: Sequence[str], since: float | None = None, project: str | None = None) -> list[Chosen]:
    """Named files, those in named folders, or without any the sessions in the usual places; BadFile: there are none."""
    found: list[Chosen] = []
    is_wanted = _filter(since, project)
    for file in files:
        folder = Path(file)
        if file != "-" and folder.is_dir():
            found += (Chosen(str(path), False) for path in _walked(folder) if is_wanted(path, folder))
        else:
            found.append(Chosen(file, True))
    for place in () if files else usual_places():
        paths = sorted({path for pattern in place.patterns for path in place.folder.glob(pattern)})
        # A named pipe that nobody writes to is waited for, a device has no end.
        paths = [path for path in paths if path.is_file() or path.is_dir()]
        found += (Chosen(str(path), False, True) for path in paths if is_wanted(path, place.folder))
    if found:
        return found
    if files:
        raise BadFile(f"no files that may hold sessions are in {', '.join(files)}")
    if since is None and project is None:
        raise NothingFound
    raise BadFile(
        "no sessions that match --since and --project are in the usual places; name files: recede replay FILES..."
    )


def _walked(folder: Path) -> Iterator[Path]:
    """The files that may hold sessions, and the folders of events, which are one session each."""
    if _has_events(folder):
        yield folder
        return
    for name, folders, files in os.walk(folder):
        here = Path(name)
        folders.sort()
        for inner in list(folders):
            if _has_events(here / inner):
                folders.remove(inner)
                yield here / inner
        yield from (here / file for file in sorted(files) if file.endswith(_SUFFIXES) and (here / file).is_file())


def _has_events(folder: Path) -> bool:
    return folder.name == "events" and ((folder / "0.json").is_file() or any(folder.glob("event-00000-*.json")))


def _filter(since: float | None, project: str | None) -> Callable[[Path, Path], bool]:
    wanted = None if project is None else _encoded(_absolute(project))
    digest = None if project is None else hashlib.sha256(_absolute(project).encode()).hexdigest()

    def is_wanted(path: Path, root: Path) -> bool:
        try:
            if since is not None and path.stat().st_mtime < since:
                return False  # what was not written since has no request since
            if wanted is None:
                return True
            inner = str(path.relative_to(root))
            return wanted in _encoded(inner) or f"{digest}{os.sep}" in inner or wanted in _encoded(project_of(path))
        except OSError:
            return since is None and wanted is None  # reading it says why

    return is_wanted


def _absolute(project: str) -> str:
    """A path in full, another text as it is."""
    is_path = project.startswith((".", "~")) or Path(project).is_absolute()
    return os.path.realpath(Path(project).expanduser()) if is_path else project


def _encoded(path: str) -> str:
    """A path as Claude Code names the folder of a project."""
    return re.sub(r"[^a-z0-9]", "-", path.lower())


def project_of(path: Path) -> str:
    """The folder in which a session was held, as it says itself or a file beside it."""
    if path.is_dir():
        return ""
    marker = path.parent.parent / ".project_root"  # of Gemini CLI
    if marker.is_file():
        return marker.read_text(errors="replace").strip()
    with path.open("rb") as file:
        named = _CWD.search(file.read(_HEAD))
    try:
        folder: Any = json.loads(named[1]) if named else ""
    except ValueError:
        return ""
    return str(folder)


class NothingFound(BadFile):
    """An error where no agent has left a session in its usual place: it says which were read, and how to begin."""

    def __init__(self) -> None:
        super().__init__("no sessions of agents are in their usual places")

    def show(self, file: object = None) -> None:
        say(self.message)
        home, before = str(Path.home()), ""
        for agent, folder, _ in usual_places():
            shown = f"~{str(folder)[len(home) :]}" if str(folder).startswith(home + os.sep) else str(folder)
            click.echo(printable(f"  {'' if agent == before else agent:14} {middle(shown, _COLUMNS - 17)}"), err=True)
            before = agent
        click.echo("sessions elsewhere: recede replay FILES...   from now on: recede proxy -- claude", err=True)
