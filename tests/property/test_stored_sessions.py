"""A `History` with a store gives the views of one without, and goes on after its process has ended."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_sessions import HISTORIES, masked_options, session_options

if sys.platform != "win32":
    import resource

from published import History

import recede
from recede._report import OverLimit
from support import chat_call, chat_result, recalled, user

MESSAGES = st.lists(HISTORIES, min_size=1, max_size=8).map(
    lambda parts: [message for part in parts for message in part]
)
STEPS = st.lists(
    st.sampled_from(["append"] * 6 + ["look", "look", "cold", "report", "restart", "crash"]), min_size=8, max_size=40
)


def all_recalled(history: History) -> list[str]:
    texts: list[str] = []
    try:
        while True:
            texts.append(history.recall(len(texts) + 1))
    except LookupError:
        return texts


def identities(value: Any) -> set[str]:
    """Every text in it that may be the id of a call."""
    if isinstance(value, dict):
        found = {text for name, text in value.items() if name.lower().endswith("id") and isinstance(text, str)}
        return found.union(*map(identities, value.values()))
    return set().union(*map(identities, value)) if isinstance(value, list) else set()


@given(
    messages=MESSAGES,
    options=session_options() | masked_options(),
    steps=STEPS,
    chunk=st.integers(1, 9),
)
def test_the_views_are_the_same_with_a_store(
    messages: list[dict[str, Any]], options: dict[str, Any], steps: list[str], chunk: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.store")
        store = recede.store.TurnStore(path)
        stored, plain = History(store=store, **options), History(**options)
        is_new = True
        for step in [*steps, "look", "restart", "look"]:
            if step == "append":
                for message in messages[len(plain) : len(plain) + chunk]:
                    plain.append(message)
                    stored.append(message)
            elif step == "cold":
                plain.cache_is_cold()
                stored.cache_is_cold()
                assert stored.cold_requests == plain.cold_requests
            elif step == "report":
                usage = {"input_tokens": 100 * len(plain) % 7_001, "output_tokens": 5}
                for one in (plain, stored):
                    one.view_json()
                    one.reported(usage)
            elif step == "look":
                assert stored.view_json() == plain.view_json()
                assert stored.view() == plain.view()
                assert b"".join(stored.view_chunks()) == plain.view_json()
                ours, theirs = stored.stats(), plain.stats()
                if not is_new:  # which view was shown before is not kept, nor what this object has counted
                    counted = {"summary_failures": 0, "over_limit": OverLimit()}
                    unknown = {"changed_message": None, "changed_byte": None, **counted}
                    ours, theirs = (one._replace(**unknown) for one in (ours, theirs))
                assert ours == theirs
            else:
                store.close() if step == "restart" else store.close(sync=False)
                store = recede.store.TurnStore(path)
                stored, is_new = History(store=store, **options), False
                plain._live.reports.forget()  # the last request that was reported of is not kept
                assert len(stored) == len(plain)
                assert stored.cold_requests == plain.cold_requests
        assert stored.to_json() == plain.to_json()
        assert stored.messages == plain.messages
        assert all_recalled(stored) == all_recalled(plain)
        for identity in identities(messages):
            assert recalled(stored, identity) == recalled(plain, identity)
        assert store.verify().is_sound
        store.close()


def session(count: int) -> list[dict[str, Any]]:
    messages = [user("Find the bug.")]
    for number in range(count):
        messages += [chat_call(f"c{number}", "run"), chat_result(f"c{number}", f"{number} " * 300)]
    return messages


def test_it_goes_on_behind_its_last_summary(tmp_path: Path) -> None:
    path = tmp_path / "session.store"
    asked: list[tuple[int, str | None]] = []

    def summarizer(messages: list[dict[str, Any]], previous: str | None) -> str:
        asked.append((len(messages), previous))
        return f"summary {len(asked)}"

    options: dict[str, Any] = {"max_input_chars": 4_000, "summarizer": summarizer}
    views = []
    for start in range(0, 241, 30):
        with recede.store.TurnStore(path) as store:
            history = History(store=store, **options)
            for message in session(120)[start : start + 30]:
                history.append(message)
                views.append(history.view_json())
    calls = asked.copy()
    asked.clear()
    plain = History(**options)
    wanted = []
    for message in session(120):
        plain.append(message)
        wanted.append(plain.view_json())
    assert views == wanted
    assert calls == asked and len(calls) > 1, "no summary is made twice"
    with recede.store.TurnStore(path, read_only=True) as store:
        assert store.count_records("message") == 241 and store.count_records("summary") == len(calls)


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process may grow."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.skipif(sys.platform == "win32", reason="the limit of a file is of POSIX")
def test_what_the_store_could_not_take_is_stored_with_the_next(tmp_path: Path) -> None:
    path = tmp_path / "session.store"
    with recede.store.TurnStore(path) as store:
        history = History(store=store)
        history.append(user("one"))
        with full_disk():
            for text in ("two", "three"):
                with pytest.raises(recede.StoreError):
                    history.append(user(text))
        with pytest.raises(recede.TranscriptError):
            history.append_json(b'{"role": 5')
        assert store.count_records("message") == 1
        history.append_json(b' {"role" : "user","content":"four"} ')
        assert len(history) == store.count_records("message") == 4
    with recede.store.TurnStore(path) as store:
        history = History(store=store)
        assert [message["content"] for message in history] == ["one", "two", "three", "four"]
        assert history.to_json() == b"[%s]" % b",".join(message for *_, message in store.records("message"))
        assert json.loads(history.to_json())[3] == user("four")


@pytest.mark.skipif(sys.platform == "win32", reason="the limit of a file is of POSIX")
def test_what_was_reported_while_the_disk_was_full_is_stored_with_the_next(tmp_path: Path) -> None:
    path = tmp_path / "session.store"
    with recede.store.TurnStore(path) as store:
        history = History(store=store)
        history.append(user("one"))
        with full_disk():
            with pytest.raises(recede.StoreError):
                history.append(user("two"))
            with pytest.raises(recede.StoreError):
                history.cache_is_cold()
        history.append(user("three"))
    with recede.store.TurnStore(path) as store:
        assert History(store=store).cold_requests == history.cold_requests != ()


def up_to_a_summary(options: dict[str, Any]) -> History:
    history = History(**options)
    for message in session(60):
        history.append(message)
        if "a summary" in str(history.view()):
            break
    return history


SUMMARIZED: dict[str, Any] = {"max_input_chars": 4_000, "summarizer": lambda messages, previous: "a summary"}


@pytest.mark.skipif(sys.platform == "win32", reason="the limit of a file is of POSIX")
def test_a_summary_of_messages_that_the_store_could_not_take_comes_after_them(tmp_path: Path) -> None:
    plain = up_to_a_summary(SUMMARIZED)
    with recede.store.TurnStore(tmp_path / "session.store") as store:
        history = History(store=store, **SUMMARIZED)
        for message in plain.messages[:-1]:
            history.append(message)
            history.view_json()
        with full_disk(), pytest.raises(recede.StoreError):
            history.append(plain.messages[-1])
        assert history.view_json() == plain.view_json()
        assert store.count_records("message") == len(plain) and store.count_records("summary") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the limit of a file is of POSIX")
def test_messages_that_the_store_could_not_take_outlive_a_rewind_behind_them(tmp_path: Path) -> None:
    plain = up_to_a_summary(SUMMARIZED)
    with recede.store.TurnStore(tmp_path / "session.store") as store:
        history = History(store=store, **SUMMARIZED)
        for message in plain.messages[:-2]:
            history.append(message)
            history.view_json()
        for message in plain.messages[-2:]:
            with full_disk(), pytest.raises(recede.StoreError):
                history.append(message)
        assert history.view_json() == plain.view_json()
        history.rewind(len(plain) - 1)
        assert history.messages == plain.messages[:-1]
        assert store.count_records("message") == len(plain) - 1
