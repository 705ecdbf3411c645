"""docs/store-format.md is true: a reader written from that page alone reads what recede wrote."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path

import recede
from store_reader import Reader, numbers, snapshot
from support import chat_call, chat_result


def test_a_stranger_reads_a_closed_store(tmp_path: Path) -> None:
    path = tmp_path / "session.store"
    wanted = []
    with recede.store.TurnStore(path) as store:
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


def killed(folder: Path, synced: int, turns: int) -> Path:
    """A store whose writer was killed, with so many turns, of which the first were synced one by one."""
    path = folder / "session.store"
    path.unlink(missing_ok=True)
    with recede.store.TurnStore(path) as store:
        store.append("r", "a", "0" * 900)
    store = recede.store.TurnStore(path)
    for number in range(1, turns):
        store.append("r", "a", str(number) * 900, sync=number < synced)
    store.close(sync=False)
    return path


def seen(path: Path) -> list[bytes] | None:
    """The observations; None if it is damaged."""
    with contextlib.suppress(AssertionError):
        reader = Reader(path)
        return [reader.find(1, number)[2][-1] for number in range(1, reader.last[0] + 1)]
    return None


def seen_by_recede(path: Path) -> list[bytes] | None:
    with contextlib.suppress(recede.StoreError), recede.store.TurnStore(path, read_only=True) as store:
        return [turn.observation.encode() for turn in store if turn.observation is not None]
    return None


def test_a_stranger_reads_what_a_killed_writer_left(tmp_path: Path) -> None:
    path = killed(tmp_path, synced=4, turns=12)
    log = Path(f"{path}-log")
    whole = log.read_bytes()
    assert struct.unpack_from("<I", whole, 16) == (2,)
    assert whole[-8_192:] == bytes(8_192), "it has grown ahead of the last commit"
    wanted = [str(number).encode() * 900 for number in range(12)]
    assert seen(path) == wanted == seen_by_recede(path)
    found = []
    for at in range(0, len(whole), 256):  # as a loss of power may have it, or damage
        log.write_bytes(whole[:at] + bytes(8) + whole[at + 8 :])
        there = seen(path)
        if at >= 4_096:
            assert there == seen_by_recede(path)
        found.append(there)
    assert None in found, "a commit that was synced is damaged"
    cut = {len(there) for there in found if there is not None}
    assert cut >= {4, 6, 8, 11, 12} and all(there is None or there == wanted[: len(there)] for there in found)
    for length in range(0, len(whole), 1_024):
        log.write_bytes(whole[:length])
        assert seen(path) == seen_by_recede(path)


def test_figures_of_a_store_are_those_that_a_stranger_counts(tmp_path: Path) -> None:
    path = tmp_path / "session.store"
    with recede.store.TurnStore(path) as store:
        for number in range(1_000):
            store.append("r" * 30, "a", "o" * (number % 7 * 900))
        store.mask_before(11)
        store.append_record("session", [b"x" * 90_000])
        store.replace_record("session", 1, [b"state"])
        store.append_record("message", [b"{}"])
        store.append_record("message", [b"{}"])
        store.sync()
        stats, report = store.stats(), store.verify()
    reader = Reader(path)
    kinds = [reader.file[page * 4_096 + 4] for page in range(reader.pages)]
    buckets = 2**reader.level + reader.split
    (commits,) = struct.unpack_from("<Q", reader.file, 48)
    assert (stats.turns, stats.messages, stats.summaries, stats.sessions) == (1_000, 2, 0, 1) == reader.last
    assert report[:4] == stats[:4] and report.faults == ()
    assert (stats.masked_turns, report.longest_chain) == (10, 2)
    assert (stats.buckets, stats.overflow_pages) == (kinds.count(3), kinds.count(4)) and stats.buckets == buckets
    assert 0 < stats.overflow_pages < stats.splits == buckets - 1
    filled = sum(len(raw) for bucket in range(buckets) for raw in reader.raws(bucket))
    assert stats.load == filled / (buckets * 4_080)
    assert (stats.pages, stats.free_pages, stats.text_pages) == (reader.pages, kinds.count(6), kinds.count(5))
    assert stats.free_pages > 10 and stats.commits == commits
    assert stats.log_bytes > stats.file_bytes, "the log is written into the file when the store is closed"


def test_a_stranger_reads_a_compacted_store(tmp_path: Path) -> None:
    path = tmp_path / "session.store"
    with recede.store.TurnStore(path) as store:
        for number in range(300):
            store.append("r" * 300, "a", "o" * number * 10)
        store.mask_before(100)
        store.compact()
    reader = Reader(path)
    assert [len(reader.find(1, number + 1)[2][3]) for number in range(300)] == [number * 10 for number in range(300)]


def test_a_stranger_finds_what_a_history_has_let_go(tmp_path: Path) -> None:
    """Messages, observations, ids and moves, by docs/store-format.md alone."""
    path = tmp_path / "session.store"
    with recede.store.TurnStore(path) as store:
        history = recede.History(store=store)
        for number in range(2_000):
            history.append(chat_call(f"c{number % 1_500}", f"Look at {number}."))
            history.append(chat_result(f"c{number % 1_500}", f"{number} " * 200))
        moves = list(history.stats().boundary_moves)
        view = history.view()
        raw = history.messages
    reader = Reader(path)
    (known,) = reader.find(4, 1)[2]
    head = snapshot(known)
    assert json.loads(head[1])["recede_history"] == 1
    noted, observations, _, turns, _ = numbers(head[2])
    ids, move_count, _ = numbers(head[3])
    gone, view_bytes, *_ = numbers(head[4])
    assert gone > 1_000 and observations == turns == noted // 2 and ids == 1_500
    messages = [reader.find(2, number)[2] for number in range(1, 4_001)]
    assert [json.loads(fields[-1]) for fields in messages] == raw
    assert [json.loads(fields[0]) for fields in messages[:gone]] == view[:gone]
    assert all(len(fields) == 1 for fields in messages[gone:])
    assert view_bytes == sum(len(fields[0]) + 1 for fields in messages[:gone])
    blocks = [reader.find(4, number)[2] for number in range(2, reader.last[3] + 1)]
    places = [place for *_, rows in blocks for place in struct.iter_unpack("<II", rows)]
    assert places == [(2 * number + 1, 0) for number in range(observations)]
    stored = [move for _, rows, _ in blocks for move in struct.iter_unpack("<4Q", rows)]
    assert stored == [tuple(move) for move in moves[:move_count]]
    for number in range(1_500):
        newest = number + 1_500 if number + 1_500 < observations else number
        _, call, observation, is_answered = entry(blocks, f"c{number}".encode())
        assert observation == newest + 1
        let_go = max((one for one in (number, number + 1_500) if 2 * one < gone), default=None)
        if let_go is None:
            assert call == 0
        else:
            assert (call, is_answered) == (2 * let_go + 1, 1)


def entry(blocks: list[list[bytes]], identity: bytes) -> tuple[int, ...]:
    """What the table of ids has of one."""
    number = 0xCBF29CE484222325
    for byte in identity:
        number = (number ^ byte) * 0x100000001B3 % 2**64
    number = (number ^ number >> 32) * 0x9E3779B97F4A7C15 % 2**64
    number = number >> 32 | number % 2**32 << 32
    most = 2 ** (len(blocks).bit_length() - 1)
    bucket = number % (2 * most)
    if bucket >= len(blocks):
        bucket = number % most
    (found,) = (row for row in struct.iter_unpack("<Q3I", blocks[bucket][0]) if row[0] == number)
    return found
