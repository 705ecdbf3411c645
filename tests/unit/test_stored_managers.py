"""Managers of turns with a store: what they refuse, what an error leaves, and what is in memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import published
import pytest

import recede
from recede.designs import HybridContextManager, ObservationMaskingContextManager
from recede.store import TurnStore
from recede.turns import Turn, _options
from recede.turns import _turns as stored_turns
from store_reader import snapshot, snapshot_of

TEXT = "a line of the log\n" * 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.store"


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_turns, "_BLOCK", 4)


def count_turns(turns: list[Turn], previous: str | None) -> str:
    return f"{previous or 'Turns:'} {turns[0].turn} to {turns[-1].turn};"


def interrupted(turns: list[Turn], previous: str | None) -> str:
    """Leaves what is due to be due still."""
    raise KeyboardInterrupt


def fill(manager: Any, count: int) -> Any:
    for number in range(len(manager) + 1, len(manager) + count + 1):
        with contextlib.suppress(KeyboardInterrupt):
            assert manager.add_turn(f"I must look at {number}.", f"cat {number}.py", f"{number}: {TEXT}") == number
        assert len(manager) == number
    return manager


def refuse(monkeypatch: pytest.MonkeyPatch, store: TurnStore, name: str) -> None:
    def full(*arguments: Any, **options: Any) -> Any:
        raise recede.StoreError("io", path=store.path, errno=28)

    monkeypatch.setattr(store, name, full)


# Whose store it is


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"window_size_m": 3}, "window_size_m 2, and this manager has 3"),
        ({"placeholder": "[gone]"}, r"'\[Observation omitted for brevity\]', and this manager has '\[gone\]'"),
        ({"mask_chunk": 2}, "mask_chunk None, and this manager has 2"),
        ({"boundary": "break_even"}, "boundary 'sliding', and this manager has 'break_even'"),
    ],
)
def test_other_options_are_refused(path: Path, options: dict[str, Any], told: str) -> None:
    with TurnStore(path) as store:
        fill(ObservationMaskingContextManager(2, store=store), 5)
        with pytest.raises(ValueError, match=told):
            ObservationMaskingContextManager(**{"window_size_m": 2, **options}, store=store)
        with pytest.raises(ValueError, match="window_size_m 2, and this manager has None"):
            HybridContextManager(count_turns, 2, store=store)
        assert len(fill(ObservationMaskingContextManager(2, store=store), 1)) == 6


def test_summaries_are_of_the_same_options_too(path: Path) -> None:
    with TurnStore(path) as store:
        fill(HybridContextManager(count_turns, 2, 6, 3, store=store), 1)
        with pytest.raises(ValueError, match="summarize_at_n 6, and this manager has 7"):
            HybridContextManager(count_turns, 2, 7, 3, store=store)


def test_the_store_of_a_history_is_refused(path: Path) -> None:
    with TurnStore(path) as store:
        published.History(store=store).append({"role": "user", "content": "hello"})
        with pytest.raises(ValueError, match="holds the messages of a History"):
            ObservationMaskingContextManager(store=store)


@pytest.mark.parametrize("head", [b"{", b"5", b'{"turns": 5}'])
def test_a_session_of_something_else_is_refused(path: Path, head: bytes) -> None:
    with TurnStore(path) as store:
        store.append_record("session", [head])
        with pytest.raises(ValueError, match="holds the session of no manager"):
            ObservationMaskingContextManager(store=store)


def test_a_store_is_a_turn_store(path: Path) -> None:
    with pytest.raises(TypeError, match=r"store must be a TurnStore or None, not (Posix|Windows)Path"):
        ObservationMaskingContextManager(store=path)  # type: ignore[arg-type]


@pytest.mark.usefixtures("small_blocks")
def test_turns_that_were_appended_by_hand_are_taken_up(path: Path) -> None:
    with TurnStore(path) as store:
        for number in range(1, 11):
            store.append(f"I must look at {number}.", f"cat {number}.py", f"{number}: {TEXT}")
        store.mask_before(9)
        stored = ObservationMaskingContextManager(2, store=store)
        plain = fill(ObservationMaskingContextManager(2), 10)
        assert stored.get_masked_context("S", "U") == plain.get_masked_context("S", "U")
        assert stored.report() == plain.report()
        fill(stored, 3)
        store.append("By", "another", "writer")
        with pytest.raises(RuntimeError, match="has turns that this manager did not add"):
            stored.add_turn("One", "more", "turn")
        assert len(store) == 14 and len(stored) == 13


# Errors


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["append"])
@pytest.mark.parametrize("made", [2, 4, 8])
def test_a_turn_that_the_store_cannot_take_is_not_added(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, made: int
) -> None:
    plain = fill(HybridContextManager(count_turns, 1, 3, 2), made)
    with TurnStore(path) as store:
        stored = fill(HybridContextManager(count_turns, 1, 3, 2, store=store), made)
        with monkeypatch.context() as patch:
            refuse(patch, store, name)
            for _ in range(2):
                if name == "append" or made > 2:
                    with pytest.raises(recede.StoreError, match="operating system reported"):
                        stored.add_turn("lost", "lost", "lost")
            assert len(stored) == len(store) == made
            assert stored.get_context("S", "U") == plain.get_context("S", "U")
        fill(stored, 6), fill(plain, 6)
        assert stored.get_context("S", "U") == plain.get_context("S", "U")
        assert (stored.report(), stored.summaries) == (plain.report(), plain.summaries)
        again = HybridContextManager(count_turns, 1, 3, 2, store=store)
        assert again.get_context("S", "U") == plain.get_context("S", "U")
        assert (again.report(), again.summaries) == (plain.report(), plain.summaries)


@pytest.mark.usefixtures("small_blocks")
def test_a_summary_between_a_failed_turn_and_the_next_try_is_not_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = [True]

    def summarizer(turns: list[Turn], previous: str | None) -> str:
        return interrupted(turns, previous) if fails else count_turns(turns, previous)

    with TurnStore(path) as store:
        stored = fill(HybridContextManager(summarizer, 1, 3, 2, store=store), 4)
        with monkeypatch.context() as patch:
            refuse(patch, store, "append")  # the snapshot was stored then
            with pytest.raises(recede.StoreError):
                stored.add_turn("lost", "lost", "lost")
        fails.clear()
        assert stored.maybe_create_summary()
        fill(stored, 1)
        assert stored.summaries[0].end_turn == 1
        again = HybridContextManager(summarizer, 1, 3, 2, store=store)
        assert again.get_context("S", "U") == stored.get_context("S", "U")
        assert again.report() == stored.report()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("at", [3, "break_even"])
def test_what_was_due_at_the_end_of_a_block_is_due_after_a_restart(
    path: Path, monkeypatch: pytest.MonkeyPatch, at: Any
) -> None:
    """The process ended when the block was stored, and before the next turn was."""
    monkeypatch.setattr(_options, "SUMMARY_CHARS", 60)
    prices = recede.costs.Prices(input=0.001, output=0.001)

    def manager(store: TurnStore | None, summarizer: Any) -> HybridContextManager:
        return HybridContextManager(summarizer, 1, at, 2, boundary="break_even", prices=prices, store=store)

    plain = fill(manager(None, interrupted), 16)
    with TurnStore(path) as store:
        stored = fill(manager(store, interrupted), 16)
        with monkeypatch.context() as patch:
            refuse(patch, store, "append")
            with pytest.raises(recede.StoreError):
                stored.add_turn("lost", "lost", "lost")
        again = manager(store, count_turns)
        assert again._session.summary_due() == stored._session.summary_due() == plain._session.summary_due() is not None
        known = [(one._session.stats(), one.report()) for one in (plain, stored, again)]
        assert known[0] == known[1] == known[2]
        assert again.maybe_create_summary()


@pytest.mark.usefixtures("small_blocks")
def test_turns_that_cannot_be_read_are_summarized_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns 1 to 8 are evicted when the summary of turns 1 to 7 is due."""
    with TurnStore(path) as store:
        stored = fill(HybridContextManager(count_turns, 0, 9, 2, store=store), 8)
        with monkeypatch.context() as patch:
            refuse(patch, store, "turns")
            fill(stored, 1)
        assert stored.summary_failures == 1 and isinstance(stored.summarizer_error, recede.StoreError)
        fill(stored, 1)
        assert stored.summaries == [(7, "Turns: 1 to 7;")]


def test_a_summary_that_the_store_cannot_take_is_made_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TurnStore(path) as store:
        stored = fill(HybridContextManager(count_turns, 1, 3, 2, store=store), 2)
        with monkeypatch.context() as patch:
            refuse(patch, store, "append_record")
            fill(stored, 1)
        assert (stored.summaries, stored.summary_failures, stored.phase) == ([], 1, "masking")
        assert isinstance(stored.summarizer_error, recede.StoreError)
        assert "Turn 1:" in stored.get_context("S", "U")
        fill(stored, 1)
        assert stored.summaries == [(1, "Turns: 1 to 1;")]


@pytest.mark.usefixtures("small_blocks")
def test_a_token_counter_that_fails_adds_nothing(path: Path) -> None:
    def counter(text: str) -> int:
        if "bad" in text:
            raise OSError("no counter")
        return len(text)

    with TurnStore(path) as store:
        stored = fill(ObservationMaskingContextManager(1, token_counter=counter, store=store), 4)
        with pytest.raises(OSError, match="no counter"):
            stored.add_turn("bad", "bad", "bad")
        assert len(stored) == len(store) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="the limit of a file is of POSIX")
def test_a_full_disk_loses_nothing_that_was_added(path: Path) -> None:
    code = """
import json, resource, signal, sys, recede
from recede.turns import _turns as _turn_log
_turn_log._BLOCK = 8
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
told = lambda turns, previous: f"{previous or ''} {turns[-1].turn}"
turn = lambda number: ("I must look.", f"cat {number}", str(number) * 700)
def begin():
    store = recede.store.TurnStore(sys.argv[1], sync_every=1)
    return store, recede.designs.HybridContextManager(told, 3, 9, 4, store=store)
(store, stored), errors = begin(), []
for number in range(1, 21):
    stored.add_turn(*turn(number))
for limit in range(60_000, 400_000, 20_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    try:
        while True:
            stored.add_turn(*turn(len(stored) + 1))
    except recede.StoreError as error:
        errors.append([error.kind, len(stored), len(store), store.is_usable])
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    if not store.is_usable:
        store._store.abandon()
        (store, stored), before = begin(), len(stored)
        assert len(stored) in (before, before + 1)
for _ in range(30):
    stored.add_turn(*turn(len(stored) + 1))
count, context = len(stored), stored.get_context("S", "U")
store.close()
store, again = begin()
with store:
    same = [again.get_context("S", "U") == context, [turn[1:4] for turn in again.trajectory] == [
        turn(number) for number in range(1, count + 1)], store.verify().is_sound]
print(json.dumps([errors, count, same, context]))
"""
    child = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    errors, count, same, context = json.loads(child.stdout)
    assert len(errors) == 17 and count > errors[-1][1] > errors[0][1]
    assert all(kind == "io" and (kept == stored or not is_usable) for kind, kept, stored, is_usable in errors), errors
    assert any(is_usable for *_, is_usable in errors)
    assert same == [True] * 3
    assert context.count("Turn ") == count - int(context.split("through turn ")[1].split(":")[0])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("at", [9, "break_even"])
def test_blocks_may_end_while_a_slow_summary_is_made(path: Path, at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary then ends among turns that the log has let go."""
    monkeypatch.setattr(_options, "SUMMARY_CHARS", 60)

    async def run(store: TurnStore | None) -> HybridContextManager:
        going = asyncio.Event()

        async def summarizer(turns: list[Turn], previous: str | None) -> str:
            await going.wait()
            return count_turns(turns, previous)

        prices = recede.costs.Prices(input=0.001, output=0.001)
        manager = HybridContextManager(summarizer, 1, at, 6, prices=prices, store=store)
        waiting = []
        for number in range(1, 60):
            waiting.append(asyncio.create_task(manager.aadd_turn("Look.", f"cat {number}", f"{number} {TEXT}")))
            await asyncio.sleep(0)
            if number % 14 == 0:
                going.set()
                await asyncio.gather(*waiting)
                going.clear()
        going.set()
        await asyncio.gather(*waiting)
        return manager

    plain = asyncio.run(run(None))
    with TurnStore(path) as store:
        stored = asyncio.run(run(store))
        assert len(plain.summaries) > 2 and stored.summaries == plain.summaries
        prices = recede.costs.Prices(input=0.001, output=0.001)
        again = HybridContextManager(count_turns, 1, at, 6, prices=prices, store=store)
        for manager in (stored, again):
            assert manager.get_context("S", "U") == plain.get_context("S", "U")
            assert manager.get_messages("S", "U") == plain.get_messages("S", "U")
            assert manager.report() == plain.report()


# What it costs


@pytest.mark.usefixtures("small_blocks")
def test_what_is_old_is_masked_on_disk_and_counted_once(path: Path) -> None:
    counted: list[str] = []

    def counter(text: str) -> int:
        counted.append(text)
        return len(text)

    with TurnStore(path) as store:
        stored = fill(ObservationMaskingContextManager(2, token_counter=counter, store=store), 23)
        assert [turn.masked for turn in store] == [True] * 21 + [False] * 2
        report = stored.report()
        counted.clear()
        again = ObservationMaskingContextManager(2, token_counter=counter, store=store)
        assert len(counted) == 3 * 3, "only the turns behind the last block are counted again"
        assert again.report() == report
        assert again.recall(1).startswith("1: a line")


@pytest.mark.usefixtures("small_blocks")
def test_a_store_that_is_only_read_gives_contexts(path: Path) -> None:
    with TurnStore(path) as store:
        wanted = fill(ObservationMaskingContextManager(2, store=store), 8).get_masked_context("S", "U")
    with TurnStore(path, read_only=True) as store:
        stored = ObservationMaskingContextManager(2, store=store)
        assert stored.get_masked_context("S", "U") == wanted
        with pytest.raises(recede.StoreError) as caught:
            stored.add_turn("One", "more", "turn")
        assert caught.value.kind == "read_only" and len(stored) == 8


@pytest.mark.usefixtures("small_blocks")
def test_what_was_handed_out_stays_as_it_was(path: Path) -> None:
    with TurnStore(path) as store:
        stored = ObservationMaskingContextManager(1, store=store)
        plain = ObservationMaskingContextManager(1)
        given = []
        for _ in range(40):
            given.append((fill(stored, 1).get_masked_context("S", "U"), fill(plain, 1).get_masked_context("S", "U")))
        assert all(ours == theirs for ours, theirs in given)


def test_every_call_may_come_while_another_thread_is_at_the_store(path: Path, small_blocks: None) -> None:
    with TurnStore(path) as store, ThreadPoolExecutor(1) as pool:
        manager = fill(HybridContextManager(count_turns, 2, 30, 5, store=store), 60)
        work = pool.submit(fill, manager, 60)
        rounds = 0
        while not work.done() or rounds < 30:
            length = len(manager)
            assert bool(manager) and repr(manager).startswith("<HybridContextManager: ")
            assert len(manager.trajectory) >= length
            assert manager.recall(1) == f"1: {TEXT}"
            assert "\nTurn " in manager.get_context("S", "U")
            assert len(manager.report().turns) >= length
            assert manager.summaries[0].end_turn == 25
            assert len(store) >= length and repr(store).startswith("<TurnStore: ")
            rounds += 1
        work.result()
        assert len(manager) == len(store) == 120


# What cannot be


def of_head(**change: Any) -> Any:
    """A record whose first field is a JSON object has other members there."""
    return lambda fields: [json.dumps({**json.loads(fields[0]), **change}).encode(), *fields[1:]]


def of_field(tag: int, change: Any) -> Any:
    """A snapshot in which a field is another one."""
    return lambda known: snapshot_of({**snapshot(known), tag: change(snapshot(known)[tag])})


def of_number(tag: int, place: int, number: int) -> Any:
    at = 8 * place
    return of_field(tag, lambda field: field[:at] + number.to_bytes(8, "little") + field[at + 8 :])


SNAPSHOTS: dict[str, Any] = {
    "nothing of turns": lambda known: snapshot_of({tag: one for tag, one in snapshot(known).items() if tag != 11}),
    "it is cut": lambda known: known[:-5],
    "a newer version": lambda known: known[:8] + b"\x09" + known[9:],
    "a vital field of a newer version": lambda known: known + struct.pack("<HHQ", 99, 1, 0),
    "one number less": of_field(11, lambda field: field[:-8]),
    "no turns": of_field(4, lambda field: bytes(len(field))),
    "half a turn": of_number(4, 0, 5),
    "more evicted than there are": of_number(4, 0, 1 << 20),
    "other observations": of_number(5, 0, 1),
    "more masked than evicted": of_number(5, 1, 50),
    "more come than there are": of_number(5, 6, 99),
    "a masked one that is not there": of_field(6, lambda field: (77).to_bytes(8, "little")),
    "masked ones in another order": of_field(6, lambda field: (1).to_bytes(8, "little") + bytes(8)),
    "more summarized than there are": of_number(11, 0, 13),
    "a summary due of more than there are": of_number(11, 2, 100),
    "judged later": of_number(11, 3, 1_000),
    "more masked than there are": of_number(11, 5, 13),
    "more tokens masked than seen": of_number(11, 7, 1 << 40),
    "64 bits": of_number(11, 10, (1 << 64) - 1),
    "49 bits": of_number(4, 2, 1 << 48),
    "fewer rows": of_field(12, lambda rows: rows[:-72]),
    "half a row": of_field(12, lambda rows: rows[:-5]),
    "more rows": of_field(12, lambda rows: rows * 9),
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", ["masking", "hybrid"])
@pytest.mark.parametrize("change", SNAPSHOTS.values(), ids=list(SNAPSHOTS))
def test_a_snapshot_that_cannot_be_is_refused(path: Path, change: Any, kind: str) -> None:
    def opened(store: TurnStore) -> Any:
        if kind == "masking":
            return ObservationMaskingContextManager(2, store=store)
        return HybridContextManager(count_turns, 2, 6, 3, store=store)

    with TurnStore(path) as store:
        fill(opened(store), 14)
        (known,) = store.record("session", 1)
        told = change(known)
        assert told != known
        store.replace_record("session", 1, [told])
        with pytest.raises(recede.StoreError) as caught:
            opened(store)
        assert (caught.value.kind, caught.value.path) == ("damaged", str(path))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("at", range(9))
@pytest.mark.parametrize("number", [0, (1 << 64) - 1])
def test_rows_of_any_numbers_are_taken(path: Path, at: int, number: int) -> None:
    """Nobody can tell a wrong number of tokens from a right one, but none breaks what is computed with it."""

    def changed(rows: bytes) -> bytes:
        rows = bytearray(rows)
        for row in range(0, len(rows), 72):
            rows[row + 8 * at : row + 8 * at + 8] = number.to_bytes(8, "little")
        return bytes(rows)

    with TurnStore(path) as store:
        fill(HybridContextManager(count_turns, 2, "break_even", 3, store=store), 14)
        (known,) = store.record("session", 1)
        store.replace_record("session", 1, [of_field(12, changed)(known)])
        evicted = 0
        for turn in range(1, 15):
            *texts, last = store.record("turn", turn)
            if len(texts) == 4:
                store.replace_record("turn", turn, [*texts[:3], changed(texts[3]) + b"more", last])
                evicted += 1
        assert evicted
        manager = fill(HybridContextManager(count_turns, 2, "break_even", 3, store=store), 9)
        assert len(manager.trajectory) == len(manager.report().turns) == 23
        assert "Turn 23:" in manager.get_context("s", "u") and manager.get_messages("s", "u")


@pytest.mark.usefixtures("small_blocks")
def test_a_turn_that_was_evicted_without_a_row_is_damage(path: Path) -> None:
    with TurnStore(path) as store:
        manager = fill(ObservationMaskingContextManager(2, store=store), 14)
        *texts, last = store.record("turn", 2)
        assert len(texts) == 4
        store.replace_record("turn", 2, [*texts[:3], last])
        asks = [lambda: manager.get_masked_context("s", "u"), lambda: manager.get_masked_messages("s", "u")]
        for ask in [*asks, manager.report]:
            for _ in range(2):
                with pytest.raises(recede.StoreError, match="a turn in it has no row"):
                    ask()
        assert manager.recall(2) and len(manager.trajectory) == 14


SUMMARIES: dict[str, Any] = {
    "fewer fields": lambda fields: fields[:1],
    "more fields": lambda fields: [*fields, b""],
    "no JSON": lambda fields: [b"{", fields[1]],
    "no object": lambda fields: [b"7", fields[1]],
    "nothing in its head": lambda fields: [b"{}", fields[1]],
    "a text that is not UTF-8": lambda fields: [fields[0], b"\xff"],
    "of no turn": of_head(end_turn=0),
    "of turns that are not there": of_head(end_turn=10_000),
    "of other turns": of_head(end_turn=4),
    "made before its turns": of_head(made_at=1),
    "made later": of_head(made_at=10_000),
    "a turn that is none": of_head(end_turn="3"),
    "chars below 0": of_head(chars=-1),
    "tokens of over 64 bits": of_head(tokens=1 << 64),
    "tokens that are none": of_head(spent_tokens=None),
    "one more number": of_head(more=1),
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("change", SUMMARIES.values(), ids=list(SUMMARIES))
def test_a_summary_that_cannot_be_is_refused(path: Path, change: Any) -> None:
    with TurnStore(path) as store:
        manager = fill(HybridContextManager(count_turns, 2, 6, 3, store=store), 14)
        last = store.count_records("summary")
        assert last == len(manager.summaries) == 2
        store.replace_record("summary", last, change(list(store.record("summary", last))))
        with pytest.raises(recede.StoreError) as caught:
            HybridContextManager(count_turns, 2, 6, 3, store=store)
        assert (caught.value.kind, caught.value.path) == ("damaged", str(path))
        # One before it is read when somebody looks.
        store.replace_record("summary", 1, [b"{}", b""])
        with pytest.raises(recede.StoreError):
            _ = manager.summaries


def test_a_manager_that_makes_no_summaries_takes_none_up(path: Path) -> None:
    with TurnStore(path) as store:
        fill(ObservationMaskingContextManager(2, store=store), 5)
        head = {"end_turn": 2, "made_at": 4, "chars": 5, "tokens": 1, "masking_turns": 4, "spent_tokens": 9}
        store.append_record("summary", [json.dumps(head).encode(), b"text"])
        with pytest.raises(recede.StoreError, match="summaries of a manager that makes none"):
            ObservationMaskingContextManager(2, store=store)


@pytest.mark.usefixtures("small_blocks")
def test_a_turn_that_is_no_text_is_damage(path: Path) -> None:
    with TurnStore(path) as store:
        manager = fill(ObservationMaskingContextManager(2, store=store), 14)
        row = store.record("turn", 1)[3]
        store.replace_record("turn", 2, [b"r", b"\xff", b"12345678", row, b"o"])
        for ask in (lambda: manager.get_masked_context("s", "u"), lambda: manager.get_masked_messages("s", "u")):
            for _ in range(2):  # what could not be read is not taken as read
                with pytest.raises(recede.StoreError, match="not UTF-8"):
                    ask()
        with pytest.raises(recede.StoreError, match="not UTF-8"):
            _ = manager.trajectory
        store.replace_record("turn", 14, [b"\xc3", b"a", b"12345678", b"o"])
        with pytest.raises(recede.StoreError, match="not UTF-8"):
            ObservationMaskingContextManager(2, store=store)
