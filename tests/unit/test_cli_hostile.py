"""What strangers wrote in logs and file names, on the terminal of the one who reads a report."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from children import recede_command
from transcript_files import claude, lines

import recede
from support import dumps, tool_result, tool_use, turns, user

# An escape that clears the screen, one of C1 that sets the title, a line, a return, a turned word, a line separator,
# what cannot be encoded, and what cannot be seen.
HOSTILE = "\x1b[2J\x9b0;t\x07\nINJECTED: \r\u202egpj.exe\u2066\u2028\ud800\U000e0041\u200b"
WRITABLE = HOSTILE.replace("\ud800", "")


def log(text: str, *, steps: int = 6) -> bytes:
    """A session of Claude Code with this text wherever one fits."""
    records: list[Any] = [claude("user", user("Go."), cwd=text, title=text)]
    for step in range(steps):
        call = tool_use(str(step), name=f"Bash{text}", value={text: text})
        message = {"id": f"{step}{text}", "role": "assistant", "content": [call], "model": f"opus{text}{step % 2}"}
        message["usage"] = {"input_tokens": 9_000, "output_tokens": 5, "service_tier": text}
        records += [claude("assistant", message, timestamp=f"2026-05-14T10:00:{step:02}Z")]
        records += [claude("user", user([tool_result(str(step), f"{text}\n" * 200)]))]
    records += [{"type": f"new{text}", "uuid": "1", "sessionId": text}, claude("user", user([{"type": f"part{text}"}]))]
    return lines(*records)


def said_of(*arguments: object) -> list[str]:
    """The lines that a command prints, and puts beside them; none holds what a terminal would interpret."""
    done = recede_command(*arguments, columns=200)
    text = done.stdout.decode() + done.stderr.decode()
    assert "Traceback" not in text
    said = text.split("\n")
    assert [line for line in said if not line.isprintable() or line.lstrip().startswith("INJECTED")] == []
    return said


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A log, a history, and files that cannot be read, in a folder and with names of strangers."""
    folder = tmp_path / f"folder{WRITABLE}"
    folder.mkdir()
    broken = dumps([{"role": "user", "content": 5}])
    data = {"log": log(HOSTILE), "second": log(HOSTILE, steps=3), "plain": dumps(turns(4, name=HOSTILE)), "bad": broken}
    for name, content in data.items():
        folder.joinpath(f"{name}{WRITABLE}.json").write_bytes(content)
    return sorted(folder.iterdir())


COMMANDS = [
    ("stats",),
    ("stats", "--by-format", "-v"),
    ("replay",),
    ("replay", "-v", "--all"),
    ("replay", "--check"),
    ("replay", "--curve"),
    ("replay", "--misses"),
    ("replay", "--json"),
    ("reduce", "--design", "--max-input-chars", "2000", "-o", "out"),
    ("reduce", "--design", "--max-input-chars", "10", "--json", "--strict"),
]


@pytest.mark.skipif(sys.platform == "win32", reason="file names may not hold these characters")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_what_a_terminal_interprets(
    command: tuple[str, ...], files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said_of(*command, *files)
    for file in files:
        said_of(*command, file)
    if command[0] != "reduce":
        said_of(*command, files[0].parent)


def test_a_surrogate_in_the_name_of_a_model_does_not_end_the_report(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(log("\ud800"))
    said = said_of("replay", "-v", path)
    assert any(line.startswith("logged: ") and "opus\\ud8000" in line for line in said)
    assert any("the model opus\\ud8001 has no known price" in line for line in said)


@pytest.mark.skipif(sys.platform == "win32", reason="file names may not hold these characters")
def test_wrong_usage_names_files_of_strangers(files: list[Path], tmp_path: Path) -> None:
    assert any("which is read" in line for line in said_of("replay", files[0], "--html", files[0]))
    assert any("no files that may hold" in line for line in said_of("stats", "--", empty(tmp_path)))
    assert any("does not exist" in line for line in said_of("store", "info", tmp_path / f"gone{WRITABLE}"))
    prices = tmp_path / f"prices{WRITABLE}.json"
    prices.write_text(json.dumps({HOSTILE: {"input": 1, HOSTILE: 2}}))
    said_of("prices", "--prices", prices)
    prices.write_text(json.dumps({HOSTILE: {"input": 1, "output": 2, "date": HOSTILE, "source": HOSTILE}}))
    assert any("INJECTED" in line for line in said_of("prices", "--prices", prices))


def empty(tmp_path: Path) -> Path:
    folder = tmp_path / f"empty{WRITABLE}"
    folder.mkdir()
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_history_is_written_as_it_is_but_for_a_terminal(tmp_path: Path) -> None:
    from test_cli_sessions import on_a_terminal

    path = tmp_path / "history.json"
    text = WRITABLE.replace("\x1b", "\x7f").replace("\x07", "") + "an é\t"
    path.write_bytes(json.dumps([{"role": "user", "content": text}], ensure_ascii=False).encode())
    assert recede_command("reduce", path, "--design", "--max-input-chars", "9000").stdout == path.read_bytes()
    _, shown = on_a_terminal("reduce", str(path), "--design", "--max-input-chars", "9000")
    assert all(line.isprintable() for line in shown.splitlines()) and "an é" in shown
    assert json.loads(shown) == json.loads(path.read_bytes())
    store = tmp_path / "session.store"
    with recede.store.TurnStore(store) as opened:
        opened.append("Look.", "cat a", f"{WRITABLE}\tend\n")
    assert recede_command("store", "recall", store, "1").stdout.decode() == f"{WRITABLE}\tend\n"
    _, shown = on_a_terminal("store", "recall", str(store), "1")
    assert all(line.replace("\t", "").isprintable() for line in shown.split("\n")) and "\tend\n" in shown
    assert os.linesep in shown
