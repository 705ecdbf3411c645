"""`recede batch` against a plain loop: every kind of input, bad rows, killed jobs, dying workers, memory."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.parquet as pq
from children import recede_command
from transcript_files import CHAT, CLAUDE, INSPECT, lines

import recede
from recede import costs
from recede.arrow import Reducer
from recede.cli.batch.pool import Failed, in_workers
from recede.cli.batch.rows import batches, parquet_batches
from recede.cli.batch.spans import find
from recede.cli.batch.units import Unit
from recede.cli.batch.work import Job, do
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
# The default of the command.
SLIDING: dict[str, Any] = {"boundary": "sliding"}
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
    (b'{"id": 9, "messages": [], "id": 8}', "duplicate_key"),
]


def run(command: str, *arguments: Any, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    done = recede_command("batch", command, *arguments)
    assert done.returncode == code, done.stderr.decode()
    return done


def results(out: Path) -> dict[str, bytes]:
    """What a job has written, without the notes of what is done."""
    return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if path.is_file()}


def errors(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "errors.jsonl").read_bytes().splitlines()]


# The same as a plain loop


def line(number: int, messages: list[Any], wrap: str) -> bytes:
    """A line with bytes that a reader of JSON would not write like that."""
    value = json.dumps(messages, ensure_ascii=number % 2 == 0)
    if wrap == "text":
        return f'{{"n" :{number}, "trajectory":{json.dumps(value)} , "price": 1.50}}'.encode()
    if wrap:
        return f'{{"custom_id":"{number}", "{wrap}": {{"model": "m",  "messages": {value}}}, "x":1e2}}'.encode()
    return f'{{ "a": {{"messages": []}}, "messages" : {value}, "é": 1.50}}'.encode()


# Units of less than a line; some lines; all of them. Each unit is a task for a worker, which takes time.
@pytest.mark.parametrize(
    ("wrap", "unit_bytes"),
    [("text", 2_000), ("", 20_000), ("body", 20_000), ("params", 20_000), ("", 1 << 30), ("text", 1 << 30)],
)
def test_lines_keep_every_other_byte(wrap: str, unit_bytes: int, tmp_path: Path) -> None:
    histories = HISTORIES[:12]
    rows = [line(number, messages, wrap) for number, messages in enumerate(histories)]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(rows[:6]) + b"\n\n" + b"\r\n".join(rows[6:]))
    run("reduce", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--max-input-chars", 3_000, "--unit-bytes", unit_bytes)
    written = b"".join(data for name, data in results(tmp_path / "out").items() if name.endswith("-in.jsonl"))
    expected = []
    for number, (row, messages) in enumerate(zip(rows, histories, strict=True)):
        raw = json.dumps(messages, ensure_ascii=number % 2 == 0).encode()
        view = recede.reduce_json(raw, max_input_chars=3_000).json
        if wrap == "text":
            raw, view = (json.dumps(data.decode()).encode() for data in (raw, view))
        assert raw in row
        expected.append(row.replace(raw, view))
    assert written == b"\n".join(expected[:6]) + b"\n\n" + b"\r\n".join(expected[6:])


def test_each_line_is_in_one_part_wherever_a_file_is_divided(tmp_path: Path) -> None:
    data, path = b'{"messages": []}\n{"messages": [1]}\r\n\n{"messages": []}', tmp_path / "in.jsonl"
    path.write_bytes(data)
    for middle in range(len(data) + 1):
        parts = [Unit("", "lines", (str(path),), *part, 0) for part in ((0, middle), (middle, len(data)))]
        rows = [row for unit in parts for batch in batches(unit, None, text_mode=False) for row in batch]
        assert b"".join(row.line for row in rows) == data
        assert all(data[row.place["byte"] :].startswith(row.line) for row in rows if "byte" in row.place)


def test_text_of_a_history_that_is_not_changed_keeps_its_bytes(tmp_path: Path) -> None:
    row = r'{"messages": "[{\"role\": \"user\", \"content\": \"é \u00e9\"}]"}'.encode()
    (tmp_path / "in.jsonl").write_bytes(row)
    run("reduce", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--keep", 1)
    assert results(tmp_path / "out")["000000-in.jsonl"] == row


@pytest.mark.parametrize("packed", ["gzip", "zstd"])
def test_packed_lines_are_packed_again(packed: str, tmp_path: Path) -> None:
    rows = b"".join(dumps({"messages": messages}) + b"\n" for messages in HISTORIES)
    path = tmp_path / f"in.jsonl.{packed[:2]}"
    with pa.output_stream(str(path), compression=packed) as file:
        file.write(rows)
    run("reduce", path, "-o", tmp_path / "out", "--keep", 2)
    [name] = [name for name in results(tmp_path / "out") if "-in" in name]
    with pa.input_stream(str(tmp_path / "out" / name), compression=packed) as file:
        written = file.read()
    views = [recede.mask_observations_json(dumps(messages), keep_results=2, **SLIDING).json for messages in HISTORIES]
    assert written == b"".join(b'{"messages": ' + view + b"}\n" for view in views)


@pytest.mark.parametrize("nested", [False, True])
def test_parquet_has_views_and_figures_by_row(nested: bool, tmp_path: Path) -> None:
    column = HISTORIES if nested else [json.dumps(messages) for messages in HISTORIES]
    pq.write_table(pa.table({"id": range(60), "trajectory": column}), tmp_path / "in.parquet", row_group_size=7)
    run("reduce", tmp_path, "-o", tmp_path / "out", "--keep", 2, "--unit-bytes", 20_000, "--jobs", 2)
    files = sorted((tmp_path / "out").glob("*.parquet"))
    table = pa.concat_tables(map(pq.read_table, files))
    assert len(files) > 1 and table.column("id").to_pylist() == list(range(60))
    for messages, view, after in zip(
        HISTORIES, table.column("trajectory").to_pylist(), table.column("recede_chars_after").to_pylist(), strict=True
    ):
        expected = recede.mask_observations(messages, keep_results=2, **SLIDING)
        got = json.loads(view)
        if nested:  # nulls of structs are left out
            expected_messages = [{k: v for k, v in one.items() if v is not None} for one in expected.messages]
        else:
            expected_messages = expected.messages
        assert (got, after) == (expected_messages, expected.chars_after)


def test_sessions_logs_and_other_shapes_are_read_as_transcripts_reads_them(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "claude.jsonl").write_bytes(lines(*CLAUDE))
    (folder / "chat.json").write_bytes(json.dumps(CHAT, indent=1).encode())
    shared = [
        {"from": "human", "value": "Look."},
        {"from": "gpt", "value": "ls"},
        {"from": "tool", "value": "a b " * 99},
    ]
    (folder / "sharegpt.jsonl").write_bytes(
        lines({"id": 1, "conversations": shared}, {"id": 2, "conversations": shared})
    )
    with zipfile.ZipFile(folder / "log.eval", "w", zipfile.ZIP_DEFLATED) as log:
        for sample in INSPECT["samples"]:
            log.writestr(f"samples/{sample['id']}_epoch_1.json", dumps(sample))
        log.writestr("header.json", "{}")
    run("reduce", folder, "-o", tmp_path / "out", "--keep", 0)
    written = results(tmp_path / "out")
    by_file: dict[str, list[Any]] = {}
    for data in (data for name, data in written.items() if "sessions" in name or "log" in name):
        for one in map(json.loads, data.splitlines()):
            by_file.setdefault(Path(one["file"]).name, []).append(one["messages"])
    expected: dict[str, list[Any]] = {}
    for name, data in (("chat.json", dumps(CHAT)), ("claude.jsonl", lines(*CLAUDE)), ("log.eval", dumps(INSPECT))):
        found = recede.transcripts.read_all(data)
        expected[name] = [recede.mask_observations(one.messages, keep_results=0, **SLIDING).messages for one in found]
    assert by_file == expected
    [reduced] = [data.splitlines() for name, data in written.items() if "sharegpt" in name]
    assert [json.loads(row)["id"] for row in reduced] == [1, 2]
    assert json.loads(reduced[0])["conversations"][2]["content"].startswith("[observation masked")


def test_text_mode_makes_results_of_user_messages(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "ls"}]
    (tmp_path / "in.jsonl").write_bytes(dumps({"messages": [*chat, {"role": "user", "content": "a b"}]}) + b"\n")
    for flags, count in (([], 0), (["--text-mode"], 1)):
        out = tmp_path / f"out{count}"
        run("stats", tmp_path / "in.jsonl", "-o", out, *flags)
        [row] = [json.loads(data) for name, data in results(out).items() if name.endswith("-in.jsonl")]
        assert (row["observations"], row["line"]) == (count, 1)


def test_figures_and_costs_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"model": ["a", "b"] * 30, "messages": list(map(json.dumps, HISTORIES))}),
        tmp_path / "in.parquet",
        row_group_size=7,
    )
    run("stats", tmp_path / "in.parquet", "-o", tmp_path / "stats", "--unit-bytes", 1)
    summary = json.loads((tmp_path / "stats" / "summary.json").read_bytes())
    masked = [recede.mask_observations(messages, keep_results=4, **SLIDING) for messages in HISTORIES]
    assert summary["rows"] == 60 and summary["raw_chars"] == sum(one.chars_before for one in masked)
    assert summary["masked_view_chars"] == sum(one.chars_after for one in masked)

    policy = "sliding:window=3"
    run("replay", tmp_path / "in.parquet", "-o", tmp_path / "replay", "--policy", policy, "--by", "model")
    replays = [costs.replay(messages, [policy]) for messages in HISTORIES]
    expected = costs.compare_costs(replays)
    summary = json.loads((tmp_path / "replay" / "summary.json").read_bytes())
    assert summary["sessions"] == 60
    for cost, one in zip(expected, summary["policies"], strict=True):
        assert one["usage"] == cost.usage._asdict() and one["cost"] == pytest.approx(cost.cost)
        assert "median_of_raw" not in one, "sums of usage do not say it"
    usage = [json.loads(row) for row in (tmp_path / "replay" / "usage.jsonl").read_bytes().splitlines()]
    [of_b] = [row for row in usage if (row["model"], row["policy"]) == ("b", policy)]
    assert of_b["sent_chars"] == sum(replay.usage.usage[policy].sent_chars for replay in replays[1::2])


def test_a_suggestion_is_that_of_all_histories(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(lines(*({"messages": messages} for messages in HISTORIES[:4])))
    run("suggest", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--unit-bytes", 10_000)
    summary = json.loads((tmp_path / "out" / "summary.json").read_bytes())
    assert summary["suggestion"]["window"] == costs.suggest_window(HISTORIES[:4]).window


# Bad rows


@pytest.mark.parametrize("command", ["reduce", "stats", "replay"])
def test_a_bad_row_of_each_kind_is_listed_and_stays_as_it_is(command: str, tmp_path: Path) -> None:
    good = dumps({"messages": HISTORIES[0]})
    rows = [row for poison, _ in POISON for row in (good, poison)]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join([*rows, b"", good]))
    flags = ["--keep", 2] if command == "reduce" else []
    done = run(command, tmp_path / "in.jsonl", "-o", tmp_path / "out", *flags, code=1)
    found = [(one["line"], one["kind"]) for one in errors(tmp_path / "out")]
    assert found == [(2 * number, kind) for number, (_, kind) in enumerate(POISON, 1)]
    assert b"bad rows are listed in " in done.stderr
    assert done.stdout.startswith(f"{len(POISON) + 1} histories, {len(POISON)} bad rows\n".encode())
    if command == "reduce":
        [written] = [data for name, data in results(tmp_path / "out").items() if name.endswith("-in.jsonl")]
        view = recede.mask_observations_json(dumps(HISTORIES[0]), keep_results=2, **SLIDING).json
        expected = [row if row != good else b'{"messages": ' + view + b"}" for row in [*rows, b"", good]]
        assert written.split(b"\n") == expected


def test_bad_rows_of_parquet_are_null_with_their_error(tmp_path: Path) -> None:
    values = [dumps(HISTORIES[0]), b"[", None, b"\xff", b"[]"]
    pq.write_table(pa.table({"messages": pa.array(values, pa.binary())}), tmp_path / "in.parquet")
    run("reduce", tmp_path / "in.parquet", "-o", tmp_path / "out", "--keep", 1, code=1)
    table = pq.read_table(next((tmp_path / "out").glob("*.parquet")))
    assert [one is None for one in table.column("messages").to_pylist()] == [False, True, True, True, False]
    assert [(one["row"], one["kind"]) for one in errors(tmp_path / "out")] == [(1, "eof"), (3, "syntax")]


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"\x89PNG\r\n", "in.json", "it looks like a PNG image"),
        (b"PAR1 no", "in.parquet", "it cannot be read as Parquet"),
        (gzip.compress(dumps({"messages": HISTORIES[0]}) + b"\n", mtime=0)[:-20], "in.jsonl.gz", ""),
        (b"PK\x03\x04 no", "in.eval", "zip"),
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
    assert "there is no column 'messages', but id, text" in done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reduce", "--max-input-chars", "9", "--summary-max-chars", "0"], "--summary-max-chars"),
        (["replay", "--policy", "none"], "none"),
        (["replay", "--by", "model"], "--by names columns of Parquet"),
        (["stats", "--id", "id"], "--id is for --engine ray"),
        (["stats", "--jobs", "2", "--engine", "ray"], "--jobs is for --engine local"),
        (["stats", "--engine", "ray"], "--engine ray reads Parquet alone"),
    ],
)
def test_wrong_usage_is_found_before_any_work(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(dumps({"messages": HISTORIES[0]}) + b"\n")
    done = run(arguments[0], tmp_path / "in.jsonl", "-o", tmp_path / "out", *arguments[1:], code=2)
    assert said in done.stderr.decode()


# Jobs that go on


def test_a_done_job_is_not_done_again_and_another_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(lines(*({"messages": messages} for messages in HISTORIES)))
    arguments = ["reduce", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--keep", 2, "--unit-bytes", 20_000]
    first = run(*arguments)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("0*")}
    assert run(*arguments).stdout == first.stdout
    assert len(times) > 1 and {path: path.stat().st_mtime_ns for path in times} == times
    done = run(*arguments[:-4], "--keep", 3, code=2)
    assert b"has the results of another job (options, units differ)" in done.stderr
    os.utime(tmp_path / "in.jsonl", (0, 0))
    assert b"has the results of another job (files differ)" in run(*arguments, code=2).stderr
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("x")
    assert (
        b"has files of something else" in run("stats", tmp_path / "in.jsonl", "-o", tmp_path / "other", code=2).stderr
    )


def kill_and_resume(tmp_path: Path, kills: int, seed: int, count: int = 600, unit_bytes: int = 100_000) -> None:
    """Kill jobs so many times at random while they work; each is resumed until it ends, and then compared."""
    rng = random.Random(seed)
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    rows = [dumps({"id": number, "messages": HISTORIES[number % 60]}) for number in range(count)]
    rows[77] = b'{"id": 77, "messages": [1]}'
    (folder / "a.jsonl").write_bytes(b"\n".join(rows))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b"\n".join(rows[:90]), mtime=0))
    pq.write_table(
        pa.table({"id": range(200), "messages": list(map(json.dumps, HISTORIES * 4))[:200]}),
        folder / "c.parquet",
        row_group_size=20,
    )
    command = [sys.executable, "-m", "recede.cli", "batch", "reduce", str(folder), "--keep", "1"]
    command += ["--unit-bytes", str(unit_bytes), "--jobs", "2", "-o"]
    subprocess.run([*command, str(tmp_path / "whole")], capture_output=True)
    killed = 0
    while killed < kills or out.exists():
        child = subprocess.Popen([*command, str(out)], stdout=-3, stderr=-3, start_new_session=True)
        if killed < kills:
            after = units_done(out) + rng.randrange(5)
            while child.poll() is None and units_done(out) <= after:
                time.sleep(rng.uniform(0, 0.02))
        if killed < kills and child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            killed += child.wait() == -signal.SIGKILL
            continue
        assert child.wait() == 1, "for the bad row"
        assert results(out) == results(tmp_path / "whole")
        assert not list((out / ".recede").glob("*.part"))
        shutil.rmtree(out)


def units_done(out: Path) -> int:
    return len(list((out / ".recede").glob("*.json")))


def test_a_job_that_was_killed_goes_on_to_the_same_result(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, kills=1, seed=1, count=120, unit_bytes=250_000)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_a_job_that_was_killed_fifty_times_goes_on_to_the_same_result(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, kills=50, seed=random.randrange(1 << 30))


# Workers


def ended(units: list[Any], work: Callable[..., Any], jobs: int = 2) -> dict[Any, Any]:
    return dict(one for one in in_workers(units, work, jobs) if one is not None)


def test_a_worker_that_dies_on_rows_leaves_them_out_and_ends() -> None:
    def work(unit: int, skipped: frozenset[int] | None, announce: Callable[[int], None]) -> Any:
        for row in range(6):
            if skipped is not None:
                announce(row)
            if unit == 1 and row in (2, 4) and row not in (skipped or ()):
                os.kill(os.getpid(), signal.SIGKILL)
        return sorted(skipped or ())

    assert ended([0, 1, 2], work) == {0: [], 1: [2, 4], 2: []}


def test_a_worker_that_always_dies_is_given_up_and_the_others_go_on() -> None:
    def work(unit: int, skipped: frozenset[int] | None, announce: Callable[[int], None]) -> Any:
        if unit == 1:
            os._exit(9)
        if unit == 2:
            raise ValueError("no")
        return unit

    found = ended([0, 1, 2, 3], work)
    assert (found[0], found[3], found[2]) == (0, 3, Failed("failed", "ValueError: no"))
    assert found[1].kind == "died" and "exit code 9" in found[1].error


@pytest.mark.slow
def test_a_row_that_is_larger_than_memory_is_one_bad_row(tmp_path: Path) -> None:
    """The worker has not the memory to mask it; those before and behind it are done."""
    small = dumps({"messages": HISTORIES[0]})
    content = b"x" * 150_000_000
    with (tmp_path / "in.jsonl").open("wb") as file:
        large = b'{"messages": [{"role": "tool", "tool_call_id": "1", "content": "' + content + b'"}]}'
        file.writelines([small + b"\n", large + b"\n", small + b"\n"])
    code = "import resource, sys, pyarrow.parquet; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
    code += "sys.argv[0] = 'recede'; from recede.cli import main; main()"
    arguments = [
        "batch",
        "reduce",
        str(tmp_path / "in.jsonl"),
        "-o",
        str(tmp_path / "out"),
        "--keep",
        "0",
        "--jobs",
        "1",
    ]
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, env=environment)
    assert done.returncode in (0, 1), done.stderr
    [written] = [data for name, data in results(tmp_path / "out").items() if name.endswith("-in.jsonl")]
    rows = written.split(b"\n")
    assert len(rows) == 4 and rows[0] == rows[2] and b"observation masked" in rows[0]
    if done.returncode:
        assert [one["line"] for one in errors(tmp_path / "out")] == [2] and rows[1] == large


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
    monkeypatch.setattr("recede.cli.batch.rows._BATCH_BYTES", 10_000)
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": range(50), "messages": ["x" * 4_000] * 50}), path, row_group_size=20)
    pieces = list(parquet_batches(Unit("in", "parquet", (str(path),), 1, 3, 0)))
    assert [one for first, table in pieces for one in range(first, first + table.num_rows)] == list(range(20, 50))
    assert [id for _, table in pieces for id in table["id"].to_pylist()] == list(range(20, 50))
    assert len(pieces) >= 10


def test_a_row_of_parquet_on_which_workers_died_is_a_bad_one(tmp_path: Path) -> None:
    path, out = tmp_path / "in.parquet", tmp_path / "out"
    pq.write_table(pa.table({"messages": list(map(json.dumps, HISTORIES[:3]))}), path)
    (out / ".recede").mkdir(parents=True)
    job = Job("reduce", str(out), lambda column: Reducer(column, keep_results=0))
    announced: list[int] = []
    outcome = do(job, Unit("in", "parquet", (str(path),), 0, 1, 0), frozenset([1]), announced.append)
    assert announced == [0, 1, 2] and outcome.rows == 3
    assert [(one["row"], one["kind"]) for one in outcome.failed] == [(1, "died")]
    assert [one is None for one in pq.read_table(out / "in.parquet")["messages"].to_pylist()] == [False, True, False]


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
