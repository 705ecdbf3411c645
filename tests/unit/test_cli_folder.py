"""The file tools of `recede chat`: what they show, and that they never leave their folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from recede.cli.folder import Folder


@pytest.fixture
def engine() -> str:
    """No engine is asked for anything here."""
    return "core"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("the secret line\n")
    (tmp_path / "rootsibling").mkdir()
    (tmp_path / "rootsibling" / "secret.txt").write_text("the secret line\n")
    root = tmp_path / "root"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "notes.txt").write_text("one\ntwo é\nthree\n")
    (root / "src" / "main.py").write_text("import os\n\nprint('one')\n")
    (root / "src" / "deep" / "data.bin").write_bytes(b"one\0two")
    (root / ".hidden").write_text("one\n")
    (root / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 1001)))
    return root


def test_a_folder_is_listed(root: Path) -> None:
    folder = Folder(root)
    assert folder.list_files() == ".hidden 4\nlong.txt 8893\nnotes.txt 17\nsrc/"
    assert folder.run("list_files", {"path": "src"}) == "deep/\nmain.py 24"
    (root / "empty").mkdir()
    assert folder.list_files("empty") == "(empty)"


def test_lines_of_a_file_are_read(root: Path) -> None:
    folder = Folder(root)
    assert folder.read_file("notes.txt") == "one\ntwo é\nthree\n"
    assert folder.read_file("src/../notes.txt", 3) == "three\n"
    assert folder.read_file(str(root / "notes.txt"), first_line=9) == ""
    first = folder.read_file("long.txt")
    assert first.startswith("line 1\n")
    assert first.endswith("line 400\n… 600 lines more, from line 401")
    assert folder.read_file("long.txt", 601).endswith("line 1000\n")
    (root / "wide.txt").write_text("x" * 100_000)
    assert folder.read_file("wide.txt") == "x" * 40_000 + "\n… cut after 40000 characters"


def test_lines_are_searched(root: Path) -> None:
    folder = Folder(root)
    assert folder.search_files("one") == "notes.txt:1: one\nsrc/main.py:3: print('one')"
    assert folder.search_files("^t.*", "notes.txt") == "notes.txt:2: two é\nnotes.txt:3: three"
    assert folder.search_files("nowhere") == "(no line matches)"
    assert folder.search_files("line").count("\n") == 100
    with pytest.raises(ValueError, match="no regular expression"):
        folder.search_files("(")


@pytest.mark.timeout(60)
def test_a_search_that_takes_too_long_is_ended_and_what_it_found_is_shown(root: Path) -> None:
    (root / "a.txt").write_text("aaaa\n")
    (root / "b.txt").write_text("a" * 60 + "b\n")
    (root / "c.txt").write_text("aaaa\n")
    # Where the machine is slow, the short time is over before anything is found.
    assert any(
        Folder(root, search_seconds=seconds).search_files("^(a+)+$")
        == f"a.txt:1: aaaa\n… stopped after {seconds} seconds: a simpler pattern, or a smaller folder, may take less"
        for seconds in (0.3, 3, 30)
    )


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", "(" * 5_000 + ")" * 5_000, "\ud800["])
def test_a_pattern_that_is_none_is_named(root: Path, pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern is no regular expression: "):
        Folder(root).search_files(pattern)


def test_a_search_runs_no_code_of_the_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "json.py").write_text("raise SystemExit('taken for a module')\n")
    monkeypatch.chdir(root)
    assert Folder(root).search_files("taken") == "json.py:1: raise SystemExit('taken for a module')"


OUTSIDE = [
    "..",
    "../secret.txt",
    "../rootsibling/secret.txt",
    "src/../../secret.txt",
    "/etc/passwd",
    "/",
    "link.txt",
    "folder",
    "folder/secret.txt",
    "src/up/secret.txt",
    "chain",
]


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege there")
@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_the_folder(root: Path, path: str) -> None:
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    (root / "folder").symlink_to(root.parent)
    (root / "src" / "up").symlink_to("../..")
    (root / "chain").symlink_to("link.txt")
    folder = Folder(root)
    for name, arguments in (
        ("list_files", {"path": path}),
        ("read_file", {"path": path}),
        ("search_files", {"pattern": "secret", "path": path}),
    ):
        with pytest.raises(PermissionError, match="is not in the folder"):
            folder.run(name, arguments)
    assert folder.search_files("secret") == "(no line matches)"


def test_links_that_stay_inside_are_followed(root: Path) -> None:
    (root / "again.txt").symlink_to("src/main.py")
    (root / "loop").symlink_to("loop")
    folder = Folder(root)
    assert folder.read_file("again.txt") == (root / "src" / "main.py").read_text()
    assert "again.txt:3" in folder.search_files("print")
    with pytest.raises(OSError):  # noqa: PT011 - of the system's own kind
        folder.read_file("loop")
    # A folder that is named by a link is the one it leads to.
    (root.parent / "door").symlink_to(root)
    assert Folder(root.parent / "door").read_file("notes.txt")


@pytest.mark.parametrize(
    ("name", "arguments", "error", "words"),
    [
        ("delete", {}, LookupError, "there is no tool 'delete'; there are list_files"),
        ("read_file", {}, TypeError, "path"),
        ("read_file", [], TypeError, "must be an object"),
        ("read_file", {"path": 5}, TypeError, "path must be a string"),
        ("read_file", {"path": "a\0b"}, ValueError, "null"),
        ("read_file", {"path": "nothing"}, FileNotFoundError, "nothing is not there"),
        ("read_file", {"path": "src"}, IsADirectoryError, "is no file"),
        ("read_file", {"path": "src/deep/data.bin"}, ValueError, "is no text"),
        ("read_file", {"path": "notes.txt", "first_line": 0}, ValueError, "first_line must be"),
        ("list_files", {"path": "notes.txt"}, NotADirectoryError, "notes.txt"),
        ("search_files", {"path": "."}, TypeError, "pattern"),
        ("search_files", {"pattern": 5}, TypeError, "pattern must be a string"),
    ],
)
def test_wrong_arguments_are_named(root: Path, name: str, arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Folder(root).run(name, arguments)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    folder = Folder(root)
    with pytest.raises(IsADirectoryError):
        folder.read_file("pipe")
    assert folder.search_files("one")


def test_definitions_have_the_form_of_the_provider(root: Path) -> None:
    ours, others = Folder(root).definitions("anthropic"), Folder(root).definitions("openai")
    assert [tool["name"] for tool in ours] == [tool["function"]["name"] for tool in others]
    assert ours[0]["input_schema"] == others[0]["function"]["parameters"]
    with pytest.raises(OSError):  # noqa: PT011 - of the system's own kind
        Folder(root / "nothing")
    with pytest.raises(NotADirectoryError):
        Folder(root / "notes.txt")
