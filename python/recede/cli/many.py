"""Process many files, by one process for each core: a bad one does not stop the others."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from recede.cli.files import InputHistory, read, write_json
from recede.cli.notices import BadFile, counted, say, warning_lines
from recede.cli.sessions import Chosen, Reading

_Done = TypeVar("_Done")
Failure = tuple[Chosen, BadFile]  # a file that could not be read or written, and why not


def over(
    files: Sequence[Chosen], reading: Reading, work: Callable[[InputHistory], _Done], *, is_parallel: bool = False
) -> tuple[list[tuple[InputHistory, _Done]], list[Failure]]:
    """Do the work for each history of each file, with a bar on a terminal where there are several.

    Where it is parallel, many files are read by a process for each core, which pickle what the work returns.
    """

    def outcome(file: Chosen) -> list[tuple[InputHistory, _Done]] | Failure:
        try:
            return [
                (replace(one, data=b"", json=b"", session=None), work(one))
                for one in read(file.path, reading, is_found=not file.is_named)
            ]
        except BadFile as error:
            return file, error

    done: list[tuple[InputHistory, _Done]] = []
    failed: list[Failure] = []
    outcomes: Iterable[list[tuple[InputHistory, _Done]] | Failure] = map(outcome, files)
    if is_parallel:
        outcomes = in_processes(outcome, files)
    for found in _tracked(outcomes, len(files)):
        if isinstance(found, tuple):
            failed.append(found)
        else:
            done += found
    return done, failed


def _tracked(outcomes: Iterable[_Done], files: int) -> Iterator[_Done]:
    if files < 2 or not sys.stderr.isatty():
        yield from outcomes
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        yield from bar.track(outcomes, total=files, description="reading")


def named(history: InputHistory) -> str:
    """The name of the file, with the number of the history if there are several."""
    return history.name if history.siblings == 1 else f"{history.name}#{history.index + 1}"


def short_names(names: Sequence[str]) -> list[str]:
    """Shorten paths to the last parts of each, as many as no other path ends with."""
    parts = {name: Path(name).parts for name in names}
    counts = Counter(path[-size:] for path in set(parts.values()) for size in range(1, len(path) + 1))
    return [
        next((str(Path(*path[-size:])) for size in range(1, len(path)) if counts[path[-size:]] == 1), name)
        for name, path in ((name, parts[name]) for name in names)
    ]


def write_report(
    figures: Iterable[tuple[InputHistory, dict[str, Any]]], total: dict[str, Any], failed: Sequence[Failure]
) -> None:
    """The JSON report, of the same form for any number of files."""
    histories = [
        {"file": one.name, "index": one.index, "format": one.format, **found, "warnings": one.warnings}
        for one, found in figures
    ]
    write_json({"histories": histories, "total": total, "failed": [error.message for _, error in failed]})


def notes_of(done: Sequence[tuple[InputHistory, Any]], failed: Sequence[Failure]) -> list[str]:
    """Warnings of histories, and why files that were found, not named, were left out, as the options want them."""
    found = [error for file, error in failed if not file.is_named]
    return warning_lines([(named(history), history.warnings) for history, _ in done], found)


def finish(done: Sequence[tuple[InputHistory, _Done]], failed: Sequence[Failure], warn: bool) -> None:
    """Report warnings and errors on standard error, and exit with 1 if a file that was named is bad, or all are."""
    errors = [error for file, error in failed if file.is_named]
    if warn:
        for line in notes_of(done, failed):
            say(line)
    if failed and not done and not errors:
        errors = [BadFile(f"no session can be read, of {counted(len(failed), 'file')} that may hold one")]
    for error in errors:
        error.show()
    if errors:
        click.get_current_context().exit(1)


_File = TypeVar("_File")
_Outcome = TypeVar("_Outcome")

_LEAST_FILES = 64  # fewer are read in less time than processes take
_CHUNK = 8
_work: Callable[[Any], Any] | None = None  # of the children, which are forks: a function cannot be sent to them


def in_processes(work: Callable[[_File], _Outcome], files: Sequence[_File]) -> Iterator[_Outcome]:
    """The result of the work for each file, in order.

    Processes are forked, and only on Linux, where that is safe. Elsewhere, and for few files, the work is done here.
    """
    global _work
    count = cores()
    if sys.platform != "linux" or count < 2 or len(files) < _LEAST_FILES:
        yield from map(work, files)
        return
    import multiprocessing  # lazily, as the bar: few files need neither
    from concurrent.futures import ProcessPoolExecutor

    _work = work
    fork = multiprocessing.get_context("fork")  # a fork knows what is imported
    with ProcessPoolExecutor(count, mp_context=fork, initializer=_begin) as pool:
        try:
            yield from pool.map(_done, files, chunksize=_CHUNK)
        except BaseException:
            # Before its children end, which would be an error of work that is cancelled.
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():  # none of its work is wanted
                child.terminate()
            raise


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a child without a traceback
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End a child whose parent was killed: it would wait for its next file for ever."""
    import multiprocessing

    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _done(file: Any) -> Any:
    assert _work is not None, "set before the fork"
    return _work(file)
