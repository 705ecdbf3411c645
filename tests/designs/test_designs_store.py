"""Rows of docs/coming-from.md: the store of turns, typed as the design does; its file read by another reader."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from design_rows import row

import recede
from recede import StoreError
from recede.designs import HybridContextManager, ObservationMaskingContextManager
from recede.store import TurnStore
from store_reader import Reader
from support import ROOT

SEEN = "the text of a.py " * 9
TURN = 1  # the kind of a record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.store"


def filled(path: Path, turns: int) -> Reader:
    with TurnStore(path, sync_every=turns) as store:
        for number in range(1, turns + 1):
            assert store.append(f"reasoning {number}", f"cat {number}.py", SEEN) == number
    return Reader(path)


@row(
    "a linear hash table with pages of 4 KB",
    "a page's header: number of records, next page",
    "a bucket is a chain of pages",
    "records of (turn_id, reasoning, action, observation)",
)
def test_the_file_is_a_linear_hash_table(path: Path) -> None:
    file = filled(path, 600)
    assert len(file.file) % 4_096 == 0
    buckets, found, chained = 2**file.level + file.split, {}, 0
    for bucket in range(buckets):
        number, counted = file.bucket_page(bucket), 0
        while number:
            page = file.page(number, 3, 4)  # its checksum is right
            count, number = struct.unpack_from("<H", page, 6)[0], struct.unpack_from("<I", page, 12)[0]
            counted, chained = counted + count, chained + bool(number)
        records = list(file.bucket(bucket))
        assert len(records) == counted
        found.update({number: fields for kind, number, fields in records if kind == TURN})
    assert sorted(found) == list(range(1, 601)) and buckets > 8 and chained > 0
    assert (*found[5][:2], found[5][-1]) == (b"reasoning 5", b"cat 5.py", SEEN.encode())
    assert file.find(TURN, 495)[2] == found[495], "at the bucket that the formula of the format says"


@row("the table grows by splitting a bucket at a time")
def test_the_table_grows_by_one_bucket(path: Path) -> None:
    before, grown = 0, 0
    with TurnStore(path, sync_every=1_000) as store:
        for _ in range(200):
            store.append("r", "a", SEEN)
            stats = store.stats()
            assert stats.buckets - before in (0, 1) or not before
            grown += stats.buckets > before > 0
            before = stats.buckets
    assert grown > 10


@row(
    "a recent turn has its observation, an old one a reference",
    "the masked trajectory is what the table holds",
    "what a file held is gone unless it is read again",
)
def test_an_old_turn_has_a_reference(path: Path) -> None:
    with TurnStore(path) as store:
        for _ in range(2):
            manager = ObservationMaskingContextManager(store=store)  # the second one resumes
            for _ in range(15):
                manager.add_turn("r", "cat a.py", SEEN)
        assert manager.estimate_token_savings()["masked_turns"] == store.stats().masked_turns == 20
        assert [store.get(turn).masked for turn in (1, 20, 21, 30)] == [True, True, False, False]
        assert (store.get(20).observation, store.get(21).observation) == (None, SEEN)
        assert store.recall(1) == manager.recall(1) == SEEN, "without running cat again"
        store.mask_before(25)
        assert store.get(24).observation is None and store.recall(24) == SEEN
    with TurnStore(path.with_name("short.store")) as store:
        manager = ObservationMaskingContextManager(1, store=store)
        manager.add_turn("r", "a", "ok"), manager.add_turn("r", "a", "ok")
        assert (store.get(1).masked, manager.get_masked_context("", "").count("Observation: ok")) == (True, 2)


@row("turns are found fast, and survive the process", "when to use it")
def test_a_manager_resumes_from_its_store(path: Path) -> None:
    with TurnStore(path) as store:
        manager = ObservationMaskingContextManager(store=store)
        for number in range(30):
            manager.add_turn(f"r{number}", "a", SEEN)
        context = manager.get_masked_context("S", "U")
    with TurnStore(path) as store:
        again = ObservationMaskingContextManager(store=store)
        assert (len(again), again.get_masked_context("S", "U"), again.recall(1)) == (30, context, SEEN)
        with pytest.raises(ValueError, match="was created with window_size_m 10, and this manager has 5"):
            ObservationMaskingContextManager(5, store=store)
        with pytest.raises(ValueError, match="was created with"):
            HybridContextManager(recede.summarizers.builtin(), store=store)
        with pytest.raises(LookupError, match="there is no turn 31"):
            store.get(31)
    with pytest.raises(StoreError):
        TurnStore(path.with_name("absent.store"), read_only=True)
    assert "| use it |" in (ROOT / "docs" / "managers.md").read_text()
