"""A process for each unit: one that dies takes no other with it, and is tried again row by row."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, TypeVar

_Unit = TypeVar("_Unit")
_MOST_DEATHS = 20  # of workers on one unit
_WAIT_SECONDS = 1.0

Work = Callable[[Any, "frozenset[int] | None", Callable[[int], None]], Any]


class Failed(NamedTuple):
    """A unit that could not be done.

    Attributes:
        kind: ``died`` or ``failed``.
        error: why.
    """

    kind: str
    error: str


class _Child(NamedTuple):
    process: Any
    unit: Any
    skipped: frozenset[int] | None
    announced: list[int]  # rows that were announced
    deaths: int


def in_workers(units: Sequence[_Unit], work: Work, jobs: int) -> Iterator[tuple[_Unit, Any] | None]:
    """What the work returns for each unit, as they end; None from time to time, so that progress can be shown.

    Args:
        units: what is worked on.
        work: called in a process of its own with a unit, rows to leave out (None at first), and a function that
            announces a row. After a worker has died it is asked again to announce each row; the row on which it dies is
            left out the next time.
        jobs: how many processes.

    Yields:
        The unit and what the work returned, or `Failed`.
    """
    waiting: list[tuple[Any, frozenset[int] | None, int]] = [(unit, None, 0) for unit in reversed(units)]
    running: dict[Connection, _Child] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                _start(running, work, *waiting.pop())
            for pipe in wait(list(running), _WAIT_SECONDS):
                assert isinstance(pipe, Connection)
                child = running[pipe]
                try:
                    kind, value = pipe.recv()
                except (EOFError, OSError):
                    del running[pipe]
                    again = _died(child)
                    if isinstance(again, Failed):
                        yield child.unit, again
                    else:
                        waiting.append(again)
                    continue
                if kind == "row":
                    child.announced.append(value)
                    continue
                del running[pipe]
                child.process.join()
                yield child.unit, value
            yield None
    finally:
        for child in running.values():
            child.process.kill()
            child.process.join()


def _start(
    running: dict[Connection, _Child], work: Work, unit: Any, skipped: frozenset[int] | None, deaths: int
) -> None:
    # A fork knows what is imported; elsewhere it is not safe, and the work must be picklable.
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    receives, sends = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sends, work, unit, skipped))
    process.start()
    sends.close()
    running[receives] = _Child(process, unit, skipped, [], deaths)


def _run(pipe: Connection, work: Work, unit: Any, skipped: frozenset[int] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    try:
        outcome = work(unit, skipped, lambda row: pipe.send(("row", row)))
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        if os.environ.get("RECEDE_DEBUG"):
            traceback.print_exc()
        outcome = Failed("failed", words)
    pipe.send(("done", outcome))


def _died(child: _Child) -> tuple[Any, frozenset[int] | None, int] | Failed:
    """The unit once more, or why not."""
    child.process.join()
    code, deaths = child.process.exitcode, child.deaths + 1
    why = f"by signal {-code}" if code and code < 0 else f"with exit code {code}"
    if child.skipped is None:
        return child.unit, frozenset(), deaths
    if not child.announced or deaths > _MOST_DEATHS:
        return Failed("died", f"{deaths} workers died on it, the last {why}: too little memory?")
    return child.unit, child.skipped | {child.announced[-1]}, deaths
