"""Work on many files by one process for each core."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

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
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _done(file: Any) -> Any:
    assert _work is not None, "set before the fork"
    return _work(file)
