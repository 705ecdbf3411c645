"""What a newcomer has: a clone with nothing beside it, an empty HOME, an old Python, agents and their sessions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from agent_logs import TALK, claude_log, codex_log, gemini_log, pi_log
from transcript_files import claude, lines

from recede._agents import AGENTS
from support import ROOT, assistant, dumps, put, tool_result, tool_use, user

# Of the variables that are set here, those that say how this machine reaches the network and where Rust is.
_KEPT = re.compile(r"PATH|LANG|LC_ALL|(PIP|UV|RUSTUP|CARGO|SSL_CERT)_\w+|(HTTPS?|NO|ALL)_PROXY", re.IGNORECASE)


def clone(folder: Path) -> Path:
    """Copy what a clone would have if all were committed into `folder`, which has nothing else."""
    listed = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    copy = folder / "recede"
    for name in filter(None, names):
        if (ROOT / name).is_file():  # not removed since
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return the variables of somebody with this home who has Rust, and downloads what this machine has not yet."""
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    mine = Path.home()
    places = {"RUSTUP_HOME": mine / ".rustup", "CARGO_HOME": mine / ".cargo", "PIP_CACHE_DIR": mine / ".cache/pip"}
    return {**{name: str(path) for name, path in places.items()}, **kept, "HOME": str(home), **more}


def oldest_python() -> Path:
    """Find the oldest Python of those that recede supports: on the PATH, or beside the one that runs this."""
    for minor in range(10, sys.version_info.minor):
        beside = Path(sys.base_prefix).parent.glob(f"3.{minor}.*/bin/python")
        for found in (shutil.which(f"python3.{minor}"), *beside):
            if found and subprocess.run([found, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0:
                return Path(found)
    return Path(sys.executable).resolve()


def fill_with_sessions(home: Path) -> None:
    """Write sessions of each agent whose folder is known, long enough for advice on a window; one quotes."""
    line = "def total(rows: list[Row]) -> float:"
    read = [user("Read."), tool_use("r", name="Read"), user([tool_result("r", line + "  # sums up" * 40)])]
    said = [user("So?"), assistant([{"type": "text", "text": f"It was {line}"}])]
    before, after = (lines(*(claude(one["role"], one) for one in some)) for some in (read, said))
    put(home / ".claude/projects/a/one.jsonl", before + claude_log() + after)
    put(home / ".claude/projects/a/short.jsonl", claude_log(steps=3))
    put(home / ".codex/sessions/rollout-1.jsonl", codex_log())
    put(home / ".codex/sessions/rollout-2.jsonl", codex_log(steps=60))
    put(home / ".gemini/tmp/a/chats/session-1.json", gemini_log())
    put(home / ".pi/agent/sessions/one.jsonl", pi_log())
    for number, (source, args) in enumerate({"user": "Go.", "agent": "Done."}.items()):
        event = {"id": number, "source": source, "action": "message", "args": {"content": args}}
        put(home / f".openhands/sessions/s1/events/{number}.json", dumps(event))


def fill_with_talk(home: Path) -> None:
    """Write a session of Claude Code in which summaries pay as well."""
    put(home / ".claude/projects/a/one.jsonl", claude_log(*TALK))


_COMMAND = re.compile(r"(?:^|  |: |\()(recede\w*(?: [^\s)]+)*)(?=\)|  |$)", re.MULTILINE)


def commands_of(screen: str) -> list[str]:
    """Find each command that a screen says to type: at the begin of a column, after a colon, in parentheses."""
    return list(dict.fromkeys(_COMMAND.findall(screen)))


AGENT_SAYS = "the agent found the proxy"
_AGENT = """#!{python}
import os, re, sys, urllib.request
[url] = set(re.findall(r"http://127[.]0[.]0[.]1:[0-9]+", " ".join([*sys.argv, *os.environ.values()])))
urllib.request.urlopen(url + "/recede/stats", timeout=30).read()
print("{says}")
"""


def install_agents(folder: Path) -> Path:
    """Write a program by the name of each known agent that asks the proxy it is pointed at for its figures."""
    for name in AGENTS:
        put(folder / name, _AGENT.format(python=sys.executable, says=AGENT_SAYS).encode()).chmod(0o755)
    return folder
