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
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "integrations"
FILES = sorted((TESTS / "requirements").glob("*-*est.txt"))
BASE = TESTS / "requirements" / "base.txt"


class CannotInstallError(Exception):
    """The environment cannot be made on this machine."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="frameworks, or files such as langchain-oldest, with commas between", default="")
    parser.add_argument("--seconds", type=float, default=900, help="the limit for all")
    parser.add_argument(
        "--where-possible", action="store_true", help="what cannot be installed or finished here is no failure"
    )
    given = parser.parse_args()
    chosen = [name for name in given.only.split(",") if name]
    names = {path.stem: path.stem.rpartition("-")[0] for path in FILES}
    if unknown := set(chosen) - names.keys() - set(names.values()):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(sorted(set(names.values())))}")
    end = time.monotonic() + given.seconds
    rows: list[tuple[str, str, str]] = []
    failed = False
    for path in FILES:
        framework = names[path.stem]
        if chosen and path.stem not in chosen and framework not in chosen:
            continue
        start = time.monotonic()
        try:
            python = environment(path, end)
            done, words = contract(python, path.stem, framework, end)
            failed |= not done
        except CannotInstallError as error:
            words = f"not run: {error}"
            failed |= not given.where_possible
        except subprocess.TimeoutExpired:
            words = f"not finished: over the limit of {given.seconds:.0f} s for all"
            failed |= not given.where_possible
        rows.append((path.stem, words, f"{time.monotonic() - start:.0f} s"))
        print("{:24} {} ({})".format(*rows[-1]), flush=True)
    return int(failed)


def environment(path: Path, end: float) -> Path:
    """The Python of the environment, which is made if it is not there as the file has it."""
    folder = ROOT / ".venvs" / path.stem
    python = folder / "bin" / "python"
    told = hashlib.sha256(BASE.read_bytes() + path.read_bytes() + sys.version.encode()).hexdigest()
    stamp = folder / ".made-of"
    if stamp.is_file() and stamp.read_text() == told:
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, timeout=left(end))
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    done = subprocess.run(
        [*pip, "-r", BASE, "-r", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=left(end)
    )
    if done.returncode:
        raise CannotInstallError((done.stdout.strip().splitlines() or ["pip failed"])[-1])
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "recede.pth").write_text(f"{ROOT / 'python'}\n")
    stamp.write_text(told)
    return python


def contract(python: Path, name: str, framework: str, end: float) -> tuple[bool, str]:
    """Whether the tests of a framework pass, for the newest its types too, and the last lines of what they print."""
    output = []
    commands = [["-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS]]
    if name.endswith("-newest"):
        commands.append(["-m", "mypy", "--no-incremental", ROOT / "python/recede/integrations" / f"{framework}.py"])
    for command in commands:
        done = subprocess.run(
            [python, *command],
            cwd=ROOT,
            env={**os.environ, "RECEDE_INTEGRATION": framework, "RECEDE_RELEASE": name.rpartition("-")[2]},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=left(end),
        )
        if done.returncode:
            print(done.stdout)
        output.append(re.sub(r" in [\d.]+s.*", "", done.stdout.strip().splitlines()[-1]))
        if done.returncode:
            return False, f"{', '.join(output)}: FAILED"
    return True, ", types: ".join(output)


def left(end: float) -> float:
    """The seconds until the limit."""
    return max(0.1, end - time.monotonic())


if __name__ == "__main__":
    sys.exit(main())
