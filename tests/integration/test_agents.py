"""Real agents through the proxy, against a played provider: what they send, and that they end as without it.

Found on the PATH, or in the `node_modules/.bin` of the folder RECEDE_AGENTS: `npm install @anthropic-ai/claude-code
@openai/codex @google/gemini-cli`. Nothing leaves this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

from proxied import Request, recording

import recede
from played import LAST, TURNS, is_turn, play

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

Bodies = list[dict[str, Any]]
FOLDER = Path(os.environ.get("RECEDE_AGENTS") or ".") / "node_modules" / ".bin"


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=str(FOLDER.absolute()))
    if found is None:
        pytest.skip(f"{name} is not installed (npm; see the words at the top of this file)")
    return found


def _environment(home: Path, url: str) -> dict[str, str]:
    """Without keys, telemetry, updates, and a way out of this machine."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
    dark = "http://127.0.0.1:9"
    return {
        **kept,
        "HOME": str(home), "CODEX_HOME": str(home / ".codex"), "XDG_STATE_HOME": str(home / "state"),
        "HTTPS_PROXY": dark, "https_proxy": dark, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
        "ANTHROPIC_API_KEY": "sk-ant-none", "OPENAI_API_KEY": "none", "CODEX_API_KEY": "none", "GEMINI_API_KEY": "none",
        "ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": url + "/v1", "GOOGLE_GEMINI_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1", "GEMINI_TELEMETRY_ENABLED": "false",
        "GEMINI_CLI_TRUST_WORKSPACE": "true", "NO_COLOR": "1", "CI": "1",
    }  # fmt: skip


def _claude(home: Path) -> list[str]:
    return [_program("claude"), "-p", "Do the work.", "--allowedTools", "Bash"]


def _codex(home: Path) -> list[str]:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text('model = "gpt-5.3-codex"\n[analytics]\nenabled = false\n')
    script = f"exec {_program('codex')} exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox"
    return ["sh", "-c", script + ' -c "openai_base_url=\\"$OPENAI_BASE_URL\\"" "Do the work." < /dev/null']


def _gemini(home: Path) -> list[str]:
    (home / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return [_program("gemini"), "-m", "gemini-2.5-pro", "-p", "Do the work.", "--yolo"]


def _run(agent: Any, home: Path, is_through: bool) -> tuple[str, Bodies, list[Request]]:
    home.mkdir()
    (home / "work").mkdir()
    command = agent(home)
    with recording(play) as upstream:
        through = [sys.executable, "-m", "recede.cli", "proxy", "-v", "--"] if is_through else []
        done = subprocess.run(
            [*through, *command], cwd=home / "work", env=_environment(home, upstream.url), capture_output=True,
            text=True, timeout=180, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert done.returncode == 0, (done.stdout[-2_000:], done.stderr[-2_000:])
    posts = [one for one in upstream.requests if one.method == "POST" and one.body[:1] == b"{"]
    turns = [one for one in posts if is_turn(json.loads(one.body))]
    if is_through:
        assert "requests: saved" in done.stderr
    return done.stdout, [json.loads(one.body) for one in turns], turns


def _history(body: dict[str, Any]) -> list[Any]:
    return next(body[key] for key in ("messages", "input", "contents") if key in body)  # type: ignore[no-any-return]


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unmarked(one) for name, one in value.items() if name != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("agent", [_claude, _codex, _gemini], ids=["claude_code", "codex", "gemini_cli"])
def test_an_agent_ends_as_without_the_proxy_and_sends_masked_requests(agent: Any, tmp_path: Path) -> None:
    said, raw, requests = _run(agent, tmp_path / "raw_", False)
    again, sent, _ = _run(agent, tmp_path / "sent", True)
    assert LAST in said and LAST in again
    assert TURNS < len(raw) < TURNS + 10 and len(sent) == len(raw)
    masker = recede.proxy.RequestMasker(keep=10)  # as if the agent had sent through it what it sends without
    expected = [json.loads(masker.mask("POST", one.target, {}, one.body).body) for one in requests]
    for with_proxy, masked in zip(sent, expected, strict=True):
        one, two = json.dumps(with_proxy), json.dumps(masked)
        assert one.count("observation masked") == two.count("observation masked")
        assert len(one) == pytest.approx(len(two), rel=0.001)  # ids, and times that a command took, differ
    assert sum(map(len, map(json.dumps, sent))) < 0.75 * sum(map(len, map(json.dumps, raw)))
    moves = 0
    for before, after in pairwise(sent):
        one, two = _unmarked(_history(before)), _unmarked(_history(after))
        moves += json.dumps(two[: len(one) - 1]) != json.dumps(one[:-1])
    assert 1 <= moves <= 8, moves
    for with_proxy, without in zip(sent, raw, strict=True):
        history, whole = _history(with_proxy), _history(without)
        assert json.dumps(with_proxy).count('"cache_control"') <= 4
        assert recede.check_pairs(history) == recede.check_pairs(whole)
        assert len(history) == len(whole)
        assert with_proxy.keys() == without.keys()
        assert json.dumps(history).count("thoughtSignature") == json.dumps(whole).count("thoughtSignature")
    last = json.dumps(_history(sent[-1]))
    assert 10 <= last.count("observation masked") < TURNS
