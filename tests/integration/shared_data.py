"""Reads the recorded sessions as histories. Their contents are never copied or quoted."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from recede._bodies import BODY_KEYS
from support import ROOT, SHARED, elements, members

sys.path.append(str(ROOT / "benches"))

from recorded import MANIFEST, corpus

CORPUS = corpus()
SUITE = SHARED / "json-test-suite" / "test_parsing"
FORMATS = tuple(sorted({one["file"].partition("/")[0] for one in MANIFEST["files"]}))

# What `make test` reads: a short file of each format and of each oddity that is noted. `make test-slow` reads all.
# The only files of pi and of tau_bench are long: `make test` reads them with the commands that are given all files.
QUICK = frozenset(
    (
        "2025-05-12T20-28-13-04-00_no-samples.json",
        "cli_37995ebed6e42.jsonl",  # glued lines
        "cli_1755e38d324c0.jsonl",  # a result without its call
        "cli_ab2b9748b1050.json",
        "demonstrations__function_calling_simple.traj.json",
        "git-sync_0f5c67992f740.jsonl",  # a call without its result
        "git-sync_3456387d7a8a15.jsonl",
        "git-sync_6023756b61210.jsonl",  # references of tools
        "git-sync_cea42415e2390.jsonl",  # a result before its call
        "github_issue.json",
        "litellm_proxy__anthropic__claude-sonnet-4-20250514-1757015046.707.json",
        "log_images_tc.json",
        "pwn__warmup.traj.json",
        "resolver-2.json",  # no ids
        "stop-hook-reflection-first-stop.jsonl",
        "wrong_initial_state.json",
    )
)

# Nothing in it is a list of messages.
WITHOUT_HISTORY = frozenset({"2025-05-12T20-28-13-04-00_no-samples.json"})

_decoder = json.JSONDecoder()


class Source(NamedTuple):
    """A serialized history: the text of an array or of a request body, in the file's own bytes."""

    name: str
    text: str


def corpus_files() -> list[Path]:
    if not CORPUS.is_dir():
        return []
    return sorted(path for name in FORMATS for path in (CORPUS / name).iterdir())


def each_file(*formats: str) -> pytest.MarkDecorator:
    """A test for each file, or each of these formats; slow if not one of QUICK, and skipped without the sessions."""
    files = [path for path in corpus_files() if path.parent.name in (formats or FORMATS)]
    each = [
        pytest.param(path, id=name_of(path), marks=[] if path.name in QUICK else [pytest.mark.slow]) for path in files
    ]
    skipped = pytest.param(CORPUS, id="absent", marks=pytest.mark.skip(reason=_reason(CORPUS)))
    return pytest.mark.parametrize("path", each or [skipped])


def name_of(path: Path) -> str:
    return f"{path.parent.name}-{path.name}"


def need(folder: Path) -> None:
    """Skips the test where this folder is absent; `each_file` does so itself."""
    if not folder.is_dir():
        pytest.skip(_reason(folder))


def _reason(folder: Path) -> str:
    return f"{folder} is not there" + (" (make corpus)" if folder == CORPUS else "")


def sources(path: Path) -> list[Source]:
    """The histories of a corpus file: the file itself, the arrays in it, or its lines' messages."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text = raw.decode()
    try:
        value = json.loads(text)
    except ValueError:
        lines = list(_messages_of_lines(text))
        return [Source("lines", "[" + ",\n".join(lines) + "]")] if lines else []
    found = []
    if isinstance(value, list) or any(isinstance(value.get(key), list) for key in BODY_KEYS):
        found.append(Source("file", text))
    found += _arrays(text)
    return found


def _messages_of_lines(text: str) -> Iterator[str]:
    at, end = 0, len(text)
    while at < end:
        if text[at] in " \t\r\n":
            at += 1
            continue
        start, at = at, _decoder.raw_decode(text, at)[1]
        fields = {key: (first, last) for key, first, last in members(text, start)}
        kind = str(json.loads(text[slice(*fields["type"])])) if "type" in fields else ""
        field = {"user": "message", "assistant": "message", "message": "message", "response_item": "payload"}.get(kind)
        if field in fields and text[fields[field][0]] == "{":
            yield text[slice(*fields[field])]


def _arrays(text: str) -> list[Source]:
    """Arrays of messages one or two levels below: trajectories of runs, samples of a log."""
    first = text.lstrip()[:1]
    spans = [(str(n), a, b) for n, (a, b) in enumerate(elements(text))] if first == "[" else members(text)
    found = []
    for name, start, end in spans:
        if name in ("history", "messages", "samples", "trajectory") and text[start] == "[":
            found += [Source(name, text[start:end])] if name != "samples" else _arrays(text[start:end])
        elif first == "[" and text[start] == "{":
            for key, a, b in members(text, start):
                if key in ("traj", "messages", "history") and text[a] == "[":
                    found.append(Source(f"{name}.{key}", text[a:b]))
    return found
