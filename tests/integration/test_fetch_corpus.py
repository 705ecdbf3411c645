"""`make corpus` against repositories made here: exactly the named blobs, each compared with its id, once."""

from __future__ import annotations

import gzip
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from shared_data import CORPUS, MANIFEST, corpus_files, need

from support import ROOT

corpus: Any = type("corpus", (), runpy.run_path(str(ROOT / "scripts" / "corpus.py")))

ARRAY = '[\n  {"n": 0},\n  {"n":  1, "text": "a, [b]"},\n  "\\u00fc]"\n]\n'
CONTENTS = {
    "logs/one.jsonl": b'{"n": 1}\n',
    "logs/lines.jsonl": b'{"n": 1}\n{"n": 2}\n{"n": 3}\n',
    "array.json": ARRAY.encode(),
    "long \u00fc.jsonl": b"long" * 1_000,
    "other/large.bin": bytes(range(256)) * 500,
}
PART = b'[\n{"n":  1, "text": "a, [b]"},\n"\\u00fc]"\n]\n'


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.check_output(["git", "-C", str(folder), *identity, *arguments], text=True).strip()


def made(folder: Path, contents: dict[str, bytes]) -> str:
    """A repository whose commit before the last has these files; the last has none of them."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=these")
    commit = git(folder, "rev-parse", "HEAD")
    git(folder, "rm", "--quiet", "-r", ".")
    git(folder, "commit", "--quiet", "--message=none")
    return commit


def entry(file: str, path: str, repository: str = "a/one", **more: Any) -> dict[str, Any]:
    return {"file": file, "repository": repository, "path": path, "blob": corpus.blob_id(CONTENTS[path]), **more}


class Place:
    """A mirror of two repositories, a manifest of their files, and a folder to fetch into."""

    def __init__(self, folder: Path) -> None:
        self.mirror, self.into, self.manifest_file = folder / "mirror", folder / "corpus", folder / "manifest.json"
        self.repositories = [
            {"name": name, "commit": made(self.mirror / name, CONTENTS)} for name in ("a/one", "b/two.git")
        ]
        second = corpus.blob_id(b'{"n": 2}')
        self.files = [
            entry("x/one.jsonl", "logs/one.jsonl"),
            entry("x/second.json", "logs/lines.jsonl", line=2, selected=second),
            entry("y/long.jsonl.gz", "long \u00fc.jsonl", "b/two.git"),
            entry("y/part.json", "array.json", "b/two.git", elements=[1, 2], selected=corpus.blob_id(PART)),
        ]

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        self.manifest_file.write_text(json.dumps({"repositories": self.repositories, "files": self.files}))
        options = ["--mirror", self.mirror, "--manifest", self.manifest_file, "--into", self.into]
        command = [sys.executable, ROOT / "scripts" / "corpus.py", *options]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})

    def fetched(self) -> list[str]:
        return sorted(str(path.relative_to(self.into)) for path in self.into.glob("*/*"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_files_are_those_of_the_commit_or_the_part_that_is_named(place: Place) -> None:
    done = place.run()
    assert (done.returncode, done.stdout) == (0, f"{place.into}: 4 files fetched\n"), done.stderr
    assert (place.into / "x/one.jsonl").read_bytes() == CONTENTS["logs/one.jsonl"]
    assert (place.into / "x/second.json").read_bytes() == b'{"n": 2}'
    assert (place.into / "y/part.json").read_bytes() == PART
    packed = (place.into / "y/long.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == CONTENTS["long \u00fc.jsonl"]
    assert packed[4:8] == bytes(4)  # no time
    assert place.fetched() == ["x/one.jsonl", "x/second.json", "y/long.jsonl.gz", "y/part.json"]
    shutil.rmtree(place.mirror)
    assert place.run().stdout == f"{place.into}: 0 files fetched\n"


def test_no_other_blob_is_fetched(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "partial"
    folder.mkdir()
    [one, *_] = place.files
    assert list(corpus.blobs(str(place.mirror / "a/one"), place.repositories[0]["commit"], [one], folder)) == [
        CONTENTS["logs/one.jsonl"]
    ]
    kinds = git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)", "--unordered").split()
    assert sorted(kinds) == ["blob", "commit", "tree", "tree", "tree"]


def test_what_is_damaged_is_fetched_again(place: Place) -> None:
    place.run()
    (place.into / "x/one.jsonl").write_bytes(b"another")
    packed = place.into / "y/long.jsonl.gz"
    packed.write_bytes(packed.read_bytes()[:-9])
    done = place.run()
    assert done.stdout == f"{place.into}: 2 files fetched\n"
    assert (place.into / "x/one.jsonl").read_bytes() == CONTENTS["logs/one.jsonl"]
    assert gzip.decompress(packed.read_bytes()) == CONTENTS["long \u00fc.jsonl"]


def test_a_run_that_was_killed_goes_on_where_it_was(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "git"
    kill = f'case "$*" in *cat-file*{place.files[-1]["blob"]}*) kill -9 $PPID;; esac'
    script.write_text(f'#!/bin/sh\n{kill}\nexec {shutil.which("git")} "$@"\n')
    script.chmod(0o755)
    done = place.run(PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == -signal.SIGKILL
    assert place.fetched() == ["x/one.jsonl", "x/second.json", "y/long.jsonl.gz"]
    done = place.run()
    assert (done.stdout, done.stderr) == (f"{place.into}: 1 files fetched\n", "b/two.git: 1 files\n")


@pytest.mark.parametrize(
    ("number", "change", "said"),
    [
        (0, {"blob": "0" * 40}, "logs/one.jsonl: the blob is "),
        (0, {"path": "logs/none.jsonl"}, "logs/none.jsonl: there is no such file"),
        (0, {"path": "logs"}, "logs: there is no such file"),
        (1, {"line": 3}, "x/second.json: what was selected has the id "),
        (1, {"line": 9}, "x/second.json: there is no such part"),
        (3, {"elements": [2, 1]}, "y/part.json: what was selected has the id "),
        (3, {"elements": [7]}, "y/part.json: there is no such part"),
    ],
)
def test_what_is_not_as_the_manifest_says_is_not_written(
    place: Place, number: int, change: dict[str, Any], said: str
) -> None:
    place.files[number].update(change)
    done = place.run()
    assert done.returncode == 1
    assert said in done.stderr and "Traceback" not in done.stderr
    assert not (place.into / place.files[number]["file"]).exists()


def test_a_commit_or_a_repository_that_is_not_there_is_named(place: Place) -> None:
    commit = place.repositories[0]["commit"]
    place.repositories[0]["commit"] = "1" * 40
    done = place.run()
    assert done.returncode == 1 and "1" * 40 in done.stderr and "Traceback" not in done.stderr
    place.repositories[0].update(name="a/none", commit=commit)
    place.files[0]["repository"] = "a/none"
    done = place.run()
    assert done.returncode == 1 and "a/none" in done.stderr and "Traceback" not in done.stderr


def test_variables_of_git_name_no_other_repository(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    made(other, {"a": b"a"})
    before = sorted(path for path in other.rglob("*"))
    assert place.run(GIT_DIR=str(other / ".git"), GIT_WORK_TREE=str(other)).returncode == 0
    assert sorted(path for path in other.rglob("*")) == before
    assert len(place.fetched()) == 4


def test_without_git_it_says_what_to_install(place: Place, tmp_path: Path) -> None:
    done = place.run(PATH=str(tmp_path))
    assert (done.returncode, done.stderr.split("\n")[-2]) == (
        1,
        "corpus: git does not run: install git 2.29 or newer",
    )


def test_the_manifest_says_where_each_file_is_from() -> None:
    repositories = {one["name"]: one for one in MANIFEST["repositories"]}
    assert {one["license"] for one in repositories.values()} == {"MIT"}
    assert {one["repository"] for one in MANIFEST["files"]} == repositories.keys()
    assert len({one["file"] for one in MANIFEST["files"]}) == len(MANIFEST["files"]) == 76
    for one in MANIFEST["files"]:
        assert ("selected" in one) == ("line" in one or "elements" in one), one["file"]


def test_the_corpus_is_what_the_manifest_says() -> None:
    need(CORPUS)
    assert {f"{path.parent.name}/{path.name}" for path in corpus_files()} == {one["file"] for one in MANIFEST["files"]}
    assert [one["file"] for one in MANIFEST["files"] if not corpus.is_there(one, CORPUS)] == []
