"""Children of the tests: forked instead of started, killed, or measured."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path


def forked(command: list[str], environment: Mapping[str, str]) -> Callable[[], None]:
    """A `preexec_fn` that runs `python -m module ...` or `python -c code ...` in the fork, and never reaches its exec.

    The clients of the providers are imported here already; importing them again takes longer than most tests.
    On other systems than Linux a fork is not a safe place for that, and the command is started.
    """

    def run() -> None:
        # As a terminal starts a program, also where these tests run in the background of a shell, which ignores some.
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if sys.platform != "linux":
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        gc.freeze()  # nothing of the parent is finalized here: its descriptors are closed, and their numbers used again
        os.closerange(3, 1 << 16)  # also the pipe on which the parent waits for an exec
        os.environ.clear()
        os.environ.update(environment)
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
        sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
        sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        warnings.simplefilter("ignore")
        logging.root.handlers.clear()
        os._exit(_code_of(command))

    return run


def recede_command(
    *arguments: object, stdin: bytes = b"", columns: int = 100, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """`recede` with these arguments, in a fork, or as a process of its own where an import reads the environment."""
    command = [sys.executable, "-m", "recede.cli", *map(str, arguments)]
    variables = {**os.environ, "COLUMNS": str(columns), **environment}
    is_read_first = any(name.startswith(("PYTHON", "RECEDE")) for name in environment)  # before what is imported here
    if is_read_first or sys.platform != "linux":
        return subprocess.run(command, input=stdin, capture_output=True, env=variables)
    for name in import_module("recede.cli.commands").recede.commands:  # once, and not in each fork
        import_module(f"recede.cli.{name}")
    return in_fork(command, variables, stdin)


def run(*arguments: object, code: int = 0, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """`recede` with these arguments, which must end with this code."""
    done = recede_command(*arguments, stdin=stdin)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


def in_fork(
    command: list[str], variables: Mapping[str, str], stdin: bytes = b"", folder: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """A Python command of `forked`, until it has ended."""
    with warnings.catch_warnings():
        # Of Python 3.12 and newer, where a process with threads forks; the child waits for none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        begin = forked(command, variables)
        return subprocess.run(command, input=stdin, capture_output=True, env=variables, cwd=folder, preexec_fn=begin)


def _code_of(command: list[str]) -> int:
    """The exit code of a Python command that is run here."""
    _, option, what, *arguments = command
    sys.argv = [what if option == "-m" else "-c", *arguments]
    code: object = 0
    try:
        if option == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(what, {"__name__": "__main__"})
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    return code


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
