"""Every recorded session of the corpus, read as it is; the manifest says how many records each must give."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import published
import pytest
from optimum import least_cost
from shared_data import CORPUS, MANIFEST, corpus_files, each_file, need
from tokens_counted import tokens_of

import recede
from recede import transcripts
from support import ENGINES, using

# Folders of the corpus whose name is not that of the format.
FORMATS = {"tau_openai": "tau_bench", "openai_parts": "body"}

POLICIES = ("sliding:window=10", "stepped:window=10,chunk=10", "keep_last:messages=20")
MASKS: dict[str, Any] = {
    "sliding:window=10": {"keep": 10, "boundary": "sliding"},
    "stepped:window=10,chunk=10": {"keep": 10, "boundary": 10},
}

# A call of pi was never answered, though the session went on. (An orphan call at the end of a session is open.)
KNOWN_ORPHANS = {"before-compaction.jsonl.gz": 1}


class Row(NamedTuple):
    records: int
    observation_percent: int
    note: str


FILES = corpus_files()


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    need(CORPUS)
    return {
        Path(one["file"]).name: Row(one["records"], one["observation_percent"], one.get("note", ""))
        for one in MANIFEST["files"]
    }


def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "recede.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


@each_file()
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
        "result before call": "record before the one that it names",
        "contains compaction": "compacted",
    }.items():
        assert note not in row.note or warning in warnings


@each_file()
def test_both_engines_read_all_messages(path: Path, rows: dict[str, Row]) -> None:
    for transcript in transcripts.read_all(path):
        seen = []
        for engine in ENGINES:
            with using(engine):
                result = recede.reduce(transcript.messages, keep=2, boundary="sliding")
                report = recede.check_pairs(transcript.messages)
            assert result.turns == transcript.turns
            seen.append((result.messages, result.tools, result.chars_before, result.chars_after, report))
        assert seen[0] == seen[-1]


@each_file()
def test_observations_have_about_the_share_of_the_table(path: Path, rows: dict[str, Row]) -> None:
    """The table also counts reasoning, which recede does not, so the share may be larger but hardly smaller."""
    results = [recede.reduce(one.messages) for one in transcripts.read_all(path)]
    chars = sum(result.chars_before for result in results)
    observed = sum(tool.chars for result in results for tool in result.tools.values())
    assert 100 * observed / max(1, chars) >= rows[path.name].observation_percent - 4


@each_file()
def test_both_engines_play_all_sessions(path: Path, rows: dict[str, Row]) -> None:
    """The oracle plans each request anew, so only the beginning of long sessions is played with it."""
    for transcript in transcripts.read_all(path):
        seen = []
        for engine in ENGINES:
            with using(engine):
                seen.append(recede.costs.replay(transcript.messages[:150], POLICIES))
        assert seen[0] == seen[-1]
        whole = recede.costs.replay(transcript.messages, POLICIES)
        assert whole == recede.costs.replay_json(json.dumps(transcript.messages), POLICIES)
        requests = [turn.messages for turn in whole.policies[0].turns]
        assert len(requests) == transcript.turns
        for policy, options in MASKS.items():
            [replayed] = [one for one in whole.policies if one.policy == policy]
            for place in (0, len(requests) // 2, -1) if requests else ():
                view = recede.reduce(transcript.messages[: requests[place]], **options)
                assert replayed.turns[place].view_chars == 12_000 + view.chars_after
                assert replayed.turns[place].masked_count == view.masked_count


@pytest.mark.slow
def test_one_command_plays_them_all(rows: dict[str, Row]) -> None:
    report = json.loads(run("replay", "--json", *FILES).stdout)
    assert report["failed"] == []
    assert report["total"]["requests"] == sum(one["requests"] for one in report["histories"])
    stats = json.loads(run("stats", "--json", *FILES).stdout)
    assert [one["requests"] for one in report["histories"]] == [one["turns"] for one in stats["histories"]]
    for one in report["histories"]:
        raw, *others = one["policies"]
        assert all(policy["usage"]["sent_chars"] <= raw["usage"]["sent_chars"] for policy in others)


# Of the sessions with 30 observations or more: how many there are, and the cost of policies as a share of raw, measured
# by other code before this was written (with a slightly simpler break-even rule). That code masked each result that is
# longer than the published placeholder: sliding masks of Claude Code cost 1.00 and 0.68 so. recede leaves results of up
# to 104 characters raw; a simulation as in test_caches_corpus.py, with an ideal cache, gives 0.98 and 0.66 by the
# published rule, and by recede's the figures here.
MEASURED = {
    "codex": (
        7,
        {
            "sliding:window=10": 1.01,
            "stepped:window=10,chunk=10": 0.56,
            "high_water:window=10,chars=200000": 0.65,
            "break_even:window=10": 0.53,
            "sliding:window=4": 0.55,
            "break_even:window=4": 0.45,
        },
    ),
    "claude_code": (
        12,
        {
            "sliding:window=10": 0.93,
            "stepped:window=10,chunk=10": 0.61,
            "high_water:window=10,chars=200000": 0.76,
            "break_even:window=10": 0.60,
            "sliding:window=4": 0.65,
            "break_even:window=4": 0.57,
        },
    ),
}


@pytest.mark.parametrize("agent", MEASURED)
def test_the_costs_under_a_cache_are_those_that_were_measured(agent: str, rows: dict[str, Row]) -> None:
    count, measured = MEASURED[agent]
    sessions = [one for path in FILES if path.parent.name == agent for one in transcripts.read_all(path)]
    long = [one.messages for one in sessions if observations(one) >= 30]
    assert len(long) == count
    prices = recede.costs.Prices(output=0)
    replays = (recede.costs.replay(messages, measured, prices=prices, cache="ideal") for messages in long)
    costs = recede.costs.compare_costs(replays)
    for cost in costs[1:]:
        assert cost.of_raw == pytest.approx(measured[cost.policy], abs=0.03), cost.policy
    by_name = {cost.policy: cost for cost in costs}
    paying = by_name["break_even:window=10"]
    assert paying.cost < 1.10 * sum(least_cost(messages, 10, prices) for messages in long)
    assert paying.cost < by_name["stepped:window=10,chunk=10"].cost
    assert by_name["sliding:window=10"].loss_count > count / 2


@pytest.mark.parametrize("agent", [pytest.param("claude_code", marks=pytest.mark.slow), "codex"])
def test_a_history_grows_through_the_longest_sessions_message_by_message(agent: str, rows: dict[str, Row]) -> None:
    sessions = [one for path in FILES if path.parent.name == agent for one in transcripts.read_all(path)]
    for session in sorted(sessions, key=lambda one: -len(one.messages))[:3]:
        whole, fitted = published.History(), recede.History(max_input_tokens=15_000)
        for count, message in enumerate(session.messages, 1):
            whole.append(message)
            fitted.append_json(json.dumps(message))
            if count % 7 and count < len(session.messages):
                continue
            seen = session.messages[:count]
            assert whole.view() == recede.designs.mask_old_observations(seen, boundary="break_even")
            assert json.loads(whole.view_json()) == whole.view()
            assert fitted.view() == recede.reduce(seen, max_input_tokens=15_000).messages
            assert tokens_of(fitted.view()) <= 15_000
        assert whole.messages == session.messages
        assert fitted.messages == session.messages
        for number in (1, whole.stats().masked_count):
            assert whole.recall(number) == fitted.recall(number)


def observations(transcript: transcripts.Transcript) -> int:
    tools = recede.reduce(transcript.messages).tools.values()
    return sum(tool.observations for tool in tools)


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
            if kind != "utf-16" and ".jsonl" in path.name and plain.count(b"\n{") > 7:
                read = transcripts.read_all(copy)[0]
                assert read.skipped_lines == 1 + (kind == "binary"), "one holds a line end"
                assert any("gzip" in warning for warning in read.warnings) == (kind == "cut-packed")
                continue
            damaged.append(tmp_path / f"{name}-{kind}")
            damaged[-1].write_bytes(copy)
            with pytest.raises(recede.TranscriptError) as raised:
                transcripts.read_all(damaged[-1])
            assert raised.value.source == str(damaged[-1])
            assert raised.value.line is not None or raised.value.offset is not None
    errors = run("stats", *damaged, FILES[0], code=1)
    assert errors.stderr.count(b"\n") == len(damaged)
    assert errors.stdout.count(b"total") == 1


@each_file()
def test_a_wrong_format_is_refused(path: Path, rows: dict[str, Row]) -> None:
    own = transcripts.detect(path)
    for wrong in {"claude_code", "codex", "gemini", "inspect", "openhands", "pi", "swe_agent", "tau_bench"} - {own}:
        with pytest.raises(recede.TranscriptError, match="does not have the given format"):
            transcripts.read(path, wrong)
