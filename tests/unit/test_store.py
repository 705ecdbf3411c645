"""`TurnStore`: what it stores, what it refuses, and what it says of damage, locks and full disks."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recede
from fuzz_readers import sealed, sealed_log
from store_reader import Reader


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.store"


@pytest.fixture
def store(path: Path) -> Iterator[recede.store.TurnStore]:
    store = recede.store.TurnStore(path)
    yield store
    store.close(sync=False)


def in_child(code: str, *arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


# Turns


def test_turns_come_back_as_they_were(store: recede.store.TurnStore) -> None:
    texts = ["", "plain", "line\nline\r\n\0", "é中😀", "\ud800\udc00 \ud800", "x" * 100_000]
    for number, text in enumerate(texts, 1):
        assert store.append(text, text[::-1], text * 2, timestamp=number / 4) == number
    assert len(store) == len(texts)
    for number, text in enumerate(texts, 1):
        assert store.get(number) == (number, text, text[::-1], text * 2, number / 4)
    assert [turn.turn_id for turn in store] == [1, 2, 3, 4, 5, 6]
    assert [turn.turn_id for turn in store.turns(3, 5)] == [3, 4]
    assert [turn.turn_id for turn in store.turns(-2, 99)] == [1, 2, 3, 4, 5, 6]


def test_a_store_is_true_once_it_holds_something(store: recede.store.TurnStore) -> None:
    assert not store
    history = recede.History(store=store)
    history.append({"role": "user", "content": "Go."})
    assert store and len(store) == 0


@pytest.mark.parametrize("looped", ["a.store", "b.store-log"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_link_that_leads_to_itself_is_an_error_of_the_system(tmp_path: Path, looped: str, read_only: bool) -> None:
    (tmp_path / looped).symlink_to(looped)
    path = tmp_path / looped.removesuffix("-log")
    if not path.is_symlink() and read_only:
        recede.store.TurnStore(tmp_path / "other.store").close()
        (tmp_path / "other.store").rename(path)
    with pytest.raises(recede.StoreError) as caught:
        recede.store.TurnStore(path, read_only=read_only)
    assert (caught.value.kind, caught.value.path) == ("io", str(tmp_path / looped))


def test_masked_turns_show_no_observation_and_can_be_recalled(store: recede.store.TurnStore) -> None:
    for number in range(10):
        store.append("r", "a", f"observation {number}")
    assert store.mask_before(8) == 7
    assert store.mask_before(3) == 0 and store.mask_before(-5) == 0
    assert [turn.masked for turn in store] == [True] * 7 + [False] * 3
    assert store.get(7).observation is None
    assert [store.recall(number) for number in (7, 8)] == ["observation 6", "observation 7"]
    assert store.mask_before(99) == 3 and store.masked_before == 11


def test_iteration_takes_many_turns_in_pieces(store: recede.store.TurnStore) -> None:
    for number in range(1_000):
        store.append("r", str(number), "o")
    assert [int(turn.action) for turn in store] == list(range(1_000))


@pytest.mark.parametrize("turn", [0, -1, 3, 2**63])
def test_a_turn_that_is_not_there_is_a_lookup_error(store: recede.store.TurnStore, turn: int) -> None:
    store.append("r", "a", "o")
    store.append("r", "a", "o")
    for read in (store.get, store.recall):
        with pytest.raises(LookupError, match=f"no turn {turn}"):
            read(turn)


def hex_of(number: int) -> str:
    return f"{number:#x}"[:12]  # Python writes no 5,000 decimal digits


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, 10**30, 10**5_000, -(2**64), -(10**5_000)], ids=hex_of)
def test_a_number_of_more_bits_than_ours_is_that_of_nothing(store: recede.store.TurnStore, number: int) -> None:
    for _ in range(3):
        store.append("r", "a", "o")
    for read in (store.get, store.recall, lambda number: store.record("turn", number)):
        with pytest.raises(LookupError, match="there is no turn"):
            read(number)
    with pytest.raises(LookupError, match="there is no turn"):
        store.replace_record("turn", number, [b"x"])
    all_of_it = [1, 2, 3]
    assert [turn.turn_id for turn in store.turns(number)] == ([] if number > 0 else all_of_it)
    assert [turn.turn_id for turn in store.turns(number, 2 * number)] == []
    assert [turn.turn_id for turn in store.turns(1, number)] == (all_of_it if number > 0 else [])
    assert len(list(store.records("turn", number))) == (0 if number > 0 else 3)
    assert store.mask_before(number) == (3 if number > 0 else 0)


def test_what_is_no_text_is_refused(store: recede.store.TurnStore) -> None:
    with pytest.raises(TypeError):
        store.append("r", "a", b"bytes")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        store.get("1")  # type: ignore[arg-type]
    assert len(store) == 0


def test_the_time_is_noted(store: recede.store.TurnStore) -> None:
    store.append("r", "a", "o")
    timestamp = store.get(1).timestamp
    assert timestamp is not None and abs(timestamp - Path(store.path).stat().st_mtime) < 60


# Records of other kinds


def test_records_are_bytes_and_can_be_replaced(store: recede.store.TurnStore) -> None:
    assert store.append_record("message", [b"{}"]) == 1
    assert store.append_record("message", [b"", b"\0" * 9_000, b"x"]) == 2
    assert store.append_record("summary", [b"s"]) == 1
    store.replace_record("message", 1, [b"new", b"fields"])
    assert list(store.records("message")) == [(b"new", b"fields"), (b"", b"\0" * 9_000, b"x")]
    assert list(store.records("message", 2)) == [(b"", b"\0" * 9_000, b"x")]
    assert store.count_records("summary") == 1 and store.count_records("session") == 0
    with pytest.raises(LookupError, match="no session 1"):
        store.replace_record("session", 1, [b""])
    with pytest.raises(LookupError):
        store.replace_record("message", 0, [b""])
    with pytest.raises(ValueError, match="at least one field"):
        store.append_record("message", [])
    with pytest.raises(KeyError):
        store.append_record("note", [b""])  # type: ignore[arg-type]


# Syncing, closing


def stored(path: Path) -> int:
    """The turns that another process reads."""
    with recede.store.TurnStore(path, read_only=True) as reader:
        return len(reader)


WRITERS = {
    "manager": "add = recede.designs.ObservationMaskingContextManager(store=store).add_turn",
    "hybrid": "add = recede.designs.HybridContextManager(recede.summarizers.builtin(), store=store).add_turn",
    "history": "add = lambda *texts: history.append({'role': 'user', 'content': texts[2]})",
    "store": "add = store.append",
}


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
@pytest.mark.parametrize("writer", WRITERS)
def test_the_end_of_the_process_loses_nothing(path: Path, writer: str, end: str) -> None:
    code = (
        "import os, signal, sys, recede\n"
        "store = recede.store.TurnStore(sys.argv[1])\n"
        f"history = {'recede.History(store=store)' if writer == 'history' else None}\n"
        f"{WRITERS[writer]}\n"
        "for number in range(300): add('r', 'a', f'observation {number}')\n"
        f"{end}\n"
    )
    assert in_child(code, path).stderr == ""
    with recede.store.TurnStore(path) as store:
        kind: Any = "message" if writer == "history" else "turn"
        last = [fields[-1] for fields in store.records(kind)]
        assert len(last) == 300 and all(f"observation {number}".encode() in text for number, text in enumerate(last))
        assert store.verify().is_sound


def test_readers_see_what_is_not_synced(path: Path) -> None:
    store = recede.store.TurnStore(path, sync_every=3)
    for turn in range(1, 6):
        store.append("r", "a", "o")
        assert stored(path) == turn
    store.close()
    assert stored(path) == 5


def test_threads_write_one_after_the_other(path: Path) -> None:
    store = recede.store.TurnStore(path, sync_every=5)
    before = store.stats().commits
    threads = [
        threading.Thread(target=lambda: [store.append("r", "a", "o") for _ in range(50)], daemon=True) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.stats().commits - before == 200 and stored(path) == 200
    store.close()


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (True, TypeError), (2.0, TypeError)])
def test_sync_every_is_checked(path: Path, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="sync_every"):
        recede.store.TurnStore(path, sync_every=value)
    assert not path.exists()


def test_a_closed_store_is_one_file_and_says_that_it_is_closed(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        store.append("r", "a", "o")
        assert {file.name for file in path.parent.iterdir()} == {"session.store", "session.store-log"}
        assert repr(store) == f"<TurnStore: 1 turns, {path}>"
    assert [file.name for file in path.parent.iterdir()] == ["session.store"]
    store.close()
    assert repr(store) == f"<TurnStore: closed, {path}>" and not store.is_usable
    for use in (lambda: len(store), lambda: store.append("r", "a", "o"), store.sync, lambda: store.get(1)):
        with pytest.raises(recede.StoreError) as caught:
            use()
        assert caught.value.kind == "closed"


def test_an_error_in_the_block_keeps_the_turns(path: Path) -> None:
    with pytest.raises(LookupError), recede.store.TurnStore(path) as store:
        store.get(store.append("r", "a", "o") + 1)
    assert stored(path) == 1


def test_a_store_is_not_copied_or_pickled(store: recede.store.TurnStore) -> None:
    with pytest.raises(TypeError, match="open file"):
        pickle.dumps(store)


# Who may open it


def test_a_second_writer_is_refused(store: recede.store.TurnStore, path: Path) -> None:
    with pytest.raises(recede.StoreError) as caught:
        recede.store.TurnStore(path)
    assert caught.value.kind == "locked"
    assert "read_only=True" in str(caught.value)
    link = path.with_name("link")
    link.symlink_to(path)
    with pytest.raises(recede.StoreError) as caught:
        recede.store.TurnStore(link)
    assert caught.value.kind == "locked"
    child = in_child("import sys, recede; recede.store.TurnStore(sys.argv[1])", path)
    assert "StoreError" in child.stderr and "in use" in child.stderr


def test_a_reader_neither_writes_nor_makes_a_store(path: Path) -> None:
    with pytest.raises(recede.StoreError) as caught:
        recede.store.TurnStore(path, read_only=True)
    assert caught.value.kind == "missing" and not path.exists()
    recede.store.TurnStore(path).close()
    before = path.read_bytes()
    path.chmod(0o400)
    with recede.store.TurnStore(path, read_only=True) as reader:
        for use in (lambda: reader.append("r", "a", "o"), lambda: reader.mask_before(5), reader.sync, reader.compact):
            with pytest.raises(recede.StoreError) as caught:
                use()
            assert caught.value.kind == "read_only"
    assert path.read_bytes() == before


def test_a_reader_keeps_what_it_saw(store: recede.store.TurnStore, path: Path) -> None:
    store.append("r", "a", "one", sync=True)
    with recede.store.TurnStore(path, read_only=True) as reader:
        for _ in range(300):
            store.append("r", "a", "x" * 3_000, sync=True)
        assert len(reader) == 1 and reader.recall(1) == "one" and reader.verify().is_sound
        with pytest.raises(recede.StoreError) as caught:
            store.compact()
        assert caught.value.kind == "reading"
    store.compact()
    assert len(store) == 301 and store.verify().is_sound


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_is_refused(path: Path) -> None:
    code = (
        "import os, sys, recede\n"
        "store = recede.store.TurnStore(sys.argv[1])\n"
        "store.append('r', 'a', 'o', sync=True)\n"
        "if os.fork() == 0:\n"
        "    try: store.append('r', 'a', 'o')\n"
        "    except recede.StoreError as error: print(error.kind, flush=True)\n"
        "    store.close(); os._exit(0)\n"
        "os.wait(); store.append('r', 'a', 'o'); store.close()\n"
    )
    child = in_child(code, path)
    assert (child.stdout, child.stderr) == ("forked\n", "")
    assert stored(path) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forks_draw_different_numbers(path: Path) -> None:
    """What was left in a log by one process must not pass for what another has written."""
    code = (
        "import os, sys, recede\n"
        "recede.store.TurnStore(sys.argv[1]).close()\n"
        "for name in ('one', 'other'):\n"
        "    if os.fork() == 0:\n"
        "        path = sys.argv[1] + name\n"
        "        store = recede.store.TurnStore(path)\n"
        "        store.append('r', 'a', 'o', sync=True)\n"
        "        print(*(open(name, 'rb').read()[40:48].hex() for name in (path, path + '-log')), flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    drawn = in_child(code, path).stdout.split()
    assert len(drawn) == len(set(drawn)) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_holds_no_lock_that_was_given_up(path: Path) -> None:
    code = (
        "import os, sys, time, recede\n"
        "writer = recede.store.TurnStore(sys.argv[1])\n"
        "reader = recede.store.TurnStore(sys.argv[1], read_only=True)\n"
        "child = os.fork()\n"
        "if child == 0: time.sleep(60)\n"
        "reader.close()\n"
        "writer.append('r', 'a', 'o'); writer.compact(); writer.close()\n"
        "writer = recede.store.TurnStore(sys.argv[1])\n"
        "writer.close(sync=False)\n"
        "recede.store.TurnStore(sys.argv[1]).close()\n"
        "os.kill(child, 9)\n"
    )
    assert in_child(code, path).stderr == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_pipes_are_no_stores(path: Path) -> None:
    os.mkfifo(path)
    for read_only in (True, False):
        with pytest.raises(recede.StoreError, match="not a regular file") as caught:
            recede.store.TurnStore(path, read_only=read_only)
        assert caught.value.kind == "io"


def test_a_file_that_has_the_name_of_the_log_is_left_alone(path: Path) -> None:
    log = path.with_name(path.name + "-log")
    log.write_text("my own notes")
    log.chmod(0o644)
    with pytest.raises(recede.StoreError, match=r"session\.store-log: ") as caught:
        recede.store.TurnStore(path)
    assert (caught.value.kind, caught.value.path) == ("foreign", str(log))
    assert log.read_text() == "my own notes" and stat.S_IMODE(log.stat().st_mode) == 0o644


def test_threads_take_turns(store: recede.store.TurnStore) -> None:
    def work(name: str) -> None:
        for number in range(100):
            turn = store.append(name, str(number), name * number)
            assert store.get(turn)[1:4] == (name, str(number), name * number)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store) == 400 and store.verify().is_sound
    assert sorted((turn.reasoning, int(turn.action)) for turn in store) == [
        (name, number) for name in "abcd" for number in range(100)
    ]


# Who may read it


needs_modes = pytest.mark.skipif(not hasattr(os, "fchown"), reason="no modes on this system")
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files to others"
)


def rights(path: Path) -> tuple[int, int, int]:
    """Mode, owner and group."""
    facts = path.stat()
    return stat.S_IMODE(facts.st_mode), facts.st_uid, facts.st_gid


@needs_modes
def test_a_new_store_and_its_log_are_their_owners_alone(path: Path) -> None:
    umask = os.umask(0)
    try:
        with recede.store.TurnStore(path) as store:
            store.append("r", "a", "o", sync=True)
            assert [rights(Path(name))[0] for name in store.files[:2]] == [0o600, 0o600]
            store.compact()
    finally:
        os.umask(umask)
    assert rights(path)[0] == 0o600


@needs_modes
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_the_log_and_a_compacted_store_have_the_mode_of_the_store(path: Path, mode: int) -> None:
    recede.store.TurnStore(path).close()
    path.chmod(mode)
    with recede.store.TurnStore(path) as store:
        store.append("r", "a", "o", sync=True)
        before = path.stat().st_ino
        store.compact()
        assert path.stat().st_ino != before
        assert [rights(Path(name))[0] for name in store.files[:2]] == [mode, mode]


@needs_root
def test_a_store_that_root_opens_stays_its_users(path: Path) -> None:
    recede.store.TurnStore(path).close()
    path.chmod(0o640)
    os.chown(path, 1234, 2345)
    with recede.store.TurnStore(path) as store:
        store.append("r", "a", "o", sync=True)
        store.compact()
        assert [rights(Path(name)) for name in store.files[:2]] == [(0o640, 1234, 2345)] * 2


@needs_root
@pytest.mark.parametrize(
    ("mode", "groups", "wanted"),
    [
        (0o660, [2345], (0o660, 1234, 2345)),  # of the group of the store: the log can be given to that
        (0o666, [], (0o666, 1234, 1234)),
        (0o646, [], (0o646, 1234, 1234)),
        (0o676, [], (0o666, 1234, 1234)),  # of another group, which then may do what all may, and no more
    ],
)
def test_what_another_user_writes_can_be_read_by_no_more(
    mode: int, groups: list[int], wanted: tuple[int, int, int]
) -> None:
    code = """
import os, sys, recede
def work(name):
    recede.History().save(name + ".json")
    with recede.store.TurnStore(name + ".store") as store:
        store.append("r", "a", "o", sync=True)
        files = [name + ".json", *store.files[:2]]
        store.compact()
        return [os.stat(file) for file in files]
work("imported")  # this user may not be able to read the library
os.setgroups([int(group) for group in sys.argv[1:]])
os.setegid(1234)
os.seteuid(1234)
for facts in work("shared"):
    print(facts.st_mode & 0o777, facts.st_uid, facts.st_gid)
"""
    with tempfile.TemporaryDirectory() as name:  # not in a folder that only root may enter
        folder = Path(name)
        folder.chmod(0o777)
        recede.store.TurnStore(folder / "shared.store").close()
        (folder / "shared.json").write_text("old")
        for file in folder.iterdir():
            os.chown(file, 0, 2345)
            file.chmod(mode)
        child = in_child(code, *groups, cwd=folder)
        assert not child.stderr
        assert child.stdout.splitlines() == [" ".join(map(str, wanted))] * 3


# Deleted or replaced under its writer


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    moved(path)
    path.write_bytes(path.with_name("elsewhere").read_bytes())


def replaced_by_a_pipe(path: Path) -> None:
    moved(path)
    os.mkfifo(path)


@pytest.mark.skipif(sys.platform == "win32", reason="open files keep their names there")
@pytest.mark.parametrize("lose", [moved, replaced, replaced_by_a_pipe])
@pytest.mark.parametrize("ending", ["", "-log"])
def test_a_file_that_is_gone_is_noticed_and_can_be_put_back(path: Path, ending: str, lose: Any) -> None:
    store = recede.store.TurnStore(path)
    store.append("r", "a", "one", sync=True)
    gone = path.with_name(path.name + ending)
    lose(gone)
    calls = {
        "sync": store.sync,  # though nothing was changed
        "append": lambda: store.append("r", "a", "not kept", sync=True),
        "compact": store.compact,
        "close": store.close,
    }
    for name, use in calls.items():
        with pytest.raises(recede.StoreError, match="was deleted or replaced while the store was open") as caught:
            use()
        assert (caught.value.kind, caught.value.path) == ("gone", str(gone)), name
        assert store.is_usable and len(store) == 1
    store.append("r", "a", "two")
    with pytest.raises(recede.StoreError, match="was deleted or replaced"):
        store.sync()
    # As an error promises: what was written meanwhile is kept once the file is back.
    gone.with_name("elsewhere").replace(gone)
    store.append("r", "a", "three", sync=True)
    store.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with recede.store.TurnStore(path, read_only=True) as reader:
        assert [turn.observation for turn in reader] == ["one", "two", "three"] and reader.verify().is_sound


def test_a_store_whose_folder_is_deleted_says_so_when_it_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    store = recede.store.TurnStore(folder / "session.store", sync_every=1)
    store.append("r", "a", "o")
    shutil.rmtree(folder)
    with pytest.raises(recede.StoreError) as caught:
        store.close()
    assert caught.value.kind == "gone"
    store.close(sync=False)


# Damage


def test_a_file_that_is_no_store_is_left_alone(path: Path) -> None:
    for content in (b"", b"notes", b"x" * 50_000):
        path.write_bytes(content)
        with pytest.raises(recede.StoreError, match=r"session\.store: not a turn store") as caught:
            recede.store.TurnStore(path)
        assert caught.value.kind == "foreign"
        assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == ["session.store"]
    with pytest.raises(recede.StoreError) as caught:
        recede.store.TurnStore(path.parent)
    assert caught.value.kind == "io"


def test_damage_names_the_page_and_spares_the_rest(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        for number in range(400):
            store.append("r" * 200, "a", f"{number} " * 900)
        pages = store.stats().pages
    data = bytearray(path.read_bytes())
    page = next(page for page in range(pages // 2, pages) if data[page * 4_096 + 4] == 5)
    data[page * 4_096 + 2_000] ^= 0x40
    path.write_bytes(data)
    with recede.store.TurnStore(path) as store:
        report = store.verify()
        assert not report.is_sound and 395 < report.turns < 400
        assert f"page {page}: its checksum is wrong" in map(str, report.faults)
        wrong = []
        for turn in range(1, 401):
            try:
                observation = store.get(turn).observation
            except recede.StoreError as error:
                wrong.append((error.kind, error.page, error.path))
            else:
                assert observation == f"{turn - 1} " * 900
        assert wrong == [("damaged", page, str(path))] * (400 - report.turns)
        assert store.append("r", "a", "o", sync=True) == 401


def test_a_shortened_file_can_be_read_as_far_as_it_goes(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        for number in range(200):
            store.append("r", "a", str(number) * 1_000)
    os.truncate(path, path.stat().st_size // 4_096 * 4_096 - 5 * 4_096)
    with pytest.raises(recede.StoreError, match="shortened") as caught:
        recede.store.TurnStore(path)
    assert caught.value.kind == "damaged" and caught.value.page == path.stat().st_size // 4_096
    with recede.store.TurnStore(path, read_only=True) as store:
        assert store.recall(1) == "0" * 1_000
        assert not store.verify().is_sound


def test_errors_can_be_pickled() -> None:
    error = recede.StoreError("damaged", path="a\nb", page=7, what="its checksum is wrong", errno=5, said="bad")
    again = pickle.loads(pickle.dumps(error))
    assert vars(again) == vars(error) and str(again) == str(error)
    assert str(error).startswith("a\\nb: the store is damaged (its checksum is wrong, page 7, bad): ")


# A disk that is full


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit of file size on this system")
def test_a_disk_without_room_loses_nothing(path: Path) -> None:
    """The system refuses to let files grow, and then does not."""
    code = """
import json, resource, signal, sys, recede
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = recede.store.TurnStore(sys.argv[1])
for number in range(5):
    store.append("r", "a", str(number) * 3_000, sync=True)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, most))
told = []
try:
    for number in range(5, 200):
        store.append("r", "a", str(number) * 1_000, sync=True)
except recede.StoreError as error:
    told = [error.kind, error.errno, len(store), store.is_usable]
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
store.append("r", "a", "room again", sync=True)
print(json.dumps([*told, len(store)]))
"""
    child = in_child(code, path)
    assert not child.stderr
    kind, errno, stored, is_usable, after = json.loads(child.stdout)
    assert (kind, errno, is_usable, after) == ("io", 27, True, stored + 1)
    with recede.store.TurnStore(path) as store:
        assert store.verify().is_sound and len(store) == after
        assert store.recall(after) == "room again" and store.recall(after - 1) == str(after - 2) * 1_000


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is of Linux")
def test_a_hostile_file_takes_no_memory(path: Path) -> None:
    """A page may say anything of how much there is; its checksum can be made right by whoever makes the file."""
    import struct
    import zlib

    with recede.store.TurnStore(path) as store:
        store.append("r" * 2_000, "a", "o" * 9_000)
    whole = path.read_bytes()
    for page in range(len(whole) // 4_096):
        for at in range(16, 160, 4):
            data = bytearray(whole[page * 4_096 : page * 4_096 + 4_096])
            if page == 0 and at < 40:
                continue
            struct.pack_into("<I", data, at, 0x7FFF_FFF0)
            data[:4] = struct.pack("<I", zlib.crc32(struct.pack("<I", page) + data[4:]))
            hostile = path.with_name(f"{page}-{at}")
            hostile.write_bytes(whole[: page * 4_096] + data + whole[page * 4_096 + 4_096 :])
    code = """
import pathlib, resource, sys, recede
store = recede.store.TurnStore(sys.argv[1] + "/session.store"); store.close()
mapped = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + (32 << 20),) * 2)
for file in sorted(pathlib.Path(sys.argv[1]).glob("*-*")):
    try:
        with recede.store.TurnStore(file, read_only=True) as store:
            store.verify()
            store.get(1)
            list(store)
    except (recede.StoreError, LookupError):
        pass
print("done")
"""
    child = in_child(code, path.parent)
    assert (child.stdout, child.stderr) == ("done\n", "")


def test_a_text_that_is_not_utf8_is_damage(store: recede.store.TurnStore) -> None:
    """Whoever writes records writes bytes, and turns are texts."""
    for place in range(4):
        fields = [b"r", b"a", b"12345678", b"o"]
        fields[place] = b"\xff" * 8
        store.append_record("turn", fields)
    for turn in (1, 2, 4):
        with pytest.raises(recede.StoreError, match="a text in it is not UTF-8") as caught:
            store.get(turn)
        assert caught.value.kind == "damaged" and caught.value.path == store.path
    with pytest.raises(recede.StoreError):
        list(store)
    with pytest.raises(recede.StoreError):
        store.recall(4)
    assert store.get(3).observation == store.recall(1) == "o"


def forged(path: Path, change: Any) -> None:
    """Changes each page of a closed store, and makes its checksum right again."""
    data = bytearray(path.read_bytes())
    for at in range(0, len(data), 4_096):
        page = data[at : at + 4_096]
        change(at // 4_096, page)
        data[at : at + 4_096] = page
    sealed(data)
    path.write_bytes(data)


def test_texts_that_are_longer_than_the_store_are_damage(path: Path) -> None:
    """A few pages can say of each record that it is the same long text, which no memory holds so many times."""
    with recede.store.TurnStore(path) as store:
        store.append("r", "a", "x" * 900_000)
        for number in range(2, 400):
            store.append("r", str(number), "y" * 300)
            store.append_record("message", [b"m" * 900_000 if number == 2 else b"m" * 300])
    reader = Reader(path)
    references = {1: reader.raw(1, 1)[-16:], 2: reader.raw(2, 1)[-16:]}

    def change(number: int, page: bytearray) -> None:
        at, count = 16, int.from_bytes(page[6:8], "little")
        for _ in range(count if page[4] in (3, 4) else 0):
            length = int.from_bytes(page[at : at + 2], "little")
            page[at + length - 16 : at + length] = references[page[at + 2]]
            at += length

    forged(path, change)
    for read_only in (False, True):
        with recede.store.TurnStore(path, read_only=read_only) as store:
            assert len(store.recall(2)) == 900_000
            with pytest.raises(recede.StoreError, match="its records are longer than its file"):
                list(store)
            with pytest.raises(recede.StoreError, match="its records are longer than its file"):
                list(store.records("message"))
            assert recede.store.StoreFault(None, "its texts are longer than its file") in store.verify().faults


def test_page_0_that_cannot_be_is_refused(path: Path) -> None:
    with recede.store.TurnStore(path) as store:
        store.append("r", "a", "o")
    whole = path.read_bytes()
    for at, number in ((112, 0), (112, 9), (48, (1 << 64) - 1), (96, 1 << 63)):
        path.write_bytes(whole)

        def change(page: int, data: bytearray, at: int = at, number: int = number) -> None:
            if page == 0:
                data[at : at + 8] = number.to_bytes(8, "little")

        forged(path, change)
        for read_only in (False, True):
            with pytest.raises(recede.StoreError) as caught:
                recede.store.TurnStore(path, read_only=read_only)
            assert (caught.value.kind, caught.value.page) == ("damaged", 0)


def test_a_log_with_pages_that_are_not_in_the_store_is_damaged(path: Path) -> None:
    """They would be written where they say, and make the file 16 TB long."""
    store = recede.store.TurnStore(path)
    store.append("r" * 900, "a", "o" * 5_000, sync=True)
    file, log = path.read_bytes(), bytearray(path.with_name("session.store-log").read_bytes())
    store.close()
    log[4_096:4_100] = (4_000_000).to_bytes(4, "little")
    sealed_log(log)
    path.write_bytes(file)
    path.with_name("session.store-log").write_bytes(log)
    for read_only in (False, True):
        with pytest.raises(recede.StoreError, match="pages past the last one") as caught:
            recede.store.TurnStore(path, read_only=read_only)
        assert caught.value.kind == "damaged" and caught.value.path.endswith("-log")
    assert path.read_bytes() == file
