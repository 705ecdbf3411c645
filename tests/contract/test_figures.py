"""Every table of measured figures in the documents has the command beside it that makes it again."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import ROOT

sys.path.append(str(ROOT / "benches"))

import figures

# Page, and its first line -> why a table with numbers has no command.
NO_MEASUREMENT = {
    ("docs/proxy.md", "| kind | what it says | bytes |"): "a file format",
    (
        "docs/caching.md",
        "| `provider` | cached | writing costs | reading costs | shortest prompt | an entry lives |",
    ): "published prices, as recede.Provider has them",
    (
        "docs/providers.md",
        "| host | cache | shortest | an entry lives | reading, writing | what to set |",
    ): "published prices and rules",
    ("docs/provider-rules.md", "| rule | what happens | since | source | read on | how recede keeps it |"): "of others",
    (
        "docs/proxy.md",
        "| agent, calls | model | bytes | cost |",
    ): "`make test-agents` prints it, with the agents that are installed",
    (
        "docs/proxy.md",
        "| agent | maker, by | model | cost | worst moment |",
    ): "`make test-agents` prints it, with the agents that are installed",
    ("docs/quality.md", "| source | agents and tasks | without | with |"): "published by others",
    ("docs/quality.md", "| what stays raw | removed | missed | a plain window that removes as much |"): "measured once",
    (
        "docs/quality.md",
        "| | cost of raw | requests that quoted what was hidden |",
    ): "the same; it was not built",
    ("docs/robustness.md", "| run | count | found |"): "each row is a command with its seed",
    (
        "docs/budgets.md",
        "| models | scale | a call with its result, besides | tools, besides their JSON |",
    ): "what limits count",
    ("docs/semantics.md", "| entry point | boundary | keeps at least |"): "defaults",
    ("docs/store-format.md", "| at | bytes | what |"): "places in a format",
}
# They keep the figures that they were taken by.
DECISIONS = ROOT / "docs" / "decisions"
FIGURE = re.compile(r"[*~+-]*\$?\d[\d,.]*\s?(?:%|x|ns|µs|ms|s|min|h|days|KB|MB|GB|million|$)")
LEAST_FIGURES = 2


def tables(text: str) -> Iterator[tuple[int, list[str]]]:
    """The lines of each table, and the number of its first line."""
    lines, number, in_listing = text.split("\n"), 0, False
    while number < len(lines):
        in_listing ^= lines[number].startswith("```")
        end = number
        while not in_listing and end < len(lines) and lines[end].startswith("|"):
            end += 1
        if end > number:
            yield number, lines[number:end]
        number = max(end, number + 1)


def without_command(page: Path) -> list[str]:
    """The first lines of tables of figures that no command prints."""
    marked = [range(one.first, one.end) for one in figures.figures(page)]
    found = []
    for number, lines in tables(page.read_text(encoding="utf-8")):
        values = [cell for line in lines[2:] for cell in figures.cells(line)[1:]]
        if sum(bool(FIGURE.match(value)) for value in values) >= LEAST_FIGURES:
            found += [lines[0]] if not any(number in one for one in marked) else []
    return found


PAGES = [page for page in figures.PAGES if DECISIONS not in page.parents]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_table_of_figures_has_its_command(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    assert [line for line in without_command(page) if (name, line) not in NO_MEASUREMENT] == []


def test_what_is_listed_as_no_measurement_is_there() -> None:
    found = {(str(page.relative_to(ROOT)), line) for page in PAGES for line in without_command(page)}
    assert found == NO_MEASUREMENT.keys()


def test_a_table_of_figures_without_a_command_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    figures_of_a_run = "| size | time |\n|---|--:|\n| small | 1.5 ms |\n| large | **20 %** |"
    options = "| option | default |\n|---|---|\n| `keep` | `10` |\n| `fill` | `0.9` of it |"
    marker = "<!-- figures: python a.py; timed -->"
    listing = f"```text\n{figures_of_a_run}\n```"
    page.write_text(f"{options}\n\n{figures_of_a_run}\n\n{marker}\n\n{figures_of_a_run}\n\n{listing}\n")
    assert without_command(page) == ["| size | time |"]


MARKED = [one for page in figures.PAGES for one in figures.figures(page)]


@pytest.mark.parametrize("one", MARKED, ids=lambda one: f"{one.page.name}: {one.command[:60]}")
def test_a_command_can_be_typed_and_times_have_date_and_machine(one: figures.Figures) -> None:
    program, first, *_ = shlex.split(one.command)
    assert program == "recede" or (ROOT / first).is_file()
    before_the_table = one.shown.partition("|")[0]
    if one.may_move is None or first == "benches/results.py":
        assert re.search(r"\b20\d\d-\d\d-\d\d: .*\d cores", before_the_table), before_the_table


# How pages are read and written.

TABLE = "| what | words | n |\n|---|---|--:|\n| [a](b) | one | 100 |\n| `b` | two | 1,000 |"
FEWER = "| what | n |\n| --- | ---: |\n| b | 1,011 |"


def page_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text)
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "PAGES", [page])
    return page


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["figures.py", *options])
    try:
        figures.main()
    except SystemExit as left:
        return left.code
    return 0


def marked(printed: str, may_move: str, shown: str = TABLE) -> str:
    command = f"python -c {shlex.quote(f'print({printed!r})')}"
    return f"# Title\n\nBefore.\n\n<!-- figures: {command}; {may_move} -->\n\n{shown}\n\nAfter.\n"


def test_all_that_is_shown_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = "12 sessions:\n\n| other | n |\n|---|--:|\n| c | 1 |\n\n| next |\n|---|\n| d |"
    shown = "9 sessions:\n\n| other | n |\n|---|--:|\n\n| next |\n|---|"
    page = page_of(tmp_path, monkeypatch, marked(new, "may move 0 %", shown))
    assert run(monkeypatch, "--check") and page.read_text() == marked(new, "may move 0 %", shown)
    assert run(monkeypatch) == 0
    assert page.read_text() == marked(new, "may move 0 %", new)
    assert run(monkeypatch, "--check") == 0


def test_fewer_columns_are_written_into_their_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(tmp_path, monkeypatch, marked(FEWER, "may move 1 %"))
    assert run(monkeypatch) == 0
    assert page.read_text() == marked(FEWER, "may move 1 %", TABLE.replace("1,000", "1,011"))


def test_a_slow_command_is_run_with_all_or_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = marked(FEWER, "may move 1 %; slow")
    page = page_of(tmp_path, monkeypatch, text)
    assert run(monkeypatch, "--check") == 0 == run(monkeypatch, "--not-timed")
    assert page.read_text() == text
    assert run(monkeypatch, "--check", "--only=page.md") == "1 tables are not what their commands print"
    assert run(monkeypatch) == 0
    assert page.read_text() == marked(FEWER, "may move 1 %; slow", TABLE.replace("1,000", "1,011"))


def test_a_command_that_cannot_be_run_here_leaves_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "import sys; print('no such package', file=sys.stderr); sys.exit(77)"
    text = f"<!-- figures: python -c {shlex.quote(script)}; may move 0 % -->\n\n{TABLE}\n"
    page = page_of(tmp_path, monkeypatch, text)
    assert run(monkeypatch) == 0 == run(monkeypatch, "--check")
    assert capsys.readouterr().out.count("not run: no such package") == 2
    assert page.read_text() == text


@pytest.mark.parametrize(("percent", "is_near"), [("0", False), ("1", False), ("1.1", True), ("2", True)])
def test_a_figure_may_move_as_far_as_its_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, percent: str, is_near: bool
) -> None:
    page_of(tmp_path, monkeypatch, marked(FEWER, f"may move {percent} %"))
    assert (run(monkeypatch, "--check") == 0) is is_near


@pytest.mark.parametrize(
    "new", [FEWER.replace("1,011", "1,000 MB"), FEWER.replace("1,011", "-1,000"), f"{FEWER}\n| a | 1 |"]
)
def test_other_words_or_signs_are_never_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: str) -> None:
    page_of(tmp_path, monkeypatch, marked(new, "may move 50 %"))
    assert run(monkeypatch, "--check") != 0


def test_times_are_left_alone_unless_they_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(tmp_path, monkeypatch, marked(FEWER, "timed"))
    assert run(monkeypatch, "--check") == 0 == run(monkeypatch, "--not-timed") == run(monkeypatch, "--only=another")
    assert page.read_text() == marked(FEWER, "timed")
    assert run(monkeypatch) == 0
    assert "1,011 |\n\nAfter." in page.read_text()


@pytest.mark.parametrize(
    "new",
    [
        FEWER.replace("| b |", "| c |"),
        FEWER.replace("| n |", "| m |"),
        f"{FEWER}\n\nmore",
        "no table",
        "",
    ],
)
def test_what_fits_no_table_leaves_the_page_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: str) -> None:
    text = marked(new, "may move 0 %") + marked(FEWER, "may move 0 %")
    page = page_of(tmp_path, monkeypatch, text)
    assert run(monkeypatch) == "1 tables are not what their commands print"
    assert page.read_text() == marked(new, "may move 0 %") + marked(
        FEWER, "may move 0 %", TABLE.replace("1,000", "1,011")
    )


def test_a_command_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"<!-- figures: python -c 'raise SystemExit(\"no such thing\")'; may move 0 % -->\n\n{TABLE}\n"
    page = page_of(tmp_path, monkeypatch, text)
    assert run(monkeypatch) != 0
    assert "no such thing" in capsys.readouterr().out
    assert page.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        f"<!-- figures: python a.py -->\n\n{TABLE}\n",
        f"<!-- figures: python a.py; may move -->\n\n{TABLE}\n",
        f"<!-- figures: python a.py; timed -->\n{TABLE}\n",
        f"<!-- figures: python a.py; timed -->\n\n# Next\n\n{TABLE}\n",
        "<!-- figures: python a.py; timed -->\n\nNothing.\n",
        f"<!-- figures: python a.py; timed -->\n\n<!-- figures: python a.py; timed -->\n\n{TABLE}\n",
    ],
)
def test_a_marker_without_form_or_table_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    page = page_of(tmp_path, monkeypatch, text)
    with pytest.raises(figures.FiguresError, match=r"page\.md, line 1"):
        list(figures.figures(page))
