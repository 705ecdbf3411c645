"""docs/store-format.md is true: a reader written from that page alone reads what recede wrote."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import recede
from store_reader import Reader
from support import engine_module


@pytest.fixture(autouse=True)
def _needs_the_core() -> None:
    engine_module("rust")


def test_a_stranger_reads_a_closed_store(tmp_path: Path) -> None:
    path = tmp_path / "session.store"
    wanted = []
    with recede.TurnStore(path) as store:
        for number in range(1, 2_001):
            lengths = (number * 37 % 500, number * 11 % 90, number * 7_919 % (20_000 if number % 50 == 0 else 900))
            reasoning, action, observation = ("é" * length for length in lengths)
            store.append(reasoning, action, observation, timestamp=number + 0.5)
            wanted.append([reasoning.encode(), action.encode(), struct.pack("<d", number + 0.5), observation.encode()])
        store.mask_before(1_900)
        store.append_record("session", [b"x" * 30_000])
        store.replace_record("session", 1, [b"state", b"", b"y" * 5_000])
        store.append_record("message", [b'{"role": "user", "content": "hi"}'])
        store.append_record("summary", [b"long" * 1_000, b"short"])
    assert [file.name for file in tmp_path.iterdir()] == ["session.store"]
    reader = Reader(path)
    assert (reader.last, reader.masked_before) == ((2_000, 1, 1, 1), 1_900)
    assert len(reader.file) == reader.pages * 4_096
    assert [reader.find(1, number)[2] for number in range(1, 2_001)] == wanted
    assert reader.find(2, 1)[2] == [b'{"role": "user", "content": "hi"}']
    assert reader.find(3, 1)[2] == [b"long" * 1_000, b"short"]
    assert reader.find(4, 1)[2] == [b"state", b"", b"y" * 5_000]
    # Walking all buckets finds each record once.
    found = [record[:2] for bucket in range(2**reader.level + reader.split) for record in reader.bucket(bucket)]
    assert len(found) == len(set(found)) == 2_003


def test_a_stranger_reads_a_compacted_store(tmp_path: Path) -> None:
    path = tmp_path / "session.store"
    with recede.TurnStore(path) as store:
        for number in range(300):
            store.append("r" * 300, "a", "o" * number * 10)
        store.mask_before(100)
        store.compact()
    reader = Reader(path)
    assert [len(reader.find(1, number + 1)[2][3]) for number in range(300)] == [number * 10 for number in range(300)]
