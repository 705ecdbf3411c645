"""Records examples/session.json: the steps in session_steps.txt, with the true outputs of their commands.

Its first turns are what `recede chat` plays without a key.

The commands run in a copy of the working tree at a neutral path, in a neutral environment, so that the session tells
nothing about the machine it was recorded on. It is not written if it does, or if it is too small to show anything.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
SESSION = PROJECT / "examples" / "session.json"
STEPS = HERE / "session_steps.txt"
TOUR = PROJECT / "python" / "recede" / "cli" / "tour.json"
TOUR_TURNS = 20
# The session does not read itself.
NOT_COPIED = {
    f"scripts/{STEPS.name}",
    f"scripts/{Path(__file__).name}",
    f"examples/{SESSION.name}",
    str(TOUR.relative_to(PROJECT)),
}
# These take minutes to build and hold nothing that the commands print.
KEPT = {".venv", "target"}

MAX_OUTPUT_CHARS = 12_000
MAX_SECONDS = 300

SYSTEM = (
    "You are an agent that works in a checkout of a repository. You have three tools: run (a shell command), "
    "read_file (lines of a file) and search (a regular expression, in the files that git knows). Before each call say "
    "in one or two sentences what the last result showed and why this call is next. Change nothing but what the task "
    "asks for."
)

Call = tuple[str, dict[str, Any], bool]
"""A tool, its arguments, and whether it is to fail."""


def read_steps(text: str) -> Iterator[tuple[str, list[Call]]]:
    """Each paragraph is a turn: its reasoning, then its calls. The head of the file tells the form."""
    for paragraph in re.split(r"\n\n+", text.strip()):
        reasoning: list[str] = []
        calls: list[Call] = []
        for line in paragraph.splitlines():
            mark, _, rest = line.partition(" ")
            fails = mark.endswith("!")
            mark = mark.removesuffix("!")
            if mark == "$":
                calls.append(("run", {"command": rest}, fails))
            elif mark == "|":
                calls[-1][1]["command"] += f"\n{rest}"
            elif mark == ">":
                path, start, end = rest.split()
                calls.append(("read_file", {"path": path, "start": int(start), "end": int(end)}, fails))
            elif mark == "?":
                pattern, _, path = rest.rpartition(" in ")
                calls.append(("search", {"pattern": pattern, "path": path}, fails))
            elif mark != "#":
                reasoning.append(line)
        if reasoning:
            yield " ".join(reasoning), calls


def home() -> Path:
    """A place whose name tells nothing."""
    for path in (Path("/home/agent"), Path("/tmp/agent")):
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        return path
    sys.exit("neither /home/agent nor /tmp/agent can be made")


def neutral_environment(home: Path, checkout: Path) -> dict[str, str]:
    cargo = shutil.which("cargo") or sys.exit("cargo is missing")
    author = {"NAME": "recede contributors", "EMAIL": "recede@example.org", "DATE": "2026-01-01T00:00:00Z"}
    return {
        "HOME": str(home),
        "PATH": f"{checkout}/.venv/bin:{Path(cargo).parent}:/usr/local/bin:/usr/bin:/bin",
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(Path.home() / ".cargo")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
        "CARGO_TERM_COLOR": "never",
        "RUST_TEST_THREADS": "1",  # the tests in the same order each time
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "GIT_PAGER": "cat",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        **{f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in author.items()},
    }


def make_checkout(checkout: Path, environment: dict[str, str]) -> None:
    """Copies the working tree, commits it as one commit, and builds it."""
    mark = checkout.parent / ".recede-session"
    if checkout.exists() and not mark.exists():
        sys.exit(f"{checkout} was not made by this script; it would be replaced")
    checkout.mkdir(exist_ok=True)
    mark.touch()
    for path in checkout.iterdir():
        if path.name not in KEPT:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    listing = ["git", "-C", str(PROJECT), "ls-files", "-co", "--exclude-standard", "-z"]
    for name in filter(None, subprocess.check_output(listing, text=True).split("\0")):
        if name not in NOT_COPIED and (PROJECT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, checkout / name)
    version = re.search(r'^version = "(.*)"', (checkout / "Cargo.toml").read_text(), re.MULTILINE)
    assert version is not None
    prepare = (
        f"git init -q -b main && git add -A && git commit -q -m 'recede {version[1]}' && "
        f"make -s build PYTHON={shlex.quote(getattr(sys, '_base_executable', sys.executable))} && "
        "cargo test --quiet --no-run"
    )
    subprocess.run(["bash", "-c", prepare], cwd=checkout, env={**os.environ, **environment}, check=True)


def run_command(command: str, checkout: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=MAX_SECONDS,
        check=False,
    )
    output = done.stdout.decode(errors="replace")
    return output if done.returncode == 0 else f"exit code {done.returncode}\n{output}"


def read_file(path: str, start: int, end: int, checkout: Path) -> str:
    try:
        lines = (checkout / path).read_text().splitlines()
    except OSError as error:
        return f"exit code 1\nread_file: {path}: {error.strerror}"
    if start > len(lines):
        return f"exit code 1\nread_file: {path} has only {len(lines)} lines"
    return "\n".join(f"{number:5}  {line}" for number, line in enumerate(lines[start - 1 : end], start))


def observe(call: Call, checkout: Path, environment: dict[str, str]) -> str:
    """What the tool answers, cut where a tool for agents would cut it."""
    name, arguments, _ = call
    if name == "read_file":
        output = read_file(**arguments, checkout=checkout)
    elif name == "search":
        command = shlex.join(["git", "grep", "-n", "-E", "-e", arguments["pattern"], "--", arguments["path"]])
        output = run_command(command, checkout, environment)
    else:
        output = run_command(arguments["command"], checkout, environment)
    if len(output) <= MAX_OUTPUT_CHARS:
        return output
    return f"{output[:MAX_OUTPUT_CHARS]}\n[cut here; {len(output) - MAX_OUTPUT_CHARS:,} more characters]"


def record(checkout: Path, environment: dict[str, str]) -> list[dict[str, Any]]:
    (_, (task, _)), *turns = enumerate(read_steps(STEPS.read_text()))
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    calls_made = 0
    surprises = []
    for turn, (reasoning, calls) in turns:
        message: dict[str, Any] = {"role": "assistant", "content": reasoning}
        messages.append(message)
        for call in calls:
            name, arguments, fails = call
            print(f"\r{turn} of {len(turns)}", end="", file=sys.stderr)
            calls_made += 1
            function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
            identity = f"call_{calls_made}"
            message.setdefault("tool_calls", []).append({"id": identity, "type": "function", "function": function})
            observation = observe(call, checkout, environment)
            if observation.startswith("exit code") != fails:
                wanted = "fail" if fails else "succeed"
                surprises.append(f"turn {turn} should {wanted}: {arguments}\n{observation[:500]}")
            messages.append({"role": "tool", "tool_call_id": identity, "content": observation})
    print(file=sys.stderr)
    if surprises:
        sys.exit("not written, for the reasoning after these calls is no longer true:\n" + "\n".join(surprises))
    return messages


def command_names(messages: list[dict[str, Any]]) -> set[str]:
    """The first word of each part of each pipe that was run."""
    names = set()
    for message in messages:
        for call in message.get("tool_calls", ()):
            arguments = json.loads(call["function"]["arguments"])
            first_line = arguments.get("command", "").partition("\n")[0]
            for part in re.split(r"\s*(?:\|\|?|&&|;)\s+", first_line):
                words = [word for word in part.split() if not re.match(r"\w+=", word)]
                if words and shutil.which(words[0], path=f"/usr/bin:/bin:{os.environ['PATH']}"):
                    names.add(words[0])
    return names


def hosts_in(text: str) -> set[str]:
    return set(re.findall(r"https?://([\w.:-]*\w)", text))


def private_parts(text: str, checkout: Path) -> list[str]:
    """What the session tells about this machine. Hosts that the project itself names are public."""
    user = getpass.getuser()
    own = {str(path) for path in (Path.home(), PROJECT, Path(sys.base_prefix))} - {"/", "/usr", str(checkout.parent)}
    names = [re.escape(path) for path in own]
    names += [r"(?<![\w.])/(?:root|work|Users|opt|mnt)\b", rf"\b{re.escape(socket.gethostname())}\b"]
    if user not in ("root", "agent"):
        names.append(rf"\b{re.escape(user)}\b")
    found = [match[0] for name in names for match in re.finditer(name, text)]
    listing = subprocess.check_output(["git", "-C", str(checkout), "ls-files", "-z"], text=True)
    public = [(checkout / name).read_text(errors="replace") for name in listing.split("\0") if name]
    return found + sorted(hosts_in(text) - hosts_in("\n".join(public)))


def check(messages: list[dict[str, Any]], text: str, checkout: Path) -> str:
    """What was recorded, in one line; ends the script where that is not fit to be shown."""
    turns = sum(message["role"] == "assistant" for message in messages)
    failures = sum(message["content"].startswith("exit code") for message in messages if message["role"] == "tool")
    commands = command_names(messages)
    counts = f"{turns} turns, {len(commands)} commands, {failures} calls that fail, {len(text) / 1000:.0f} kB"
    if private := private_parts(text, checkout):
        sys.exit(f"not written, for it is private: {', '.join(sorted(set(private)))}")
    if turns < 200 or len(commands) < 15 or failures < 10:
        sys.exit(f"not written, for it is too small: {counts}")
    return f"{counts}; {' '.join(sorted(commands))}"


def written(messages: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(message, ensure_ascii=False) for message in messages) + "\n]\n"


def beginning(messages: list[dict[str, Any]], turns: int) -> list[dict[str, Any]]:
    """The messages before the turn that comes after so many."""
    answers = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    return messages[: answers[turns]]


def main() -> None:
    place = home()
    checkout = place / "recede"
    environment = neutral_environment(place, checkout)
    make_checkout(checkout, environment)
    messages = record(checkout, environment)
    text = written(messages)
    summary = check(messages, text, checkout)
    SESSION.write_text(text)
    TOUR.write_text(written(beginning(messages, TOUR_TURNS)))
    print(f"{SESSION.relative_to(PROJECT)}: {summary}")


if __name__ == "__main__":
    main()
