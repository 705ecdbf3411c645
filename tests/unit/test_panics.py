"""A fault of the core is a RuntimeError that asks for a report, and what it came in can be used afterwards.

The public functions hand nothing to the core that makes it panic; these hand it what they never would.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import published
import pytest

import recede
from recede.reduction._policy import block_policy, compiled
from support import assistant, call, dumps, engine_module, result, turns, user

TASK = [user("Go."), *turns(6, chars=400)]
ASKS_FOR_A_REPORT = r"recede has a bug: .* \(src/\S+\.rs:\d+:\d+\); please report it with this message"


@pytest.fixture
def core() -> Any:
    return engine_module("core")


def test_a_panic_while_other_threads_run_is_an_error(core: Any) -> None:
    policy = compiled(core, "reduce", {"max_input_tokens": 100, "observation_masking": False})
    with pytest.raises(RuntimeError, match=ASKS_FOR_A_REPORT):
        core.reduce_json(dumps(TASK), False, policy, ([], [], {}))
    assert core.reduce_json(dumps(TASK), False, policy, None)[0] != dumps(TASK)


def test_a_panic_of_a_method_leaves_the_object_as_it_was(core: Any) -> None:
    policy = block_policy(core, 4, None, {})
    history, other = core.Session(policy), core.Session(policy)
    for message in TASK:
        for session in (history, other):
            session.append(dumps(message), False)
        with pytest.raises(RuntimeError, match=ASKS_FOR_A_REPORT):
            history.message(99)
        assert history.update_view() == other.update_view() == []
        assert history.chunks(0) == other.chunks(0)
        assert history.stats(0, None) == other.stats(0, None)


def test_a_panic_while_a_view_is_planned_loses_no_message(core: Any) -> None:
    """Costs that leave out an observation: the planner looks for them in vain."""
    policy = compiled(core, "reduce", {"max_input_tokens": 100, "observation_masking": False})
    history = core.Session(policy)
    messages = [user("x" * 999), call("1"), result("1", "y" * 999), assistant("Done.")]
    for message in messages:
        history.append(dumps(message), False, ((999, 0), []))
    for words in (ASKS_FOR_A_REPORT, "read-only because recede crashed while"):
        with pytest.raises(RuntimeError, match=words):
            history.update_view()
        assert [history.message(place) for place in range(4)] == list(map(dumps, messages))
        assert (len(history), history.recall(1)) == (4, ("y" * 999, 0))


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_panic_inside_a_change_leaves_a_session_that_is_only_read(tmp_path: Path, is_stored: bool) -> None:
    """Costs that leave out an observation: the boundary, which moves with a new turn, looks for them in vain."""
    store = recede.store.TurnStore(tmp_path / "session.store") if is_stored else None
    history = published.History(keep=3, store=store)
    for message in TASK[:2]:
        history.append(message)
    history._live.core.append(dumps(TASK[2]), False, ((9, 0), []))
    with pytest.raises(RuntimeError, match=ASKS_FOR_A_REPORT):
        history._live.core.append(dumps(TASK[3]), False, ((9, 0), []))
    asks: list[Callable[[], Any]] = [history.view, history.view_chunks, history.stats, lambda: history.rewind(1)]
    for ask in [*asks, lambda: history.append(user("More.")), lambda: history._live.core.texts_to_count(b"{}", False)]:
        with pytest.raises(RuntimeError, match="read-only because recede crashed while"):
            ask()
    messages = history.messages
    assert len(messages) == len(history) > 3 and messages == TASK[: len(messages)]
    assert history.recall(1) == TASK[2]["content"] and f"{len(history)} messages" in repr(history)
    history.save(tmp_path / "saved")
    assert_continued(published.History.load(tmp_path / "saved"), messages)
    if store is not None:
        store.close()
        with recede.store.TurnStore(tmp_path / "session.store") as again:
            assert_continued(published.History(keep=3, store=again), messages[:-1])  # the last one raised


def assert_continued(history: published.History, messages: list[Any]) -> None:
    assert history.messages == messages
    history.append(user("More."))
    assert history.view() == published.History.from_messages([*messages, user("More.")], keep=3).view()


def test_nothing_is_printed_unless_a_backtrace_is_asked_for() -> None:
    code = (
        "from recede import _core\nfrom recede.reduction import _policy\n"
        "history = _core.Session(_policy.block_policy(_core, 4, None, {}))\n"
        "try: history.message(7)\n"
        "except Exception as error: print(type(error))"
    )
    for backtrace in ("", "1"):
        environment = {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"}
        environment |= {"RUST_BACKTRACE": backtrace} if backtrace else {}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert done.stdout == "<class 'RuntimeError'>\n"
        assert ("panicked at src/" in done.stderr) == bool(backtrace)
