"""What `recede replay` says of quotations: a column, a list, a sample, and the curve of windows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from children import recede_command as run

import recede
from recede.cli.played import STUDY
from support import user

LINE = "def total(rows: list[Row]) -> float:"
FILLER = 9 * " # how to sum up what is in it"


def session(turns: int, said: str = LINE) -> list[dict[str, Any]]:
    """An agent that quotes its first result at the end."""
    history = [user("Fix it.")]
    for number in range(turns):
        call = {"id": str(number), "type": "function", "function": {"name": "Read\x1b[1m", "arguments": "{}"}}
        history.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
        text = f"{LINE}{FILLER}" if number == 0 else f"passed {number} " * 200
        history.append({"role": "tool", "tool_call_id": str(number), "content": text})
    return [*history, {"role": "assistant", "content": f"It was {said}"}]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"{number}.json" for number in range(5)]
    for path in found:
        path.write_text(json.dumps(session(34)))
    return found


def test_each_policy_has_the_share_of_requests_that_quote(paths: list[Path]) -> None:
    lines = run("replay", paths[0], "--policy", "sliding:window=10").stdout.decode().splitlines()
    heading, *rows = [re.split("  +", line) for line in lines[2:5]]
    assert heading[-2] == "quoted"
    shares = {row[-1]: row[-2] for row in rows}
    assert shares["raw"] == "0.0 %" and shares["sliding:window=10"] == "2.9 %"
    said = "quoted: 2.9 % of 35 requests wrote again, word for word, what only results 10 or more old had"
    assert any(line.startswith(said) for line in lines)


def test_each_quotation_is_listed_with_its_place(paths: list[Path]) -> None:
    out = run("replay", *paths[:2], "--misses").stdout.decode()
    rows = [line for line in out.splitlines() if LINE in line]
    assert len(rows) == 2
    assert [rows[0].split(LINE)[0].split()[1:]] == [["Read\\u001b[1m", "35", "33"]]
    assert "\x1b" not in out


def test_a_sample_is_the_same_with_the_same_seed(paths: list[Path]) -> None:
    first, again, other = (run("replay", *paths, "--sample", "2", "--seed", seed).stdout for seed in ("1", "1", "4"))
    assert first == again != other
    assert first.decode().count(LINE) == 2


def test_json_has_all_quotations(paths: list[Path]) -> None:
    report = json.loads(run("replay", *paths, "--json", "--policy", "sliding:window=33").stdout)
    [quotation] = report["histories"][0]["misses"]["quoted"]
    expected = {"request": 34, "result": 0, "tool": "Read\x1b[1m", "distance": 33, "text": LINE}
    assert quotation == expected
    assert report["total"]["quoted"] == {"raw": 0, "sliding:window=33": 1 / 35}


def test_the_curve_names_the_cheapest_window_with_few_misses(paths: list[Path]) -> None:
    out = run("replay", *paths, "--curve").stdout.decode()
    curve = recede.costs.window_curve(
        [recede.costs.replay(session(34), recede.costs.curve_policies(), with_misses=True)] * 5
    )
    best = curve.advised(0.05)
    assert best is not None and f"window: {best.window} costs least" in out
    found = json.loads(run("replay", *paths, "--curve", "--json").stdout)["total"]["curve"]
    assert found["window"] == best.window and len(found["windows"]) == 100
    # 1 of 35 requests quotes, which is more than 2 % under each window that hides it.
    strict = json.loads(run("replay", *paths, "--curve", "--max-misses", "2", "--json").stdout)["total"]["curve"]
    few = [one for one in found["windows"] if one["quoted"] <= 0.02]
    assert strict["window"] in [one["window"] for one in few]


def test_fewer_than_five_long_sessions_give_no_advice(paths: list[Path]) -> None:
    paths[0].write_text(json.dumps(session(29)))
    out = run("replay", *paths, "--curve").stdout.decode()
    assert "no advice: it needs five sessions with 30 results or more, here are 4" in out


def test_a_limit_under_two_percent_is_refused(paths: list[Path]) -> None:
    done = run("replay", *paths, "--curve", "--max-misses", "1")
    assert done.returncode == 2 and b"--max-misses" in done.stderr


def test_the_study_has_windows_sizes_and_tails_with_cost_and_quoted_share(paths: list[Path]) -> None:
    total = json.loads(run("replay", *paths, "--study", "--json").stdout)["total"]
    names = [one["policy"] for one in total["policies"]]
    assert names == ["raw", *STUDY] and len(set(names)) == len(names)
    assert {"sliding:window=5", "summary:every=43,tail=10", "hybrid:window=10,at=21,tail=10"} <= set(names)
    assert all(one["cost"] > 0 and one["cost_uncached"] > 0 for one in total["policies"])
    assert total["quoted"].keys() == set(names) and total["quoted"]["sliding:window=20"] == 1 / 35
    table = run("replay", *paths, "--study").stdout.decode()
    assert "quoted" in table and table.count("hybrid:") >= 10
    only = json.loads(run("replay", *paths, "--study", "--policy", "sliding:window=7", "--json").stdout)["total"]
    assert [one["policy"] for one in only["policies"]] == ["raw", "sliding:window=7"]
