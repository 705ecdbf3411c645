"""docs/store-format.md is true: a reader written from that page alone reads what recede wrote."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path
from typing import Any

import recede
from store_reader import Reader, event, header_of
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


def test_a_stranger_reads_what_happened_in_a_history(tmp_path: Path) -> None:
    """Messages and events, by docs/store-format.md alone."""
    path = tmp_path / "session.store"
    asked: list[int] = []

    def summarizer(messages: list[Any], previous: str | None) -> str:
        asked.append(len(messages))
        if len(asked) % 2:
            raise ValueError("no summary")
        return f"{len(messages)} messages"

    with recede.store.TurnStore(path) as store:
        history = recede.History(store=store, max_input_tokens=500, summarizer=summarizer)
        for number in range(300):
            history.append(chat_call(f"c{number}", f"Look at {number}. " * (number % 40)))
            history.append(chat_result(f"c{number}", f"{number} " * 50))
            if number % 100 == 50:
                history.cache_is_cold()
            history.view()
            history.reported({"prompt_tokens": 3_000 + number, "completion_tokens": 20})
        raw, cold = history.messages, history.cold_requests
        view = history.view()
    reader = Reader(path)
    (options,) = reader.find(4, 1)[2]
    assert options[:10] == header_of(b"") and json.loads(options[10:])["options"] == {"max_input_tokens": 500}
    messages = [reader.find(2, number)[2] for number in range(1, reader.last[1] + 1)]
    assert [json.loads(data) for (data,) in messages] == raw
    events = [reader.find(3, number)[2] for number in range(1, reader.last[2] + 1)]
    told = [(event(numbers), text.decode()) for numbers, text in events]
    of_tag = {tag: [(numbers[1:], text) for numbers, text in told if numbers[0] == tag] for tag in (1, 2, 3, 4)}
    summaries = of_tag[1]
    assert {numbers[2] for numbers, _ in summaries} == {1} and of_tag[4] == []
    assert {numbers[3] > 0 for numbers, _ in summaries} == {True, False}
    # Over a limit the built-in text stands after a failure.
    assert all(("\n- outcome: " in text) == (numbers[3] > 0) for numbers, text in summaries)
    assert summaries[-1][1].startswith(view[0]["content"])  # as much of it as fits
    assert [numbers[0] for numbers, _ in of_tag[2]] == list(cold)
    assert of_tag[3][-1][0][:4] == (600, 300, sum(3_000 + number for number in range(300)), 0)
