"""The documents tell the truth: every example is run, and the command line is documented whole."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from children import forked

from recede.cli.commands import recede as group
from support import ROOT

DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")], key=str)
# The pages of rooms: what to change in which file.
ROOMS = sorted(
    [
        *ROOT.glob("src/**/README.md"),
        *ROOT.glob("python/**/README.md"),
        *(ROOT / folder / "README.md" for folder in ("benches", "scripts", "tests")),
    ]
)


def _commands(group: click.Group, path: str = "recede") -> Iterator[tuple[str, click.Command]]:
    """Each command that does something, with all its names."""
    for name in group.commands:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


PARAMETERS = [
    (path, command, option)
    for path, command in _commands(group)
    for option in command.params
    if not getattr(option, "hidden", False)
]

_SHELL = re.compile(r"[|&>*']")
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# What needs a framework is run by tests/integrations.
RUN_HERE = [path for path in DOCUMENTS if path.parent.name != "integrations"]


@pytest.mark.parametrize("document", RUN_HERE, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_examples(document: Path) -> None:
    # A doctest ends at an empty line, so each block closes with one.
    assert doctest.testfile(str(document), module_relative=False, optionflags=doctest.FAIL_FAST).failed == 0


_BLOCK = re.compile(r"^```(?:python|pycon|console|bash|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"^(?:>>> )?(?:from (\w+)|import (\w[\w., ]*))", re.MULTILINE)


@pytest.mark.parametrize("document", RUN_HERE, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_block_that_needs_a_package_or_a_file_says_so(document: Path) -> None:
    page = document.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(page):
        said = page[: block.end()]
        named = {
            one.split()[0].split(".")[0] for found in _IMPORT.findall(block[1]) for one in "".join(found).split(",")
        }
        named |= set(re.findall(r"\b(anthropic|openai)\.[A-Z]", block[1]))  # a line that is to be put into an agent
        for name in named - sys.stdlib_module_names - {"recede"}:
            has_said = re.search(rf"pip install[^\n]*\b{name}|`{name}`|\"{name}\[|brings {name}", said)
            assert has_said, f"{name}: {block[1][:60]}"
        if re.search(r"\bexamples/", block[1]):
            assert "checkout" in said, block[1][:60]


def test_every_extra_that_is_named_is_one() -> None:
    """pip only warns of another one."""
    extras = (ROOT / "pyproject.toml").read_text("utf-8").partition("[project.optional-dependencies]\n")[2]
    known = set(re.findall(r"^([\w-]+) = ", extras.partition("\n[")[0], re.MULTILINE))
    pages = [*DOCUMENTS, *(ROOT / "python").rglob("*.py"), *(ROOT / "examples").glob("*.py")]
    named = {name: page for page in pages for name in re.findall(r"recede\[([\w-]+)\]", page.read_text("utf-8"))}
    assert named and {name: page for name, page in named.items() if name not in known} == {}


def test_a_checkout_has_what_the_commands_of_its_screen_need() -> None:
    """`make demo` says to type `.venv/bin/recede`, with no more than the group `build`."""
    page = (ROOT / "pyproject.toml").read_text("utf-8")
    lists = {name: set(re.findall(r'"([^"]+)"', said)) for name, said in re.findall(r"^(\w+) = \[(.*)\]", page, re.M)}
    assert lists["cli"] and lists["cli"] < lists["build"]


@pytest.mark.skipif(sys.platform == "win32", reason="the examples are for a POSIX shell")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 and newer: threads and a fork
def test_console_examples(tmp_path: Path) -> None:
    """Each block is `$ command` and its output, one after the other with an empty line between.

    What needs no shell is run in a fork: most of its time would go into the start of Python.
    """
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    script = tmp_path / "bin" / "recede"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m recede.cli "$@"\n')
    script.chmod(0o755)
    without_keys = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment = {
        **without_keys,
        "PATH": f"{script.parent}:{os.environ['PATH']}",
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
    }
    blocks = _CONSOLE.findall((ROOT / "docs" / "cli.md").read_text())
    assert blocks
    for block in blocks:
        shown = []
        for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
            name, *arguments = shlex.split(command)
            alone = name == "recede" and not _SHELL.search(command)
            program = [sys.executable, "-m", "recede.cli", *arguments] if alone else ["sh", "-c", command]
            done = subprocess.run(
                program,
                cwd=tmp_path,
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                preexec_fn=forked(program, environment) if alone else None,
            )
            shown.append(f"$ {command}\n{done.stdout}")
        assert "\n".join(shown) == block


@pytest.mark.parametrize(("path", "command", "parameter"), PARAMETERS, ids=lambda item: getattr(item, "name", item))
def test_every_option_has_help_and_is_documented(path: str, command: click.Command, parameter: click.Parameter) -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    takes_files = any(
        isinstance(other, click.Argument) and other.name not in ("command", "name") for other in command.params
    )
    assert re.search(rf"^##+ `{path}{' FILES?' if takes_files else '`'}", page, re.MULTILINE)
    assert "Example:" in (command.help or "")
    for name in (
        parameter.opts if isinstance(parameter, click.Option) else [parameter.make_metavar(click.Context(command))]
    ):
        assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page), f"{name} is not in docs/cli.md"
    if isinstance(parameter, click.Option):
        assert parameter.help, f"{command.name} {parameter.name} has no help"
        assert parameter.help.endswith((".", "]"))


@pytest.mark.parametrize("document", DOCUMENTS + ROOMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize(
    "document",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "design.md", *ROOMS],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_files_that_are_named_exist(document: Path) -> None:
    """Pages of rooms name files from their folder; oracles, definitions and unit tests without theirs."""
    folders = (
        ROOT,
        document.parent,
        ROOT / "docs",
        ROOT / "tests" / "oracle",
        ROOT / "tests" / "unit",
        ROOT / "tests" / "definitions",
    )
    for path in re.findall(r"`([\w./-]+\.(?:py|rs|md|pyi|css|html|json|yml))`", document.read_text()):
        assert any((folder / path).exists() for folder in folders), path


def test_decisions_are_numbered_without_holes_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = sorted(folder.glob("[0-9]*.md"))
    assert [page.name[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    listed = re.findall(r"^- \[(.*)\]\((.*)\)$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == [(page.read_text(encoding="utf-8").partition("\n")[0][2:], page.name) for page in pages]
