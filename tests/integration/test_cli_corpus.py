"""The command line over recorded sessions that are request bodies, which keep their bytes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import published
import pytest
from children import recede_command
from shared_data import CORPUS

import recede
import recede.cli.commands
from support import assert_only_observations_differ

FILES = sorted(CORPUS.glob("openai_parts/*.json"))

pytestmark = pytest.mark.skipif(not FILES, reason=f"{CORPUS} is not there (make corpus)")


def run(*arguments: str | Path) -> bytes:
    done = recede_command(*arguments)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[-30:])
def test_reduce_and_stats_read_recorded_sessions(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    history = json.loads(data)
    history = history["messages"] if isinstance(history, dict) else history

    figures = json.loads(run("stats", path, "--json"))["histories"][0]
    assert figures["messages"] == len(history)
    assert figures["raw_chars"] == recede.count_chars(history)

    budget = figures["raw_chars"] * 2 // 3
    view = run("reduce", path, "--design", "--fill", "0.9", "--max-input-chars", str(budget), "--keep-messages", "2")
    expected = published.reduce_json(data, max_input_chars=budget, preserve_recent_raw_turns=2)
    assert view == expected.json
    if expected.reduction_stage in (None, "masking") and data.lstrip().startswith(b"["):
        assert_only_observations_differ(data.decode(), view.decode())

    packed = tmp_path / "session.json.gz"
    packed.write_bytes(gzip.compress(data))
    options = ("--design", "--fill", "0.9", "--max-input-chars", str(budget), "--keep-messages", "2")
    run("reduce", packed, *options, "--in-place")
    assert gzip.decompress(packed.read_bytes()) == view
