"""Real agents through the proxy, against a played provider: what they send, and that they end as without it.

Found on the PATH, or in the `node_modules/.bin` of the folder RECEDE_AGENTS: `npm install @anthropic-ai/claude-code
@openai/codex @google/gemini-cli opencode-ai @qwen-code/qwen-code @mariozechner/pi-coding-agent`; aider, of PyPI, on the
PATH. Nothing leaves this machine.
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
from caching_provider import PREFIXES, CachingProvider

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

from proxied import Request, proxying, recording

import recede
from played import LAST, TURNS, is_turn, play
from recede.costs import MODELS
from recede.proxy.launch import pointed
from recede.proxy.server import UPSTREAMS

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
        "GEMINI_CLI_TRUST_WORKSPACE": "true", "NO_COLOR": "1", "CI": "1", "OPENAI_MODEL": "gpt-5.4",
        "ENABLE_TOOL_SEARCH": "true",
    }  # fmt: skip


# Asks for the facts of a topic; with so many tools that an agent searches for them rather than send all.
MCP_SERVER = """
import json, sys
word = {"type": "string", "description": "What to look up."}
tools = [
    {"name": f"look_up_{number}", "description": f"Looks up facts of kind {number}. " + "Takes its time. " * 40,
     "inputSchema": {"type": "object", "properties": {"topic": word}}}
    for number in range(30)
]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"tools": tools} if asked["method"] == "tools/list" else {}
    if asked["method"] == "initialize":
        version, server = asked["params"]["protocolVersion"], {"name": "facts", "version": "1"}
        answer = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


def _claude(home: Path) -> list[str]:
    (home / "server.py").write_text(MCP_SERVER)
    server = {"command": sys.executable, "args": [str(home / "server.py")]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"facts": server}}))
    return [_program("claude"), "-p", "Do the work.", "--allowedTools", "Bash", "--mcp-config", str(home / "mcp.json")]


def _codex(home: Path) -> list[str]:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("[analytics]\nenabled = false\n")
    how = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [_program("codex"), "exec", *how, "Do the work."]


def _codex_with_functions(home: Path) -> list[str]:
    """With a model that calls functions, and writes no scripts."""
    return [*_codex(home)[:-1], "-m", "gpt-5.3-codex", "Do the work."]


def _gemini(home: Path) -> list[str]:
    (home / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return [_program("gemini"), "-m", "gemini-2.5-pro", "-p", "Do the work.", "--yolo"]


def _opencode(home: Path) -> list[str]:
    return [_program("opencode"), "run", "-m", "anthropic/claude-sonnet-4-5", "Do the work."]


def _qwen(home: Path) -> list[str]:
    (home / ".qwen").mkdir()
    # In its terminal for commands it loses the output of some.
    (home / ".qwen" / "settings.json").write_text('{"tools": {"shell": {"enableInteractiveShell": false}}}')
    return [_program("qwen"), "-p", "Do the work.", "--yolo", "--auth-type", "openai"]


def _pi(home: Path) -> list[str]:
    return [_program("pi"), "-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "Do the work."]


AGENTS = {
    "claude_code": _claude,
    "codex": _codex,
    "codex_with_functions": _codex_with_functions,
    "gemini_cli": _gemini,
    "opencode": _opencode,
    "qwen_code": _qwen,
    "pi": _pi,
}


def _run(agent: Any, home: Path, is_through: bool) -> tuple[str, Bodies, list[Request]]:
    home.mkdir()
    (home / "work").mkdir()
    command = agent(home)
    with recording(play) as upstream:
        environment = _environment(home, upstream.url)
        if is_through:
            command = [sys.executable, "-m", "recede.cli", "proxy", "-v", "--", *command]
        else:  # pointed at the provider itself in the same way
            command, environment, _ = pointed(tuple(command), upstream.url, environment, UPSTREAMS)
        done = subprocess.run(
            command, cwd=home / "work", env=environment, capture_output=True, text=True, timeout=180,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert done.returncode == 0, (done.stdout[-2_000:], done.stderr[-2_000:])
    posts = [one for one in upstream.requests if one.method == "POST" and one.body[:1] == b"{"]
    turns = [one for one in posts if is_turn(json.loads(one.body))]
    if is_through:
        assert "requests: saved" in done.stderr and "figures at http://127.0.0.1:" in done.stderr
    return done.stdout, [json.loads(one.body) for one in turns], turns


class Costs:
    """What requests cost at a provider that keeps its cache by the rules, in the price of a token of input."""

    def __init__(self, target: str) -> None:
        self.provider, self.target = CachingProvider(""), target.partition("?")[0]

    def of(self, body: dict[str, Any]) -> float:
        """The cost of the next request."""
        known = MODELS.get(str(body.get("model")))
        read = known.prices.cached / known.prices.input if known else 0.1
        least, step = next((one for end, one in PREFIXES.items() if self.target.endswith(end)), (4_096, 1))
        if self.target.endswith("/messages"):
            usage = self.provider.count(body)
            assert isinstance(usage, dict), usage  # it would be refused
            written = 1.25 * usage["cache_creation_input_tokens"]
            return usage["input_tokens"] + read * usage["cache_read_input_tokens"] + written
        tools = [{"description": json.dumps(body.get("tools", []))}]
        tokens, served = self.provider.count_prefix({**body, "tools": tools}, least, step)
        return tokens - served + read * served


def _history(body: dict[str, Any]) -> list[Any]:
    return next(body[key] for key in ("messages", "input", "contents") if key in body)  # type: ignore[no-any-return]


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unmarked(one) for name, one in value.items() if name != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
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
    size = sum(map(len, map(json.dumps, sent))) / sum(map(len, map(json.dumps, raw)))
    cost = sum(map(Costs(requests[0].target).of, sent)) / sum(map(Costs(requests[0].target).of, raw))
    print(f"{len(sent)} requests: bytes {size:.2f}, cost {cost:.2f} of raw")
    # Of a model that reads from the cache at a twentieth, sending again what is masked is worth less.
    assert size < 0.95 and cost < 1
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


def _tools(home: Path, search: str | None) -> list[str]:
    """The tools of the first request of Claude Code, whose tool search is on, or left to the proxy."""
    home.mkdir()
    with recording(play) as upstream, proxying(upstream.url) as proxy:
        environment = _environment(home, upstream.url)
        del environment["ENABLE_TOOL_SEARCH"], environment["ANTHROPIC_BASE_URL"]
        command, environment, _ = pointed(tuple(_claude(home)), proxy.url, environment, UPSTREAMS)
        if search is not None:
            environment["ENABLE_TOOL_SEARCH"] = search
        subprocess.run(command, cwd=home, env=environment, capture_output=True, timeout=180, stdin=subprocess.DEVNULL)
    bodies = [json.loads(one.body) for one in upstream.requests if one.method == "POST" and one.body[:1] == b"{"]
    return [tool["name"] for body in bodies if is_turn(body) for tool in body["tools"]]


def test_claude_code_searches_its_tools_instead_of_sending_all(tmp_path: Path) -> None:
    assert sum(name.startswith("mcp__facts__") for name in _tools(tmp_path / "off", "false")) >= 30
    names = _tools(tmp_path / "on", None)
    assert "ToolSearch" in names and not any(name.startswith("mcp__facts__") for name in names)


def test_aider_is_told_that_there_is_nothing_to_save(tmp_path: Path) -> None:
    command = [_program("aider"), "--message", "Do the work.", "--yes", "--no-git", "--model", "openai/gpt-4o"]
    with recording(play) as upstream:
        done = subprocess.run(
            [sys.executable, "-m", "recede.cli", "proxy", "--", *command], cwd=tmp_path, capture_output=True, text=True,
            env=_environment(tmp_path, upstream.url), timeout=180, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert LAST in done.stdout, done.stderr
    assert "aider sends no tool results, so nothing of its requests can be masked" in done.stderr
