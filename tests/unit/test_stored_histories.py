"""A `History` with a store: other options, foreign stores, what is damaged, and what an error leaves."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from published import History

import recede
from store_reader import event, event_of, header_of
from support import call, result, turns, user


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


def same(stored: History, plain: History) -> None:
    """Where views changed last, and how many were over the limit, is not stored."""
    assert stored.view_json() == plain.view_json()
    assert stored.view() == plain.view()
    both: dict[str, Any] = {"changed_message": None, "changed_byte": None, "over_limit": None}
    assert stored.stats()._replace(**both) == plain.stats()._replace(**both)


SLIDING: dict[str, Any] = {"keep": 3, "mask_chunk": 1}
LIMIT: dict[str, Any] = {
    "max_input_chars": 1_200,
    "preserve_recent_raw_turns": 2,
    "boundary": "sliding",
    "summarizer": lambda messages, previous: f"{previous}, and {len(messages)} more",
}


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
    asked, answers = [call("slow", name="slow"), *map(call, ids)], [result(one, "x" * 200) for one in ids]
    late = [result("slow", "late " * 90), *turns(5), result("slow", "again " * 90)]
    return [*turns(20), *asked, *answers * 5, *late, *turns(10), call("slow", name="other"), result("slow", "x" * 300)]


STORED: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "chunks that end among results of one message": ({"keep": 3, "mask_chunk": 4}, together(40)),
    "pairs that stay whole": ({"keep": 8, "mask_chunk": 1, "exclude_tools": ["read"]}, together(40)),
    "counted tokens": ({**SLIDING, "threshold_tokens": 100, "token_counter": len}, turns(60)),
    "late answers": (SLIDING, slowly_answered()),
    "late answers of a tool with a window": ({**SLIDING, "keep_by_tool": {"slow": 2}}, slowly_answered()),
    "requests that find the cache cold": ({"keep": 3, "cold": [122, 124, 126]}, turns(100, 300)),
    "summaries of a model": (LIMIT, [user("Go."), *turns(40, 200)]),
    "counted summaries": ({**LIMIT, "token_counter": len}, [user("Go."), *turns(40, 100)]),
}


@pytest.mark.parametrize(("options", "messages"), STORED.values(), ids=list(STORED))
def test_what_is_stored_shows_as_without_a_store(
    path: Path, options: dict[str, Any], messages: list[dict[str, Any]]
) -> None:
    plain = History(**options)
    for end in (len(messages) // 2, len(messages)):
        with recede.store.TurnStore(path) as store:
            stored = History(store=store, **options)
            for message in messages[len(stored) : end]:
                stored.append(message)
                plain.append(message)
                same(stored, plain)
    with recede.store.TurnStore(path) as store:
        stored = History(store=store, **options)
        same(stored, plain)
        assert stored.messages == plain.messages


def test_a_session_that_becomes_masked_as_it_is_read_again(path: Path) -> None:
    """With another counter the same session costs more."""
    options: dict[str, Any] = {**SLIDING, "threshold_tokens": 2_000}
    messages = [*turns(31), user("Go on."), user("Well?")]

    def costly(text: str) -> int:
        return 100 * len(text)

    with recede.store.TurnStore(path) as store:
        History(store=store, token_counter=lambda text: 0, **options).extend(messages)
    plain = History.from_messages(messages, token_counter=costly, **options)
    for _ in range(2):
        with recede.store.TurnStore(path) as store:
            stored = History(store=store, token_counter=costly, **options)
            assert stored.view() == plain.view() != messages
            assert stored.stats()[:7] == plain.stats()[:7]


def test_a_late_word_to_a_hidden_call_is_shown_after_a_restart_too(path: Path) -> None:
    history = recede.History(max_input_tokens=500)
    for message in [user("Go."), *turns(40, 200)]:
        history.append(message)
    assert "Conversation summary" in history.view()[0]["content"]
    history.append(result("0", "a late word"))
    after = history.view()
    assert after[-1] == result("0", "a late word"), "no request has shown it"
    history.save(path)
    assert recede.History.load(path).view() == after


def test_other_options_decide_everything_anew(path: Path) -> None:
    messages = [user("Go."), *turns(90, 200)]
    others: list[dict[str, Any]] = [{"keep": 9, "mask_chunk": 1}, {"exclude_tools": ["run"]}, {"max_input_chars": 900}]
    for start, options in enumerate((SLIDING, others[0], LIMIT, others[1], others[2], SLIDING)):
        with recede.store.TurnStore(path) as store:
            stored = History(store=store, **options)
            assert len(stored) == 30 * start
            stored.extend(messages[30 * start : 30 * start + 30])
            plain = History.from_messages(messages[: 30 * start + 30], **options)
            assert stored.view_json() == plain.view_json()
            assert stored.messages == plain.messages
            seen = range(1, 15 * start)
            assert [stored.recall(str(number - 1)) for number in seen] == [plain.recall(number) for number in seen]
            assert store.verify().is_sound


def test_a_reader_plans_with_options_of_its_own(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        History(store=store, **SLIDING).extend(turns(80))
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
        with pytest.raises(ValueError, match="holds the"):
            recede.designs.ObservationMaskingContextManager(store=store)


def summarized(store: recede.store.TurnStore) -> History:
    history = History(store=store, **LIMIT)
    for message in [user("Go."), *turns(40, 200)]:
        history.append(message)
        history.view()
    assert store.count_records("summary") > 1
    return history


DAMAGED: dict[str, Any] = {
    "no numbers": [b"", b"text"],
    "half a number": [event_of(2, 4)[:-3], b""],
    "a tag that there is not": [event_of(9, 4), b""],
    "too few numbers": [event_of(1, 4, 4), b"text"],
    "too many numbers": [event_of(2, 4, 4), b""],
    "numbers of over 48 bits": [event_of(2, 1 << 48), b""],
}


@pytest.mark.parametrize("fields", DAMAGED.values(), ids=list(DAMAGED))
def test_an_event_that_cannot_be_is_damage(path: Path, fields: list[bytes]) -> None:
    with recede.store.TurnStore(path) as store:
        history = summarized(store)
        store.append_record("summary", fields)
        with pytest.raises(recede.StoreError, match="an event in it is malformed") as caught:
            History(store=store, **LIMIT)
        assert (caught.value.kind, caught.value.path) == ("damaged", str(path))
        history.save(path.with_name("saved"))
    assert History.load(path.with_name("saved"), summarizer=LIMIT["summarizer"]).view() == history.view()
    with pytest.raises(recede.StoreError, match="an event in it is malformed"):
        History.load(path)


def test_whatever_events_say_no_message_is_lost(path: Path) -> None:
    """Whoever can write to a store can say anything there of what happened."""
    with recede.store.TurnStore(path) as store:
        summarized(store)
        number = store.count_records("summary")
        whole = store.record("summary", number)
        plain, refused = [user("Go."), *turns(40, 200)], list[str]()
        places = range(len(event(whole[0])))
        for place, wrong in itertools.product(places, (0, 1, 2, 3, 4, 77, 161, 1 << 31, (1 << 62) + 3)):
            told = list(event(whole[0]))
            told[place] = wrong
            text = b"\xff\0" if place == wrong else b"what was not said" * 90
            store.replace_record("summary", number, [event_of(*told), text])
            try:
                history = History(store=store, **LIMIT)
            except recede.StoreError as error:
                refused.append(error.kind)
                continue
            assert history.messages == plain
            assert len(json.dumps(history.view())) > 2
            assert max(history.stats()[:7]) < 1 << 48
            assert history.recall(40) == "x" * 200
    assert set(refused) == {"damaged"}


def test_events_of_messages_that_are_not_there_are_passed_over(path: Path) -> None:
    """A crash kept an event and lost the messages before it."""
    with recede.store.TurnStore(path) as store:
        History(store=store, **SLIDING).extend(turns(20))
        store.append_record("summary", [event_of(2, 41), b""])
        store.append_record("summary", [event_of(2, 38), b""])
        assert History(store=store, **SLIDING).cold_requests == (38,)


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
        store.replace_record("session", 1, [header_of(options)])
    with pytest.raises(recede.TranscriptError) as caught:
        recede.History.load(path)
    assert caught.value.source == str(path) and caught.value.kind in ("session", "format")


@pytest.mark.parametrize("version", [1, 3])
def test_a_session_of_another_version_is_refused_by_name(path: Path, version: int) -> None:
    recede.History.from_messages(turns(3)).save(path)
    with recede.store.TurnStore(path) as store:
        store.replace_record("session", 1, [header_of(b"{}", version)])
        with pytest.raises(recede.StoreError, match=r"another version of recede \(its session has another") as caught:
            recede.History(store=store)
        assert (caught.value.kind, caught.value.path) == ("version", str(path))
    with pytest.raises(recede.StoreError, match="another version of recede"):
        recede.History.load(path)


def test_a_file_whose_messages_are_none_is_refused(path: Path) -> None:
    for message in (b"", b"5", b'{"role": "user", "content": 5}', b"[" * 3_000):
        for place in (1, 60):
            History.from_messages([user("Go."), *turns(40, 200)], **LIMIT).save(path)
            with recede.store.TurnStore(path) as store:
                store.replace_record("message", place, [message])
            with pytest.raises(recede.TranscriptError) as caught:
                History.load(path)
            assert caught.value.source == str(path) and caught.value.offset is None


def test_functions_that_are_none_are_not_the_fault_of_a_file(path: Path) -> None:
    History(**LIMIT).save(path)
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
    with recede.store.TurnStore(path) as store:
        History(store=store, **SLIDING).extend(turns(80))
        store.replace_record("message", 4, [message])
        for options in (SLIDING, {"keep": 4}, {"max_input_chars": 10_000}):
            with pytest.raises(recede.StoreError, match="what it has as messages") as caught:
                History(store=store, **options)
            assert (caught.value.kind, caught.value.path) == ("damaged", str(path))


def test_a_message_that_python_cannot_read_is_named_in_a_store(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        store.append_record("message", [b'{"role": "user", "content": "x", "n": %s}' % (b"1" * 5_000)])
        history = History(store=store)
        with pytest.raises(recede.TranscriptError) as caught:
            history.view()
        assert caught.value.kind == "number"


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


def test_a_closed_store_leaves_what_was_read(path: Path) -> None:
    messages = turns(40)
    with recede.store.TurnStore(path) as store:
        history = History(store=store, **SLIDING)
        history.extend(messages)
        assert history.messages == messages and history[0] is messages[0]
        view = history.view()
    assert len(history) == 80
    assert history.recall(1) == "x" * 100
    assert history.to_json() == json.dumps(messages, separators=(",", ":")).encode()
    assert history.view() == view
    with pytest.raises(recede.StoreError, match="closed"):
        history.append(user("More."))
    assert history.messages == messages


@pytest.mark.parametrize("messages_a_view", [1, 10])
def test_each_move_is_told_once_also_after_a_restart(path: Path, messages_a_view: int) -> None:
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


# A disk that is full


FULL = """
import json, resource, signal, sys, recede
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
print(failed)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file size on this system")
def test_a_disk_without_room_loses_nothing(path: Path) -> None:
    """The system refuses to let files grow, again and again."""
    child = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True)
    assert not child.stderr, child.stderr
    assert int(child.stdout) > 10


def test_every_call_may_come_while_another_thread_is_at_the_store(path: Path) -> None:
    messages = [user("Go."), *turns(150, chars=200)]
    with recede.store.TurnStore(path) as store, ThreadPoolExecutor(1) as pool:
        history = History(keep=3, store=store)
        history.extend(messages[:100])

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
