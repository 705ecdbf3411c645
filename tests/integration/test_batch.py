"""`recede batch` against a plain loop: every kind of input, bad rows, killed jobs, dying workers, memory."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.parquet as pq
from children import recede_command
from transcript_files import lines

import recede
from recede.cli.batch.spans import find
from recede.cli.batch.tasks import tasks_of
from recede.cli.batch.work import parquet_batches
from recede.cli.processes import in_workers
from support import dumps

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")


def history(number: int, turns: int = 8) -> list[dict[str, Any]]:
    rng = random.Random(number)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Löse 漢字 é."}]
    for turn in range(turns):
        made = {"id": str(turn), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        messages.append({"role": "tool", "tool_call_id": str(turn), "content": "x" * rng.randrange(10, 2_000)})
    return messages


HISTORIES = [history(number) for number in range(60)]
SLIDING: dict[str, Any] = {"boundary": "sliding"}
AS_FLAGS = ("--boundary", "sliding")
# Rows of each kind of error, with the kind.
POISON = [
    (b'{"id": 1, "messages": [1]}', "message"),
    (b'{"id": 2}', "history"),
    (b'{"id": 3, "messages": 5}', "history"),
    (b'{"id": 4, "messages": [{"said": "x"}]}', "empty"),
    (b'{"id": 5, "messages": [{"role": "user", "content": 5}]}', "content"),
    (b'{"id": 6, "messages": [{"role": "user", "content": [5]}]}', "part"),
    (b'{"id": 7, "messages": [{"role": "a", "role": "b"}]}', "duplicate_key"),
    (b'{"id": 8, "messages": [{"role": "user", "content": "\xff"}]}', "utf8"),
    (b'{"id": 9, "messages": [{"role": "user", "content": "a', "eof"),
    (b'{"id": 9, "messages": ' + b"[" * 2_000 + b"]" * 2_000 + b"}", "depth"),
    (b"nope", "syntax"),
    (b'{"id": 9, "messages": []} x', "trailing"),
    (b'{"id": 9, "messages": [], "id": 8}', "history"),
]


def run(command: str, *arguments: Any, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    done = recede_command("batch", command, *arguments)
    assert done.returncode == code, done.stderr.decode()
    return done


def results(out: Path) -> dict[str, bytes]:
    """What a job has written."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def errors(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.with_name(f"{file.name}.errors").read_bytes().splitlines()]


# The same as a plain loop


def line(number: int, messages: list[Any], wrap: str) -> bytes:
    """A line with bytes that a reader of JSON would not write like that."""
    value = json.dumps(messages, ensure_ascii=number % 2 == 0)
    if wrap == "text":
        return f'{{"n" :{number}, "trajectory":{json.dumps(value)} , "price": 1.50}}'.encode()
    if wrap:
        return f'{{"custom_id":"{number}", "{wrap}": {{"model": "m",  "messages": {value}}}, "x":1e2}}'.encode()
    return f'{{ "a": {{"messages": []}}, "messages" : {value}, "é": 1.50}}'.encode()


@pytest.mark.parametrize("wrap", ["text", "", "body", "params"])
def test_lines_keep_every_other_byte(wrap: str, tmp_path: Path) -> None:
    histories = HISTORIES[:12]
    rows = [line(number, messages, wrap) for number, messages in enumerate(histories)]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(rows[:6]) + b"\n\n" + b"\r\n".join(rows[6:]))
    run("reduce", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--max-input-tokens", 750)
    expected = []
    for number, (row, messages) in enumerate(zip(rows, histories, strict=True)):
        raw = json.dumps(messages, ensure_ascii=number % 2 == 0).encode()
        view = recede.reduce(raw, max_input_tokens=750).json
        if wrap == "text":
            raw, view = (json.dumps(data.decode()).encode() for data in (raw, view))
        assert raw in row
        expected.append(row.replace(raw, view))
    written = b"\n".join(expected[:6]) + b"\n\n" + b"\r\n".join(expected[6:])
    assert results(tmp_path / "out") == {"in.jsonl": written}


def test_text_of_a_history_that_is_not_changed_keeps_its_bytes(tmp_path: Path) -> None:
    row = r'{"messages": "[{\"role\": \"user\", \"content\": \"é \u00e9\"}]"}'.encode()
    (tmp_path / "in.jsonl").write_bytes(row)
    run("reduce", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--keep", 1)
    assert results(tmp_path / "out")["in.jsonl"] == row


@pytest.mark.parametrize("packed", ["gzip", "zstd"])
def test_packed_lines_are_packed_again(packed: str, tmp_path: Path) -> None:
    rows = b"".join(dumps({"messages": messages}) + b"\n" for messages in HISTORIES)
    path = tmp_path / f"in.jsonl.{packed[:2]}"
    with pa.output_stream(str(path), compression=packed) as file:
        file.write(rows)
    run("reduce", path, "-o", tmp_path / "out", "--keep", 2, *AS_FLAGS)
    with pa.input_stream(str(tmp_path / "out" / path.name), compression=packed) as file:
        written = file.read()
    views = [recede.reduce(dumps(messages), keep=2, **SLIDING).json for messages in HISTORIES]
    assert written == b"".join(b'{"messages": ' + view + b"}\n" for view in views)


@pytest.mark.parametrize("nested", [False, True])
def test_parquet_has_views_and_figures_by_row(nested: bool, tmp_path: Path) -> None:
    column = HISTORIES if nested else [json.dumps(messages) for messages in HISTORIES]
    pq.write_table(pa.table({"id": range(60), "trajectory": column}), tmp_path / "in.parquet", row_group_size=7)
    run("reduce", tmp_path, "-o", tmp_path / "out", "--keep", 2, "--jobs", 2, *AS_FLAGS)
    files = sorted((tmp_path / "out").glob("in-*.parquet"))
    table = pa.concat_tables(map(pq.read_table, files))
    assert len(files) == 9 and table.column("id").to_pylist() == list(range(60))
    for messages, view, after in zip(
        HISTORIES, table.column("trajectory").to_pylist(), table.column("recede_chars_after").to_pylist(), strict=True
    ):
        expected = recede.reduce(messages, keep=2, **SLIDING)
        got = json.loads(view)
        if nested:  # nulls of structs are left out
            expected_messages = [{k: v for k, v in one.items() if v is not None} for one in expected.messages]
        else:
            expected_messages = expected.messages
        assert (got, after) == (expected_messages, expected.chars_after)


def test_other_shapes_are_read_as_transcripts_reads_them(tmp_path: Path) -> None:
    shared = [
        {"from": "human", "value": "Look."},
        {"from": "gpt", "value": "ls"},
        {"from": "tool", "value": "a b " * 99},
        {"from": "gpt", "value": "I see."},
    ]
    rows = [{"id": 1, "conversations": shared}, {"id": 2, "messages": HISTORIES[0]}, {"id": 3, "conversations": shared}]
    (tmp_path / "in.jsonl").write_bytes(lines(*rows))
    run("reduce", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--keep", 0, *AS_FLAGS)
    reduced = [json.loads(row) for row in results(tmp_path / "out")["in.jsonl"].splitlines()]
    assert [row["id"] for row in reduced] == [1, 2, 3]
    for row in (reduced[0], reduced[2]):
        assert row["conversations"][2]["content"].startswith("[old tool output cleared")
    assert reduced[1]["messages"] == recede.reduce(HISTORIES[0], keep=0, **SLIDING).messages


def test_files_of_folders_keep_their_place_and_results_are_no_input(tmp_path: Path) -> None:
    for name in ("a/x.jsonl", "b/x.jsonl", "b/c/y.jsonl", "b/notes.txt", "b/bad.parquet"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dumps({"messages": HISTORIES[0]}) + b"\n")
    arguments = ["reduce", tmp_path / "in", "-o", tmp_path / "in" / "out", "--keep", 1]
    (tmp_path / "in" / "b" / "bad.parquet").write_bytes(b"PAR1 no")
    for count in ("3 histories", "0 histories"):
        done = run(*arguments)
        assert done.stdout.startswith(f"{count}, 0 bad rows\n".encode()) and b"warning: left out: " in done.stderr
    assert list(results(tmp_path / "in" / "out")) == ["a/x.jsonl", "b/c/y.jsonl", "b/x.jsonl"]


def test_text_mode_makes_results_of_user_messages(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "ls"}]
    (tmp_path / "in.jsonl").write_bytes(dumps({"messages": [*chat, {"role": "user", "content": "a b"}]}) + b"\n")
    for flags, count in (([], 0), (["--text-mode"], 1)):
        out = tmp_path / f"out{count}"
        run("stats", tmp_path / "in.jsonl", "-o", out, *flags)
        row = json.loads(results(out)["in.jsonl"])
        assert (row["observations"], row["line"]) == (count, 1)


def test_figures_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    table = pa.table({"model": ["a", "b"] * 30, "messages": list(map(json.dumps, HISTORIES))})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=7)
    done = run("stats", tmp_path / "in.parquet", "-o", tmp_path / "stats", "--json", "--keep", 4)
    report = json.loads(done.stdout)
    masked = [recede.reduce(messages, keep=4, **SLIDING) for messages in HISTORIES]
    assert report["rows"] == 60 and report["figures"]["raw_chars"] == sum(one.chars_before for one in masked)
    assert report["figures"]["masked_view_chars"] == sum(one.chars_after for one in masked)
    assert [one["output"] for one in report["files"]] == [
        str(tmp_path / "stats" / f"in-{number:05}.parquet") for number in range(9)
    ]
    written = pa.concat_tables(pq.read_table(one["output"]) for one in report["files"])
    assert written.column("model") == table.column("model")
    assert written.column("recede_raw_chars").to_pylist() == [one.chars_before for one in masked]


# Bad rows


@pytest.mark.parametrize("command", ["reduce", "stats"])
def test_a_bad_row_of_each_kind_is_listed_and_stays_as_it_is(command: str, tmp_path: Path) -> None:
    good = dumps({"messages": HISTORIES[0]})
    rows = [row for poison, _ in POISON for row in (good, poison)]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join([*rows, b"", good]))
    flags = ["--keep", 2, *AS_FLAGS] if command == "reduce" else []
    done = run(command, tmp_path / "in.jsonl", "-o", tmp_path / "out", *flags, code=1)
    found = [(one["line"], one["kind"]) for one in errors(tmp_path / "out" / "in.jsonl")]
    assert found == [(2 * number, kind) for number, (_, kind) in enumerate(POISON, 1)]
    assert b"bad rows are listed in " in done.stderr
    assert done.stdout.startswith(f"{len(POISON) + 1} histories, {len(POISON)} bad rows\n".encode())
    if command == "reduce":
        written = results(tmp_path / "out")["in.jsonl"]
        view = recede.reduce(dumps(HISTORIES[0]), keep=2, **SLIDING).json
        expected = [row if row != good else b'{"messages": ' + view + b"}" for row in [*rows, b"", good]]
        assert written.split(b"\n") == expected


def test_bad_rows_of_parquet_are_null_with_their_error(tmp_path: Path) -> None:
    values = [dumps(HISTORIES[0]), b"[", None, b"\xff", b"[]"]
    pq.write_table(pa.table({"messages": pa.array(values, pa.binary())}), tmp_path / "in.parquet")
    run("reduce", tmp_path / "in.parquet", "-o", tmp_path / "out", "--keep", 1, code=1)
    table = pq.read_table(tmp_path / "out" / "in.parquet")
    assert [one is None for one in table.column("messages").to_pylist()] == [False, True, True, True, False]
    assert [(one["row"], one["kind"]) for one in errors(tmp_path / "out" / "in.parquet")] == [(1, "eof"), (3, "syntax")]


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"\x89PNG\r\n", "in.json", "it looks like a PNG image"),
        (b"PAR1 no", "in.parquet", "it cannot be read as Parquet"),
        (gzip.compress(dumps({"messages": HISTORIES[0]}) + b"\n", mtime=0)[:-20], "in.jsonl.gz", ""),
        (b"PK\x03\x04 no", "in.jsonl", "zip"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_its_name(
    data: bytes, name: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    done = run("stats", tmp_path / name, "-o", tmp_path / "out", code=1)
    assert str(tmp_path / name) in done.stderr.decode() and said in done.stderr.decode()


def test_a_table_without_the_column_names_those_that_it_has(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "text": ["a"]}), tmp_path / "in.parquet")
    done = run("stats", tmp_path / "in.parquet", "-o", tmp_path / "out", code=1)
    assert "there is no column 'messages'; there are id, text" in done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reduce", "--max-input-tokens", "9", "--boundary", "0"], "--boundary"),
    ],
)
def test_wrong_usage_is_found_before_any_work(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(dumps({"messages": HISTORIES[0]}) + b"\n")
    done = run(arguments[0], tmp_path / "in.jsonl", "-o", tmp_path / "out", *arguments[1:], code=2)
    assert said in done.stderr.decode()


def test_a_folder_of_results_that_cannot_be_one_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(dumps({"messages": HISTORIES[0]}) + b"\n")
    (tmp_path / "file").write_bytes(b"")
    done = run("stats", tmp_path / "in.jsonl", "-o", tmp_path / "file", code=1)
    assert done.stderr.startswith(b"recede: ") and done.stderr.count(b"\n") == 1
    assert b"choose another one" in run("stats", tmp_path, "-o", tmp_path, code=2).stderr


# Jobs that go on


def test_what_is_there_is_not_done_again_unless_its_file_is_newer(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(
            lines(*({"messages": messages} for messages in HISTORIES[:9])) + b"[1]\n"
        )
    arguments = ["reduce", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "-o", tmp_path / "out", "--keep", 2]
    first, before = run(*arguments, code=1), results(tmp_path / "out")
    assert first.stdout.startswith(b"18 histories, 2 bad rows\n")
    (tmp_path / "out" / "a.jsonl").write_bytes(b"mine")
    again = run(*arguments, code=1)
    assert again.stdout == b"0 histories, 0 bad rows\n2 results of an earlier run: not done again\n"
    assert again.stderr.count(b"bad rows of an earlier run are listed in ") == 2
    assert (tmp_path / "out" / "a.jsonl").read_bytes() == b"mine"
    os.utime(tmp_path / "out" / "a.jsonl", (0, 0))
    assert b"9 histories, 1 bad row\n" in run(*arguments, code=1).stdout and results(tmp_path / "out") == before
    (tmp_path / "b.jsonl").write_bytes(b"\n")
    os.utime(tmp_path / "b.jsonl", (1 << 32, 1 << 32))
    run(*arguments, code=1)
    assert not (tmp_path / "out" / "b.jsonl.errors").exists()


def kill_and_resume(tmp_path: Path, kills: int, seed: int, files: int) -> None:
    """Kill jobs so many times at random while they work; each is resumed until it ends, and then compared."""
    rng = random.Random(seed)
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for number in range(files):
        rows = [dumps({"id": row, "messages": HISTORIES[(number + row) % 60]}) for row in range(40)]
        (folder / f"{number}.jsonl").write_bytes(b"\n".join([*rows, b'{"id": 77, "messages": [1]}']))
        (folder / f"{number}.jsonl.gz").write_bytes(gzip.compress(b"\n".join(rows), mtime=0))
    table = pa.table({"id": range(200), "messages": list(map(json.dumps, HISTORIES * 4))[:200]})
    pq.write_table(table, folder / "c.parquet", row_group_size=20)
    command = [sys.executable, "-m", "recede.cli", "batch", "reduce", str(folder), "--keep", "1", "--jobs", "2", "-o"]
    subprocess.run([*command, str(tmp_path / "whole")], capture_output=True)
    killed = 0
    while killed < kills or out.exists():
        child = subprocess.Popen([*command, str(out)], stdout=-3, stderr=-3, start_new_session=True)
        if killed < kills:
            after = len(results(out)) + rng.randrange(5)
            while child.poll() is None and len(results(out)) <= after:
                time.sleep(rng.uniform(0, 0.02))
        if killed < kills and child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
            killed += child.wait() == -signal.SIGKILL
            while workers_of(child.pid):
                time.sleep(0.01)
            continue
        assert child.wait() == 1, "for the bad rows"
        assert results(out) == results(tmp_path / "whole")
        shutil.rmtree(out)


def workers_of(session: int) -> list[str]:
    """The processes of a session that still run: none may wait for a parent that was killed."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, its_session, *_ = path.read_text().rpartition(") ")[2].split()
            found += [str(path)] * (int(its_session) == session and state != "Z")
    return found


def test_a_job_that_was_killed_goes_on_to_the_same_result(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, kills=1, seed=1, files=4)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_a_job_that_was_killed_fifty_times_goes_on_to_the_same_result(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, kills=50, seed=random.randrange(1 << 30), files=12)


# Workers


def work(number: int) -> int:
    if number in (2, 5):
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 7:
        raise ValueError("no")
    return number


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 and newer: threads and a fork
@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_a_worker_that_dies_loses_its_file_and_no_other(jobs: int) -> None:
    expected = {number: None if number in (2, 5) else number for number in range(7)}
    assert dict(in_workers(work, range(7), jobs)) == expected
    with pytest.raises(ValueError, match="no"):
        list(in_workers(work, [7], jobs))


@pytest.mark.slow
def test_a_row_that_is_larger_than_memory_costs_its_file_and_no_other(tmp_path: Path) -> None:
    content = b"x" * 150_000_000
    large = b'{"messages": [{"role": "tool", "tool_call_id": "1", "content": "' + content + b'"}]}'
    for name, row in (("a", dumps({"messages": HISTORIES[0]})), ("b", large), ("c", dumps({"messages": HISTORIES[1]}))):
        (tmp_path / f"{name}.jsonl").write_bytes(row)
    code = "import resource, sys, pyarrow.parquet; resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29)); "
    code += "sys.argv[0] = 'recede'; from recede.cli import main; main()"
    files = [str(tmp_path / f"{name}.jsonl") for name in "abc"]
    arguments = ["batch", "reduce", *files, "-o", str(tmp_path / "out"), "--keep", "0", "--jobs", "1"]
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, env=environment)
    assert done.returncode == 1 and done.stderr.startswith(f"recede: {files[1]}: ".encode()), done.stderr
    assert list(results(tmp_path / "out")) == ["a.jsonl", "c.jsonl"]


@pytest.mark.slow
def test_memory_is_that_of_some_rows(tmp_path: Path) -> None:
    """Rows of 25 MB, 200 MB of them on one page, which pyarrow holds twice, and in one packed file."""
    rng = random.Random(1)
    texts = [
        json.dumps([{"role": "tool", "tool_call_id": "1", "content": rng.randbytes(12_500_000).hex()}])
        for _ in range(8)
    ]
    pq.write_table(pa.table({"messages": texts}), tmp_path / "in.parquet", compression="zstd")
    with pa.output_stream(str(tmp_path / "in.jsonl.zst"), compression="zstd") as stream:
        for text in texts:
            stream.write(b'{"messages": ' + text.encode() + b"}\n")
    code = "import resource, sys; from recede.cli.batch.command import batch; "
    code += "batch(sys.argv[1:], standalone_mode=False); "
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    for name in ("in.parquet", "in.jsonl.zst"):
        arguments = ["reduce", str(tmp_path / name), "-o", str(tmp_path / name.replace(".", "-")), "--keep", "0"]
        child = subprocess.run([sys.executable, "-c", code, *arguments, "--jobs", "1"], capture_output=True)
        assert not child.stderr, child.stderr
        assert int(child.stdout.split()[-1]) < 600_000  # kilobytes


def test_parquet_is_worked_on_in_pieces_where_a_dictionary_hides_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recede.cli.batch.work._BATCH_BYTES", 10_000)
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": range(50), "messages": ["x" * 4_000] * 50}), path, row_group_size=20)
    tasks = tasks_of([str(path)], str(tmp_path / "out"))
    pieces = [piece for task in tasks[1:] for piece in parquet_batches(task)]
    assert [one for first, table in pieces for one in range(first, first + table.num_rows)] == list(range(20, 50))
    assert [id for _, table in pieces for id in table["id"].to_pylist()] == list(range(20, 50))
    assert len(pieces) >= 10


def test_a_file_without_rows_has_a_result_without_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"messages": pa.array([], pa.string())}), tmp_path / "none.parquet")
    (tmp_path / "none.jsonl").write_bytes(b"")
    run("reduce", tmp_path, "-o", tmp_path / "out", "--keep", 1)
    assert pq.read_table(tmp_path / "out" / "none.parquet").num_rows == 0
    assert (tmp_path / "out" / "none.jsonl").read_bytes() == b""


# Fields of lines


@pytest.mark.parametrize(
    ("data", "paths", "value"),
    [
        (b'{"a": 1, "m": [1, "]"] }', ["m"], b'[1, "]"]'),
        (b" [1] ", ["m"], b"[1]"),
        (b'{"a": {"m": 1}, "b": "m", "c": {"m": {}}}', ["b.m", "c.m"], b"{}"),
        (b'{"\\u006d": "x"}', ["m"], b'"x"'),
        (b'{"s": "\\"m\\": 1", "t": "\\\\", "m": -1.5e3}', ["m"], b"-1.5e3"),
        (b'{"m": null, "n": true}', ["m", "n"], b"true"),
        (b"{}", ["m"], None),
        (b'{"m": {"m": 1}}', ["m.m.m"], None),
    ],
)
def test_a_field_is_found_in_the_bytes(data: bytes, paths: list[str], value: bytes | None) -> None:
    span = find(data, [tuple(path.split(".")) for path in paths])
    assert value == (None if span is None else data[slice(*span)])
