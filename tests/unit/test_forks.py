"""A fork while another thread is in the middle of a change: nothing in the child waits for that thread."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recede
from recede.designs import Conversation, ObservationMaskingContextManager
from recede.masker import Facts, Masker
from recede.proxy import ColdRequests

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")

SECONDS = 30  # a child that takes longer waits for ever
SAID = "another thread was changing this object when the process forked"


class Gate:
    """A function that holds up the thread that calls it first, until it is opened."""

    def __init__(self) -> None:
        self.is_reached, self.is_open = threading.Event(), threading.Event()
        self._owner = os.getpid()

    def __call__(self, value: Any = None) -> int:
        if os.getpid() == self._owner:
            self.is_reached.set()
            self.is_open.wait(SECONDS)
        return 7


class Slow:
    """Messages that are texts, whose facts are slow."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def facts(self, message: str) -> Facts:
        self._gate()
        return Facts("user", len(message))

    def masked(self, message: str, texts: Any) -> str:
        return message


TASK = {"role": "user", "content": "Find the bug."}


def of_masker(gate: Gate) -> tuple[Callable[[], Any], Callable[[], Any]]:
    masker = Masker(Slow(gate))
    return lambda: masker.view(["Go."]), lambda: masker.view(["Go.", "On."]) == ["Go.", "On."]


def of_history(gate: Gate) -> tuple[Callable[[], Any], Callable[[], Any]]:
    history = recede.History(token_counter=gate, max_input_tokens=9_000)
    return lambda: history.append(TASK), lambda: refused(lambda: history.view()) and refused(lambda: len(history))


def of_manager(gate: Gate) -> tuple[Callable[[], Any], Callable[[], Any]]:
    manager = ObservationMaskingContextManager()
    return lambda: held(manager, gate), lambda: refused(manager.stats)


def of_conversation(gate: Gate) -> tuple[Callable[[], Any], Callable[[], Any]]:
    def create(**request: Any) -> Any:
        gate()
        message = {"role": "assistant", "content": "Yes."}
        return {"object": "chat.completion", "choices": [{"message": message, "finish_reason": "stop"}]}

    conversation = Conversation(create, model="m", client="openai")
    return lambda: conversation.turn("Go."), lambda: conversation.turn("Go on.") is not None


def of_ledger(gate: Gate, path: Path | None = None) -> tuple[Callable[[], Any], Callable[[], Any]]:
    ledger = ColdRequests(path)
    return lambda: held(ledger, gate), lambda: ledger.cold_requests([(1, b"a" * 16)], 300, now=0) == []


def held(owner: Any, gate: Gate) -> None:
    """Take as long as the gate is closed, as a change does whose text is long."""
    with owner._lock:
        gate()


def refused(call: Callable[[], Any]) -> bool:
    with pytest.raises(RuntimeError, match=SAID):
        call()
    return True


def in_child(call: Callable[[], Any]) -> bool:
    """Whether a call in a fork ends, and is true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12 and newer, where a thread is running
        child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if call() else 1
        finally:
            os._exit(code)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@pytest.mark.parametrize("door", [of_masker, of_history, of_manager, of_conversation, of_ledger])
def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have(door: Any) -> None:
    gate = Gate()
    change, use = door(gate)
    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    assert gate.is_reached.wait(SECONDS)
    try:
        assert in_child(use)
    finally:
        gate.is_open.set()
        thread.join(SECONDS)


def test_a_child_continues_what_no_thread_was_changing() -> None:
    gate = Gate()
    gate.is_open.set()
    history, masker = recede.History(), Masker()
    history.append(TASK)
    masker.view([TASK])
    assert in_child(lambda: len(history) == 1 and history.view() == [TASK])
    assert in_child(lambda: masker.view([TASK]) == [TASK] and masker.stats().continued == 1)


def test_forks_at_any_moment_of_a_masker_find_the_view(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "recede")  # the log of a test is no file that a child may share
    messages: list[Any] = [TASK]
    for number in range(300):
        call = {"id": str(number), "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(number), "content": "a line of the log\n" * 250})
    masker, expected = Masker(keep=3), Masker(keep=3).view(messages)
    is_done = threading.Event()

    def mask() -> None:
        place = 0
        while not is_done.is_set():
            place = place % len(messages) + 7
            masker.view(messages[:place])

    threads = [threading.Thread(target=mask, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(12):
            assert in_child(lambda: masker.view(messages) == expected)
    finally:
        is_done.set()
        for thread in threads:
            thread.join()


def test_a_child_and_its_parent_lock_the_file_of_a_ledger_each_for_itself(tmp_path: Path) -> None:
    ledger = ColdRequests(tmp_path / "ledger")
    first, second = (1, b"a" * 16), (3, b"b" * 16)
    ledger.cold_requests([first], 300, now=0)
    assert ledger._file is not None
    with ledger._file.locked():  # the child waits for its own lock, in vain
        assert in_child(lambda: ledger.cold_requests([first], 300, now=1) == [] and ledger._is_in_memory)
    assert in_child(lambda: ledger.cold_requests([first, second], 300, now=900) == [3])
    assert ledger.cold_requests([first, second], 300, now=901) == [3]
