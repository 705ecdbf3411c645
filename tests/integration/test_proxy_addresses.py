"""Paths of an agent's own addresses: each goes where it went without the proxy, and nothing else does."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

from children import recede_command
from proxied import Upstream, answer_of, ask, proxying, recording
from test_proxy import JSON, KEY, anthropic_body, chat_messages

import recede
from recede.proxy.server import Proxy

WORD = "0123456789abcdef"
ALONE = [("Authorization", "Bearer sk-plain")]


@pytest.fixture
def echo() -> Iterator[Upstream]:
    with recording(lambda _: [answer_of(b"{}")]) as upstream:
        yield upstream


def test_paths_of_addresses_are_as_without_the_proxy_and_masked(echo: Upstream) -> None:
    body = json.dumps({"model": "deepseek-v4-pro", "messages": chat_messages(150)}).encode()
    with recording(lambda _: [answer_of(b"{}")]) as other:
        addresses = {WORD: f"{echo.url}/api/paas/v4", "two": other.url}
        with proxying("http://127.0.0.1:9", addresses=addresses) as proxy:
            for target in (
                "/api/paas/v4/chat/completions?a=/@two/",
                "/api/paas/v4/models",
                "/recede/stats",
                "/%2e%2e/x",
            ):
                got = ask(proxy.url, "POST", f"/@{WORD}{target}", body, [JSON, *ALONE])
                assert got.status == 200 and echo.requests[-1].target == target
            assert ask(proxy.url, "POST", "/@two/anthropic/v1/messages", anthropic_body(40), [JSON]).status == 200
            assert proxy.has_requests
        assert [one.target for one in other.requests] == ["/anthropic/v1/messages"]
    assert b"old tool output cleared" in echo.requests[0].body and b"old tool output" in other.requests[0].body
    assert dict(echo.requests[0].headers)["Authorization"] == "Bearer sk-plain"


@pytest.mark.parametrize(
    "target",
    [
        "/@", "/@x", "/@x/v1/messages", f"/@{WORD}", f"/@{WORD}?a=1", f"/@{WORD}x/v1", f"/%40{WORD}/v1/messages",
        f"//@{WORD}/v1/messages", f"/@{WORD[:-1]}/v1/messages", f"/@{WORD.upper()}/v1/messages", f"/@/{WORD}/v1",
        "/@recede/stats",
    ],
)  # fmt: skip
def test_an_address_that_there_is_not_is_404_and_nothing_leaves(target: str, echo: Upstream) -> None:
    with proxying(echo.url, addresses={WORD: echo.url}) as proxy:
        assert ask(proxy.url, "POST", target, anthropic_body(3), [JSON, ("x-api-key", KEY)]).status == 404
    assert not echo.requests


def test_host_origin_site_and_key_are_checked_behind_an_address(echo: Upstream) -> None:
    with proxying(None, addresses={WORD: "https://api.deepseek.com/anthropic", "two": echo.url}) as proxy:
        for headers in (
            [("Host", "evil.example")], [("Origin", "https://evil.example")], [("Sec-Fetch-Site", "cross-site")],
        ):  # fmt: skip
            assert ask(proxy.url, "GET", "/@two/v1/models", None, headers).status == 403
        got = ask(proxy.url, "POST", f"/@{WORD}/anthropic/v1/messages", b"{}", [JSON, ("x-api-key", KEY)])
        assert got.status == 400 and b"its key is Anthropic's" in got.body and KEY.encode() not in got.body
    assert not echo.requests


def test_a_model_of_another_maker_is_refused_at_an_address_that_is_a_default(echo: Upstream) -> None:
    with proxying(echo.url, addresses={WORD: "https://api.openai.com/v1"}, command="opencode") as proxy:
        got = ask(proxy.url, "POST", f"/@{WORD}/v1/chat/completions", b'{"model": "grok-4.7"}', [JSON, *ALONE])
    assert got.status == 400 and b"`recede proxy --upstream https://api.x.ai/v1 -- opencode`" in got.body


def test_a_redirect_behind_an_address_is_not_followed(echo: Upstream) -> None:
    moved = answer_of(b"", "307 Temporary Redirect", f"Location: {echo.url}/")
    with recording(lambda _: [moved]) as other, proxying(None, addresses={WORD: other.url}) as proxy:
        assert ask(proxy.url, "POST", f"/@{WORD}/v1/messages", b"{}", [JSON]).status == 307
    assert not echo.requests


def test_state_is_that_of_the_address_and_not_of_its_word(echo: Upstream, tmp_path: Path) -> None:
    """So a restart, which has another word, sends the same bytes."""
    sent = []
    body = anthropic_body(40)
    for word in ("one", "two"):
        masker = recede.proxy.RequestMasker(keep=10, state=tmp_path / "requests", clock=lambda: 1e9)
        with proxying(None, masker, addresses={word: echo.url}) as proxy:
            ask(proxy.url, "POST", f"/@{word}/v1/messages", body, [JSON])
        sent.append(echo.requests[-1].body)
    assert sent[0] == sent[1] != body


def test_an_address_that_leads_back_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    proxy = Proxy(recede.proxy.RequestMasker(), port=port, addresses={WORD: f"http://localhost:{port}/v1"})
    with pytest.raises(ValueError, match="would come back"):
        asyncio.run(proxy.start())


# The command


PROGRAM = """#!{python}
import json, os, sys, urllib.request
words = sys.argv[1:]
settings = json.loads(words[words.index("--settings") + 1]) if "--settings" in words else {{}}
url = settings.get("env", {{}}).get("ANTHROPIC_BASE_URL") or os.environ.get("ANTHROPIC_BASE_URL")
file = os.environ.get("QWEN_CODE_SYSTEM_SETTINGS_PATH")
if file:
    print("file", file, oct(os.stat(file).st_mode & 0o777), oct(os.stat(os.path.dirname(file)).st_mode & 0o777))
    url = json.load(open(file))["modelProviders"]["openai"][0]["baseUrl"]
headers = {{"x-api-key": "sk-plain", "Content-Type": "application/json"}}
urllib.request.urlopen(urllib.request.Request(url + "/v1/messages", b'{{"messages": []}}', headers)).read()
"""


def started(folder: Path, name: str, files: dict[str, Any], *options: str) -> Any:
    (folder / "work").mkdir(exist_ok=True)
    program = folder / name
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    for path, what in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(what))
    command = [sys.executable, "-m", "recede.cli", "proxy", "--state", "none", *options, "--", str(program), "go"]
    kept = {one: value for one, value in os.environ.items() if "proxy" not in one.lower()}
    return command, {"cwd": folder / "work", "env": {**kept, "HOME": str(folder), "TMPDIR": str(folder)}}


def test_claude_settings_bring_requests_through_the_proxy(echo: Upstream, tmp_path: Path) -> None:
    settings = {"env": {"ANTHROPIC_BASE_URL": f"{echo.url}/anthropic", "ANTHROPIC_AUTH_TOKEN": KEY}}
    command, how = started(tmp_path, "claude", {".claude/settings.json": settings})
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **how)
    assert done.returncode == 0, done.stderr
    assert [one.target for one in echo.requests] == ["/anthropic/v1/messages"]
    assert KEY not in done.stdout + done.stderr and "1 requests" in done.stderr


def test_throw_away_files_are_their_owners_alone_and_removed(echo: Upstream, tmp_path: Path) -> None:
    models = {"modelProviders": {"openai": [{"id": "x", "baseUrl": f"{echo.url}/v4", "envKey": "K"}]}}
    command, how = started(tmp_path, "qwen", {".qwen/settings.json": models})
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **how)
    assert done.returncode == 0, done.stderr
    _, path, mode, folder_mode = done.stdout.split()
    assert (mode, folder_mode) == ("0o600", "0o700") and not Path(path).parent.exists()
    assert [one.target for one in echo.requests] == ["/v4/v1/messages"]


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminals")
@pytest.mark.parametrize(("typed", "starts"), [("yes", True), ("y", False), ("", False), ("no", False), ("YES", False)])
def test_an_address_of_the_project_needs_a_typed_yes(typed: str, starts: bool, echo: Upstream, tmp_path: Path) -> None:
    settings = {"env": {"ANTHROPIC_BASE_URL": echo.url}}
    command, how = started(tmp_path, "claude", {"work/.claude/settings.json": settings})
    ours, its = os.openpty()
    with subprocess.Popen(command, stdin=its, stdout=subprocess.PIPE, stderr=its, **how) as process:
        os.close(its)
        said = b""
        while b"Type yes" not in said:
            said += os.read(ours, 1_000)
        assert not echo.requests
        os.write(ours, f"{typed}\n".encode())
        code = process.wait(60)
    os.close(ours)
    host = echo.url.partition("//")[2]
    assert host.encode() in said and b".claude/settings.json" in said
    assert (code, len(echo.requests)) == ((0, 1) if starts else (2, 0))


def test_an_address_of_the_project_without_a_terminal_ends_with_2(echo: Upstream, tmp_path: Path) -> None:
    settings = {"env": {"ANTHROPIC_BASE_URL": echo.url + "/\u202ex\x1b[2J"}}
    command, how = started(tmp_path, "claude", {"work/.claude/settings.local.json": settings})
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **how)
    assert done.returncode == 2 and not echo.requests and "\x1b" not in done.stderr and "\u202e" not in done.stderr
    assert "settings.local.json" in done.stderr and echo.url.partition("//")[2] in done.stderr
    command[6:6] = ["--upstream", f"anthropic={echo.url}/typed"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **how)
    assert done.returncode == 0 and [one.target for one in echo.requests] == ["/typed/v1/messages"], done.stderr


def test_a_dry_run_says_what_would_be_and_starts_nothing(echo: Upstream, tmp_path: Path) -> None:
    settings = {"env": {"ANTHROPIC_BASE_URL": f"{echo.url}/a", "ANTHROPIC_AUTH_TOKEN": KEY}}
    command, how = started(tmp_path, "claude", {"work/.claude/settings.json": settings}, "--dry-run")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **how)
    assert done.returncode == 0 and not echo.requests and KEY not in done.stdout + done.stderr
    assert f"ANTHROPIC_BASE_URL: {echo.url}/a, by " in done.stdout and "needs a typed yes" in done.stdout
    assert "--settings" in done.stdout and "openai: https://api.openai.com, by default" in done.stdout
    done = recede_command("proxy", "--dry-run")
    assert done.returncode == 2 and b"--dry-run is for a COMMAND" in done.stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="recede.toml is read by Python 3.11 and later")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('[hosts."llm.example.com"]\nprovider = "of-tomorrow"', '[hosts."llm.example.com"]: there is no provider'),
        ('[hosts."llm.example.com"]\nmaker = "zai"', "must have one line: provider"),
        ("[proxy]\nkeep = 5\nmax-input-tokens = 0", "max-input-tokens"),
    ],
)
def test_a_dry_run_refuses_the_settings_that_a_start_refuses(settings: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "recede.toml").write_text(settings)
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    said = []
    for flags in (["--dry-run"], []):
        done = recede_command("proxy", *flags, "--", "true", **environment)
        assert done.returncode == 2 and words in done.stderr.decode(), done.stderr
        said.append(done.stderr)
    assert said[0] == said[1]
