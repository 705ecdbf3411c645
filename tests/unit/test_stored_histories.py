"""A `History` with a store: calls that are answered late, other options, foreign stores, and what an error leaves."""

from __future__ import annotations

import contextlib
import itertools
import json
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from published import History

import recede
from store_reader import numbers, snapshot, snapshot_of
from support import call, priced, result, turns, user


@pytest.fixture(autouse=True)
def _lets_go_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recede.session._live._EVICT_AFTER", (8, 1 << 30))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.store"


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege there")
def test_a_history_is_not_saved_over_its_own_store(path: Path) -> None:
    link, hard = path.with_name("link"), path.with_name("hard")
    with recede.store.TurnStore(path, sync_every=1) as store:
        history = History(store=store)
        history.append(user("one"))
        link.symlink_to(path)
        hard.hardlink_to(path)
        for file in (path, str(path), link, hard, f"{path}-log", f"{path}-new"):
            with pytest.raises(ValueError, match="belongs to the store of this history"):
                history.save(file)
        history.append(user("two"))
        history.save(path.with_name("saved.json"))
    with recede.store.TurnStore(path) as store:
        assert [message["content"] for message in History(store=store).view()] == ["one", "two"]
    assert History.load(path.with_name("saved.json")).view() == [user("one"), user("two")]


def let_go(history: History) -> int:
    """How many messages the store alone has."""
    count: int = history._live.core.stats().evicted_messages
    return count


def same(stored: History, plain: History) -> None:
    assert stored.view_json() == plain.view_json()
    assert stored.view() == plain.view()
    assert stored.stats() == plain.stats()


SLIDING: dict[str, Any] = {"keep": 3, "mask_chunk": 1}

LATE: dict[str, dict[str, Any]] = {
    "any tool": {"keep": 3, "recall": True},
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
    with recede.store.TurnStore(path) as store:
        stored, plain = History(store=store, **options), History(**options)
        for message in [*messages, *late]:
            if message is late[0]:
                stored.view(), plain.view()
                assert let_go(stored) > 26 and stored.stats().orphans == 1
            stored.append(message)
            plain.append(message)
        same(stored, plain)
        assert stored.stats().orphans == 0
    with recede.store.TurnStore(path) as store:
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
    "requests that find the cache cold": ({"keep": 3, "cold": [122, 124, 126]}, turns(100, 300)),
    "a result that its own window keeps": (
        {"keep": 3, "keep_by_tool": {"slow": 1}},
        [*turns(20, 900), *turns(1, 900, "slow"), *turns(150, 900), *turns(1, 900, "slow"), *turns(40, 900)],
    ),
}


@pytest.mark.parametrize(("options", "messages"), HELD.values(), ids=list(HELD))
def test_what_is_let_go_shows_as_without_a_store(
    path: Path, options: dict[str, Any], messages: list[dict[str, Any]]
) -> None:
    with recede.store.TurnStore(path) as store:
        stored, plain = History(store=store, **options), History(**options)
        for message in messages:
            stored.append(message)
            plain.append(message)
            same(stored, plain)
        assert let_go(stored) > 20
    with recede.store.TurnStore(path) as store:
        assert History(store=store, **options).view_json() == plain.view_json()


def test_what_changed_is_known_of_messages_that_were_let_go(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
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
    with recede.store.TurnStore(path) as store:
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
    with recede.store.TurnStore(path) as store:
        stored, plain = History(store=store, **options), History(**options)
        for history in (stored, plain):
            history.extend([*turns(3, name="read"), *turns(60)])
        assert let_go(stored) > 90
        same(stored, plain)


def test_results_that_other_options_do_not_mask_are_raw_again(path: Path) -> None:
    """What was written down as the first ones showed it is not shown by the others, even if they let go of it later."""
    options: dict[str, Any] = {"keep": 30, "mask_chunk": 1, "exclude_tools": ["run"]}
    messages = turns(120)
    with recede.store.TurnStore(path) as store:
        masked = History(store=store, **SLIDING)
        masked.extend(messages[:120])
    gone = []
    for end in (122, 200, 240):
        with recede.store.TurnStore(path) as store:
            stored = History(store=store, **options)
            stored.extend(messages[len(stored) : end])
            assert stored.view() == messages[:end]
            gone.append(let_go(stored))
    assert 0 < gone[0] < let_go(masked) < gone[1]


def test_a_session_that_becomes_masked_as_it_is_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions are not among the options that are compared: with another counter the same session costs more."""
    monkeypatch.setattr("recede.session._live._EVICT_AFTER", (8, 500))
    options: dict[str, Any] = {**SLIDING, "threshold_tokens": 2_000}
    messages = [*turns(31), user("Go on."), user("Well?")]

    def costly(text: str) -> int:
        return 100 * len(text)

    with recede.store.TurnStore(path) as store:
        stored = History(store=store, token_counter=lambda text: 0, **options)
        stored.extend(messages)
        assert let_go(stored) == 0 and store.count_records("session") > 1
    plain = History.from_messages(messages, token_counter=costly, **options)
    for _ in range(2):
        with recede.store.TurnStore(path) as store:
            stored = History(store=store, token_counter=costly, **options)
            assert stored.view() == plain.view() != messages
            assert stored.stats()[:7] == plain.stats()[:7]


@pytest.mark.parametrize("others", [{"keep": 9, "mask_chunk": 1}, {"mask_chunk": 4}, {"max_input_chars": 900}])
def test_other_options_plan_everything_anew(path: Path, others: dict[str, Any]) -> None:
    messages = turns(90)
    for start, options in enumerate((SLIDING, others, others, SLIDING)):
        with recede.store.TurnStore(path) as store:
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
            known = snapshot(store.record("session", 1)[-1])
            assert numbers(known[2])[1] == numbers(known[3])[0], "observations, and ids in the index"
            assert store.verify().is_sound


def test_a_reader_plans_with_options_of_its_own(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        history = History(store=store, **SLIDING)
        history.extend(turns(80))
        assert let_go(history) > 50
    before = path.read_bytes()
    with recede.store.TurnStore(path, read_only=True) as store:
        history = History(store=store, keep=7, mask_chunk=1)
        assert history.view() == History.from_messages(turns(80), keep=7, mask_chunk=1).view()
        with pytest.raises(recede.StoreError):
            history.append(user("no"))
    assert path.read_bytes() == before


def test_the_store_of_a_manager_is_refused(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        manager = recede.designs.ObservationMaskingContextManager(store=store)
        manager.add_turn("r", "a", "o")
        with pytest.raises(ValueError, match=r"session\.store holds the turns of a manager: give the history a store"):
            History(store=store)
    with recede.store.TurnStore(path.with_name("turns.store")) as store:
        store.append("r", "a", "o")
        with pytest.raises(ValueError, match="holds the turns of a manager"):
            History(store=store)
    with recede.store.TurnStore(path.with_name("history.store")) as store:
        History(store=store).extend(turns(40))
        assert store.count_records("session") > 1
        with pytest.raises(ValueError, match="holds the"):
            recede.designs.ObservationMaskingContextManager(store=store)


def test_what_cannot_be_true_is_found_out(path: Path) -> None:
    """Whoever can write to a store can say anything there of how much has been let go."""
    with recede.store.TurnStore(path) as store:
        history = History(store=store, **SLIDING)
        history.extend(turns(80))
        assert let_go(history) > 50
        (known,) = store.record("session", 1)
    whole, plain = path.read_bytes(), History.from_messages(turns(90), **SLIDING)
    fields = snapshot(known)
    places = [known.index(fields[tag], 10) + at for tag in (2, 3, 4, 5, 6) for at in range(0, len(fields[tag]), 8)]
    assert len(places) > 20
    for place in places:
        for number in (0, 1, 77, 161, 1 << 31, (1 << 62) + 3):
            path.write_bytes(whole)
            with recede.store.TurnStore(path) as store:
                told = known[:place] + number.to_bytes(8, "little") + known[place + 8 :]
                store.replace_record("session", 1, [told])
                if place == places[0]:
                    store.replace_record("session", 2, [b"x" * 20 * (number % 99), b"y" * 31, b"\xff" * 128])
                history = History(store=store, **SLIDING)
                history.extend(turns(90)[len(history) :])
                assert history.messages == plain.messages
                history.view()
                assert max(history.stats()[:7]) < 1 << 48
                with contextlib.suppress(recede.StoreError):  # there are not so many
                    list(history.stats().boundary_moves)
                for one in range(82):
                    with contextlib.suppress(LookupError):
                        history.recall(one), history.recall(str(one))


def test_places_that_cannot_be_true_are_no_observations(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        History(store=store, **SLIDING).extend(turns(80))
        store.replace_record("session", 2, [b"", b"", b"\xff" * 128])
        history = History(store=store, **SLIDING)
        for number in range(1, 17):
            with pytest.raises(LookupError):
                history.recall(number)
        assert history.recall(17) == "x" * 100
        for wrong in (2**63, 2**64, 10**30, 10**5_000):
            with pytest.raises(LookupError, match="there is no observation"):
                history.recall(wrong)


BUDGET: dict[str, Any] = {
    "max_input_chars": 2_000,
    "preserve_recent_raw_turns": 2,
    "fill": None,
    "provider": priced(write=1e9),
}


def summarized(store: recede.store.TurnStore) -> History:
    history = History(store=store, **BUDGET)
    for message in [user("Go."), *turns(40, 200)]:
        history.append(message)
        history.view()
    assert store.count_records("summary") > 1
    return history


def test_a_history_without_a_budget_takes_up_no_summary(path: Path) -> None:
    """It lets go of messages by their numbers in the store, which are not those of what a summary left."""
    with recede.store.TurnStore(path) as store:
        summarized(store)
    more = [user("Go."), *turns(40, 200), *turns(90)]
    plain = History.from_messages(more, **SLIDING)
    with recede.store.TurnStore(path) as store:
        history = History(store=store, **SLIDING)
        history.extend(more[len(history) :])
        assert let_go(history) > 100
        assert history.view() == plain.view()
        history.save(path.with_name("session.json"))
    with recede.store.TurnStore(path) as store:
        assert History(store=store, **SLIDING).view() == plain.view()
    assert History.load(path.with_name("session.json")).view() == plain.view()


def of_summary(**change: Any) -> Any:
    """What a summary left, which is something else."""
    tags = {"masked": 6, "past": 7, "numbers": 8, "messages": 9, "sources": 10}

    def changed(known: bytes) -> bytes:
        fields = snapshot(known)
        for name, new in change.items():
            tag = tags[name]
            new = new(fields[tag]) if callable(new) else new
            fields[tag] = new if isinstance(new, bytes) else struct.pack(f"<{len(new)}Q", *new)
        return snapshot_of(fields)

    return changed


def listed(*messages: bytes) -> bytes:
    return b"".join(len(message).to_bytes(8, "little") + message for message in messages)


SUMMARIES: dict[str, Any] = {
    "no messages": of_summary(messages=b""),
    "messages that are none": of_summary(messages=listed(b"null")),
    "a message that is cut": of_summary(messages=listed(b'{"role": "user", "content": "x')),
    "messages of another session": of_summary(messages=listed(b'{"role": "user", "content": "x"}')),
    "too few numbers": of_summary(numbers=b""),
    "too few sources": of_summary(sources=b""),
    "a source that never was": of_summary(sources=lambda field: field[:-8] + (1 << 30).to_bytes(8, "little")),
    "too many numbers": of_summary(numbers=lambda field: (1).to_bytes(8, "little") + field),
    "number 0": of_summary(numbers=lambda field: bytes(8) + field[8:]),
    "numbers that never were": of_summary(numbers=lambda field: [1 << 20 | one for one in range(len(field) // 8)]),
}
UNREADABLE: dict[str, Any] = {
    "a number that comes twice": of_summary(numbers=lambda field: field * 2),
    "numbers of over 32 bits": of_summary(numbers=[1 << 32]),
    "numbers of over 48 bits": of_summary(numbers=[1 << 48]),
    "half a number": of_summary(numbers=b"1234"),
    "a list that is cut": of_summary(messages=lambda field: field[:-3]),
    "a past that never was": of_summary(past=[1 << 40]),
    "three numbers": of_summary(past=[1, 2, 3]),
    "a past of over 48 bits": of_summary(past=[1 << 48]),
    "masked observations out of order": of_summary(masked=[2, 1]),
    "a newer version": lambda known: known[:8] + b"\x02" + known[9:],
    "a vital field of a newer version": lambda known: known + struct.pack("<HHQ", 99, 1, 0),
    "a cut": lambda known: known[:-3],
}


@pytest.mark.parametrize("change", SUMMARIES.values(), ids=list(SUMMARIES))
def test_a_summary_that_is_not_of_its_messages_is_refused(path: Path, change: Any) -> None:
    with recede.store.TurnStore(path) as store:
        history = summarized(store)
        last = store.count_records("summary")
        known, message = store.record("summary", last)
        assert numbers(snapshot(known)[8])
        store.replace_record("summary", last, [change(known), message])
        with pytest.raises(recede.StoreError, match="its last summary does not match") as caught:
            History(store=store, **BUDGET)
        assert (caught.value.kind, caught.value.path) == ("damaged", str(path))
        saved = path.with_name("saved")
        history.save(saved)
    with pytest.raises(recede.StoreError, match="its last summary does not match") as caught:
        History.load(saved)
    assert caught.value.path == str(saved)


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=list(UNREADABLE))
def test_a_summary_that_cannot_be_read_is_passed_over(path: Path, change: Any) -> None:
    with recede.store.TurnStore(path) as store:
        summarized(store)
        last = store.count_records("summary")
        known, message = store.record("summary", last)
        store.replace_record("summary", last, [change(known), message])
        (past, _) = numbers(snapshot(store.record("summary", last - 1)[0])[7])
        assert_resumed_from(past, History(store=store, **BUDGET), path)


def test_a_summary_that_is_added_by_hand_is_passed_over_after_each_restart(path: Path) -> None:
    """It was the last one, so none was found; what was saved then did not have it, and the one before was."""
    with recede.store.TurnStore(path) as store:
        summarized(store).save(path.with_name("saved"))
        last = store.count_records("summary")
        (past, _) = numbers(snapshot(store.record("summary", last)[0])[7])
    with recede.store.TurnStore(path.with_name("saved")) as saved:
        saved.append_record("summary", saved.record("session", 1))
    assert_resumed_from(past, History.load(path.with_name("saved")), path)


def assert_resumed_from(past: int, history: History, path: Path) -> None:
    """It goes on after the summary of so many messages, also when it is saved and loaded."""
    plain = History(**BUDGET)
    for number, message in enumerate([user("Go."), *turns(40, 200)], 1):
        plain.append(message)
        if number <= past:
            plain.view()
    assert plain.stats().view_messages < len(plain), "it is summarized"
    history.save(path.with_name("again"))
    assert History.load(path.with_name("again")).view() == history.view() == plain.view()
    for one in (history, plain):
        one.rewind(past + 1)
    assert history.view() == plain.view()


@pytest.mark.parametrize("change", list(UNREADABLE.values())[-3:], ids=list(UNREADABLE)[-3:])
def test_a_snapshot_that_cannot_be_read_is_not_resumed(path: Path, change: Any) -> None:
    with recede.store.TurnStore(path) as store:
        view = summarized(store).view()
        (known,) = store.record("session", 1)
        store.replace_record("session", 1, [change(known)])
        assert History(store=store, **BUDGET).view() == view, "its summary stands"


OPTIONS: dict[str, Any] = {
    "no JSON": b"{",
    "no object": b"[]",
    "nothing in it": b"{}",
    "bytes that are not UTF-8": b"\xff",
    "nested deep": b"[" * 9_000,
    "a format that is true": b'{"recede_history": true, "options": {}}',
    "a format that is newer": b'{"recede_history": 2, "options": {}}',
    "no options": b'{"recede_history": 1}',
    "options that are no object": b'{"recede_history": 1, "options": []}',
    "an option that there is not": b'{"recede_history": 1, "options": {"kep": 3}}',
    "an option of another type": b'{"recede_history": 1, "options": {"keep": "3"}}',
    "an option that is out of range": b'{"recede_history": 1, "options": {"keep": -1}}',
    "an option that is no number": b'{"recede_history": 1, "options": {"keep": NaN}}',
    "an option that comes twice": b'{"recede_history": 1, "options": {"keep": 3, "keep": 4}}',
    "a number that is too long": b'{"recede_history": 1, "options": {"keep": %s}}' % (b"9" * 5_000),
    "a price that no float holds": b'{"recede_history": 1, "options": {"provider": ["", "none", %s, 1, 0, 0, 0, 2, 4]}}'
    % (b"9" * 400),
    "options that contradict": b'{"recede_history": 1, "options": {"calibrate": true}}',
    "a store among the options": b'{"recede_history": 1, "options": {"store": {}}}',
    "a counter among the options": b'{"recede_history": 1, "options": {"token_counter": null}}',
    "the object itself": b'{"recede_history": 1, "options": {"self": 1}}',
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_a_file_whose_options_cannot_be_is_refused(path: Path, options: bytes) -> None:
    recede.History.from_messages(turns(3)).save(path)
    with recede.store.TurnStore(path) as store:
        (known,) = store.record("session", 1)
        store.replace_record("session", 1, [snapshot_of({**snapshot(known), 1: options})])
    with pytest.raises(recede.TranscriptError) as caught:
        recede.History.load(path)
    assert caught.value.source == str(path) and caught.value.kind in ("session", "format")


def test_a_file_whose_messages_are_none_is_refused(path: Path) -> None:
    for message in (b"", b"5", b'{"role": "user", "content": 5}', b"[" * 3_000):
        for place in (1, 60):
            history = History(**BUDGET)
            for one in [user("Go."), *turns(40, 200)]:
                history.append(one)
                history.view()
            history.save(path)
            with recede.store.TurnStore(path) as store:
                store.replace_record("message", place, [message])
            with pytest.raises(recede.TranscriptError) as caught:
                History.load(path)
            assert caught.value.source == str(path) and caught.value.offset is None


def test_functions_that_are_none_are_not_the_fault_of_a_file(path: Path) -> None:
    History(**BUDGET).save(path)
    wrong: Any = 5
    for name in ("summarizer", "token_counter"):
        with pytest.raises(TypeError, match=name):
            History.load(path, **{name: wrong})


_TOO_DEEP = pytest.param(
    "[" * 1_010 + "]" * 1_010, "depth", marks=pytest.mark.skipif(sys.version_info >= (3, 14), reason="json reads it")
)


@pytest.mark.parametrize(("value", "kind"), [("1" * 5_000, "number"), _TOO_DEEP])
def test_a_message_that_python_cannot_read_is_named(value: str, kind: str) -> None:
    """The strict reader takes any integer and 1,024 levels; Python's fewer digits, and before 3.14 fewer levels."""
    message = f'{{"role": "user", "content": "x", "more": {value}}}'
    history = History()
    history.append(user("before"))
    history.append_json(message)
    assert history.view_json().endswith(f",{message}]".encode())
    for _ in range(2):  # what could not be read is not taken as read
        with pytest.raises(recede.TranscriptError) as caught:
            history.view()
        assert caught.value.kind == kind
    with pytest.raises(recede.TranscriptError):
        History.from_json(f"[{message}]")


@pytest.mark.parametrize("message", [b"", b"5", b"{", b'{"role": "user", "content": 5}', b"\xff", b"[" * 3_000])
def test_a_message_that_is_none_is_refused(path: Path, message: bytes) -> None:
    """Where it was let go, when it is read."""
    with recede.store.TurnStore(path) as store:
        history = History(store=store, **SLIDING)
        history.extend(turns(80))
        assert let_go(history) > 50
        store.replace_record("message", 4, [message])
        store.replace_record("message", 6, [message, b'{"role": "user", "content": "whole"}'])
        again = History(store=store, **SLIDING)
        asks = [
            again.view,
            again.view_json,
            again.view_chunks,
            again.to_json,
            lambda: again[3],
            lambda: again.recall(2),
        ]
        for ask in [*asks, lambda: again.messages, lambda: again.save(path.with_name("saved"))]:
            with pytest.raises(recede.StoreError, match="a message in it is malformed"):
                ask()
        assert again[5]["content"] == "whole" and again.stats().messages == 160
        again.append(user("on"))
        assert again[160] == user("on")
        for options in ({"keep": 4}, {"max_input_chars": 10_000}):
            with pytest.raises(recede.StoreError) as caught:
                History(store=store, **options)
            assert caught.value.kind == "damaged" and caught.value.path == str(path)


def test_a_message_that_was_not_let_go_and_is_none_is_refused(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        history = History(store=store, **SLIDING)
        history.extend(turns(80))
        assert 50 < let_go(history) < 158
        store.replace_record("message", 159, [b"5"])
        with pytest.raises(recede.StoreError, match="what it has as messages") as caught:
            History(store=store, **SLIDING)
        assert (caught.value.kind, caught.value.path) == ("damaged", str(path))


def test_a_message_that_python_cannot_read_is_named_in_a_store(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        store.append_record("message", [b'{"role": "user", "content": "x", "n": %s}' % (b"1" * 5_000)])
        history = History(store=store)
        with pytest.raises(recede.TranscriptError) as caught:
            history.view()
        assert caught.value.kind == "number"


def test_moves_that_are_counted_and_not_there_are_damage(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        history = History(store=store)
        history.extend(turns(400))
        moves = history.stats().boundary_moves
        assert let_go(history) > 50 and len(moves) > 1 and moves[0]
        ids, _, places = store.record("session", 2)
        store.replace_record("session", 2, [ids, b"", places])
        for ask in (lambda: moves[0], lambda: list(moves)):
            with pytest.raises(recede.StoreError, match="fewer moves of the boundary"):
                ask()


def test_moves_of_any_numbers_are_told(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        history = History(store=store)
        history.extend(turns(400))
        moves = history.stats().boundary_moves
        assert let_go(history) > 50
        ids, stored, places = store.record("session", 2)
        store.replace_record("session", 2, [ids, ((1 << 64) - 1).to_bytes(8, "little") + stored[8:], places])
        assert (moves[0].request, moves[0].masked_count) == ((1 << 64) - 1, int.from_bytes(stored[8:16], "little"))


def test_observations_that_are_counted_and_not_there_are_planned_anew(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        history = History(store=store, **SLIDING)
        history.extend(turns(80))
        assert let_go(history) > 50
        store.replace_record("message", 160, [b'{"role": "user", "content": "no result"}'])
        again = History(store=store, **SLIDING)
        assert let_go(again) == 0 or again.recall(79) == "x" * 100
        plain = History.from_messages([*turns(80)[:-1], user("no result")], **SLIDING)
        assert again.view() == plain.view()
        with pytest.raises(LookupError):
            again.recall(80)


def test_only_a_turn_store_is_a_store() -> None:
    for wrong in ({}, "session.store", object()):
        with pytest.raises(TypeError, match="store must be a TurnStore"):
            History(store=wrong)


def test_a_store_is_for_one_history_at_a_time(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        history, other = History(store=store), History(store=store)
        other.append(user("two"))
        with pytest.raises(
            RuntimeError, match=r"session\.store has messages that this history did not append: make the"
        ):
            history.append(user("one"))
        assert len(history) == 0 and len(History(store=store)) == 1


def test_what_was_let_go_is_equal_and_what_was_not_is_the_same(path: Path) -> None:
    messages = turns(40)
    with recede.store.TurnStore(path) as store:
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
    with recede.store.TurnStore(path) as store:
        history, plain = History(store=store, **SLIDING), History(**SLIDING)
        for number in range(300):
            for message in (user(f"{number} " * 4_000), call(str(number)), result(str(number), "x" * 500)):
                history.append(message)
                plain.append(message)
        assert not history._live.core.chunks(0)[-1], "readers do not keep them"
        for _ in range(2):
            same(history, plain)
            assert len(history.view_chunks()) > 20
            assert b"".join(history.view_chunks()) == plain.view_json()


@pytest.mark.parametrize("messages_a_view", [1, 10])
def test_each_move_is_told_once_also_where_it_is_evicted_at_once(path: Path, messages_a_view: int) -> None:
    told: list[Any] = []
    wanted: list[Any] = []
    with recede.store.TurnStore(path) as store:
        history, plain = History(store=store, on_move=told.append), History(on_move=wanted.append)
        for number, message in enumerate(turns(400, 300)):
            for one in (history, plain):
                one.extend([user("Go on."), message] if number % 10 == 0 else [message])
                if number % messages_a_view == 0:
                    one.view()
        assert told == wanted == list(history.stats().boundary_moves) and len(told) > 20
    with recede.store.TurnStore(path) as store:
        again: list[Any] = []
        history = History(store=store, on_move=again.append)
        history.view()
        assert again == [], "they were told before"
        for one in (history, plain):
            one.extend(turns(400, 300))
        assert again == wanted[len(told) :] != []


def test_moves_are_read_when_they_are_asked_for(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
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
from recede.session import _live
_live._EVICT_AFTER = (64, 1 << 30)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
failed, limit = 0, 40_000
with recede.store.TurnStore(sys.argv[1], sync_every=None) as store:
    stored, plain = recede.History(store=store, boundary=2), recede.History(boundary=2)
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
with recede.store.TurnStore(sys.argv[1]) as store:
    assert store.verify().is_sound
    stored = recede.History(store=store, boundary=2)
    assert stored.view_json() == plain.view_json() and stored.to_json() == plain.to_json()
    assert all(stored.recall(str(number)) == plain.recall(number + 1) for number in range(2_000))
print(failed, stored._live.core.stats().evicted_messages)
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
    with recede.store.TurnStore(path) as store, ThreadPoolExecutor(1) as pool:
        history = History(keep=3, store=store)
        for message in messages[:100]:
            history.append(message)
        assert let_go(history) > 0

        def append_others() -> None:
            for message in messages[100:]:
                history.append(message)
                history.view_json()

        work = pool.submit(append_others)
        rounds = 0
        while not work.done() or rounds < 100:
            length = len(history)
            assert bool(history) and repr(history).startswith("<History: ")
            assert next(iter(history)) == messages[0]
            assert list(itertools.islice(history, 3)) == messages[:3]
            assert history[length - 1] == messages[length - 1]
            assert history.recall(1) == "x" * 200
            assert len(history.stats().boundary_moves) >= 0
            assert len(store) == 0 and repr(store).startswith("<TurnStore: ") and store.stats().messages >= length
            rounds += 1
        work.result()
        assert list(history) == messages
