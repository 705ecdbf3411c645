"""The parsing cases of nst/JSONTestSuite, each as the value of a message's extra field."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import json_cases
import published
import pytest
from shared_data import SUITE, need

import recede
from support import ENGINES, MALFORMED, ROOT, using

CASES = sorted(SUITE.glob("*.json")) if SUITE.is_dir() else []
DOCUMENT = ROOT / "docs" / "json.md"

Recorder = Callable[[str, object], None]


def documented() -> dict[str, bool]:
    """The table of docs/json.md: case -> whether it is accepted."""
    rows = re.findall(r"^\| `(i_\S+)` \| (accepted|refused) \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: word == "accepted" for name, word in rows}


def family(path: Path) -> str:
    return "_".join(path.name.split("_")[:2])


def outcome(data: Any) -> tuple[Any, ...]:
    """None and the view, or kind and offset of the error."""
    try:
        view = published.reduce_json(data, max_input_chars=1 << 50).json
    except recede.TranscriptError as error:
        if error.kind not in MALFORMED:
            raise  # an extra field cannot be of a wrong shape
        return error.kind, error.offset, error.message_index
    return None, view


def library_accepts(raw: bytes) -> bool:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(raw.decode(), parse_constant=refuse, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return True


def test_the_suite_is_complete() -> None:
    need(SUITE)
    counts = {letter: sum(path.name.startswith(letter) for path in CASES) for letter in "yni"}
    assert counts == {"y": 95, "n": 188, "i": 35}


@pytest.mark.parametrize("path", CASES or [None], ids=lambda path: path.name if path else "absent")
def test_case(path: Path, record_property: Recorder) -> None:
    need(SUITE)
    fragment = path.read_bytes()
    raw = b'[{"role":"user","x":' + fragment + b"}]"
    arguments: list[Any] = [raw, bytearray(raw), memoryview(raw)]
    with contextlib.suppress(UnicodeDecodeError):
        arguments.append(raw.decode())
    answers = []
    for engine in ENGINES:
        with using(engine):
            answers += [outcome(argument) for argument in arguments]
    assert all(answer == answers[0] for answer in answers), "engines and types of input agree, offsets included"
    kind, *rest = answers[0]
    if path.name.startswith("y_"):
        expected = True
    elif path.name.startswith("n_"):
        expected = False
    else:
        expected = documented()[path.name]
    assert (kind is None) is expected, answers[0]
    assert library_accepts(raw) is expected
    if kind is None:
        assert rest == [raw]
    else:
        assert 0 <= rest[0] <= len(raw)
    record_property("read: cases of the JSON test suite", path.name)


def test_raw_surrogates_are_accepted_in_a_str() -> None:
    need(SUITE)
    fragment = (SUITE / "i_string_UTF8_surrogate_U+D800.json").read_bytes()
    raw = b'[{"x":' + fragment + b"}]"
    for engine in ENGINES:
        with using(engine):
            assert outcome(raw)[0] == "utf8"
            assert outcome(raw.decode("utf-8", "surrogatepass")) == (None, raw)


def test_each_free_case_is_decided_in_the_documents() -> None:
    need(SUITE)
    assert list(documented()) == [path.name for path in CASES if path.name.startswith("i_")]


def test_our_own_table_has_every_class_of_the_suite() -> None:
    need(SUITE)
    own = {case.family for case in json_cases.ACCEPTED} | {case.family for case in json_cases.REFUSED}
    assert {re.sub(r"\.json$", "", family(path)) for path in CASES} <= own
