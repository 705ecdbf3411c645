"""`python examples/chat.py` as a person types it: through a pipe, in a terminal, with the official clients."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import anthropic  # noqa: F401 - so that no fork imports it
import openai  # noqa: F401
import pexpect
import pytest
from children import in_fork

from provider_server import Failure, Server, call, calls, serving, text
from support import ROOT

CHAT = ROOT / "examples" / "chat.py"
PROVIDERS = ["anthropic", "openai"]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running
        assert running.refusals == []


def environment(server: Server | None = None, provider: str = "anthropic") -> dict[str, str]:
    """The variables of a chat with a provider on this machine, or without any key."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    if server is None:
        return {**kept, "PYTHONUTF8": "1"}
    name, path = provider.upper(), "/v1" if provider == "openai" else ""
    return {**kept, "PYTHONUTF8": "1", f"{name}_API_KEY": "none", f"{name}_BASE_URL": server.url + path}


def typed(
    lines: bytes | str, folder: Path, server: Server | None = None, provider: str = "anthropic", options: str = ""
) -> str:
    """What the chat prints to these lines; it ends by itself, and with nothing on standard error."""
    given = lines if isinstance(lines, bytes) else lines.encode()
    script = f"import runpy; runpy.run_path({str(CHAT)!r}, run_name='__main__')"
    command = [sys.executable, "-c", script, *(["m"] if server else []), *options.split()]
    done = in_fork(command, environment(server, provider), given, folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_without_a_model_a_recording_is_played(tmp_path: Path) -> None:
    said = typed("/stats\n\n12\n/stats\nhello\n/recall #3\n/recall call_2\n/quit\n", tmp_path)
    assert "turns: 0, messages: 0" in said and "about 0 tokens, 0% less" in said
    assert '[tool] run({"command": "ls -A"})\n' in said and "[7,824 characters]" in said
    assert re.search(r"\[raw 8,\d{3} tokens, sent [12],\d{3}, \d+ outputs masked\]", said)
    assert re.search(r"masked, all but the newest 4 tool outputs: about 1,\d{3} tokens, 7\d% less", said)
    assert "[nobody answers: this is a recording." in said
    assert "recede keeps the history of a long-running LLM agent small" in said
    assert "\n> 3801589 recede contributors: recede 0.1.0" in said
    whole = typed("999\n1\n/stats", tmp_path)
    session = json.loads((ROOT / "examples" / "session.json").read_text())
    assert "[the recording has ended]" in whole and f"messages: {len(session)}" in whole


def test_no_request_is_over_a_limit(tmp_path: Path) -> None:
    def sent(options: str) -> list[int]:
        said = typed("1\n" * 240, tmp_path, options=options)
        return [int(found.replace(",", "")) for found in re.findall(r"tokens, sent ([\d,]+),", said)]

    limited, free = sent("--limit 4000"), sent("")
    assert len(limited) == len(free) == 240
    assert max(limited) <= 4_000 < max(free)
    done = subprocess.run([sys.executable, CHAT, "--limit", "0"], capture_output=True, text=True)
    assert done.returncode == 2 and "--limit is a number of tokens, at least 1, not 0" in done.stderr


def test_nothing_that_is_typed_ends_it(tmp_path: Path) -> None:
    wrong = ["/recall", "/recall x", "/recall #99", "/recall \udc80", "9" * 5_000, "²", "/no", "/", "/history \0", "é"]
    lines = "\n".join([*wrong, "/help", "/stats"]).encode("utf-8", "surrogateescape")
    said = typed(lines, tmp_path)
    assert said.count("\n> ") == len(wrong) + 3 and "Traceback" not in said
    assert "there is no observation 99" in said and "[there is no /no; /help lists the commands]" in said
    for name in ("/stats", "/history [all]", "/recall ID", "/help", "/quit"):
        assert f"\n{name} " in said.replace("> /stats", "\n/stats")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_talk_with_tools(server: Server, tmp_path: Path, provider: str) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.txt").write_text("the word is swordfish\n")
    (tmp_path / "files" / "out").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "files" / "pipe")
    refused = [call("read_file", {"path": path}) for path in ("out/a", "../a", "/etc/passwd", "pipe", "none", "\0")]
    server.script = [
        calls(call("list_files", {"path": "."}), call("read_file", {"path": "notes.txt"}), say="I look."),
        calls(call("recall", {"handle": "toolu_2"}), *refused, call("read_file")),
        text("It is \x1b[31mswordfish."),
    ]
    said = typed("What is the word?\n/stats\n/recall 2\n", tmp_path / "files", server, provider)
    assert 'I look.\n[tool] list_files({"path": "."})\n\n[tool] read_file({"path": "notes.txt"})\n' in said
    assert "It is \\x1b[31mswordfish.\n[raw" in said and "\n> the word is swordfish\n" in said
    results = json.dumps(server.requests[2]["messages"])
    assert [name in results for name in ("notes.txt\\nout/\\npipe", "root:")] == [True, False]
    assert results.count("swordfish") == 2
    assert results.count("is not in the folder") == 3 and "pipe is not a file" in results


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_request_that_fails_or_is_interrupted_loses_nothing(server: Server, tmp_path: Path, provider: str) -> None:
    gate = threading.Event()
    words = "These words come and then there is silence. " * 2
    server.script = [
        text(words, drop_after=8),
        Failure(400, "invalid_request_error"),
        text("Gone on. " + words, pause=gate),
        text("Done."),
    ]
    chat = pexpect.spawn(
        sys.executable, [str(CHAT), "m"], cwd=tmp_path, env=environment(server, provider), encoding="utf-8", timeout=30
    )
    chat.expect_exact("> ")
    chat.sendline("Go.")
    chat.expect_exact(["ConnectionError", "APIConnectionError", "RemoteProtocolError"])
    chat.expect_exact("> ")
    chat.sendline("")
    chat.expect_exact("BadRequestError")
    chat.expect_exact("> ")
    chat.sendline("")
    chat.expect_exact("Gone on.")
    chat.sendintr()
    chat.expect_exact("[interrupted: what arrived is kept.")
    gate.set()
    chat.expect_exact("> ")
    chat.sendline("And?")
    chat.expect_exact("Done.")
    chat.expect_exact("> ")
    chat.sendline("/history all")
    chat.expect_exact("And?")
    chat.expect_exact("]\r\n> ")  # a ^D that comes before the prompt is lost when readline takes the terminal
    chat.sendeof()
    chat.expect(pexpect.EOF)
    chat.close()
    assert chat.exitstatus == 0
    kept = json.dumps(server.requests[-1]["messages"])
    assert [said in kept for said in ("Go.", "These words come", "Gone on.", "And?")] == [True] * 4


def test_a_model_without_a_key_is_said_at_once(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, CHAT, "m"], env=environment(), capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("set ANTHROPIC_API_KEY or OPENAI_API_KEY")
