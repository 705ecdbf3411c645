"""What `recede replay` says of quotations: a column, a list, and the curve of windows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from children import recede_command as run

import recede
from recede.cli.comparison import RECORDED, list_table, misses_text
from recede.cli.played import Session
from recede.cli.record import Asked, QuotedRequest, record_of
from recede.cli.tables import money, tenths
from recede.costs import WindowChoice, WindowCurve
from recede.costs._policies import STUDY
from support import ROOT, user

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
    said = "quoted: the share of 35 requests that wrote again, word for word, what only results had that the choice had"
    assert any(line.startswith(said) for line in lines)


def test_each_request_that_the_screen_counts_is_listed_with_its_place(paths: list[Path]) -> None:
    for path in paths:
        path.write_text(json.dumps(session(12 if path == paths[1] else 90)))  # the short one quotes before it pays
    counted = re.search(r"quoted     (\d+) of", run("replay", *paths).stdout.decode())
    out = run("replay", *paths, "--misses").stdout.decode()
    rows = [line for line in out.splitlines() if LINE in line]
    assert counted and len(rows) == int(counted[1]) == 4
    assert rows[0].split(LINE)[0].split()[2:] == ["Read\\u001b[1m", "91", "89"]
    assert [row.split()[0] for row in rows] == ["1", "3", "4", "5"], "sessions are told apart"
    assert "\x1b" not in out
    assert "quoted: 1.1 % with a window of 10 is low: recorded sessions have 4.7 %" in out
    assert f"| 10 | 69 % | {tenths(RECORDED)} |" in (ROOT / "docs/quality.md").read_text("utf-8")


def test_an_empty_list_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "short.json"
    path.write_text(json.dumps(session(9)))
    out = run("replay", path, "--misses").stdout.decode()
    assert out == "quoted: no request wrote text that masking had hidden by then\n"


def test_the_share_of_another_window_than_the_default_is_named_too(paths: list[Path]) -> None:
    listed = recede.costs.replay(session(90), ["break_even:window=10", "break_even:window=30"], with_misses=True)
    one = Session("one", "messages", listed, {})
    said = misses_text(record_of([one], Asked(window=30)), [one])
    assert re.search(
        r"quoted: 1\.1 % with the advised window of 30, as listed; 1\.1 % with a window of 10 is low", said
    )


def test_the_list_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recede.cli.tables._UNLIMITED", 80)
    rows = [
        QuotedRequest(number, f"{'a-folder/' * 9}{number}.jsonl", "mcp__files__read", 31, 20, text)
        for number, text in enumerate((LINE * 3, "short text of a result, or not so"))
    ]
    head, *lines = list_table(rows).splitlines()
    assert all(len(line) <= 80 for line in (head, *lines)) and len(set(lines)) == 2
    assert head.index("text") == lines[0].index("def ") == lines[1].index("short")


def test_json_has_all_quotations(paths: list[Path]) -> None:
    report = json.loads(run("replay", *paths, "--json", "--policy", "sliding:window=33").stdout)
    [quotation] = report["histories"][0]["misses"]["quoted"]
    expected = {"request": 34, "result": 0, "tool": "Read\x1b[1m", "distance": 33, "text": LINE}
    assert quotation == expected
    assert report["total"]["quoted"] == {"raw": 0, "sliding:window=33": 1 / 35}


def test_the_screen_the_curve_and_the_table_advise_the_same_window(paths: list[Path]) -> None:
    for path in paths:
        path.write_text(json.dumps(session(90)))
    curve = recede.costs.window_curve(
        [recede.costs.replay(session(90), recede.costs.curve_policies(), with_misses=True)] * 5
    )
    best = curve.advised()
    assert best is not None and best.window not in (1, 10)
    assert f"window: {best.window} saves most" in run("replay", *paths, "--curve").stdout.decode()
    found = json.loads(run("replay", *paths, "--curve", "--json").stdout)["total"]["curve"]
    assert found["window"] == best.window and len(found["windows"]) == len(recede.costs.CURVE_WINDOWS)
    assert f"window: {best.window} saves most" in run("replay", *paths, "--all").stdout.decode()
    screen = run("replay", *paths).stdout.decode()
    assert f"  window     {best.window} saves most" in screen and f"recede.History(keep={best.window})" in screen
    assert money(best.cost.cost) in screen


def test_the_window_that_saves_most_for_each_quotation_is_advised() -> None:
    [raw] = recede.costs.replay(session(3), ["raw"]).costs

    def advised(*rows: tuple[int, float, float | None], sessions: int = 5) -> int | None:
        """Of windows, each with its cost as a share of raw and its quoted share."""
        choices = (WindowChoice(window, raw._replace(of_raw=of_raw), quoted) for window, of_raw, quoted in rows)
        best = WindowCurve(tuple(choices), sessions).advised()
        return None if best is None else best.window

    assert advised((3, 0.5, 0.10), (10, 0.6, 0.05), (20, 0.9, 0.04)) == 10
    assert advised((1, 0.1, 0.0), (2, 0.1, 0.0), (3, 0.9, 0.1)) == 3, "a window below 3 is never advised"
    assert advised((10, 0.5, 0.019), (80, 0.9, 0.0)) == 10, "less than chance is chance"
    assert advised((10, 0.5, 0.0), (20, 0.5, 0.0)) == 20, "of equals the largest"
    assert advised((10, 1.0, 0.0), (20, 1.2, 0.0)) is advised((10, 0.5, None)) is None
    assert advised((10, 0.5, 0.0), sessions=4) is None


def test_fewer_than_five_long_sessions_give_no_advice(paths: list[Path]) -> None:
    paths[0].write_text(json.dumps(session(29)))
    out = run("replay", *paths, "--curve").stdout.decode()
    assert "no advice: it needs a saving, and five sessions with 30 results or more, here are 4" in out


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
