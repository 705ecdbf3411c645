"""Ctrl-C ends a replay and a reduction in the middle, in the process and in its children."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import call, dumps, result, user

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

# Work for hours, if nothing ends it.
LONG = [user("Fix it."), *(step for n in range(4_000) for step in (call(str(n)), result(str(n), "x" * 60)))]
LIMIT_SECONDS = 120

REPLAY = """
import json, signal, sys
import recede.costs
messages = json.load(open(sys.argv[1]))
policies = [f"{sys.argv[3]}:window={number}" for number in range(1, 20_000)]
ask = {
    "replay": lambda: recede.costs.replay(messages, policies),
    "replay_json": lambda: recede.costs.replay_json(json.dumps(messages), policies),
}[sys.argv[2]]
signal.signal(signal.SIGVTALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_VIRTUAL, 1.0)  # of work, when the policies are read
try:
    ask()
except KeyboardInterrupt:
    print("ended")
"""


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.json"
    path.write_bytes(dumps(LONG))
    return path


@pytest.mark.parametrize(("way", "policy"), [("replay", "sliding"), ("replay_json", "break_even")])
def test_an_interrupt_ends_a_replay(way: str, policy: str, history: Path) -> None:
    command = [sys.executable, "-c", REPLAY, str(history), way, policy]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert (ended.stdout, ended.stderr) == ("ended\n", "")


REDUCE = """
import json, signal, sys
import recede
from recede.proxy import RequestMasker
turn = [
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "x" * 60},
]
messages = [{"role": "user", "content": "Go."}, *(turn * 150_000)]
body = json.dumps({"messages": messages}).encode()
ask = {
    "reduce": lambda: recede.reduce(messages, max_input_tokens=2_000),
    "reduce bytes": lambda: recede.reduce(body, max_input_tokens=2_000),
    "RequestMasker": lambda: RequestMasker(max_input_tokens=2_000).mask("POST", "/v1/chat/completions", {}, body),
}[sys.argv[1]]
handled = 0

def handle(*_):
    global handled
    handled += 1
    if handled == 3:
        raise KeyboardInterrupt

signal.signal(signal.SIGVTALRM, handle)
signal.setitimer(signal.ITIMER_VIRTUAL, 0.03, 0.03)  # of work
try:
    ask()
except KeyboardInterrupt:
    print("ended")
signal.setitimer(signal.ITIMER_VIRTUAL, 0)
"""


@pytest.mark.parametrize("way", ["reduce", "reduce bytes", "RequestMasker"])
def test_an_interrupt_ends_a_reduction(way: str) -> None:
    """Its handler runs several times in one call of the core, which it ends."""
    command = [sys.executable, "-c", REDUCE, way]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert (ended.stdout, ended.stderr) == ("ended\n", "")


def test_an_interrupt_ends_a_command_with_its_children(tmp_path: Path, history: Path) -> None:
    for number in range(70):  # enough for processes
        os.link(history, tmp_path / f"{number}.json")
    grid = [part for window in range(1, 400) for part in ("--policy", f"sliding:window={window}")]
    command = [sys.executable, "-m", "recede", "replay", *grid, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.5)
            process.send_signal(signal.SIGINT)  # to it alone, not to its children
            assert process.wait(LIMIT_SECONDS) == 130
            assert process.stderr is not None and process.stderr.read() == b""
            with pytest.raises(ProcessLookupError):
                os.killpg(process.pid, 0)  # no child is left
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
