"""`recede store`, as a person runs it: real processes and real files."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_cli import ok, run

import recede


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "session.store"
    with recede.store.TurnStore(path) as store:
        for number in range(30):
            store.append("r", f"cat {number}", f"{number} é\ud800\n" * (number * 20), timestamp=number / 2)
        store.mask_before(11)
        store.append_record("message", [b'{"role": "user"}'])
        store.append_record("summary", ["é".encode(), b"\xff\x00"])
        store.append_record("session", [b""])
    return path


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def everything(path: Path) -> Iterator[Any]:
    with recede.store.TurnStore(path, read_only=True) as store:
        yield store.masked_before
        for turn in store:
            yield turn, store.recall(turn.turn_id)
        for kind in ("message", "summary", "session"):
            yield list(store.records(kind))


def failure(*arguments: str | Path, **options: Any) -> str:
    done = run(*arguments, **options)
    assert done.returncode == 1 and not done.stdout
    return done.stderr.decode()


def test_info_and_verify(path: Path) -> None:
    assert b"turns: 30, 10 of them masked\nmessages: 1, summaries: 1, sessions: 1\n" in ok("store", "info", path)
    told = json.loads(ok("store", "info", path, "--json"))
    with recede.store.TurnStore(path, read_only=True) as store:
        assert told == {**store.stats()._asdict(), "chain_pages": store.stats().chain_pages}
    assert ok("store", "verify", path) == b"sound: 30 turns, 1 messages, 1 summaries\n"
    assert json.loads(ok("store", "verify", path, "--json"))["is_sound"] is True


def test_what_is_exported_can_be_imported(path: Path, tmp_path: Path) -> None:
    data = ok("store", "export", path)
    assert [line["kind"] for line in lines(data)] == ["turn"] * 30 + ["message", "summary", "session"]
    assert lines(data)[12]["observation"] == "12 é\ud800\n" * 240
    copies = [tmp_path / name for name in ("a.store", "b.store", "c.store")]
    ok("store", "import", copies[0], stdin=data)
    ok("store", "export", path, "-o", tmp_path / "all.jsonl.gz")
    assert gzip.decompress((tmp_path / "all.jsonl.gz").read_bytes()) == data
    ok("store", "import", copies[1], tmp_path / "all.jsonl.gz")
    for copy in copies[:2]:
        assert list(everything(copy)) == list(everything(path))
    # What is there stays, and what comes goes behind it.
    ok("store", "import", copies[1], stdin=data)
    with recede.store.TurnStore(copies[1]) as store:
        assert len(store) == 60 and store.masked_before == 41 and store.count_records("message") == 2


@pytest.mark.parametrize(
    "line",
    [
        b"x",
        b"5",
        b"{}",
        b'{"kind": "note", "fields": ["x"]}',
        b'{"kind": "message", "fields": []}',
        b'{"kind": "message", "fields": [5]}',
        b'{"kind": "message", "fields": [{"base64": "\xc3\xa9"}]}',
        b'{"kind": "turn", "reasoning": "r", "action": 5, "observation": "o", "timestamp": 1, "masked": true}',
        b'{"kind": "turn", "reasoning": "r", "action": "a", "observation": "o", "timestamp": null, "masked": true}',
    ],
)
def test_a_bad_line_is_named_and_nothing_imported(tmp_path: Path, line: bytes) -> None:
    good = b'{"kind": "message", "fields": ["x"]}\n\n'
    said = failure("store", "import", tmp_path / "new.store", stdin=good + line + b"\n")
    assert said == "recede: standard input: line 3: this is no line that `recede store export` writes\n"
    assert not list(tmp_path.iterdir())


def test_recall_prints_observations(path: Path) -> None:
    assert ok("store", "recall", path, 2, 1, 3).decode() == "1 é?\n" * 20 + "2 é?\n" * 40
    told = json.loads(ok("store", "recall", path, 2, "--json"))
    assert told == [{"turn_id": 2, "observation": "1 é\ud800\n" * 20}]
    assert failure("store", "recall", path, 31).endswith("there is no turn 31\n")
    assert failure("store", "recall", path, 2**64).endswith(f"there is no turn {2**64}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege there")
def test_a_store_is_not_written_over_by_what_is_exported(path: Path, tmp_path: Path) -> None:
    before = list(everything(path))
    link, hard = tmp_path / "link", tmp_path / "hard"
    link.symlink_to(path)
    hard.hardlink_to(path)
    for source, out in ((path, path), (path, link), (link, path), (path, hard), (hard, path)):
        done = run("store", "export", source, "-o", out)
        assert done.returncode == 2 and b"--output would write over " in done.stderr
    for ending in ("-log", "-new"):
        done = run("store", "export", path, "-o", f"{path}{ending}")
        assert done.returncode == 2 and b"--output would write over " in done.stderr
    assert list(everything(path)) == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["hard", "link", "session.store"]


@pytest.mark.skipif(not hasattr(os, "fchown"), reason="no modes on this system")
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_what_is_exported_and_imported_is_as_private_as_the_store(path: Path, tmp_path: Path, mode: int) -> None:
    path.chmod(mode)
    ok("store", "export", path, "-o", tmp_path / "copy.jsonl")
    ok("store", "import", tmp_path / "copy.store", tmp_path / "copy.jsonl")
    assert (tmp_path / "copy.jsonl").stat().st_mode & 0o777 == mode
    assert (tmp_path / "copy.store").stat().st_mode & 0o777 == 0o600


def test_no_more_than_max_bytes_is_imported(path: Path, tmp_path: Path) -> None:
    data = ok("store", "export", path)
    for form in (data, gzip.compress(data)):
        said = failure("store", "import", tmp_path / "new.store", "--max-bytes", str(len(data) - 1), stdin=form)
        assert (
            said.startswith("recede: standard input: the text, or a line of it, is longer than is read")
            and "--max-bytes" in said
        )
    assert not (tmp_path / "new.store").exists()
    ok("store", "import", tmp_path / "new.store", "--max-bytes", str(len(data)), stdin=gzip.compress(data))


def test_a_store_that_is_open_is_read(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        store.append("r", "a", "o", sync=True)
        store.append("r", "a", "o")
        assert len(lines(ok("store", "export", path))) == 31 + 4
        assert "the store is in use" in failure("store", "import", path, stdin=b"")


def test_damage_is_named_and_the_rest_exported(path: Path, tmp_path: Path) -> None:
    data = bytearray(path.read_bytes())
    page = next(page for page in range(3, len(data) // 4_096) if data[page * 4_096 + 4] == 5)
    data[page * 4_096 + 100] ^= 1
    path.write_bytes(data)
    done = run("store", "verify", path)
    assert done.returncode == 1 and f"page {page}: its checksum is wrong\n" in done.stdout.decode()
    told = run("store", "verify", path, "--json")
    assert told.returncode == 1 and {"page": page, "what": "its checksum is wrong"} in json.loads(told.stdout)["faults"]
    done = run("store", "export", path, "-o", tmp_path / "rest.jsonl")
    assert done.returncode == 1 and not done.stdout
    rest = lines((tmp_path / "rest.jsonl").read_bytes())
    said = done.stderr.decode().splitlines()
    assert 0 < len(said) < 30 and len(rest) == 33 - len(said)
    assert all(f"page {page}" in line and "is left out)" in line for line in said)
    lost = {int(line.split("(turn ")[1].split()[0]) for line in said}
    assert {line["turn_id"] for line in rest if line["kind"] == "turn"} == set(range(1, 31)) - lost


@pytest.mark.parametrize("command", ["info", "verify", "export"])
def test_what_is_no_store_is_refused(tmp_path: Path, command: str) -> None:
    assert "the store does not exist" in failure("store", command, tmp_path / "nothing")
    (tmp_path / "notes.txt").write_text("notes")
    assert "not a turn store" in failure("store", command, tmp_path / "notes.txt")
    assert not (tmp_path / "nothing").exists()
    assert run("store", command).returncode == 2
