"""The command line over sessions of agents, and over many files at once."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import published
import pytest
from children import run
from transcript_files import BAD, FILES, lines

from recede import transcripts
from support import dumps, turns, user

HISTORY = [{"type": "message", **message} for message in [user("Fix the test."), *turns(8, chars=500)]]
SESSION = lines(*({"type": "response_item", "payload": message} for message in HISTORY))
RUNS = dumps([{"traj": HISTORY}, {"traj": HISTORY[:3]}])
BUDGET = ("--design", "--fill", "0.9", "--max-input-chars", "3000")


def written(folder: Path, **files: bytes) -> list[Path]:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in files]


def test_stats_of_every_format(tmp_path: Path) -> None:
    paths = written(tmp_path, **{name: data for name, (_, data, *_) in FILES.items()})
    report = json.loads(run("stats", *paths, "--json").stdout)
    expected = [one for path in paths for one in transcripts.read_all(path)]
    assert [
        (one["file"], one["index"], one["format"], one["records"], one["messages"], one["turns"], one["warnings"])
        for one in report["histories"]
    ] == [
        (one.source, one.index, one.format, one.records, len(one.messages), one.turns, list(one.warnings))
        for one in expected
    ]
    assert report["total"]["histories"] == len(expected)
    for figure in ("records", "messages", "turns", "raw_chars", "observation_chars", "masked_view_chars"):
        assert report["total"][figure] == sum(one[figure] for one in report["histories"])


def test_one_session_is_described_and_its_warnings_told() -> None:
    done = run("stats", "-", stdin=SESSION + b'{"type": "compacted", "payload": {}}\n')
    assert done.stdout.startswith(b"format: codex, 17 records\nmessages: 17 in 8 turns\n")
    assert done.stderr.startswith(b"recede: standard input: warning: the session was compacted")
    assert run("stats", "-", stdin=gzip.compress(SESSION)).stderr == b""


def test_many_files_are_a_table_with_a_total(tmp_path: Path) -> None:
    paths = written(tmp_path, session=SESSION, runs=RUNS)
    table = run("stats", *paths).stdout.decode().splitlines()
    assert table[0].split() == ["file", "histories", "records", "messages", "turns", "chars", "results", "masking"]
    [total] = [row for row in table if row.startswith("total")]
    assert total.split()[1:5] == ["3", "37", "37", "17"]
    assert [row.split()[0] for row in table[1:4]] == ["session", "runs#1", "runs#2"]
    by_format = run("stats", "--by-format", *paths).stdout.decode().splitlines()
    assert [row.split()[0] for row in by_format[:4]] == ["format", "codex", "tau_bench", "total"]
    assert b"\x1b" not in run("stats", *paths).stderr


def test_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    good, bad, worse = written(tmp_path, good=SESSION, bad=gzip.compress(SESSION)[:9], worse=b"")
    done = run("stats", bad, good, worse, tmp_path / "missing", "--json", code=1)
    report = json.loads(done.stdout)
    assert [one["file"] for one in report["histories"]] == [str(good)]
    assert len(report["failed"]) == 3
    errors = done.stderr.decode().splitlines()
    assert errors[0].startswith(f"recede: {bad}: the gzip data is truncated or damaged")
    assert errors[1].startswith(f"recede: {worse}: the file is empty")
    assert errors[2] == f"recede: {tmp_path / 'missing'}: No such file or directory"
    assert run("stats", bad, worse, code=1).stdout == b""
    out = tmp_path / "out"
    run("reduce", bad, good, *BUDGET, "-o", out, code=1)
    assert [path.name for path in out.iterdir()] == ["good.reduced.json"]


@pytest.mark.parametrize("name", BAD)
def test_damaged_files_end_with_one_line(tmp_path: Path, name: str) -> None:
    [path] = written(tmp_path, bad=BAD[name][0])
    for command in (("stats",), ("reduce", *BUDGET)):
        done = run(*command, path, code=1)
        assert done.stdout == b""
        assert done.stderr.startswith(f"recede: {path}: ".encode())
        assert done.stderr.count(b"\n") == 1


def test_a_named_format_is_insisted_on(tmp_path: Path) -> None:
    [path] = written(tmp_path, session=SESSION)
    assert run("stats", path, "--format", "codex").stdout == run("stats", path).stdout
    for wrong in ("claude_code", "messages", "json_lines", "body", "gemini"):
        assert b"does not have the given format" in run("stats", path, "--format", wrong, code=1).stderr
    run("stats", path, "--format", "clay", code=2)


def test_the_view_of_a_session_is_an_array(tmp_path: Path) -> None:
    [path] = written(tmp_path, session=SESSION)
    done = run("reduce", path, *BUDGET)
    assert json.loads(done.stdout) == published.reduce(HISTORY, max_input_chars=3000).messages
    assert done.stderr.startswith(b"stage: masking\n")
    assert json.loads(run("reduce", path, "--design", "--max-input-chars", "99999").stdout) == HISTORY


def test_glued_messages_stay_json_lines() -> None:
    glued = lines(*HISTORY).replace(b"\n", b"", 1)
    done = run("reduce", "-", *BUDGET, stdin=glued)
    view = [json.loads(line) for line in done.stdout.splitlines()]
    assert view == published.reduce(HISTORY, max_input_chars=3000).messages
    assert b"warning: several records on one line, all read: line 1\n" in done.stderr


def test_many_views_go_into_a_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    paths = written(tmp_path, **{"a.jsonl": SESSION, "runs.json.gz": gzip.compress(RUNS), "b": lines(*HISTORY)})
    paths += written(tmp_path / "other", **{"a.jsonl": SESSION})
    out = tmp_path / "views" / "new"
    done = run("reduce", *paths, *BUDGET, "-o", out)
    expected: list[Any] = published.reduce(HISTORY, max_input_chars=3000).messages
    assert sorted(path.name for path in out.iterdir()) == [
        "a-2.reduced.json",
        "a.reduced.json",
        "b.reduced.jsonl",
        "runs-1.reduced.json",
        "runs-2.reduced.json",
    ]
    assert json.loads((out / "a.reduced.json").read_bytes()) == expected
    assert json.loads((out / "runs-2.reduced.json").read_bytes()) == HISTORY[:3]
    assert [json.loads(line) for line in (out / "b.reduced.jsonl").read_bytes().splitlines()] == expected
    assert done.stderr.decode().splitlines()[-1].startswith("total")
    report = json.loads(run("reduce", *paths, *BUDGET, "--json").stdout)
    assert report["total"]["histories"] == 5
    assert report["total"]["masked_count"] == sum(one["masked_count"] for one in report["histories"])


def test_no_view_in_a_folder_has_the_name_of_an_input(tmp_path: Path) -> None:
    paths = written(tmp_path, **{"a.json": dumps(HISTORY), "a.reduced.json": dumps(HISTORY[:3])})
    (tmp_path / "a-2.reduced.json").hardlink_to(paths[1])
    run("reduce", *paths, *BUDGET, "-o", tmp_path)
    assert [path.read_bytes() for path in paths] == [dumps(HISTORY), dumps(HISTORY[:3])]
    view = published.reduce_json(dumps(HISTORY), max_input_chars=3000).json
    assert (tmp_path / "a-3.reduced.json").read_bytes() == view
    assert (tmp_path / "a.reduced.reduced.json").read_bytes() == dumps(HISTORY[:3])


def test_many_files_are_reduced_in_place_but_those_that_would_lose_their_form(tmp_path: Path) -> None:
    files = {"a.json": dumps(HISTORY), "log.jsonl": SESSION, "runs.json": RUNS, "b.jsonl": lines(*HISTORY)}
    paths = written(tmp_path, **files)
    done = run("reduce", *paths, *BUDGET, "--in-place", code=1)
    view = published.reduce_json(dumps(HISTORY), max_input_chars=3000)
    assert paths[0].read_bytes() == view.json
    assert [json.loads(line) for line in paths[3].read_bytes().splitlines()] == json.loads(view.json)
    assert [path.read_bytes() for path in paths[1:3]] == [SESSION, RUNS]
    said = done.stderr.decode()
    assert f"recede: {paths[1]}: a view of the format codex has another form: it needs -o OUT" in said
    assert f"recede: {paths[2]}: a view of the format tau_bench has another form" in said
    forced = run("reduce", paths[1], *BUDGET, "--in-place", "--format", "codex", code=1)
    assert b"another form" in forced.stderr and paths[1].read_bytes() == SESSION


def test_many_views_need_a_folder(tmp_path: Path) -> None:
    runs, session = written(tmp_path, runs=RUNS, session=SESSION)
    assert b"need a folder" in run("reduce", runs, session, *BUDGET, code=2).stderr
    assert b"it holds 2 histories: they need a folder" in run("reduce", runs, *BUDGET, code=1).stderr
    assert b"cannot be written" in run("reduce", runs, *BUDGET, "-o", session, code=1).stderr
    assert session.read_bytes() == SESSION


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_bar_is_drawn_on_a_terminal_alone(tmp_path: Path) -> None:
    import pty

    paths = written(tmp_path, one=SESSION, two=SESSION)
    shown = {}
    for count in (1, 2):
        terminal, end = pty.openpty()
        command = [sys.executable, "-m", "recede.cli", "stats", *map(str, paths[:count])]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=end, env={**os.environ, "TERM": "xterm"})
        os.write(end, b"END")
        shown[count] = os.read(terminal, 65536)
        os.close(terminal)
        os.close(end)
        assert done.returncode == 0
        assert b"\x1b" not in done.stdout
    assert shown[1] == b"END"
    assert b"reading" in shown[2]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")
def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", 'cat > "$0"', str(pipe)], stdin=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        writer.stdin.write(SESSION)
        writer.stdin.close()
        assert run("stats", pipe).stdout.startswith(b"format: codex, 17 records\n")
