"""A `History` with a store: calls that are answered late, other options, foreign stores, and what an error leaves."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import recede
from recede import History
from support import call, engine_module, result, turns, user


@pytest.fixture(autouse=True)
def _both_engines() -> None:
    """The core alone has a store."""
    engine_module("rust")


@pytest.fixture(autouse=True)
def _lets_go_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recede._history._LET_GO_AFTER", (8, 1 << 30))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.store"


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege there")
def test_a_history_is_not_saved_over_its_own_store(path: Path) -> None:
    link, hard = path.with_name("link"), path.with_name("hard")
    with recede.TurnStore(path, sync_every=1) as store:
        history = History(store=store)
        history.append(user("one"))
        link.symlink_to(path)
        hard.hardlink_to(path)
        for file in (path, str(path), link, hard, f"{path}-log", f"{path}-new"):
            with pytest.raises(ValueError, match="belongs to the store of this history"):
                history.save(file)
        history.append(user("two"))
        history.save(path.with_name("saved.json"))
    with recede.TurnStore(path) as store:
        assert [message["content"] for message in History(store=store).view()] == ["one", "two"]
    assert History.load(path.with_name("saved.json")).view() == [user("one"), user("two")]


def let_go(history: History) -> int:
    """How many messages the store alone has."""
    count: int = history._session.first_here()
    return count


def same(stored: History, plain: History) -> None:
    assert stored.view_json() == plain.view_json()
    assert stored.view() == plain.view()
    assert stored.stats() == plain.stats()


SLIDING: dict[str, Any] = {"keep": 3, "mask_chunk": 1}

LATE: dict[str, dict[str, Any]] = {
    "any tool": {"keep": 3, "recall_handles": True},
    "a window of its own": {"keep_by_tool": {"slow": 2}, "keep": 3, "mask_chunk": 1},
    "an exempt tool": {"exclude_tools": ["slow"], "keep": 3},
}


@pytest.mark.parametrize("options", LATE.values(), ids=list(LATE))
def test_a_call_that_was_let_go_is_answered(path: Path, options: dict[str, Any]) -> None:
    """The result gets the facts of its call, and that is no orphan any more."""
    slow = {"id": "slow", "type": "function", "function": {"name": "slow", "arguments": "{}"}}
    messages = [*turns(12), {"role": "assistant", "content": "Both.", "tool_calls": [slow]}, *turns(150, 1_000)]
    late = [result("slow", "late " * 90), result("slow", "again " * 90), *turns(30), result("slow", "thrice " * 90)]
    more = [*turns(20), call("slow", name="other"), result("slow", "another " * 90), *turns(20)]
    with recede.TurnStore(path) as store:
        stored, plain = History(store=store, **options), History(**options)
        for message in [*messages, *late]:
            if message is late[0]:
                stored.view(), plain.view()
                assert let_go(stored) > 26 and stored.stats().orphans == 1
            stored.append(message)
            plain.append(message)
        same(stored, plain)
        assert stored.stats().orphans == 0
    with recede.TurnStore(path) as store:
        stored = History(store=store, **options)
        stored.view()
        for message in more:
            stored.append(message)
            plain.append(message)
        plain.view()
        assert stored.view() == plain.view()
        assert stored.recall("slow") == plain.recall("slow") == "another " * 90
        assert stored.stats()[:7] == plain.stats()[:7]


def together(count: int) -> list[dict[str, Any]]:
    """`count` messages of three calls each, every other time of a tool that is exempt, and behind each its results."""
    messages = []
    for number in range(count):
        ids = [f"{number}{part}" for part in "abc"]
        messages += [call(*ids, name="read" if number % 2 else "run"), *(result(one, "x" * 200) for one in ids)]
    return messages


def slowly_answered() -> list[dict[str, Any]]:
    """Of calls that run at once the first one gets its result last, behind many of the others."""
    ids = [f"b{number}" for number in range(6)]
    asked, answers = [call("slow"), *map(call, ids)], [result(one, "x" * 200) for one in ids]
    return [*turns(20), *asked, *answers * 10, result("slow", "late"), *turns(30)]


def never_answered() -> list[dict[str, Any]]:
    """Before the first result there are more calls than fit into a block of the index."""
    asked = [message for number in range(40) for message in (call(f"a{number}"), user("Not now."))]
    return [*asked, result("a3", "late " * 90), *turns(12), result("a5", "later " * 90), *turns(12)]


HELD: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "chunks that end among results of one message": ({"keep": 3, "mask_chunk": 4}, together(40)),
    "pairs that stay whole": ({"keep": 8, "mask_chunk": 1, "exclude_tools": ["read"]}, together(40)),
    "counted tokens": ({**SLIDING, "threshold_tokens": 100, "token_counter": len}, turns(60)),
    "calls that are open": (SLIDING, slowly_answered()),
    "calls before all results": ({"keep": 3}, never_answered()),
    "requests that find the cache cold": ({"keep": 3, "cache_cold": [122, 124, 126]}, turns(100, 300)),
    "a result that its own window keeps": (
        {"keep": 3, "keep_by_tool": {"slow": 1}},
        [*turns(20, 900), *turns(1, 900, "slow"), *turns(150, 900), *turns(1, 900, "slow"), *turns(40, 900)],
    ),
}


@pytest.mark.parametrize(("options", "messages"), HELD.values(), ids=list(HELD))
def test_what_is_let_go_shows_as_without_a_store(
    path: Path, options: dict[str, Any], messages: list[dict[str, Any]]
) -> None:
    with recede.TurnStore(path) as store:
        stored, plain = History(store=store, **options), History(**options)
        for message in messages:
            stored.append(message)
            plain.append(message)
            same(stored, plain)
        assert let_go(stored) > 20
    with recede.TurnStore(path) as store:
        assert History(store=store, **options).view_json() == plain.view_json()


def test_what_changed_is_known_of_messages_that_were_let_go(path: Path) -> None:
    with recede.TurnStore(path) as store:
        stored, plain = History(store=store, **SLIDING), History(**SLIDING)
        for number, message in enumerate(turns(60)):
            stored.append(message)
            plain.append(message)
            if number in (5, 9, 70):
                assert stored.stats() == plain.stats()
        assert let_go(stored) > 90
        same(stored, plain)
        changed = stored.stats().changed_message
        assert changed is not None and 50 < changed < let_go(stored)


def test_where_a_view_changed_stays_known_when_nothing_changes_any_more(path: Path) -> None:
    with recede.TurnStore(path) as store:
        stored, plain = History(store=store, **SLIDING), History(**SLIDING)
        for message in [*turns(15), None, *turns(20)[30:], None, *(user(str(number)) for number in range(30)), None]:
            if message is None:
                same(stored, plain)
                changed = stored.stats().changed_message
            else:
                stored.append(message)
                plain.append(message)
        assert changed is not None and 20 < changed < let_go(stored)


def test_a_window_that_is_never_left_holds_nothing_back(path: Path) -> None:
    """What can never be masked is settled as soon as it comes."""
    options: dict[str, Any] = {**SLIDING, "keep_by_tool": {"read": None}}
    with recede.TurnStore(path) as store:
        stored, plain = History(store=store, **options), History(**options)
        for history in (stored, plain):
            history.extend([*turns(3, name="read"), *turns(60)])
        assert let_go(stored) > 90
        same(stored, plain)


def test_results_that_other_options_do_not_mask_are_raw_again(path: Path) -> None:
    """What was written down as the first ones showed it is not shown by the others, even if they let go of it later."""
    options: dict[str, Any] = {"keep": 30, "mask_chunk": 1, "exclude_tools": ["run"]}
    messages = turns(120)
    with recede.TurnStore(path) as store:
        masked = History(store=store, **SLIDING)
        masked.extend(messages[:120])
    gone = []
    for end in (122, 200, 240):
        with recede.TurnStore(path) as store:
            stored = History(store=store, **options)
            stored.extend(messages[len(stored) : end])
            assert stored.view() == messages[:end]
            gone.append(let_go(stored))
    assert 0 < gone[0] < let_go(masked) < gone[1]


def test_a_session_that_becomes_masked_as_it_is_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions are not among the options that are compared: with another counter the same session costs more."""
    monkeypatch.setattr("recede._history._LET_GO_AFTER", (8, 500))
    options: dict[str, Any] = {**SLIDING, "threshold_tokens": 2_000}
    messages = [*turns(31), user("Go on."), user("Well?")]

    def costly(text: str) -> int:
        return 100 * len(text)

    with recede.TurnStore(path) as store:
        stored = History(store=store, token_counter=lambda text: 0, **options)
        stored.extend(messages)
        assert let_go(stored) == 0 and store.count_records("session") > 1
    plain = History.from_messages(messages, token_counter=costly, **options)
    for _ in range(2):
        with recede.TurnStore(path) as store:
            stored = History(store=store, token_counter=costly, **options)
            assert stored.view() == plain.view() != messages
            assert stored.stats()[:7] == plain.stats()[:7]


@pytest.mark.parametrize("others", [{"keep": 9, "mask_chunk": 1}, {"mask_chunk": 4}, {"max_input_chars": 900}])
def test_other_options_plan_everything_anew(path: Path, others: dict[str, Any]) -> None:
    messages = turns(90)
    for start, options in enumerate((SLIDING, others, others, SLIDING)):
        with recede.TurnStore(path) as store:
            stored = History(store=store, **options)
            assert len(stored) == 40 * start
            stored.extend(messages[40 * start : 40 * start + 40])
            plain = History.from_messages(messages[: 40 * start + 40], **options)
            if "max_input_chars" not in options:
                assert let_go(stored) > 40 * start
                assert stored.view_json() == plain.view_json()
            assert stored.messages == plain.messages
            seen = range(1, 20 * start + 21)
            assert [stored.recall(str(number - 1)) for number in seen] == [plain.recall(number) for number in seen]
            numbers = store.record("session", 1)[1]
            assert numbers[8:16] == numbers[40:48], "observations, and ids in the index, which is made anew"
            assert store.verify().is_sound


def test_a_reader_plans_with_options_of_its_own(path: Path) -> None:
    with recede.TurnStore(path) as store:
        history = History(store=store, **SLIDING)
        history.extend(turns(80))
        assert let_go(history) > 50
    before = path.read_bytes()
    with recede.TurnStore(path, read_only=True) as store:
        history = History(store=store, keep=7, mask_chunk=1)
        assert history.view() == History.from_messages(turns(80), keep=7, mask_chunk=1).view()
        with pytest.raises(recede.StoreError):
            history.append(user("no"))
    assert path.read_bytes() == before


def test_the_store_of_a_manager_is_refused(path: Path) -> None:
    with recede.TurnStore(path) as store:
        manager = recede.ObservationMaskingContextManager(store=store)
        manager.add_turn("r", "a", "o")
        with pytest.raises(ValueError, match=r"session\.store holds the turns of a manager: give the history a store"):
            History(store=store)
    with recede.TurnStore(path.with_name("turns.store")) as store:
        store.append("r", "a", "o")
        with pytest.raises(ValueError, match="holds the turns of a manager"):
            History(store=store)
    with recede.TurnStore(path.with_name("history.store")) as store:
        History(store=store).extend(turns(40))
        assert store.count_records("session") > 1
        with pytest.raises(ValueError, match="holds the"):
            recede.ObservationMaskingContextManager(store=store)


def test_what_cannot_be_true_is_found_out(path: Path) -> None:
    """Whoever can write to a store can say anything there of how much has been let go."""
    with recede.TurnStore(path) as store:
        history = History(store=store, **SLIDING)
        history.extend(turns(80))
        assert let_go(history) > 50
        tag, numbers, _ = store.record("session", 1)
    whole, plain = path.read_bytes(), History.from_messages(turns(90), **SLIDING)
    for place in range(0, len(numbers) // 8):
        for number in (0, 1, 77, 161, 1 << 31, (1 << 62) + 3):
            path.write_bytes(whole)
            with recede.TurnStore(path) as store:
                told = numbers[: 8 * place] + number.to_bytes(8, "little") + numbers[8 * place + 8 :]
                store.replace_record("session", 1, [tag, told, b""])
                if place == 0:
                    store.replace_record("session", 2, [b"x" * 20 * (number % 99), b"y" * 31, b"\xff" * 128])
                history = History(store=store, **SLIDING)
                history.extend(turns(90)[len(history) :])
                assert history.messages == plain.messages
                history.view(), history.stats(), list(history.stats().boundary_moves)
                for one in range(82):
                    with contextlib.suppress(LookupError):
                        history.recall(one), history.recall(str(one))


def test_places_that_cannot_be_true_are_no_observations(path: Path) -> None:
    with recede.TurnStore(path) as store:
        History(store=store, **SLIDING).extend(turns(80))
        store.replace_record("session", 2, [b"", b"", b"\xff" * 128])
        history = History(store=store, **SLIDING)
        for number in range(1, 17):
            with pytest.raises(LookupError):
                history.recall(number)
        assert history.recall(17) == "x" * 100


def test_a_store_is_for_one_history_at_a_time(path: Path) -> None:
    with recede.TurnStore(path) as store:
        history, other = History(store=store), History(store=store)
        other.append(user("two"))
        with pytest.raises(
            RuntimeError, match=r"session\.store has messages that this history did not append: make the"
        ):
            history.append(user("one"))
        assert len(history) == 0 and len(History(store=store)) == 1


def test_what_was_let_go_is_equal_and_what_was_not_is_the_same(path: Path) -> None:
    messages = turns(40)
    with recede.TurnStore(path) as store:
        history = History(store=store, **SLIDING)
        history.extend(messages)
        gone = let_go(history)
        assert 0 < gone < 80
        assert history.messages == messages
        assert history[0] is not messages[0] and history[-1] is messages[-1]
        assert history[gone] is messages[gone]
        assert history.view()[-1] is messages[-1]
        assert history.to_json() == json.dumps(messages, separators=(",", ":")).encode()
    with pytest.raises(recede.StoreError, match="closed"):
        history.recall(1)
    assert len(history) == 80


def test_a_long_view_is_not_held(path: Path) -> None:
    """It is read anew each time, in pieces."""
    with recede.TurnStore(path) as store:
        history, plain = History(store=store, **SLIDING), History(**SLIDING)
        for number in range(300):
            for message in (user(f"{number} " * 4_000), call(str(number)), result(str(number), "x" * 500)):
                history.append(message)
                plain.append(message)
        assert history._session.is_long()
        for _ in range(2):
            same(history, plain)
            assert len(history.view_chunks()) > 20
            assert b"".join(history.view_chunks()) == plain.view_json()


def test_moves_are_read_when_they_are_asked_for(path: Path) -> None:
    with recede.TurnStore(path) as store:
        history, plain = History(store=store), History()
        history.extend(turns(2_500, 300))
        plain.extend(turns(2_500, 300))
        moves, wanted = history.stats().boundary_moves, plain.stats().boundary_moves
        assert isinstance(wanted, tuple) and not isinstance(moves, tuple)
        assert len(moves) == len(wanted) > 100
        assert list(moves) == list(wanted) and moves == wanted and wanted == moves
        assert moves != wanted[:-1] and moves != (*wanted[:-1], wanted[0]) and moves != list(wanted)
        for index in (0, 15, 16, 17, 50, len(wanted) - 1, -1, -len(wanted)):
            assert moves[index] == wanted[index]
        assert moves[3:40:7] == wanted[3:40:7] and wanted[20] in moves
        for index in (len(wanted), -len(wanted) - 1):
            with pytest.raises(IndexError):
                moves[index]
        assert repr(moves).startswith(f"<{len(wanted)} moves, of which ")
        history.extend(turns(500, 300))
        assert list(moves) == list(wanted), "those of then"


# A disk that is full


FULL = """
import json, resource, signal, sys, recede
from recede import _history
_history._LET_GO_AFTER = (64, 1 << 30)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
failed, limit = 0, 40_000
with recede.TurnStore(sys.argv[1], sync_every=None) as store:
    stored, plain = recede.History(store=store, mask_chunk=2), recede.History(mask_chunk=2)
    for number in range(2_000):
        call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        for message in (
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": str(number), "content": f"{number} " * (number % 3_000)},
        ):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
            plain.append(message)
            try:
                stored.append(message)
            except recede.StoreError:
                failed += 1
                limit += 400_000
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        if number % 100 == 0:
            assert stored.view_json() == plain.view_json()
            assert stored.stats() == plain.stats()
    assert stored.messages == plain.messages
with recede.TurnStore(sys.argv[1]) as store:
    assert store.verify().is_sound
    stored = recede.History(store=store, mask_chunk=2)
    assert stored.view_json() == plain.view_json() and stored.to_json() == plain.to_json()
    assert all(stored.recall(str(number)) == plain.recall(number + 1) for number in range(2_000))
print(failed, stored._session.first_here())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file size on this system")
def test_a_disk_without_room_loses_nothing(path: Path) -> None:
    """The system refuses to let files grow, again and again, also while messages are let go."""
    child = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True)
    assert not child.stderr, child.stderr
    failed, gone = map(int, child.stdout.split())
    assert failed > 10 and gone > 3_000


def test_every_call_may_come_while_another_thread_is_at_the_store(path: Path) -> None:
    messages = [user("Go."), *turns(150, chars=200)]
    errors: list[Exception] = []
    with recede.TurnStore(path) as store:
        history = History(keep=3, store=store)
        for message in messages[:100]:
            history.append(message)
        assert let_go(history) > 0

        def work() -> None:
            try:
                for message in messages[100:]:
                    history.append(message)
                    history.view_json()
            except Exception as error:
                errors.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        rounds = 0
        while worker.is_alive() or rounds < 100:
            length = len(history)
            assert bool(history) and repr(history).startswith("<History: ")
            assert next(iter(history)) == messages[0]
            assert list(itertools.islice(history, 3)) == messages[:3]
            assert history[length - 1] == messages[length - 1]
            assert history.recall(1) == "x" * 200
            assert len(history.stats().boundary_moves) >= 0
            assert len(store) == 0 and repr(store).startswith("<TurnStore: ") and store.stats().messages >= length
            rounds += 1
        worker.join()
        assert errors == []
        assert list(history) == messages
