"""Children of the tests that are killed, or whose memory is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def killed(work: Callable[[int], None], told_first: int, seconds: float) -> int:
    """Kills a child that does this, some time after it has written so many lines; the number in its last line, or 0."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            work(writing)
        finally:
            os._exit(3)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = [pipe.readline() for _ in range(told_first)]
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        told += pipe.read().split()
    assert os.WIFSIGNALED(status), "the child ended by itself"
    return int(told[-1]) if told else 0


RESIDENT = """
def resident(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))
"""


def kilobytes_of(code: str, path: Path, turns: int, kind: str) -> int:
    """What a child prints that does this with a store at a path, and may ask for its `resident` memory."""
    arguments = [sys.executable, "-c", RESIDENT + code, str(path), str(turns), kind]
    child = subprocess.run(arguments, capture_output=True, text=True)
    assert not child.stderr, child.stderr
    path.unlink()
    return int(child.stdout)
