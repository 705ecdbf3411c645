"""Run the contract of the adapters, in an environment for each framework: its newest release and the oldest supported.

The environments are in .venvs, made from the pinned files of tests/integrations/requirements and made again when these
change. Each uses the core that is built in this checkout.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "integrations"
# The newest come first, so that what a limit leaves out are the oldest.
FILES = sorted((TESTS / "requirements").glob("*-*est.txt"), key=lambda path: (path.stem.endswith("-oldest"), path))
BASE = TESTS / "requirements" / "base.txt"

_installing = Lock()


class CannotInstallError(Exception):
    """The environment cannot be made on this machine."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="frameworks, or files such as langchain-oldest, with commas between", default="")
    parser.add_argument("--seconds", type=float, default=1200, help="the limit for all")
    parser.add_argument(
        "--where-possible", action="store_true", help="what cannot be installed or finished here is no failure"
    )
    parser.add_argument("--slow", action="store_true", help="the tests of memory too, a minute or more for each")
    given = parser.parse_args()
    chosen = [name for name in given.only.split(",") if name]
    names = {path.stem: path.stem.rpartition("-")[0] for path in FILES}
    if unknown := set(chosen) - names.keys() - set(names.values()):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(sorted(set(names.values())))}")
    end = time.monotonic() + given.seconds
    paths = [path for path in FILES if not chosen or {path.stem, names[path.stem]} & set(chosen)]
    # Installing waits for the network, so it goes on while tests run, two frameworks at a time.
    with ThreadPoolExecutor(2) as installing, ThreadPoolExecutor(2) as testing:
        pythons = {path: installing.submit(environment, path, end) for path in paths}
        tried = [
            testing.submit(run, path.stem, names[path.stem], pythons[path], end, is_slow=given.slow) for path in paths
        ]
        good = (True, None) if given.where_possible else (True,)
        return int(not all(one.result() in good for one in tried))


def run(name: str, framework: str, python: Future[Path], end: float, *, is_slow: bool) -> bool | None:
    """Whether the contract of a framework holds, which is said in a line; None where this machine cannot try it."""
    start, done = time.monotonic(), None
    try:
        done, words = contract(python.result(), name, framework, end, is_slow=is_slow)
    except CannotInstallError as error:
        words = f"not run: {error}"
    except subprocess.TimeoutExpired:
        words = "not finished: over the limit for all"
    print(f"{name:24} {words} ({time.monotonic() - start:.0f} s)", flush=True)
    return done


def environment(path: Path, end: float) -> Path:
    """The Python of the environment, which is made if it is not there as the file has it."""
    folder = ROOT / ".venvs" / path.stem
    python = folder / "bin" / "python"
    told = hashlib.sha256(BASE.read_bytes() + path.read_bytes() + sys.version.encode()).hexdigest()
    stamp = folder / ".made-of"
    if stamp.is_file() and stamp.read_text() == told:
        return python
    uv = installer(end)
    install([uv, "venv", "--quiet", "--clear", "--python", interpreter(path), folder], end)
    install([uv, "pip", "install", "--quiet", "--python", python, "-r", BASE, "-r", path], end)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "recede.pth").write_text(f"{ROOT / 'python'}\n")
    stamp.write_text(told)
    return python


def interpreter(path: Path) -> Path | str:
    """This Python, or the other one that the file asks for: beside this one, or where uv finds it."""
    asked = re.search(r"python (3\.\d+)\.$", path.read_text(), re.MULTILINE)
    if asked is None:
        return Path(sys.executable)
    beside = Path(sys.base_prefix).parent.glob(f"{asked[1]}.*/bin/python")
    return next(beside, asked[1])


def installer(end: float) -> Path:
    """uv, which installs in seconds what takes pip minutes; in an environment of its own."""
    folder = ROOT / ".venvs" / "uv"
    with _installing:
        if not (folder / "bin" / "uv").is_file():
            install([sys.executable, "-m", "venv", "--clear", folder], end)
            install([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], end)
    return folder / "bin" / "uv"


def install(command: list[str | Path], end: float) -> None:
    """Run a command that installs."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=left(end))
    if done.returncode:
        raise CannotInstallError((done.stdout.strip().splitlines() or [f"{command[0]} failed"])[-1])


def contract(python: Path, name: str, framework: str, end: float, *, is_slow: bool) -> tuple[bool, str]:
    """Whether the tests of a framework pass, for the newest its types too, and the last lines of what they print."""
    output = []
    adapter = ROOT / "python/recede/integrations" / f"{framework}.py"
    tests = TESTS if adapter.is_file() else TESTS / "test_listings.py"
    # The plugin for asyncio is that of the frameworks' own tests.
    commands: list[list[str | Path]] = [["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", tests]]
    commands[0] += [] if is_slow else ["-m", "not slow"]
    if name.endswith("-newest") and adapter.is_file():
        commands.append(["-m", "mypy", "--no-incremental", adapter])
    for command in commands:
        done = subprocess.run(
            [python, *command],
            cwd=ROOT,
            env={**os.environ, "RECEDE_INTEGRATION": framework, "RECEDE_RELEASE": name.rpartition("-")[2]},
            capture_output=True,
            text=True,
            timeout=left(end),
        )
        if done.returncode:
            print(done.stdout, done.stderr)
        last = (done.stdout.strip().splitlines() or ["nothing was run"])[-1]
        output.append(re.sub(r" in [\d.]+s.*", "", last))
        if done.returncode:
            return False, f"{', '.join(output)}: FAILED"
    return True, ", types: ".join(output)


def left(end: float) -> float:
    """The seconds until the limit."""
    return max(0.1, end - time.monotonic())


if __name__ == "__main__":
    sys.exit(main())
