"""A newcomer's path from a clone to the commands of the first screen, in the oldest Python: `make newcomer`.

What is typed is read from README.md and from the screens. RECEDE_WHEEL names a wheel, if one is built already.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agent_logs import claude_log
from newcomers import (
    AGENT_SAYS,
    clone,
    commands_of,
    environment,
    fill_with_sessions,
    fill_with_talk,
    install_agents,
    oldest_python,
)

from support import ROOT, put

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(sys.platform == "win32", reason="what is typed here is for a POSIX shell"),
]


class Newcomer(NamedTuple):
    """A shell into whose environment `recede[cli]` was installed."""

    folder: Path
    variables: dict[str, str]

    def shell(self, command: str, home: Path) -> dict[str, Any]:
        """Return what `subprocess` needs to run a command in this shell."""
        shell = {"args": ["sh", "-ec", command], "cwd": self.folder, "env": {**self.variables, "HOME": str(home)}}
        return {**shell, "stdin": subprocess.DEVNULL, "text": True}

    def types(self, command: str, home: Path, code: int = 0) -> str:
        """Type a command, which must end with this code; return what it writes."""
        done = subprocess.run(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **self.shell(command, home))
        assert done.returncode == code and "Traceback" not in done.stdout, f"$ {command}\n{done.stdout}"
        return done.stdout

    def starts(self, command: str, home: Path) -> None:
        """Type a command that starts a proxy; ask the proxy for its figures, and end it with Ctrl-C."""
        wait_until_free(8787)
        with subprocess.Popen(stderr=subprocess.PIPE, **self.shell(f"exec {command}", home)) as proxy:
            said = proxy.stderr.readline()
            try:
                assert " figures at " in said, f"$ {command}\n{said}"
                urllib.request.urlopen(said.split(" figures at ")[1].strip(), timeout=30).close()
            finally:
                proxy.send_signal(signal.SIGINT)
                said += proxy.stderr.read()
        assert proxy.returncode == 0, f"$ {command}\n{said}"


def wait_until_free(port: int, seconds: float = 60) -> None:
    """Wait until nobody listens there, such as another run of this test."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) != 0:
                return
        time.sleep(0.5)
    pytest.fail(f"port {port} is taken: end what listens there")


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    """From a clone to an environment in which each line of Install in README.md was typed."""
    folder, home = tmp_path_factory.mktemp("newcomer"), tmp_path_factory.mktemp("home")
    python = oldest_python()
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
    places = [folder / "venv/bin", install_agents(folder / "agents"), os.environ["PATH"], folder / "uv/bin"]
    path = os.pathsep.join(map(str, places))
    shell = Newcomer(folder, environment(home, PATH=path, UV_PYTHON=str(python)))
    if shutil.which("uvx") is None:
        shell.types("pip install --quiet --prefix uv uv", home)
    # With all that it needs: what README.md installs comes from here, before there is a release and after it.
    wheel = os.environ.get("RECEDE_WHEEL")
    source = Path(wheel).absolute() if wheel else clone(folder / "alone")
    shell.types(f"pip wheel --quiet --wheel-dir dist '{source}[cli]'", home)
    shell.variables.update(dict.fromkeys(("PIP_FIND_LINKS", "UV_FIND_LINKS"), str(folder / "dist")))
    shell.variables.update(PIP_NO_INDEX="1", UV_OFFLINE="1")
    for name in [name for name in shell.variables if name.upper().endswith("_PROXY")]:
        del shell.variables[name]  # of the network: what follows stays on this machine
    fill_with_talk(home)
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in page.split("```sh\n")[1:]]
    assert blocks, "README.md does not say how to install recede"
    for block in blocks:
        assert "not provide the extra" not in shell.types(block, home)
    yield shell
    shutil.rmtree(folder)


def test_readme_notebooks_and_chat_run_in_the_oldest_python(newcomer: Newcomer, tmp_path: Path) -> None:
    said = newcomer.types(f"python -I '{ROOT}/scripts/try_wheel.py' '{ROOT}'", tmp_path)
    assert "lines of README.md" in said


@pytest.mark.parametrize(
    ("fill", "code", "agents"),
    [
        (fill_with_sessions, 0, {"claude", "codex", "gemini", "pi"}),
        (fill_with_talk, 0, {"claude"}),
        (Path.mkdir, 1, {"claude"}),
    ],
    ids=["sessions", "talk", "nothing"],
)
def test_every_command_that_a_screen_prints_can_be_typed(
    newcomer: Newcomer, tmp_path: Path, fill: Callable[[Path], object], code: int, agents: set[str]
) -> None:
    home, own = tmp_path / "home", put(tmp_path / "own.jsonl", claude_log())
    fill(home)
    screen = newcomer.types("recede", home, code)
    assert get_close_matches("recede", set(re.findall(r"\w+", screen)), n=9, cutoff=0.7) == ["recede"], screen
    commands = commands_of(screen)
    for line in screen.splitlines():
        assert "recede " not in line or any(command in line for command in commands), line
    assert {command.split(" -- ")[1] for command in commands if " -- " in command} == agents
    for command in commands:
        if command.startswith("recede proxy") and " -- " not in command:
            newcomer.starts(command, home)
            continue
        said = newcomer.types(command.replace("FILES...", str(own)), home)
        assert (AGENT_SAYS in said) is (" -- " in command), f"$ {command}\n{said}"
        assert all((newcomer.folder / name).stat().st_size for name in command.split() if name.endswith(".html"))


def test_the_other_name_of_the_extra_is_one(newcomer: Newcomer, tmp_path: Path) -> None:
    assert "WARNING" not in newcomer.types("pip install 'recede[proxy]'", tmp_path)
