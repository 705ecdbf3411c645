"""Every recorded session of the corpus, read as it is; its own table says how many records each must give."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from shared_data import CORPUS, corpus_files, need

import recede
from recede import transcripts
from support import built_engines, using

# Folders of the corpus whose name is not that of the format.
FORMATS = {"tau_openai": "tau_bench", "openai_parts": "body"}

# A call of pi was never answered, though the session went on. (An orphan call at the end of a session is open.)
KNOWN_ORPHANS = {"before-compaction.jsonl.gz": 1}

_ROW = re.compile(r"\| (\S+) \| R\d+ \| .*? \| (\d+) \| \d+ \| (\d+) \| ?(.*?) ?\|$", re.MULTILINE)


class Row(NamedTuple):
    records: int
    observation_percent: int
    note: str


FILES = corpus_files()
every_file = pytest.mark.parametrize(
    "path", FILES or [CORPUS], ids=lambda path: f"{path.parent.name}-{path.name[-30:]}"
)


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    need(CORPUS)
    return {name: Row(int(n), int(p), note) for name, n, p, note in _ROW.findall((CORPUS / "SOURCES.md").read_text())}


def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "recede.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


@every_file
def test_records_and_pairs_are_those_of_the_table(path: Path, rows: dict[str, Row]) -> None:
    row = rows[path.name]
    found = transcripts.read_all(path)
    assert {one.format for one in found} == {FORMATS.get(path.parent.name, path.parent.name)}
    assert sum(one.records for one in found) == row.records
    orphans = sum(len(recede.check_pairs(one.messages).orphans) for one in found)
    assert orphans == KNOWN_ORPHANS.get(path.name, int(row.note == "orphan result"))
    warnings = " ".join(warning for one in found for warning in one.warnings)
    for note, warning in {
        "glued lines": "several records on one line",
        "result before call": "result before its call",
        "contains compaction": "compacted",
    }.items():
        assert note not in row.note or warning in warnings


@every_file
def test_both_engines_read_all_messages(path: Path, rows: dict[str, Row]) -> None:
    for transcript in transcripts.read_all(path):
        seen = []
        for engine in built_engines():
            with using(engine):
                result = recede.mask_observations(transcript.messages, keep_results=2)
                report = recede.check_pairs(transcript.messages)
            assert result.turns == transcript.turns
            seen.append((result.messages, result.tools, result.chars_before, result.chars_after, report))
        assert seen[0] == seen[-1]


@every_file
def test_observations_have_about_the_share_of_the_table(path: Path, rows: dict[str, Row]) -> None:
    """The table also counts reasoning, which recede does not, so the share may be larger but hardly smaller."""
    results = [recede.mask_observations(one.messages, keep_results=0) for one in transcripts.read_all(path)]
    chars = sum(result.chars_before for result in results)
    observed = sum(tool.chars for result in results for tool in result.tools.values())
    assert 100 * observed / max(1, chars) >= rows[path.name].observation_percent - 4


def test_one_command_measures_them_all(rows: dict[str, Row]) -> None:
    report = json.loads(run("stats", "--json", *FILES).stdout)
    assert report["failed"] == []
    assert report["total"]["records"] == sum(row.records for row in rows.values())
    assert {one["file"] for one in report["histories"]} == set(map(str, FILES))
    table = run("stats", "--by-format", *FILES).stdout.decode()
    assert len(re.findall(r"^\w+ +\d", table, re.MULTILINE)) == 11


def test_one_command_reduces_them_all(rows: dict[str, Row], tmp_path: Path) -> None:
    out = tmp_path / "views"
    report = json.loads(run("reduce", "--json", "--max-input-tokens", "4000", "-o", out, *FILES).stdout)
    assert report["failed"] == []
    assert len(list(out.iterdir())) == report["total"]["histories"]
    assert report["total"]["chars_after"] < report["total"]["chars_before"] / 2
    written: list[Any] = [json.loads(path.read_bytes()) for path in out.iterdir()]
    views = [view["messages"] if isinstance(view, dict) else view for view in written]
    assert sum(map(recede.count_chars, views)) == report["total"]["chars_after"]


def test_damaged_copies_are_named_and_do_not_stop_the_others(rows: dict[str, Row], tmp_path: Path) -> None:
    damaged = []
    smallest = {path.parent.name: path for path in sorted(FILES, key=lambda path: -path.stat().st_size)}
    for name, path in smallest.items():
        data = path.read_bytes()
        plain = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        middle = plain.index(b'"', len(plain) // 2)
        for kind, copy in {
            "cut": plain[:middle],
            "cut-packed": gzip.compress(plain)[:-20],
            "binary": plain[:middle] + bytes(range(256)) + plain[middle:],
            "utf-16": plain.decode().encode("utf-16"),
            "glued": plain[:middle] + plain,
        }.items():
            damaged.append(tmp_path / f"{name}-{kind}")
            damaged[-1].write_bytes(copy)
            with pytest.raises(recede.TranscriptError) as raised:
                transcripts.read_all(damaged[-1])
            assert raised.value.source == str(damaged[-1])
            assert raised.value.line is not None or raised.value.offset is not None
    errors = run("stats", *damaged, FILES[0], code=1)
    assert errors.stderr.count(b"\n") == len(damaged)
    assert errors.stdout.count(b"total") == 1


@every_file
def test_a_wrong_format_is_refused(path: Path, rows: dict[str, Row]) -> None:
    own = transcripts.detect(path)
    for wrong in {"claude_code", "codex", "gemini", "inspect", "openhands", "pi", "swe_agent", "tau_bench"} - {own}:
        with pytest.raises(recede.TranscriptError, match="not of the format that was named"):
            transcripts.read(path, wrong)
