"""Which sessions the command line finds by itself, and what it prints beside its results."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import published
import pytest
from children import recede_command, run
from transcript_files import claude as record_of
from transcript_files import lines

import recede
from recede.cli.files import likeness
from recede.cli.sessions import chosen
from recede.cli.tables import words_of
from recede.transcripts._places import usual_places
from support import dumps, put, tool_result, tool_use, turns, user

HISTORY = [user("Fix the test."), *turns(8, chars=500)]
BUDGET = ("--design", "--fill", "0.9", "--max-input-chars", "3000")
CODEX = lines(
    {"type": "session_meta", "payload": {"id": "1", "cwd": "/home/me/Work Place"}},
    *({"type": "response_item", "payload": {"type": "message", **message}} for message in HISTORY),
)
CLAUDE = lines(
    *(
        {"type": message["role"], "uuid": str(place), "sessionId": "1", "cwd": "/home/me/app", "message": message}
        for place, message in enumerate([user("Go."), {"role": "assistant", "content": "Done."}])
    )
)
COPILOT = lines(
    {"type": "session.start", "data": {"sessionId": "1", "context": {"cwd": "/home/me/pilot"}}},
    {"type": "user.message", "data": {"content": "Go."}},
    {"type": "assistant.message", "data": {"content": "Done."}},
)
GEMINI = dumps(
    {"sessionId": "1", "messages": [{"type": "user", "content": "Go."}, {"type": "gemini", "content": "Ok"}]}
)
VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "FILE_STORE_PATH",
    "XDG_CONFIG_HOME",
    "PI_CODING_AGENT_DIR",
    "COPILOT_HOME",
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with a session of each agent."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    other = CLAUDE.replace(b"/home/me/app", b"/home/me/other")
    put(tmp_path / ".claude/projects/-home-me-app/one.jsonl", CLAUDE)
    put(tmp_path / ".claude/projects/-home-me-app/one/subagents/agent-1.jsonl", CLAUDE)
    put(tmp_path / ".config/claude/projects/-home-me-other/two.jsonl", other)
    put(tmp_path / ".claude/settings.json", b"{}")
    put(tmp_path / ".codex/sessions/2026/01/02/rollout-1.jsonl", CODEX)
    put(tmp_path / ".codex/archived_sessions/rollout-2.jsonl", CODEX)
    put(tmp_path / ".copilot/session-state/1/events.jsonl", COPILOT)
    put(tmp_path / ".copilot/session-state/2.jsonl", COPILOT)
    put(tmp_path / ".copilot/session-state/1/checkpoints/other.jsonl", b"{}")
    folder = tmp_path / ".gemini/tmp"
    put(folder / "app/chats/session-1.json", GEMINI)
    put(folder / "app/.project_root", b"/home/me/gems\n")
    put(folder / sha256(b"/home/me/old").hexdigest() / "chats/session-2.json", GEMINI)
    put(folder / "app/logs.json", b"[]")
    events = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Go."}},
        {"id": 1, "source": "agent", "action": "message", "args": {"content": "Done."}},
        *({"id": number, "source": "user", "action": "message", "args": {"content": "?"}} for number in range(2, 11)),
    ]
    for event in events:
        put(tmp_path / f".openhands/sessions/s1/events/{event['id']}.json", dumps(event))
    return tmp_path


def found(home: Path, *files: str, **filters: Any) -> list[str]:
    return [str(Path(one.path).relative_to(home).as_posix()) for one in chosen(files, **filters)]


# What is found


def test_the_sessions_of_each_agent_are_found_in_their_usual_places(home: Path) -> None:
    old = sha256(b"/home/me/old").hexdigest()
    assert found(home) == [
        ".claude/projects/-home-me-app/one/subagents/agent-1.jsonl",
        ".claude/projects/-home-me-app/one.jsonl",
        ".config/claude/projects/-home-me-other/two.jsonl",
        ".codex/sessions/2026/01/02/rollout-1.jsonl",
        ".codex/archived_sessions/rollout-2.jsonl",
        *sorted([f".gemini/tmp/{old}/chats/session-2.json", ".gemini/tmp/app/chats/session-1.json"]),
        ".copilot/session-state/1/events.jsonl",
        ".copilot/session-state/2.jsonl",
        ".openhands/sessions/s1/events",
    ]


def test_environment_variables_name_other_places(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{home / 'a'}, {home / 'b'}")
    monkeypatch.setenv("CODEX_HOME", str(home / "c"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home / "g"))
    monkeypatch.setenv("FILE_STORE_PATH", str(home / "o"))
    monkeypatch.setenv("COPILOT_HOME", str(home / "pilot"))
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(home / "p"))
    folders = [place.folder.relative_to(home).as_posix() for place in usual_places()]
    assert folders == [
        "a/projects",
        "b/projects",
        "c/sessions",
        "c/archived_sessions",
        "g/.gemini/tmp",
        "pilot/session-state",
        "o",
        "p/sessions",
    ]
    put(home / "b/projects/p/s.jsonl", CLAUDE)
    assert found(home) == ["b/projects/p/s.jsonl"]


@pytest.mark.parametrize(
    ("project", "count"),
    [
        ("app", 3),  # the folder of two sessions of Claude Code, and that of one of Gemini CLI
        ("/home/me/app", 2),
        ("APP/one", 2),
        ("work place", 2),  # as the sessions of Codex name it
        ("/home/me/gems", 1),
        ("/home/me/old", 1),
    ],
)
def test_a_project_is_part_of_the_path_or_of_the_folder_that_a_session_names(
    home: Path, project: str, count: int
) -> None:
    assert len(found(home, project=project)) == count


def test_sessions_are_chosen_by_when_they_were_written(home: Path) -> None:
    old = home / ".codex/sessions/2026/01/02/rollout-1.jsonl"
    os.utime(old, (1_700_000_000, 1_700_000_000))
    every = found(home)
    assert set(every) - set(found(home, since=time.time() - 3_600)) == {old.relative_to(home).as_posix()}
    sizes = {
        when: len(json.loads(run("replay", "--since", when, "--json").stdout)["histories"])
        for when in ("1d", "2023-11-01", "2023-12-01")
    }
    assert sizes == {"1d": len(every) - 1, "2023-11-01": len(every), "2023-12-01": len(every) - 1}
    for wrong in ("yesterday", "7", "2026-13-01"):
        assert b"neither a date" in run("replay", "--since", wrong, code=2).stderr


def test_since_counts_requests_by_their_time_not_by_their_file(home: Path) -> None:
    """A file that was copied today has old requests, and a long session has requests on both sides."""
    day = "2026-11-{:02}T10:00:00Z"
    calls = [tool_use(str(number), name="Bash")["content"] for number in range(20)]
    records = [record_of("user", user("Go."))]
    for number, content in enumerate(calls):
        usage = {"input_tokens": 100, "output_tokens": 10}
        answer = {"id": f"m{number}", "role": "assistant", "content": content, "model": "claude-sonnet-4-5"}
        records.append(record_of("assistant", {**answer, "usage": usage}, timestamp=day.format(number + 1)))
        records.append(record_of("user", user([tool_result(str(number), "done")])))
    for path in home.rglob("*.json*"):
        path.unlink()
    os.utime(put(home / ".claude/projects/a/one.jsonl", lines(*records)), (1.9e9, 1.9e9))
    counts, days = {}, {}
    for when in ("2026-11-01", "2026-11-11", "2026-12-01"):
        done = run("replay", "--since", when, "--json").stdout
        if when == "2026-12-01":
            assert done == b"no request was made since then\n"
            continue
        report = json.loads(done)
        counts[when], days[when] = report["total"]["requests"], report["total"]["screen"]["by_day"]
    assert counts == {"2026-11-01": 20, "2026-11-11": 10}
    assert [one["requests"] for one in days["2026-11-11"]] == [1] * 10
    paid = [sum(one["paid"] for one in some) for some in days.values()]
    assert paid[1] == pytest.approx(paid[0] / 2)
    head, *rows, total = run("replay", "--since", "2026-11-19", "--days").stdout.decode().splitlines()
    assert head.split() == "day requests paid masked when it pays saving".split()
    assert [row.split()[:2] for row in rows] == [["2026-11-19", "1"], ["2026-11-20", "1"]]
    assert total.split()[:3] == ["total", "2", "$0.0009"]


def test_nothing_found_says_where_it_was_looked_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("replay", "--project", "absent", code=1).stderr.decode()
    assert said.startswith("recede: no sessions that match --since and --project are in the usual places")
    monkeypatch.setenv("HOME", str(home / "nobody"))
    said = run("replay", code=1).stderr.decode()
    assert "  Claude Code    ~/.claude/projects\n" in said and "recede replay FILES" in said
    assert max(map(len, said.splitlines())) <= 80
    (home / "empty").mkdir()
    assert f"are in {home / 'empty'}" in run("stats", home / "empty", code=1).stderr.decode()


def test_a_replay_without_files_plays_what_is_found(home: Path) -> None:
    report = json.loads(run("replay", "--json").stdout)
    assert [one["format"] for one in report["histories"]] == [
        *["claude_code"] * 3,
        *["codex"] * 2,
        *["gemini"] * 2,
        *["copilot"] * 2,
        "openhands",
    ]
    assert report["failed"] == []
    assert "\n  you paid" in run("replay").stdout.decode()


def test_folders_are_walked_and_what_is_no_history_there_is_a_warning(tmp_path: Path) -> None:
    inner = put(tmp_path / "logs/deep/b.jsonl", CODEX)
    put(tmp_path / "logs/a.json", dumps(HISTORY))
    for name in ("package.json", "deep/tsconfig.json"):
        put(tmp_path / "logs" / name, b'{"name": "x"}')
    put(tmp_path / "logs/readme.md", b"Hello.")
    done = run("stats", tmp_path / "logs", "--json")
    files = [one["file"] for one in json.loads(done.stdout)["histories"]]
    assert files == [str(tmp_path / "logs/a.json"), str(inner)]
    done = run("stats", tmp_path / "logs")
    [warning] = done.stderr.decode().splitlines()
    assert warning.startswith("recede: warning: 2 files left out: not a history")
    assert warning.endswith(str(tmp_path / "logs/package.json") + warning[warning.rindex(": not a history") :])
    assert len(run("stats", "-v", tmp_path / "logs").stderr.splitlines()) == 2
    named = run("stats", tmp_path / "logs", tmp_path / "logs/package.json", code=1).stderr.decode().splitlines()
    assert len(named) == 2 and named[1].startswith(f"recede: {tmp_path / 'logs/package.json'}: not a history")


def test_a_folder_without_a_history_ends_with_1_and_says_so(tmp_path: Path) -> None:
    put(tmp_path / "logs/package.json", b'{"name": "x"}')
    for command in ("stats", "replay"):
        done = run(command, tmp_path / "logs", code=1)
        assert done.stdout == b""
        said = "recede: no session can be read, of 1 file that may hold one"
        assert done.stderr.decode().splitlines()[-1] == said


def claude(*numbers: int, uuid: str) -> bytes:
    """A session of Claude Code with these answers of a model."""
    records: list[dict[str, Any]] = [{"type": "user", "uuid": uuid, "sessionId": uuid, "message": user("Go.")}]
    for number in numbers:
        answer = {"role": "assistant", "id": f"msg_{number}", "model": "claude-sonnet-4-6", "content": f"{number}"}
        usage = {"input_tokens": 1_000_000, "output_tokens": 0}
        record = {"type": "assistant", "uuid": f"{uuid}{number}", "sessionId": uuid, "requestId": f"req_{number}"}
        records.append({**record, "message": {**answer, "usage": usage}})
        records.append({"type": "user", "uuid": f"{uuid}u{number}", "sessionId": uuid, "message": user("On.")})
    return lines(*records)


def test_requests_that_a_resumed_session_copies_are_counted_once(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl", claude(1, 2, uuid="a"))
    put(tmp_path / "b.jsonl", claude(1, 2, 3, uuid="b"))
    put(tmp_path / "c.jsonl", claude(1, 2, uuid="c"))
    put(tmp_path / "d.jsonl", claude(3, uuid="d").replace(b"req_3", b"req_4"))
    done = run("replay", tmp_path, "--policy", "raw")
    text = done.stdout.decode()
    assert text.startswith("4 requests of 3 sessions\n")
    assert "logged: $12.00 for 4 requests" in text and "you paid: $12.00; the raw" in text
    # A single request, that of d, may have been written to a cache.
    assert "the raw history is estimated at $12.75" in text and "$18" not in text
    partly, wholly = done.stderr.decode().splitlines()
    assert partly.endswith("b.jsonl: warning: requests that are in another file too, counted only there: 2 times")
    assert "c.jsonl: warning: all its requests are in another file" in wholly
    report = json.loads(run("replay", tmp_path, "--json").stdout)
    assert sum(one["misses"]["requests"] for one in report["histories"]) == 4
    alone = run("replay", tmp_path / "d.jsonl").stdout.decode()
    assert "1 session of Claude Code; 1 request\n" in alone and "  you paid                              $3.00" in alone


# What is printed beside the results


def test_warnings_are_folded_by_kind(tmp_path: Path) -> None:
    compacted = CODEX + lines({"type": "compacted", "payload": {}}) * 3
    paths = [put(tmp_path / name, compacted) for name in ("a", "b")]
    unknown = lines({"type": "novelty", "payload": {}})
    paths.append(put(tmp_path / "c", CODEX + unknown))
    [folded, single] = run("stats", *paths).stderr.decode().splitlines()
    assert folded.startswith("recede: warning: the session was compacted; the messages before it are kept")
    assert folded.endswith(f": 6 times in 2 sessions, first in {paths[0]}, line 19")
    assert single.startswith(f"recede: {paths[2]}: warning: record of unknown type 'novelty' left out")
    each = run("stats", "-v", *paths).stderr.decode().splitlines()
    assert [line.split(": ")[1] for line in each] == list(map(str, paths))
    assert run("stats", "-q", *paths).stderr == b""
    assert run("stats", "--quiet", tmp_path / "missing", code=1).stderr.count(b"\n") == 1


def test_a_view_over_its_budget_fails_where_it_is_asked_to(tmp_path: Path) -> None:
    path = put(tmp_path / "history.json", dumps([{"role": "system", "content": "x" * 9_000}, user("Go.")]))
    good = put(tmp_path / "good.json", dumps([user("x")]))
    loose = run("reduce", path, *BUDGET, "--json")
    assert json.loads(loose.stdout)["histories"][0]["within_limit"] is False
    done = run("reduce", path, good, *BUDGET, "--strict", "-o", tmp_path / "out", code=1)
    assert done.stderr.decode().endswith(f"recede: {path}: the view is over its limit\n")
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["good.reduced.json", "history.reduced.json"]
    run("reduce", good, *BUDGET, "--strict")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_ctrl_c_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "recede.cli", "stats", str(pipe)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with child, pipe.open("wb"):  # opens when the child reads
        child.send_signal(signal.SIGINT)
        out, err = child.communicate()
    assert child.returncode == 130
    assert out == b"" and err.strip() == b""


def test_ctrl_c_while_modules_are_imported_ends_with_130(tmp_path: Path) -> None:
    put(tmp_path / "click.py", b"raise KeyboardInterrupt")
    command = [sys.executable, "-m", "recede.cli", "--version"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


# Many files


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of a fork beside the thread of the bar
def test_many_files_are_read_by_processes_with_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recede.cli import many
    from recede.cli.files import read
    from recede.cli.many import over
    from recede.cli.sessions import Reading

    paths = [str(put(tmp_path / f"{number:03}.jsonl", CODEX)) for number in range(9)]
    paths.insert(4, str(put(tmp_path / "bad.jsonl", CODEX[:9])))
    files = chosen(paths)

    def work(history: Any) -> tuple[int, int]:
        return os.getpid(), history.messages

    alone, failed_alone = over(files, Reading(), work)
    monkeypatch.setattr(many, "_LEAST_FILES", 2)
    monkeypatch.setattr(many, "_CHUNK", 1)
    monkeypatch.setattr(many, "cores", lambda: 2)
    done, failed = over(files, Reading(), work, is_parallel=True)
    assert [history for history, _ in done] == [history for history, _ in alone]
    assert os.getpid() not in {pid for _, (pid, _) in done}
    assert {count for _, (_, count) in done} == {len(read(paths[0], Reading())[0].session.messages)}  # type: ignore[union-attr]
    assert [(file, error.message, error.kind) for file, error in failed] == [
        (file, error.message, error.kind) for file, error in failed_alone
    ]


# Terminals


def on_a_terminal(*arguments: str, columns: int = 80, **environment: str) -> tuple[int, str]:
    """What `recede` writes to a terminal of that width, and its exit code."""
    import fcntl
    import pty
    import struct
    import termios

    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    variables = {**os.environ, "TERM": "xterm", **environment}
    for name in ("COLUMNS", "NO_COLOR"):
        if name not in environment:
            variables.pop(name, None)
    command = [sys.executable, "-m", "recede.cli", *arguments]
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=subprocess.DEVNULL, env=variables) as child:
        os.close(end)
        shown = b""
        while True:
            try:
                piece = os.read(terminal, 1 << 16)
            except OSError:  # the child closed its end
                break
            shown += piece
        os.close(terminal)
    return child.returncode, shown.decode().replace("\r\n", "\n")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_the_name_alone_is_the_first_screen_everywhere(home: Path) -> None:
    code, shown = on_a_terminal(NO_COLOR="1")
    lines = [line for line in shown.replace("\r", "").splitlines() if not line.startswith("\x1b")]
    assert code == 0 and any(line.startswith("  you paid") for line in lines)
    piped = run().stdout.decode().splitlines()
    assert lines[-len(piped) :][2:] == piped[2:], "a pipe has the same, without colors"
    assert b"notes" not in run("-q").stdout and b"you paid" in run("-v").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_the_best_row_is_in_color_and_no_name_breaks_at_80_columns(tmp_path: Path) -> None:
    path = put(tmp_path / "long.json", dumps([user("Go."), *turns(60, chars=4_000)]))
    _, shown = on_a_terminal("replay", str(path), "--all")
    rows = [line for line in shown.splitlines() if "\x1b[32m" in line]
    best = words_of(recede.costs.replay(json.loads(path.read_bytes())).cheapest.policy)
    assert len(rows) == 1 and best in rows[0]
    for plain in (
        on_a_terminal("replay", str(path), "--all", "--no-color")[1],
        on_a_terminal("replay", str(path), "--all", NO_COLOR="1")[1],
    ):
        assert "\x1b" not in plain
        table = plain.partition("\n\n")[2].partition("\n\n")[0].splitlines()
        assert len(table) == 1 + len(recede.costs.replay([]).policies)
        assert all(len(line) <= 80 for line in table)
        longest = words_of("hybrid:window=10,at=break_even,tail=10,boundary=break_even")
        assert {longest, best} <= {row.split("  ")[0] for row in table}
    wide = on_a_terminal("replay", str(path), "--all", columns=160)[1]
    assert "tokens sent" in wide and "tokens sent" not in shown


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_tables_name_files_by_what_differs_and_shorten_them_at_80_columns(tmp_path: Path) -> None:
    names = ["a/" + "long-" * 12 + "name.jsonl", "b/" + "long-" * 12 + "name.jsonl", "b/short.jsonl"]
    for name in names:
        put(tmp_path / name, CODEX)
    first = [line.split()[0] for line in run("stats", tmp_path).stdout.decode().splitlines()[1:4]]
    assert first == [*names[:2], "short.jsonl"], "a pipe has whole names"
    _, shown = on_a_terminal("stats", str(tmp_path), NO_COLOR="1")
    rows = [line for line in shown.splitlines() if "name.jsonl" in line]
    assert len(rows) == 2 and all("…" in row and len(row.rstrip()) <= 80 for row in rows), shown


def test_reduce_takes_a_folder_as_the_files_in_it(tmp_path: Path) -> None:
    put(tmp_path / "logs/a.json", dumps(HISTORY))
    put(tmp_path / "logs/deep/b.jsonl", CODEX)
    put(tmp_path / "logs/package.json", b'{"name": "x"}')
    done = run("reduce", tmp_path / "logs", "--boundary", "sliding", "--keep", "2", "-o", tmp_path / "out")
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["a.reduced.json", "b.reduced.json"]
    assert b"warning: left out: " in done.stderr and b"package.json" in done.stderr
    assert b"need a folder" in run("reduce", tmp_path / "logs", code=2).stderr


# What strangers may have put there


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")
def test_what_is_no_file_among_sessions_is_passed_over(home: Path, tmp_path: Path) -> None:
    import socket

    found = [chosen.path for chosen in chosen([])]
    places = [
        home / ".codex" / "sessions",
        home / ".claude" / "projects" / "here",
        home / ".gemini" / "tmp" / "a" / "chats",
    ]
    with socket.socket(socket.AF_UNIX) as listener:
        for number, place in enumerate(places):
            place.mkdir(parents=True, exist_ok=True)
            suffix = ".json" if number == 2 else ".jsonl"
            os.mkfifo(place / f"pipe{suffix}")
            (place / f"zero{suffix}").symlink_to("/dev/zero")
            (place / f"null{suffix}").symlink_to("/dev/null")
            (place / f"linked{suffix}").symlink_to(place / f"pipe{suffix}")
            (place / f"gone{suffix}").symlink_to(place / "nothing")
            (place / f"itself{suffix}").symlink_to(place / f"itself{suffix}")
        listener.bind(str(places[0] / "socket.jsonl"))
        events = home / ".openhands" / "sessions" / "x" / "events"
        os.mkfifo(put(events / "0.json", dumps({"id": 0, "source": "user", "action": "message"})).with_name("1.json"))
        (events / "2.json").symlink_to("/dev/zero")
        assert [chosen.path for chosen in chosen([])] == sorted([*found, str(events)], key=[*found, str(events)].index)
        for arguments in ([], ["--project", "here"], [home / ".codex"], [home / ".claude"]):
            recede_command("replay", *arguments)  # ends


def packed(path: Path, *, head: bytes = b"", piece: bytes, times: int) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(times):
            file.write(piece)
    return path


BOMBS = {
    "a line": {"piece": b" " * 1_000_000},
    "a string": {"head": b'{"type": "user", "message": "', "piece": b"x" * 1_000_000},
    "brackets": {"piece": b"[" * 1_000_000},
    "empty lines": {"piece": b"\n" * 1_000_000},
    "lines": {"piece": (b" " * 99_999 + b"\n") * 10},
    "a second line": {"head": CLAUDE, "piece": b"x" * 1_000_000},
    "many records": {"head": CLAUDE, "piece": CLAUDE * (1_000_000 // len(CLAUDE))},
}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("bomb", BOMBS)
def test_what_is_found_is_unpacked_within_limits(bomb: str, tmp_path: Path) -> None:
    """Limits of a tenth, so that the test ends soon: 40 MB in 40 KB to 400 KB."""
    path = packed(tmp_path / "session.jsonl", times=40, **BOMBS[bomb])  # type: ignore[arg-type]
    code = (
        "import sys; from recede.cli import sessions\n"
        "from recede.cli.commands import recede\n"
        "sessions._FOUND_LINE_BYTES = 25_600_000; sessions._LINE_BYTES = 36_000_000\n"
        "recede(['replay', '-v', *sys.argv[1:]], standalone_mode=False)"
    )
    other = put(tmp_path / "sound.jsonl", CLAUDE)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "left out: " in done.stderr and str(path) in done.stderr
    assert "it has more text than is read of a file that is found: name the file" in done.stderr
    assert str(other) not in done.stderr and "you paid" in done.stdout


# Files of other kinds


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"Dear all,\n", "plain text"),
        ("Größe\n".encode() * 40, "plain text"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "a PNG image"),
        (b"PK\x03\x04" + bytes(40), "a zip archive: unpack it first"),
        ("[]".encode("utf-16"), "text in UTF-16: save it as UTF-8"),
        (b"SQLite format 3\0" + bytes(90), "an SQLite database"),
        (b"\x7fELF" + bytes(90), "binary data"),
    ],
)
def test_a_file_of_another_kind_is_named_for_what_it_looks_like(tmp_path: Path, data: bytes, said: str) -> None:
    path = put(tmp_path / "file.json", data)
    assert run("stats", path, code=1).stderr.decode().startswith(f"recede: {path}: it looks like {said}; ")
    assert f"standard input: it looks like {said}" in run("stats", "-", stdin=data, code=1).stderr.decode()
    assert likeness(data[:512]) == said


def test_a_history_that_was_saved_is_read(tmp_path: Path) -> None:
    history = published.History.from_messages(HISTORY)
    path = tmp_path / "saved.recede"
    history.save(path)
    [read] = json.loads(run("stats", path, "--json").stdout)["histories"]
    assert (read["format"], read["messages"]) == ("history", len(HISTORY))
    view = json.loads(run("reduce", path, *BUDGET).stdout)
    assert view == published.reduce(HISTORY, max_input_chars=3000).messages
    with recede.store.TurnStore(tmp_path / "turns.store") as store:
        manager = recede.designs.ObservationMaskingContextManager(store=store)
        manager.add_turn("Look.", "ls", "a.py")
    said = run("stats", tmp_path / "turns.store", code=1).stderr.decode()
    assert "it is a store without the messages of a history" in said
