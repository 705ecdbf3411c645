"""Managers of turns with a store: what they refuse, what an error leaves, and what is in memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import published
import pytest

import recede
from recede.designs import HybridContextManager, ObservationMaskingContextManager
from recede.store import TurnStore
from recede.turns import Turn

TEXT = "a line of the log\n" * 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.store"


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


def test_turns_that_cannot_be_read_are_summarized_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns 1 to 8 are evicted when the summary of turns 1 to 7 is due."""
    with TurnStore(path) as store:
        stored = fill(HybridContextManager(count_turns, 0, 9, 2, store=store), 8)
        with monkeypatch.context() as patch:
            refuse(patch, store, "turns")
            fill(stored, 1)
        assert stored.stats().summary_failures == 1 and isinstance(stored.summarizer_error, recede.StoreError)
        fill(stored, 1)
        assert stored.summaries == [(7, "Turns: 1 to 7;")]


def test_a_summary_that_the_store_cannot_take_is_made_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TurnStore(path) as store:
        stored = fill(HybridContextManager(count_turns, 1, 3, 2, store=store), 2)
        with monkeypatch.context() as patch:
            refuse(patch, store, "append_record")
            fill(stored, 1)
        assert (stored.summaries, stored.stats().summary_failures, stored.phase) == ([], 1, "masking")
        assert isinstance(stored.summarizer_error, recede.StoreError)
        assert "Turn 1:" in stored.get_context("S", "U")
        fill(stored, 1)
        assert stored.summaries == [(1, "Turns: 1 to 1;")]


@pytest.mark.skipif(sys.platform == "win32", reason="the limit of a file is of POSIX")
def test_a_full_disk_loses_nothing_that_was_added(path: Path) -> None:
    code = """
import json, resource, signal, sys, recede
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


def test_turns_may_come_while_a_slow_summary_is_made(path: Path) -> None:
    async def run(store: TurnStore | None) -> HybridContextManager:
        going = asyncio.Event()

        async def summarizer(turns: list[Turn], previous: str | None) -> str:
            await going.wait()
            return count_turns(turns, previous)

        manager = HybridContextManager(summarizer, 1, 9, 6, store=store)
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
        again = HybridContextManager(count_turns, 1, 9, 6, store=store)
        for manager in (stored, again):
            assert manager.get_context("S", "U") == plain.get_context("S", "U")
            assert manager.report() == plain.report()


# What it costs


def test_a_store_that_is_only_read_gives_contexts(path: Path) -> None:
    with TurnStore(path) as store:
        wanted = fill(ObservationMaskingContextManager(2, store=store), 8).get_masked_context("S", "U")
    with TurnStore(path, read_only=True) as store:
        stored = ObservationMaskingContextManager(2, store=store)
        assert stored.get_masked_context("S", "U") == wanted
        with pytest.raises(recede.StoreError) as caught:
            stored.add_turn("One", "more", "turn")
        assert caught.value.kind == "read_only" and len(stored) == 8


# What cannot be


def of_head(**change: Any) -> Any:
    """A record whose first field is a JSON object has other members there."""
    return lambda fields: [json.dumps({**json.loads(fields[0]), **change}).encode(), *fields[1:]]


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
    "a failure before the one before": lambda fields: [b'{"made_at": 5, "end_turn": 0}', b""],
    "a turn that is none": of_head(end_turn="3"),
    "below 0": of_head(end_turn=-1),
    "no whole number": of_head(end_turn=4.5),
    "a number that is none": of_head(made_at=None),
}


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


def test_a_turn_that_is_no_text_is_damage(path: Path) -> None:
    with TurnStore(path) as store:
        manager = fill(ObservationMaskingContextManager(2, store=store), 14)
        store.replace_record("turn", 2, [b"r", b"\xff", b"12345678", b"o"])
        for _ in range(2):  # what could not be read is not taken as read
            with pytest.raises(recede.StoreError, match="not UTF-8"):
                _ = manager.trajectory
        assert manager.get_masked_context("s", "u").count("\nTurn ") == 14
        with pytest.raises(recede.StoreError, match="not UTF-8"):
            ObservationMaskingContextManager(2, store=store)
