"""`recede chat` as a person uses it: in a real terminal, against a provider on this machine; and through a pipe."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic  # noqa: F401 - children are forked from this process, so they need not import the clients
import openai  # noqa: F401
import pexpect
import pytest
from children import forked

import recede
import recede.cli.terminal
from provider_server import Answer, Failure, Server, call, calls, serving, text
from recede import History, TurnStore
from store_reader import snapshot
from support import ROOT, tool_result, user

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals"),
    # Of Python 3.12 and newer, where a process with threads forks; the child has none of them, and waits for none.
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]

COMMAND = [sys.executable, "-m", "recede.cli", "chat"]
Start = Callable[..., "Terminal"]


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, "XDG_STATE_HOME": str(folder / "state"), "TERM": "xterm", "LC_ALL": "C.UTF-8"}


class Terminal:
    """A `recede chat` in a pseudo-terminal."""

    def __init__(self, command: list[str], folder: Path, size: tuple[int, int]) -> None:
        self.child = pexpect.spawn(
            command[0],
            command[1:],
            cwd=folder,
            env=environment(folder),
            encoding="utf-8",
            dimensions=size,
            timeout=20,
            preexec_fn=forked(command, environment(folder)),
        )
        self.child.delaybeforesend = None
        self.child.ptyproc.delayafterclose = 0
        self.child.logfile_read = self.shown = io.StringIO()

    def sees(self, *wanted: str) -> None:
        """Wait for these, one after the other, whatever escape sequences stand between their words."""
        for one in wanted:
            self._expect(r"(?:\s|\x1b\[[0-9;?]*[A-Za-z])+".join(map(re.escape, one.split())))

    def sees_a_prompt(self) -> None:
        self._expect(r"\x1b\[\?2004h")

    def _expect(self, pattern: Any) -> None:
        # A terminal is asked where its cursor is, and this one has to say so.
        while self.child.expect([r"\x1b\[6n", pattern]) == 0:
            self.child.send("\x1b[1;1R")

    def type(self, line: str) -> None:
        self.child.send(f"{line}\r")

    def press(self, key: str) -> None:
        self.child.sendcontrol(key)

    def ends(self, code: int = 0) -> None:
        self._expect(pexpect.EOF)
        self.child.wait()
        self.child.close()
        assert self.child.exitstatus == code


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Terminal] = []

    def run(*arguments: str, size: tuple[int, int] = (40, 100), command: list[str] = COMMAND) -> Terminal:
        started.append(Terminal([*command, *arguments], tmp_path, size))
        return started[-1]

    yield run
    for terminal in started:
        terminal.child.close(force=True)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running
        assert running.refusals == []


def with_server(server: Server, provider: str) -> list[str]:
    url = server.url + ("/v1" if provider == "openai" else "")
    return ["--provider", provider, "--base-url", url, "--model", "m"]


def talk_with(folder: Path, lines: bytes, *arguments: str, **set: str) -> subprocess.CompletedProcess[bytes]:
    command, variables = [*COMMAND, *arguments], {**environment(folder), **set}
    return subprocess.run(
        command, cwd=folder, env=variables, input=lines, capture_output=True, preexec_fn=forked(command, variables)
    )


def piped(folder: Path, lines: str, *arguments: str, code: int = 0) -> str:
    done = talk_with(folder, lines.encode(), *arguments)
    assert done.returncode == code, done.stderr.decode()
    return (done.stdout if code == 0 else done.stderr).decode()


# The tour


def test_the_tour_is_the_beginning_of_the_recorded_session() -> None:
    tour = json.loads((ROOT / "python" / "recede" / "cli" / "tour.json").read_text())
    session = json.loads((ROOT / "examples" / "session.json").read_text())
    assert tour == session[: len(tour)]
    assert recede.check_pairs(tour).findings == ()


def test_without_a_key_a_recording_is_played_turn_by_turn(start: Start) -> None:
    chat = start()
    chat.sees("No key is set (ANTHROPIC_API_KEY or OPENAI_API_KEY)", "Enter plays the next turn")
    chat.sees("turns 0 · messages 0")
    chat.type("")
    chat.sees("user: A view that recede made", "→ run", "← 201 chars: .ci", "turns 1 · messages 5")
    chat.type("10")
    chat.sees("[7 old outputs are one line each from this request on: 1,462 tokens instead of 7,119.")
    chat.type("hello")
    chat.sees("[nobody answers: this is a recording.")
    chat.type("/retry")
    chat.sees("[this is a recording")
    chat.type("/view all")
    chat.sees("[observation masked — 178 lines omitted, recall #3]")
    chat.type("/history all")
    chat.sees("recede keeps the history of a long-running LLM agent small")
    chat.type("/recall #3")
    chat.sees("recede keeps the history of a long-running LLM agent small")
    chat.type("99")
    chat.sees("[the recording ends. Its 20 requests had", "less; every call still has its result")
    chat.type("")
    chat.sees("[the recording has ended")
    chat.type("/quit")
    chat.ends()


def test_each_command(start: Start, tmp_path: Path) -> None:
    chat = start("--tour", "--threshold-tokens", "0", "--keep", "3")
    chat.sees("A recorded session is played turn by turn.")
    for command in ("/view", "/history"):
        chat.type(command)
        chat.sees("[nothing yet]")
    chat.type("6")
    chat.sees("turns 6 · messages 15")
    chat.type("/stats")
    chat.sees("turns: 6, messages: 15", "raw: ", "masked, all but the newest 3 results: ", "observations masked")
    chat.sees("all requests so far: ")
    chat.type("/history")
    chat.sees("system: You are an agent", "chars more: /history all]")
    chat.type("/view")
    chat.sees("system: You are an agent", "chars more: /view all]")
    chat.type("/recall call_2")
    chat.sees("3801589 recede contributors: recede 0.1.0")
    chat.type("/recall 99")
    chat.sees("[there is no observation 99]")
    chat.type("/recall")
    chat.sees("[/recall needs ID")
    chat.type("/help")
    for name in (
        "/stats",
        "/history [all]",
        "/view [all]",
        "/recall ID",
        "/retry",
        "/save FILE",
        "/load FILE",
        "/quit",
    ):
        chat.sees(name)
    chat.type("/nonsense x")
    chat.sees("[there is no /nonsense; /help lists the commands]")
    chat.type("/save saved.json")
    chat.sees("[saved: 15 messages]")
    chat.type("/save no/folder/saved.json")
    chat.sees("[no/folder/saved.json: not saved: No such file or directory]")
    chat.type("/load missing.json")
    chat.sees("[missing.json: not loaded: No such file or directory]")
    (tmp_path / "damaged.json").write_text("{}")
    chat.type("/load damaged.json")
    chat.sees("[damaged.json: not a saved session")
    chat.type("2")
    chat.sees("turns 8 · messages 19")
    chat.type("/load saved.json")
    chat.sees("[loaded: 15 messages]", "turns 6 · messages 15")
    chat.type("/quit")
    chat.ends()
    assert len(History.load(tmp_path / "saved.json")) == 15


def test_ctrl_c_at_the_prompt_and_the_end_of_input(start: Start) -> None:
    chat = start()
    chat.sees("turns 0")
    chat.child.send("half a line")
    chat.sees("half")
    chat.press("c")
    chat.sees("[/quit or Ctrl-D ends the session]")
    chat.type("/stats")
    chat.sees("turns: 0, messages: 0", "all requests so far: 0 tokens instead of 0, 0% less")
    chat.sees_a_prompt()
    chat.press("d")
    chat.ends()


@pytest.mark.parametrize("size", [(1, 1), (2, 12), (4, 100), (40, 10)])
def test_a_window_that_is_too_small(start: Start, tmp_path: Path, size: tuple[int, int]) -> None:
    chat = start(size=size)
    chat.sees("No key is set")
    chat.sees_a_prompt()
    chat.type("3")
    chat.sees("You are an agent")
    chat.sees_a_prompt()
    chat.type("/save saved.json")
    chat.sees("saved: 9 messages")
    # What is typed has its place.
    assert "too small" not in chat.shown.getvalue()
    # And it may grow again.
    chat.child.setwinsize(40, 100)
    chat.type("/stats")
    chat.sees("turns: 3, messages: 9", "turns 3 · messages 9")
    chat.type("/quit")
    chat.ends()


def test_lines_are_edited_and_remembered(start: Start, tmp_path: Path) -> None:
    chat = start()
    chat.sees("turns 0")
    chat.child.send("/stastx")
    chat.child.send("\x7f\x7f\x7fts\r")  # backspace
    chat.sees("turns: 0, messages: 0")
    chat.type("/quit")
    chat.ends()
    file = tmp_path / "state" / "recede" / "chat_history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = start()
    again.sees("turns 0")
    again.child.send("\x1b[A\x1b[A\r")  # the line before the last
    again.sees("turns: 0, messages: 0")
    again.type("/quit")
    again.ends()


def test_without_a_place_for_lines_it_works_all_the_same(start: Start, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    chat = start()
    chat.sees("turns 0")
    chat.type("/stats")
    chat.sees("turns: 0")
    chat.type("/quit")
    chat.ends()


def test_a_session_of_ones_own_is_played(start: Start, tmp_path: Path) -> None:
    messages = [
        user("Go."),
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call("look", {"é": 1}, id="a")]},
        user([tool_result("a", "line \x1b]0;owned\x07\n" * 9)]),
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Done."}]},
        user("Thanks."),
        {"type": "function_call", "call_id": "b", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "ran"},
    ]
    (tmp_path / "mine.json").write_text(json.dumps(messages))
    chat = start("--replay", "mine.json")
    chat.sees("mine.json is played turn by turn.")
    chat.type("")
    chat.sees("user: Go.", "assistant: I look.", '→ look {"é": 1}', "← 144 chars: line \\x1b]0;owned\\x07")
    chat.type("")
    chat.sees("assistant, thinking: hm", "assistant: Done.")
    chat.type("")
    chat.sees("user: Thanks.", "→ run {}", "← 3 chars: ran", "[the recording ends. Its 3 requests")
    chat.type("/quit")
    chat.ends()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_the_tour_in_tmux(tmp_path: Path) -> None:
    def tmux(*arguments: str) -> str:
        done = subprocess.run(["tmux", "-S", str(tmp_path / "socket"), *arguments], capture_output=True, check=True)
        return done.stdout.decode()

    def shows(wanted: str) -> str:
        for _ in range(400):
            screen = tmux("capture-pane", "-p", "-t", "chat")
            if wanted in screen:
                return screen
            time.sleep(0.05)
        raise AssertionError(f"no {wanted!r} in\n{screen}")

    setting = [
        f"{name}={value}" for name, value in environment(tmp_path).items() if name in ("XDG_STATE_HOME", "LC_ALL")
    ]
    unset = [f"-u{name}" for name in os.environ if name.endswith("_API_KEY")]
    command = shlex.join(["env", *unset, *setting, *COMMAND])
    tmux("-f", "/dev/null", "new-session", "-d", "-s", "chat", "-x", "100", "-y", "30", command)
    try:
        screen = shows("turns 0 · messages 0")
        assert screen.rstrip().splitlines()[-1].startswith("turns 0")  # the status line stands at the foot
        tmux("send-keys", "-t", "chat", "11", "Enter")
        shows("1,462 tokens instead of 7,119")
        shows("turns 11 · messages 26 · raw 7,362 tokens · sent 1,706 (23%) · masked 7")
        tmux("send-keys", "-t", "chat", "/stats", "Enter")
        shows("all requests so far: ")
        tmux("resize-window", "-t", "chat", "-x", "8", "-y", "2")
        tmux("send-keys", "-t", "chat", "/quit", "Enter")
        for _ in range(400):
            if subprocess.run(["tmux", "-S", str(tmp_path / "socket"), "ls"], capture_output=True).returncode:
                return
            time.sleep(0.05)
        raise AssertionError("it did not end")
    finally:
        subprocess.run(["tmux", "-S", str(tmp_path / "socket"), "kill-server"], capture_output=True)


# A model


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_talk_with_tools(start: Start, server: Server, tmp_path: Path, provider: str) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.txt").write_text("the word is swordfish\n")
    (tmp_path / "files" / "out").symlink_to(tmp_path)
    server.script = [
        calls(call("list_files"), call("read_file", {"path": "notes.txt"}), say="I look."),
        calls(call("read_file", {"path": "out/saved.json"}), call("recall", {"number": 2})),
        text("It is \x1b[31mswordfish."),
    ]
    chat = start(*with_server(server, provider), "--tools", "files", "--folder", "files", "--system", "Be brief.")
    chat.sees(f"{provider}, m, files of files.", "turns 0")
    chat.type("   ")
    chat.type("What is the word?")
    chat.sees("I look.", "→ list_files {}", "→ read_file {'path': 'notes.txt'}", "← 22 chars")
    chat.sees("← out/saved.json is not in the folder", "→ recall {'number': 2}", "← 22 chars")
    chat.sees("It is \\x1b[31mswordfish.", "turns 3")
    chat.type("/stats")
    chat.sees("turns: 3", "all requests so far: ")
    chat.type("/recall 2")
    chat.sees("the word is swordfish")
    chat.type("/quit")
    chat.ends()
    tools = [tool.get("name") or tool["function"]["name"] for tool in server.requests[0]["tools"]]
    assert tools == ["list_files", "read_file", "search_files", "recall"]
    assert "Be brief." in json.dumps(server.requests[0])
    assert len(server.requests) == 3
    assert "is not in the folder" in json.dumps(server.requests[2])


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_ctrl_c_ends_the_request_and_not_the_session(
    start: Start, server: Server, tmp_path: Path, provider: str
) -> None:
    gate = threading.Event()
    server.script = [text("These words come and then there is silence, for ever. " * 2, pause=gate), text("Done.")]
    chat = start(*with_server(server, provider))
    chat.sees("turns 0")
    chat.type("Go.")
    chat.sees("These words come")
    chat.press("c")
    chat.sees("[interrupted; what arrived is kept.")
    gate.set()
    chat.type("/history")
    chat.sees("user: Go.", "assistant: These words come")
    chat.type("/retry")
    chat.sees("Done.", "turns 2")
    chat.type("/save saved.json")
    chat.sees("[saved: 4 messages]")
    chat.type("/quit")
    chat.ends()


def test_ctrl_c_before_anything_came(start: Start, server: Server) -> None:
    gate = threading.Event()
    server.script = [Answer([{"type": "text", "text": "x"}], pause=gate), text("Done.")]
    chat = start(*with_server(server, "openai"))
    chat.sees("turns 0")
    chat.type("Go.")
    while not server.requests:
        gate.wait(0.01)
    chat.press("c")
    chat.sees("[interrupted; what arrived is kept.")
    gate.set()
    chat.type("Please.")
    chat.sees("Done.")
    chat.type("/quit")
    chat.ends()
    assert [message["content"] for message in server.requests[-1]["messages"]][-1] == "Please."


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_lost_connection_loses_nothing(start: Start, server: Server, provider: str) -> None:
    server.script = [
        text("These words come and then the line is cut. " * 2, drop_after=8),
        Failure(400, "invalid_request_error"),
        text("Done."),
    ]
    chat = start(*with_server(server, provider))
    chat.sees("turns 0")
    chat.type("Go, é.")
    chat.sees("These words come", "[nothing is lost: /retry asks again")
    chat.type("/history")
    chat.sees("user: Go, é.", "assistant: These words come")
    chat.type("/retry")
    chat.sees("BadRequestError", "[nothing is lost")
    chat.type("/retry")
    chat.sees("Done.")
    chat.type("/quit")
    chat.ends()


def test_a_server_that_is_not_there_is_one_line(start: Start) -> None:
    chat = start("--provider", "openai", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    chat.sees("turns 0")
    chat.type("Go.")
    chat.sees("[APIConnectionError: Connection error.]", "[nothing is lost: /retry asks again")
    chat.type("/quit")
    chat.ends()


def test_old_results_are_masked_in_what_is_sent(start: Start, server: Server, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("a line of the log\n" * 300)
    server.script = [
        *(calls(call("read_file", {"path": "long.txt"})) for _ in range(16)),
        text("Done.", stop="refusal"),
    ]
    chat = start(*with_server(server, "anthropic"), "--tools", "files", "--threshold-tokens", "100")
    chat.sees("turns 0")
    chat.type("Read it again and again.")
    chat.sees("Done.", "[ended by refusal]", "turns 17")
    chat.type("/view all")
    chat.sees("[observation masked — 301 lines omitted, recall #1]")
    chat.type("/quit")
    chat.ends()
    assert "recall #1]" in json.dumps(server.requests[-1]["messages"])


@pytest.mark.parametrize("boundary", [None, "break_even"])
def test_above_the_threshold_the_boundary_slides_or_waits_until_it_pays(
    boundary: str | None, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "long.txt").write_text("a line of the log\n" * 300)
    server.script = [*(calls(call("read_file", {"path": "long.txt"})) for _ in range(8)), text("Done.")]
    options = ["--tools", "files", *(["--boundary", boundary] if boundary else [])]
    said = piped(tmp_path, "/stats\nGo.\n/stats\n/quit\n", *with_server(server, "anthropic"), *options)
    assert "all requests so far: 0 tokens instead of 0, 0% less" in said
    raw, masked, sent = re.findall(
        r"^(?:raw|masked, all but the newest 4 results|sent): .*about ([\d,]+) tokens", said, re.M
    )[3:]
    tokens, masked_tokens, sent_tokens = (int(number.replace(",", "")) for number in (raw, masked, sent))
    assert masked_tokens < 0.6 * tokens
    # A placeholder that names the number for `recall` is some characters longer.
    assert sent == raw if boundary else 0 <= sent_tokens - masked_tokens < 20
    assert ("recall #1]" in json.dumps(server.requests[-1]["messages"])) == (boundary is None)


def test_an_answer_that_is_cut_is_told_and_continued(server: Server, tmp_path: Path) -> None:
    unfinished = calls({**call("read_file"), "partial": "{"}, say="I read it.", stop="max_tokens")
    server.script = [unfinished, text("It is"), text("one ", stop="max_tokens"), text("two.")]
    options = [*with_server(server, "anthropic"), "--max-tokens", "100"]
    done = talk_with(tmp_path, b"Go.\nAnd?\n", *options)
    said = done.stdout.decode()
    assert "I read it.\n[an answer was cut in a tool call (request 1, max_tokens=100): it is asked for with" in said
    assert "one \n[an answer was cut in its text (request 1, max_tokens=100): it is sent back" in said
    assert done.stderr == b""


# What ends no session, and what is saved before one is ended


def test_nothing_that_is_typed_ends_the_session(tmp_path: Path) -> None:
    History(keep=3).save(tmp_path / "good.json")
    whole = (tmp_path / "good.json").read_bytes()
    for name, options in (("unknown.json", {"nonsense": 1}), ("wrong.json", {"keep": "three"})):
        (tmp_path / name).write_bytes(whole)
        with TurnStore(tmp_path / name) as store:
            (known,) = store.record("session", 1)
            told = snapshot(known)[1]
            other = json.dumps({**json.loads(told), "options": options}).encode()
            frame = struct.pack("<HHQ", 1, 1, len(told)) + told
            store.replace_record("session", 1, [known.replace(frame, struct.pack("<HHQ", 1, 1, len(other)) + other)])
    (tmp_path / "deep.json").write_text("[" * 100_000)
    lines = [
        "3",
        *(
            f"/recall {sign}{digits}"
            for sign in ("", "#")
            for digits in ("9" * 19, "9" * 20, "9" * 5_000, "²", "٣" * 30)
        ),
        *(f"/load {name}" for name in ("unknown.json", "wrong.json", "deep.json", ".", "a\0b", "\udc80", "x" * 5_000)),
        *(f"/save {name}" for name in (".", "a\0b", "\udc80", "x" * 5_000)),
        "/view \udc80",
        "/stats",
        "9" * 5_000,
        "/stats",
    ]
    done = talk_with(tmp_path, "\n".join(lines).encode("utf-8", "surrogateescape"), "--tour")
    said = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Traceback" not in said
    answers = dict.fromkeys(lines, "")
    for part in said.split("\n> ")[1:]:
        line, _, answer = part.partition("\n")
        if line in answers:
            answers[line] = answer.rpartition("\nturns ")[0]
    for line in lines:
        if line.startswith(("/recall", "/load", "/save")) and line.isprintable() and "\udc80" not in line:
            (answer,) = answers[line].splitlines()
            assert answer.startswith("[") and answer.endswith("]")
            assert len(answer) < len(line) + 400
    assert "nonsense" in answers["/load unknown.json"]
    # What was there stays, and goes on: all was played in the end.
    assert "turns: 3, messages: 9\n" in said and "[the recording ends." in said


PANIC = """
import recede.cli.repl, sys
from recede.cli import main

class Panic(BaseException):
    pass

def fail(self, argument):
    raise Panic("a fault that nobody foresaw")

recede.cli.repl.Repl._stats = fail
sys.argv[0] = "recede"
sys.argv.insert(1, "chat")
main()
"""


@pytest.mark.parametrize("how", ["named", "ours", "not there", "none"])
def test_a_session_in_memory_is_offered_for_saving_before_it_is_lost(
    start: Start, server: Server, tmp_path: Path, how: str
) -> None:
    server.script = [text("Done.")]
    chat = start(*with_server(server, "anthropic"), command=[sys.executable, "-c", PANIC])
    chat.sees("turns 0")
    chat.type("Go.")
    chat.sees("Done.", "turns 1")
    chat.type("/stats")
    chat.sees("[ended by Panic: a fault that nobody foresaw]", "[a file to save the session in;")
    spare = tmp_path / "state" / "recede"
    if how == "none":
        chat.press("c")
    else:
        chat.type({"named": "kept.json", "ours": "", "not there": "no/folder/kept.json"}[how])
    if how == "not there":
        chat.sees("[no/folder/kept.json: not saved: FileNotFoundError")
    if how != "none":
        chat.sees("[saved: ")
    chat.sees("Panic: a fault that nobody foresaw")
    chat.ends(1)
    saved = [tmp_path / "kept.json"] if how == "named" else [*spare.glob("session-*/session.json")]
    assert [len(History.load(file)) for file in saved] == ([] if how == "none" else [2])
    assert (tmp_path / "kept.json").exists() is (how == "named")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_session_that_is_ended_from_outside_is_saved_where_its_owner_alone_reads_it(
    start: Start, server: Server, tmp_path: Path, name: str
) -> None:
    number = signal.Signals[name]
    server.script = [text("Done.")]
    chat = start(*with_server(server, "anthropic"))
    chat.sees("turns 0")
    chat.type("Go.")
    chat.sees("Done.", "turns 1")
    chat.child.kill(number)
    chat.ends(128 + number)
    (saved,) = (tmp_path / "state" / "recede").glob("session-*/session.json")
    assert stat.S_IMODE(saved.parent.stat().st_mode) == 0o700
    assert [message["role"] for message in History.load(saved)] == ["user", "assistant"]


def test_what_is_in_a_store_or_a_recording_is_saved_nowhere_else(start: Start, server: Server, tmp_path: Path) -> None:
    server.script = [text("Done.")]
    for options in ([*with_server(server, "anthropic"), "--store", "s.store"], ["--tour"]):
        chat = start(*options)
        chat.sees("turns 0")
        chat.type("Go." if server.script else "1")
        chat.sees("turns 1")
        chat.child.kill(signal.SIGTERM)
        chat.ends(128 + signal.SIGTERM)
    assert not [*(tmp_path / "state" / "recede").glob("session-*")]


# Through a pipe, and wrong usage


def test_a_pipe_is_read_line_by_line(tmp_path: Path) -> None:
    said = piped(tmp_path, "\n/stats\n2")
    assert "> \nsystem: You are an agent" in said
    assert "\n> /stats\nturns: 1, messages: 5\n" in said
    assert said.endswith("turns 3 · messages 9 · raw 3,455 tokens · sent 3,455 (100%) · masked 0\n")
    assert "\x1b" not in said
    assert piped(tmp_path, "").count("\n") == 3
    assert "there is no /é" in piped(tmp_path, "/é\n")


def test_a_talk_through_a_pipe(server: Server, tmp_path: Path) -> None:
    server.script = [text("Hello."), text("Bye.")]
    said = piped(tmp_path, "Hi.\nWell.\n", *with_server(server, "anthropic"))
    assert "> Hi.\nHello.\nturns 1" in said
    assert "> Well.\nBye.\nturns 2" in said


def test_a_session_in_a_store_goes_on_where_it_was(tmp_path: Path) -> None:
    def played(said: str) -> list[str]:
        """What was played, without the greeting of two lines, prompts and status lines."""
        return [line for line in said.splitlines()[2:] if not line.startswith(("turns ", "> ", "[this"))]

    whole = piped(tmp_path, "5\n")
    first = piped(tmp_path, "3\n/quit\n", "--store", "s.store")
    second = piped(tmp_path, "2\n/load x\n", "--store", "s.store")
    assert played(first) + played(second) == played(whole)
    assert second.splitlines()[2] == "turns 3 · messages 9 · raw 3,455 tokens · sent 3,455 (100%) · masked 0"
    assert "this session is kept in its store" in second
    assert "another session" in piped(tmp_path, "", "--replay", _other(tmp_path), "--store", "s.store", code=2)
    (tmp_path / "no.store").write_text("x")
    assert piped(tmp_path, "", "--store", "no.store", code=1).startswith("recede: ")


def test_what_is_saved_goes_over_neither_the_store_nor_the_recording(tmp_path: Path) -> None:
    other = _other(tmp_path)
    before = (tmp_path / other).read_bytes()
    (tmp_path / "link").symlink_to(other)
    tried = "".join(f"/save {name}\n" for name in ("s.store", "s.store-log", other, "link"))
    said = piped(tmp_path, f"1\n{tried}", "--store", "s.store", "--replay", other)
    assert said.count("[not saved: ") == 4
    assert (tmp_path / other).read_bytes() == before
    with recede.TurnStore(tmp_path / "s.store", read_only=True) as store:
        assert store.count_records("message") == 1
    said = piped(tmp_path, "1\n/save new\n/save new\n/save a\0b\n", "--replay", other)
    assert said.count("[saved: 1 messages]") == 2 and said.count("[not saved: ") == 1
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    assert "max_bytes" in piped(tmp_path, "", "--replay", other, "--max-bytes", "9", code=1)


def test_a_store_that_is_deleted_meanwhile_is_a_line(tmp_path: Path) -> None:
    with subprocess.Popen(
        command := [*COMMAND, "--store", "s.store"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=forked(command, environment(tmp_path)),
    ) as chat:
        assert chat.stdin is not None and chat.stdout is not None and chat.stderr is not None
        chat.stdin.write(b"1\n")
        chat.stdin.flush()
        while not chat.stdout.readline().startswith(b"turns 1 "):
            pass
        (tmp_path / "s.store").unlink()
        said, error = (data.decode() for data in chat.communicate(b"1\n/save kept.json\n"))
    assert "[not in the store yet: " in said and "was deleted or replaced while the store was open" in said
    assert "[saved: " in said
    assert chat.returncode == 1 and error.startswith("recede: ") and error.count("\n") == 1
    assert "was deleted or replaced" in error


def _other(folder: Path) -> str:
    (folder / "other.json").write_text(json.dumps([{"role": "user", "content": "Hi."}]))
    return "other.json"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_talk_that_was_killed_goes_on_from_its_store(server: Server, tmp_path: Path) -> None:
    options = [*with_server(server, "anthropic"), "--store", "s.store"]
    command, variables, held = [*COMMAND, *options], environment(tmp_path), threading.Event()
    server.script = [text("Hello."), text("never", pause=held)]
    begin = forked(command, variables)
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stdin=subprocess.PIPE, preexec_fn=begin) as talk:
        assert talk.stdin is not None
        talk.stdin.write(b"Hi.\nWell?\n")
        talk.stdin.flush()
        deadline = time.monotonic() + 60
        while len(server.requests) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        talk.kill()
    held.set()
    server.script = [text("I am back.")]
    said = piped(tmp_path, "/history\n/retry\n", *options)
    # What was said is there, what had been answered too; the request that was under way is made again.
    assert "Hi." in said and "Hello." in said and "Well?" in said and "I am back." in said
    assert [message["role"] for message in server.requests[-1]["messages"]] == ["user", "assistant", "user"]


def test_wrong_usage_is_said_at_once(tmp_path: Path) -> None:
    assert "give --model" in piped(tmp_path, "", "--base-url", "http://127.0.0.1:9", code=2)
    assert "does not exist" in piped(tmp_path, "", "--folder", "nothing", code=2)
    assert "keep" in piped(tmp_path, "", "--keep", "2", code=2)
    assert (
        piped(tmp_path, "", "--replay", "nothing.json", code=1) == "recede: nothing.json: No such file or directory\n"
    )
    (tmp_path / "bad.json").write_text("[5]")
    assert piped(tmp_path, "", "--replay", "bad.json", code=1).startswith("recede: bad.json: ")


def test_a_key_alone_wants_a_model(tmp_path: Path) -> None:
    for name, provider in (("ANTHROPIC_API_KEY", "anthropic"), ("OPENAI_API_KEY", "openai")):
        done = talk_with(tmp_path, b"", **{name: "x"})
        assert done.returncode == 2
        assert f"a model of {provider}" in done.stderr.decode()
        done = talk_with(tmp_path, b"", "--tour", **{name: "x"})
        assert b"A recorded session is played" in done.stdout
