"""Real transcripts: the invariants hold, and the bytes outside the edits are the input's own."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import published
import pytest
from shared_data import CORPUS, FORMATS, WITHOUT_HISTORY, Source, corpus_files, each_file, need, sources

import recede
from support import ENGINES, assert_only_observations_differ, elements, facts, findings, loads, members, using

# What the oracle reads of one file in the quick run; the slow run reads the rest.
MIRROR_CHARS = 800_000

Recorder = Callable[[str, object], None]


def history_of(text: str) -> list[Any]:
    value = json.loads(text)
    if isinstance(value, list):
        return value
    return value["messages"] if isinstance(value.get("messages"), list) else list(value["input"])


def span_of_history(text: str) -> tuple[int, int]:
    if text.lstrip()[:1] == "[":
        return text.index("["), len(text.rstrip())
    spans = {key: (a, b) for key, a, b in members(text)}
    return spans["messages"] if "messages" in spans and text[spans["messages"][0]] == "[" else spans["input"]


def check_source(source: Source) -> None:
    """The invariants, for one engine."""
    text = source.text
    raw = text.encode()
    history = history_of(text)
    before = copy.deepcopy(history)
    whole = published.reduce_json(raw, max_input_chars=1 << 50)
    assert whole.json is raw
    assert whole.chars_before == recede.count_chars(history)
    found = findings(history)

    for options in (
        {"keep_results": 4, "boundary": "sliding"},
        {"keep_results": 4},
        {"keep_turns": 2, "mask_chunk": 10},
        {"keep_results": 0, "max_observation_chars": 300, "boundary": "sliding"},
    ):
        serialized = published.mask_observations_json(raw, **options)  # type: ignore[arg-type]
        masked = published.mask_observations(history, **options)  # type: ignore[arg-type]
        view = serialized.json.decode()
        assert history_of(view) == masked.messages
        assert facts(serialized) == facts(masked)
        assert masked.chars_after == recede.count_chars(masked.messages) <= masked.chars_before
        assert findings(masked.messages) == found
        assert published.mask_observations_json(serialized.json, **options).json is serialized.json  # type: ignore[arg-type]
        start, end = span_of_history(text)
        new_start, new_end = span_of_history(view)
        assert (text[:start], text[end:]) == (view[:new_start], view[new_end:])
        old, new = elements(text[start:end]), elements(view[new_start:new_end])
        assert len(old) == len(new)
        at, new_at = start, new_start
        for (a, b), (c, d) in zip(old, new, strict=True):
            assert text[at : start + a] == view[new_at : new_start + c]
            assert_only_observations_differ(text[start + a : start + b], view[new_start + c : new_start + d])
            at, new_at = start + b, new_start + d

    kinds = {(kind, call_id) for kind, _, call_id in found if kind != "open_call"}
    for share in (0.9, 0.5, 0.2, 0.02):
        budget = int(whole.chars_before * share)
        for options in ({}, {"preserve_recent_raw_turns": 20, "strict_pairs": True}, {"mask_chunk": 7}):
            reduction = published.reduce(history, max_input_chars=budget, **options)  # type: ignore[arg-type]
            serialized = published.reduce_json(raw, max_input_chars=budget, **options)  # type: ignore[arg-type]
            assert history_of(serialized.json.decode()) == reduction.messages
            assert facts(serialized) == facts(reduction)
            assert reduction.chars_after <= reduction.chars_before
            assert reduction.within_limit is (reduction.chars_after <= budget)
            assert {(kind, i) for kind, _, i in findings(reduction.messages) if kind != "open_call"} <= kinds
            own = {id(message) for message in history}
            stays = sum(id(message) in own for message in reduction.messages)
            # The summary is new, and a message of the task may be cut.
            assert stays >= len(reduction.messages) - reduction.masked_count - 2

    assert recede.designs.mask_old_observations(history) == history_of(
        recede.designs.mask_old_observations_json(raw).decode()
    )
    mended = recede.repair_pairs(history)
    assert recede.repair_pairs(mended) is mended
    assert history == before, "the input was changed"


def test_the_corpus_is_complete() -> None:
    need(CORPUS)
    files = corpus_files()
    assert (
        {path.parent.name for path in files}
        == set(FORMATS)
        == {path.name for path in CORPUS.iterdir() if path.is_dir()}
    )
    assert len(files) == 76


@each_file()
def test_invariants(path: Path, record_property: Recorder) -> None:
    found = sources(path)
    assert bool(found) is (path.name not in WITHOUT_HISTORY)
    for source in found:
        with using("core"):
            check_source(source)
        record_property("read: corpus histories", source.name)
    record_property("read: corpus files", path.name)


def assert_engines_agree(source: Source) -> None:
    raw = source.text.encode()
    answers = []
    for engine in ENGINES:
        with using(engine):
            history = history_of(source.text)
            budget = recede.count_chars(history) // 3
            reduction = published.reduce_json(raw, max_input_chars=budget, preserve_recent_raw_turns=10)
            dicts = published.reduce(history, max_input_chars=budget, preserve_recent_raw_turns=10)
            assert loads(reduction.json) == dicts.messages or source.text.lstrip()[:1] == "{"
            answers.append(
                (
                    reduction.json,
                    facts(reduction),
                    facts(dicts),
                    findings(history),
                    recede.repair_pairs(history),
                    recede.designs.mask_old_observations_json(raw, keep=4, mask_chunk=3),
                )
            )
    assert all(answer == answers[0] for answer in answers)


@each_file()
def test_engines_agree(path: Path, record_property: Recorder) -> None:
    budget = MIRROR_CHARS
    for source in sources(path):
        if len(source.text) <= budget:
            budget -= len(source.text)
            assert_engines_agree(source)
            record_property("read: corpus histories that both engines read", source.name)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@each_file()
def test_engines_agree_on_everything(path: Path) -> None:
    for source in sources(path):
        assert_engines_agree(source)


@each_file()
def test_cut_transcripts_are_refused(path: Path) -> None:
    """Cut at places spread over the file, and at each byte of its last stretch."""
    for source in sources(path)[:2]:
        raw = source.text.strip().encode()
        cuts = [len(raw) * n // 7 for n in range(1, 7)] + list(range(max(1, len(raw) - 40), len(raw)))
        for cut in cuts if len(raw) < 1_000_000 else cuts[::8]:
            with using("core"), pytest.raises(recede.TranscriptError) as caught:
                recede.designs.mask_old_observations_json(raw[:cut])
            assert caught.value.kind in ("eof", "utf8", "escape")
            assert caught.value.offset is not None and caught.value.offset <= cut
