"""Recorded sessions that are handed over whole before each request, in their shapes and as messages of a class."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from shared_data import CORPUS, each_file, need

import oracle
from definitions.masker import cold_view, masks_of_dicts, stand_ins
from recede import transcripts
from recede.masker import Facts, Masker

OPTIONS: list[dict[str, Any]] = [
    {},
    {"keep": 2, "boundary": "sliding", "keep_errors": True},
    {"keep": 4, "provider": "anthropic", "placeholder": "[{tool} {number}: {chars}, {lines}, {images}]"},
]


class Box:
    """A message that recede does not know."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.message = message
        (self.read,) = oracle.walk([message]).messages
        self.shown: dict[int, str] = {}


class Boxes:
    """Reads them as the oracle reads dicts."""

    def facts(self, box: Box) -> Facts:
        calls = [(call.id, call.name, len(call.arguments) + call.compact_chars) for call in box.read.calls]
        results = [
            (one.id, one.name, len(text), text.count("\n") + 1, one.text.images, one.is_error)
            for one in box.read.results
            for text in [one.text.joined]
        ]
        return Facts(box.read.role or "", len(box.read.own.joined), calls, results, box.read.own.images)

    def masked(self, box: Box, texts: Any) -> Box:
        masked = copy.copy(box)
        masked.shown = dict(texts)
        return masked

    def text(self, box: Box, place: int) -> str:
        return box.read.results[place].text.joined


def ends(length: int, most: int) -> list[int]:
    """Some prefixes, always the last ones."""
    step = max(1, length // most)
    return sorted({*range(1, length + 1, step), *range(max(1, length - 5), length + 1)})


def check(path: Path, most: int) -> None:
    need(CORPUS)
    for transcript in transcripts.read_all(path):
        messages = transcript.messages
        boxes = list(map(Box, messages))
        dicts, again = stand_ins(Boxes(), boxes), copy.deepcopy(messages)
        for options in OPTIONS:
            masker, own = Masker(**options), Masker[Box](Boxes(), **options)
            for end in ends(len(messages), most):
                given = (messages if end % 5 else again)[:end]
                expected, view = cold_view(None, given, options), masker.view(given)
                assert view == expected
                assert all(
                    (one is mine) == (other is mine) for one, other, mine in zip(view, expected, given, strict=True)
                )
                assert own.masks(boxes[:end]).masks == masks_of_dicts(dicts[:end], options, has_shape=False)[0]
            assert masker.stats().begun <= 1
            assert masker.stats().rewound == masker.stats().forked == 0


@each_file()
def test_views_of_recorded_sessions_are_those_from_the_beginning(path: Path) -> None:
    check(path, 6)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@each_file()
def test_every_request_of_recorded_sessions_is_that_from_the_beginning(path: Path) -> None:
    check(path, 1 << 30)
