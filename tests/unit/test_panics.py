"""A fault of the core is a RuntimeError that asks for a report, and what it came in can be used afterwards.

The public functions hand nothing to the core that makes it panic; these hand it what they never would.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from recede.reduction._policy import block_policy, compiled
from support import assistant, call, dumps, engine_module, result, turns, user

TASK = [user("Go."), *turns(6, chars=400)]
ASKS_FOR_A_REPORT = r"recede has a bug: .* \(src/\S+\.rs:\d+:\d+\); please report it with this message"


@pytest.fixture(autouse=True)
def _both_engines() -> None:
    """The mirror cannot panic."""
    engine_module("rust")


@pytest.fixture
def core() -> Any:
    return engine_module("rust")


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
        assert history.update_view() is other.update_view() is None
        assert history.chunks() == other.chunks()
        assert (len(history), history.stats()[0]) == (len(other), other.stats()[0])


def test_a_panic_while_a_view_is_planned_loses_no_message(core: Any) -> None:
    """Costs that leave out an observation: the planner looks for them in vain."""
    policy = compiled(core, "reduce", {"max_input_tokens": 100, "observation_masking": False})
    history = core.Session(policy)
    messages = [user("x" * 999), call("1"), result("1", "y" * 999), assistant("Done.")]
    for message in messages:
        history.append(dumps(message), False, (999, []))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=ASKS_FOR_A_REPORT):
            history.update_view()
        assert [history.message(place) for place in range(4)] == list(map(dumps, messages))
        assert (len(history), history.recall(1)) == (4, "y" * 999)
    history.append(dumps(user("More.")), False, (5, []))
    assert history.message(4) == dumps(user("More."))


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
