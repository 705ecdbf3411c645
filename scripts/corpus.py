"""Fetch the recorded sessions that tests and documents measure: `make corpus`.

benches/corpus.json names them: repository, commit, path and id of each blob. Only these blobs are fetched, each is
compared with its id, and what is in the folder already is not fetched again. `--mirror FOLDER` takes the repositories
from FOLDER/owner/name instead of the network.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / "benches" / "corpus.json"
FOLDER = ROOT / ".corpus"
# A folder is served as GitHub serves: parts of a commit, and blobs by their ids.
_SERVED = "git -c uploadpack.allowFilter=true -c uploadpack.allowAnySHA1InWant=true upload-pack"

# Set where a hook of git started this.
_OTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
_BETWEEN: Any = re.compile(r"[\s,]*")

File = dict[str, Any]


class CorpusError(Exception):
    """A file is not what the manifest says, or cannot be had."""


def main() -> None:
    """Fetch what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mirror", type=Path, metavar="FOLDER", help="repositories as FOLDER/owner/name, no network")
    parser.add_argument("--manifest", type=Path, default=MANIFEST, help="what to fetch (default: benches/corpus.json)")
    parser.add_argument("--into", type=Path, default=FOLDER, metavar="FOLDER", help="where to (default: .corpus)")
    given = parser.parse_args()
    try:
        fetched = corpus(json.loads(given.manifest.read_text(encoding="utf-8")), given.into, given.mirror)
    except CorpusError as error:
        sys.exit(f"corpus: {error}")
    print(f"{given.into}: {fetched} files fetched")


def corpus(manifest: dict[str, Any], into: Path, mirror: Path | None) -> int:
    """Put each file of the manifest there; return how many had to be fetched."""
    fetched = 0
    for repository in manifest["repositories"]:
        name, commit = repository["name"], repository["commit"]
        missing = [one for one in manifest["files"] if one["repository"] == name and not is_there(one, into)]
        if not missing:
            continue
        print(f"{name}: {len(missing)} files", file=sys.stderr, flush=True)
        source = str(mirror.resolve() / name) if mirror else f"https://github.com/{name}"
        with tempfile.TemporaryDirectory() as folder:
            for one, blob in zip(missing, blobs(source, commit, missing, Path(folder)), strict=True):
                write(into, one["file"], selected(one, blob))
        fetched += len(missing)
    return fetched


def is_there(one: File, into: Path) -> bool:
    """If the folder has the file as it should be."""
    path = into / one["file"]
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, ValueError):
        return False
    return blob_id(content) == one.get("selected", one["blob"])


def blobs(source: str, commit: str, files: list[File], folder: Path) -> Iterator[bytes]:
    """The contents of some files of a commit: its trees are fetched first, then these blobs alone."""
    git(folder, "init", "--quiet", "--bare")
    settings = {"url": source, "uploadpack": _SERVED, "promisor": "true", "partialclonefilter": "blob:none"}
    for key, value in settings.items():
        if key != "uploadpack" or "://" not in source:
            git(folder, "config", f"remote.origin.{key}", value)
    fetch(folder, "--depth=1", objects=[commit])
    listed = git(folder, "ls-tree", "-r", "-z", "--full-tree", commit).decode().rstrip("\0").split("\0")
    ids = {path: line.split()[2] for line, _, path in (entry.partition("\t") for entry in listed)}
    for one in files:
        place, found = f"{source}, commit {commit}, {one['path']}", ids.get(one["path"])
        if found is None:
            raise CorpusError(f"{place}: there is no such file")
        if found != one["blob"]:
            raise CorpusError(f"{place}: the blob is {found}, and the manifest has {one['blob']}")
    fetch(folder, objects=sorted({one["blob"] for one in files}))
    for one in files:
        yield git(folder, "cat-file", "blob", one["blob"])  # which git has compared with its id


def fetch(folder: Path, *options: str, objects: Iterable[str]) -> None:
    """Fetch commits without their blobs, or blobs by their ids."""
    given = ["--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", *options]
    git(folder, "-c", "fetch.negotiationAlgorithm=noop", "fetch", *given, "origin", "--stdin", lines=objects)


def git(folder: Path, *arguments: str, lines: Iterable[str] = ()) -> bytes:
    """What git prints for this repository, whatever the environment names."""
    command = ["git", "-C", str(folder), *arguments]
    # A repository that is gone is an error, not a question for a password.
    environment = {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
    environment["GIT_TERMINAL_PROMPT"] = "0"
    try:
        done = subprocess.run(
            command, input="\n".join(lines).encode(), env=environment, capture_output=True, check=True
        )
    except FileNotFoundError:
        raise CorpusError("git does not run: install git 2.29 or newer") from None
    except subprocess.CalledProcessError as error:
        raise CorpusError(f"{' '.join(command)}: {error.stderr.decode(errors='replace').strip()}") from None
    return done.stdout


def selected(one: File, blob: bytes) -> bytes:
    """The part of the blob that the manifest names, or all of it."""
    try:
        if "line" in one:
            blob = blob.split(b"\n")[one["line"] - 1]
        elif "elements" in one:
            every = list(elements(blob.decode()))
            blob = ("[\n" + ",\n".join(every[place] for place in one["elements"]) + "\n]\n").encode()
    except IndexError:
        raise CorpusError(f"{one['file']}: there is no such part in {one['path']}") from None
    if blob_id(blob) != one.get("selected", one["blob"]):
        raise CorpusError(f"{one['file']}: what was selected has the id {blob_id(blob)}, not that of the manifest")
    return blob


def elements(text: str) -> Iterator[str]:
    """The texts of the elements of a JSON array, as they stand there."""
    decoder = json.JSONDecoder()
    at = text.index("[") + 1
    while True:
        at = _BETWEEN.match(text, at).end()
        if text[at] == "]":
            return
        end = decoder.raw_decode(text, at)[1]
        yield text[at:end]
        at = end


def blob_id(content: bytes) -> str:
    """Git's name for these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def write(into: Path, name: str, content: bytes) -> None:
    """Write a file whole or not at all, packed if its name says so."""
    path, part = into / name, into / f".part-{os.getpid()}"
    path.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(packed(content) if path.suffix == ".gz" else content)
    part.replace(path)


def packed(content: bytes) -> bytes:
    """Without a time, so that the same content gives the same bytes."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as file:
        file.write(content)
    return out.getvalue()


if __name__ == "__main__":
    main()
