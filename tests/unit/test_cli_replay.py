"""`recede replay`: the tables, the sentences, and the figures for programs."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import children
import pytest
from transcript_files import BAD, FILES, lines

import recede
import recede.cli.commands
from recede import transcripts
from recede.cli.played import plays_proxy
from recede.designs import mask_observations
from recede.proxy._played import PlayedProxy
from support import dumps, turns, user

HISTORY = [user("Fix the test."), *turns(40, chars=4_000)]
SHORT = [user("Hello."), *turns(3, chars=50)]
POLICIES = ("--policy", "sliding:window=10", "--policy", "stepped:window=10,chunk=10")
NAMES = ["raw", "sliding:window=10", "stepped:window=10,chunk=10"]


run = functools.partial(children.run, "replay")


def lines_of(*arguments: str | Path, stdin: bytes = b"") -> list[str]:
    return run(*arguments, stdin=stdin).stdout.decode().splitlines()


def table_of(shown: list[str]) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of the table; the policy is the last cell."""
    first = next(place for place, line in enumerate(shown) if line.startswith("choice "))
    rows = [re.split(r"  +", line) for line in shown[first : shown.index("", first)]]
    return rows[0], rows[1:]


def costs_as_json(costs: tuple[recede.costs.PolicyCost, ...]) -> list[dict[str, Any]]:
    return [{**cost._asdict(), "usage": cost.usage._asdict()} for cost in costs]


def test_the_table_has_a_row_for_each_policy_with_its_figures() -> None:
    shown = lines_of("-", *POLICIES, stdin=dumps(HISTORY))
    assert shown[0] == "40 requests"
    costs = recede.costs.replay(HISTORY, NAMES).costs
    headings, rows = table_of(shown)
    assert headings[-1] == "policy" and [row[-1] for row in rows] == NAMES
    words = ["as it was sent", "masked at every request", "masked in steps of 10 results"]
    assert [row[0] for row in rows] == words
    for row, cost in zip(rows, costs, strict=True):
        assert row[1] == f"{recede.designs.approx_tokens(cost.usage.sent_chars):,}"
        assert row[3] == f"${cost.cost:.2f}"
        assert row[4] == f"{100 * cost.of_raw:.0f} %"


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege there")
def test_no_session_is_written_over(tmp_path: Path) -> None:
    other, path, link, hard = (tmp_path / name for name in ("other.json", "in.json", "link", "hard"))
    other.write_bytes(dumps(SHORT))
    path.write_bytes(dumps(HISTORY))
    link.symlink_to(path)
    hard.hardlink_to(path)
    for out in (path, link, hard):
        said = run(other, path, "--html", out, code=2).stderr.decode()
        assert f"--html would write over {path}, which is read" in said.replace("\n", "")
    assert path.read_bytes() == dumps(HISTORY) and len(list(tmp_path.iterdir())) == 4


@pytest.mark.skipif(not hasattr(os, "fchown"), reason="no modes on this system")
def test_a_report_can_be_read_by_those_who_may_read_all_of_its_sessions(tmp_path: Path) -> None:
    for name, mode in (("a.json", 0o644), ("b.json", 0o640)):
        (tmp_path / name).write_bytes(dumps(HISTORY))
        (tmp_path / name).chmod(mode)
    run(tmp_path / "a.json", tmp_path / "b.json", "--html", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o640


def test_the_sentences_say_what_was_paid_and_what_would_have_been() -> None:
    shown = lines_of("-", *POLICIES, stdin=dumps(HISTORY))
    raw, _, stepped = recede.costs.replay(HISTORY, NAMES).costs
    paid = shown.index(f"you paid: ${raw.cost:.2f}, as estimated")
    gain = f"{100 * (1 - stepped.of_raw):.0f} % less"
    assert shown[paid + 1] == f"cheapest: ${stepped.cost:.2f}, {gain}: masked in steps of 10 results"
    prices = "prices for a million tokens: input $3, cached $0.3, write $3.75, output $15; under 2,048 tokens no cache"
    assert shown[-1] == f"{prices} (anthropic); cache: anthropic"
    shown = lines_of("-", *POLICIES, "--price", "openai,output=0", stdin=dumps(HISTORY))
    assert "input $2.5, cached $0.25, write $2.5, output $0; under 1,024 tokens" in shown[-1]


def test_the_cache_is_that_of_the_format_or_the_option(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(dumps(HISTORY))
    for cache in ("anthropic", "openai", "ideal"):
        costs = recede.costs.replay(HISTORY, NAMES, cache=cache).costs
        report = json.loads(run(path, *POLICIES, "--price", f"cache={cache}", "--json").stdout)
        assert report["total"]["policies"] == costs_as_json(costs)
    costs = recede.costs.replay(HISTORY, NAMES, cache="openai", prices=recede.costs.PRESETS["openai"]).costs
    for price in ("openai", "cache=openai, openai"):
        report = json.loads(run(path, *POLICIES, "--price", price, "--json").stdout)
        assert report["total"]["policies"] == costs_as_json(costs), "prices and cache are of one provider"
    codex = tmp_path / "codex.jsonl"
    codex.write_bytes(FILES["codex"][1])
    assert lines_of(path, codex, *POLICIES)[-1].endswith("; cache: anthropic, openai")


def test_all_policies_are_a_table_on_request() -> None:
    every = lines_of("-", "--all", stdin=dumps(HISTORY))
    _, rows = table_of(every)
    assert [row[-1] for row in rows] == [one.policy for one in recede.costs.replay(HISTORY).policies]
    assert len({row[0] for row in rows}) == len(rows), "words tell policies apart"
    assert any(line.startswith("window: ") for line in every)


def test_a_policy_with_few_numbers_is_a_row_with_all_of_them() -> None:
    shown = lines_of("-", "--policy", "clear_tool_uses", "--policy", "summary", stdin=dumps(HISTORY))
    _, rows = table_of(shown)
    assert [row[-1] for row in rows] == ["raw", "clear_tool_uses:trigger=100000,keep=3", "summary:every=21,tail=10"]
    assert [row[0] for row in rows[1:]] == ["Anthropic's context editing", "summaries of old turns alone"]


def test_in_a_short_session_raw_is_cheapest() -> None:
    shown = lines_of("-", *POLICIES, stdin=dumps(SHORT))
    assert any(line.startswith("you paid: $0.0") for line in shown)
    assert any(line.startswith("cheapest: as it was sent") for line in shown)
    said = "no request was made: the history holds no message of an agent"
    assert said in lines_of("-", *POLICIES, stdin=dumps([user("hi")]))


def test_elongation_charges_the_turns_that_agents_with_summaries_take() -> None:
    names = ["sliding:window=10", "summary:every=10,tail=5"]
    options = ["--policy", names[0], "--policy", names[1], "--json"]
    plain, longer = (
        json.loads(run("-", *options, *more, stdin=dumps(HISTORY)).stdout)["total"]["policies"]
        for more in ([], ["--set", "elongation=0.15"])
    )
    assert longer[:2] == plain[:2], "nothing else takes more turns"
    for name in ("cost", "cost_uncached", "of_raw", "summary_cost", "worst_moment"):
        assert longer[2][name] == pytest.approx(1.15 * plain[2][name])
    assert longer[2]["usage"] == plain[2]["usage"]


def test_json_has_the_figures_of_the_function(tmp_path: Path) -> None:
    paths = [tmp_path / "long.json", tmp_path / "short.jsonl"]
    paths[0].write_bytes(dumps(HISTORY))
    paths[1].write_bytes(lines(*SHORT))
    options = ("--price", "input=1,cached=0.5,write=1,output=4", "--set", "system_chars=500")
    report = json.loads(run(*paths, *POLICIES, *options, "--json").stdout)
    prices = recede.costs.Prices(1, 0.5, 1, 4)
    sessions = [recede.costs.replay(history, NAMES, prices=prices, system_chars=500) for history in (HISTORY, SHORT)]
    for shown, session in zip(report["histories"], sessions, strict=True):
        assert shown["policies"] == costs_as_json(session.costs)
        assert shown["cheapest"] == session.cheapest.policy
    assert report["total"]["policies"] == costs_as_json(recede.costs.compare_costs(sessions))
    assert report["total"]["requests"] == 43


def test_many_sessions_are_added_up_and_counted(tmp_path: Path) -> None:
    paths = [tmp_path / "long.json", tmp_path / "middle.json", tmp_path / "short.json"]
    for path, count in zip(paths, (60, 22, 2), strict=True):
        path.write_bytes(dumps([user("Go."), *turns(count, chars=4_000)]))
    shown = lines_of(*paths, "--policy", "stepped:window=10,chunk=10")
    assert shown[0] == "84 requests of 3 sessions"
    headings, rows = table_of(shown)
    assert headings[-6:] == ["mean", "worst", "losses", "worst moment", "quoted", "policy"]
    [cost] = recede.costs.compare_costs(
        recede.costs.replay(json.loads(path.read_bytes()), ["stepped:window=10,chunk=10"]) for path in paths
    )[1:]
    assert cost.worst_moment is not None and cost.worst_moment > cost.worst_of_raw
    shares = [f"{100 * share:.0f} %" for share in (cost.mean_of_raw, cost.worst_of_raw, cost.worst_moment)]
    assert rows[1][-6:-2] == [shares[0], shares[1], "1", shares[2]]
    assert "the cheapest cost more than raw in 1 of 3 sessions" in shown


def test_summaries_are_priced_in_the_table_and_the_sentences() -> None:
    names = ["summary:every=10,tail=5", "hybrid:window=5,at=20,tail=5"]
    options = ("--policy", names[0], "--policy", names[1], "--price", "summary_input=1,summary_output=2", "--set")
    history = [user("Go."), *({**message, "content": "y" * 3_000} for message in turns(40))]
    shown = lines_of("-", *options, "summary_chars=500", stdin=dumps(history))
    prices = recede.costs.Prices(input=1, output=2)
    raw, *costs = recede.costs.replay(history, names, summary_prices=prices, summary_chars=500).costs
    headings, rows = table_of(shown)
    assert headings[-4] == "summaries"
    assert [row[-4] for row in rows] == ["-", *(f"${cost.summary_cost:.2f}" for cost in costs)]
    best = min(costs, key=lambda cost: cost.cost)
    calls = f"summaries: {best.usage.summary_calls} calls of a model for ${best.summary_cost:.2f} are included"
    assert any(line.startswith(calls) for line in shown)
    assert shown[-1].endswith("; summaries: input $1, output $2")
    built_in = lines_of("-", *options, "summary_chars=0", stdin=dumps(history))
    assert table_of(built_in)[0][-4:] == ["of raw", "worst moment", "quoted", "policy"]
    assert raw.summary_cost == 0


def test_short_sessions_can_be_left_out(tmp_path: Path) -> None:
    long, short = tmp_path / "long.json", tmp_path / "short.json"
    long.write_bytes(dumps(HISTORY))
    short.write_bytes(dumps(SHORT))
    report = json.loads(run(long, short, *POLICIES, "--set", "min_results=4", "--json").stdout)
    assert [one["file"] for one in report["histories"]] == [str(long)]
    assert b"no session" in run(short, "--set", "min_results=4").stdout


def test_every_format_is_played(tmp_path: Path) -> None:
    paths = []
    for name, (_, data, *_) in FILES.items():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(data)
    report = json.loads(run(*paths, "--all", "--json").stdout)
    expected = []
    for one in (one for path in paths for one in transcripts.read_all(path)):
        has_dollars = not recede.costs.session_prices(one).unpriced
        unknown = {} if has_dollars else dict.fromkeys(("cost", "cost_uncached", "summary_cost"))
        tools = mask_observations(one.messages, keep_results=0).tools
        door = PlayedProxy(one) if plays_proxy(None, one.format, tools) else None
        played = recede.costs.replay_transcript(one, door=door)
        expected.append([{**row, **unknown} for row in costs_as_json(played.costs)])
    assert [one["policies"] for one in report["histories"]] == expected
    assert [one["requests"] for one in report["histories"]] == [
        one.turns for path in paths for one in transcripts.read_all(path)
    ]


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_file_ends_with_one_line(tmp_path: Path, name: str) -> None:
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_bytes(BAD[name][0])
    good.write_bytes(dumps(SHORT))
    assert run(bad, code=1).stdout == b""
    done = run(bad, good, code=1)
    assert b"1 session; 3 requests\n" in done.stdout
    assert done.stderr.startswith(f"recede: {bad}: ".encode())
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--keep", "5"), "recede replay has no option '--keep'; it takes --since, --project, --misses, "),
        (("--mises",), "recede replay has no option '--mises'; did you mean '--misses'?"),
        (("--set", "keep=5"), "there is no setting 'keep'; there are system_chars, summary_chars, "),
        (("--set", "min_results=five"), "min_results: 'five' is no whole number"),
        (("--set", "pauses=off"), "pauses: 'off' is not one of 'logged', 'timed', 'none'"),
        (("--set", "elongation=nan"), "elongation: nan is no share"),
        (("--price", "openai,summary="), "'summary=' has no value, such as summary=openai"),
        (("--price", "cache=opnai"), "there is no cache 'opnai'; there are anthropic, "),
        (("--policy", "stepped:window=3"), "the policy 'stepped' needs 'chunk'"),
        (("--price", "inputs=3"), "did you mean 'input'"),
        (("--set", "elongation=0.1,system_chars=-1"), "system_chars: -1 is not in the range"),
    ],
)
def test_wrong_options_end_with_2(options: tuple[str, ...], words: str) -> None:
    assert words in " ".join(run("-", *options, code=2).stderr.decode().split())
