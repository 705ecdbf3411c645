"""Real agents with addresses of their own, in a network where every maker's host is one server on this machine.

Run by `make test-agents`; where the agents come from says test_agents.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

from makers import Makers, makers
from proxied import Answer, Request, answer_of

from played import PlayedModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FOLDERS = [Path(one, "node_modules", ".bin") for one in os.environ.get("RECEDE_AGENTS", ".").split(os.pathsep)]
PATH = os.pathsep.join([*(str(folder.absolute()) for folder in FOLDERS), os.environ["PATH"]])
KEY = "sk-plain-0123456789"
URL = "https://api.deepseek.com"
Files = dict[str, Any]
"""Files of the home by path, of the working folder with ``work/`` before it: texts, or what becomes JSON."""


class SetUp(NamedTuple):
    command: tuple[str, ...]
    files: Files
    host: str  # where the agent alone sends its conversation
    variables: Mapping[str, str] = MappingProxyType({})
    arrives: bool = True
    said: str = ""  # at the start, or at the end


CODEX = ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Say hi.")
QWEN = ("qwen", "-p", "Say hi.", "--auth-type", "openai")
PROVIDER = {"npm": "@ai-sdk/openai-compatible", "name": "Mine", "models": {"deepseek-v4-pro": {"name": "It"}}}
OF_CODEX = """
model = "deepseek-v4-pro"
model_provider = "ds"
[model_providers.ds]
name = "ds"
base_url = "https://api.deepseek.com/v1"
env_key = "DEEPSEEK_API_KEY"
wire_api = "responses"
"""
OF_KIMI = f"""
default_model = "m"
[providers.moon]
type = "kimi"
base_url = "https://api.moonshot.cn/v1"
api_key = "{KEY}"
[models.m]
provider = "moon"
model = "kimi-k3"
max_context_size = 200000
"""
OF_CLINE = {
    "version": 1,
    "lastUsedProvider": "openai-compatible",
    "providers": {
        "openai-compatible": {
            "settings": {
                "provider": "openai-compatible", "apiKey": KEY, "model": "deepseek-v4-pro", "baseUrl": f"{URL}/v1",
            },
            "updatedAt": "2026-11-28T21:40:09.224Z",
            "tokenSource": "manual",
        }
    },
}  # fmt: skip
OF_VIBE = f"""
active_model = "mine"
[[providers]]
name = "ds"
api_base = "{URL}/v1"
api_key_env_var = "DEEPSEEK_API_KEY"
[[models]]
name = "deepseek-v4-pro"
provider = "ds"
alias = "mine"
"""
DEEPSEEK = {"DEEPSEEK_API_KEY": KEY}
OF_OPENAI = {"OPENAI_BASE_URL": f"{URL}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "deepseek-v4-pro"}
MODEL = {"name": "deepseek-v4-pro"}


def _claude(url: str, model: str) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_MODEL": model}


def _qwen(**settings: Any) -> Files:
    return {".qwen/settings.json": settings}


def _of_opencode(url: str) -> Files:
    mine = {**PROVIDER, "options": {"baseURL": url, "apiKey": KEY}}
    return {".config/opencode/opencode.json": {"provider": {"mine": mine}}}


def _asking(name: str, *words: str) -> tuple[str, ...]:
    return (name, *words, "Say hi.")


CLAUDE = ("claude", "-p", "Say hi.")
MINE = {"baseUrl": f"{URL}/v1", "api": "openai-completions", "apiKey": KEY, "models": [{"id": "deepseek-v4-pro"}]}
SETUPS = {
    "claude, settings": SetUp(
        CLAUDE,
        {".claude/settings.json": {"env": _claude(f"{URL}/anthropic", "deepseek-v4-pro")}},
        "api.deepseek.com",
    ),
    "qwen, .env": SetUp(
        QWEN, {".qwen/.env": "".join(f"{name}={value}\n" for name, value in OF_OPENAI.items())}, "api.deepseek.com"
    ),
    "qwen, env": SetUp(QWEN, _qwen(env=OF_OPENAI), "api.deepseek.com"),
    "qwen, auth.baseUrl": SetUp(
        QWEN,
        _qwen(model=MODEL, security={"auth": {"selectedType": "openai", "apiKey": KEY, "baseUrl": f"{URL}/v1"}}),
        "api.deepseek.com",
    ),
    "qwen, modelProviders": SetUp(
        QWEN,
        _qwen(
            model=MODEL,
            env={"DSK": KEY},
            modelProviders={"openai": [{"id": MODEL["name"], "name": "It", "baseUrl": f"{URL}/v1", "envKey": "DSK"}]},
        ),
        "api.deepseek.com",
    ),
    "opencode, built-in provider": SetUp(
        _asking("opencode", "run", "-m", "deepseek/deepseek-v4-pro"), {}, "api.deepseek.com", DEEPSEEK
    ),
    "opencode, own provider": SetUp(
        _asking("opencode", "run", "-m", "mine/deepseek-v4-pro"),
        _of_opencode("https://gateway.example/openai/v1"),
        "gateway.example",
    ),
    "codex, openai_base_url": SetUp(
        CODEX,
        {".codex/config.toml": 'openai_base_url = "https://gateway.example/v1"\n'},
        "gateway.example",
        {"CODEX_API_KEY": KEY},
    ),
    "codex, model_providers": SetUp(CODEX, {".codex/config.toml": OF_CODEX}, "api.deepseek.com", DEEPSEEK),
    "pi": SetUp(
        _asking("pi", "-p", "--provider", "mine", "--model", "deepseek-v4-pro"),
        {".pi/agent/models.json": {"providers": {"mine": MINE}}},
        "api.deepseek.com",
    ),
    "kimi": SetUp(
        _asking("kimi", "-p"), {".kimi-code/config.toml": OF_KIMI}, "api.moonshot.cn", said="it gets that of"
    ),
    "grok": SetUp(_asking("grok", "-p"), {}, "api.x.ai", {"XAI_API_KEY": "xai-0123456789"}),
    "cline": SetUp(
        _asking("cline"),
        {".cline/data/settings/providers.json": OF_CLINE},
        "api.deepseek.com",
        {"CLINE_SESSION_BACKEND_MODE": "local"},  # alone it leaves a daemon
        said="it gets that of",
    ),
    "vibe": SetUp(_asking("vibe", "-p"), {".vibe/config.toml": OF_VIBE}, "api.deepseek.com", DEEPSEEK),
    # more than the 14
    "vibe, built-in provider": SetUp(_asking("vibe", "-p"), {}, "api.mistral.ai", {"MISTRAL_API_KEY": KEY}),
    "opencode, nothing": SetUp(
        _asking("opencode", "run", "-m", "anthropic/claude-opus-5-5"),
        {},
        "api.anthropic.com",
        {"ANTHROPIC_API_KEY": "sk-ant-x"},
    ),
    "codex, nothing": SetUp(CODEX, {}, "api.openai.com", {"CODEX_API_KEY": KEY}),
    "claude, nothing": SetUp(CLAUDE, {}, "api.anthropic.com", {"ANTHROPIC_API_KEY": "sk-ant-x"}),
    "claude, environment": SetUp(CLAUDE, {}, "api.z.ai", _claude("https://api.z.ai/api/anthropic", "glm-5.3")),
    "qwen, environment": SetUp(QWEN, {}, "api.deepseek.com", OF_OPENAI),
    "qwen, nothing": SetUp(QWEN, {}, "dashscope.aliyuncs.com", {"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "qwen4-max"}),
    "qwen, Responses": SetUp(
        ("qwen", "-p", "Say hi.", "--auth-type", "openai-responses"),
        {},
        "api.openai.com",
        {"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "gpt-5.4"},
    ),
    "pi, built-in provider": SetUp(
        _asking("pi", "-p", "--provider", "deepseek", "--model", "deepseek-v4-pro"), {}, "api.deepseek.com", DEEPSEEK
    ),
    "grok, config.toml": SetUp(
        _asking("grok", "-p"),
        {".grok/config.toml": '[endpoints]\nmodels_base_url = "https://gateway.example/v1"\n'},
        "gateway.example",
        {"XAI_API_KEY": "xai-0123456789"},
        arrives=False,
        said="no variable goes before it",
    ),
    "grok, environment": SetUp(
        _asking("grok", "-p"),
        {},
        "gateway.example",
        {"XAI_API_KEY": "xai-0123456789", "GROK_XAI_API_BASE_URL": "https://gateway.example/v1"},
    ),
    "kimi, environment": SetUp(
        _asking("kimi", "-p"), {}, "api.moonshot.ai", {"KIMI_MODEL_NAME": "kimi-k3", "KIMI_MODEL_API_KEY": KEY}
    ),
    "gemini, .env": SetUp(
        ("gemini", "-m", "gemini-2.5-pro", "-p", "Say hi.", "--yolo"),
        {
            ".gemini/.env": "GOOGLE_GEMINI_BASE_URL=https://gateway.example/google\nGEMINI_API_KEY=AIzaSyTest\n",
            ".gemini/settings.json": {"security": {"auth": {"selectedType": "gemini-api-key"}}},
        },
        "gateway.example",
        {"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    ),
}


def program(name: str) -> str:
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(f"{name} is not installed: see test_agents.py")
    return found


def _listed(name: str, model: str, **more: Any) -> dict[str, Any]:
    facts = {
        "id": model, "name": "It", "attachment": False, "reasoning": False, "temperature": True, "tool_call": True,
        "release_date": "2026-11-01", "limit": {"context": 200_000, "output": 64_000}, "open_weights": True,
        "modalities": {"input": ["text"], "output": ["text"]},
    }  # fmt: skip
    return {"id": name, "name": name, "env": [f"{name.upper()}_API_KEY"], "models": {model: facts}, **more}


CATALOG = {
    "deepseek": _listed("deepseek", "deepseek-v4-pro", npm="@ai-sdk/openai-compatible", api=URL),
    "anthropic": _listed("anthropic", "claude-opus-5-5", npm="@ai-sdk/anthropic"),
}


class Played:
    """Answers a conversation at once; OpenCode asks for a list of providers first."""

    def __init__(self, turns: int) -> None:
        self.model = PlayedModel(turns)

    def __call__(self, request: Request) -> Answer:
        if request.target.endswith("/api.json"):
            return [answer_of(json.dumps(CATALOG).encode(), "200 OK", "Content-Type: application/json")]
        return self.model(request)


class Run(NamedTuple):
    model: PlayedModel
    network: Makers
    code: int
    said: str

    def keys(self) -> set[tuple[str, str]]:
        """Which keys went to which hosts; without what Grok Build asks xAI of its key, in some runs, also alone."""
        names = re.compile("(?i)authorization|x-api-key|api-key|x-goog-api-key")
        asked = [(host, one) for host, one in self.network.requests if one.target != "/v1/api-key"]
        return {(host, v) for host, one in asked for n, v in one.headers if names.fullmatch(n)}

    def conversations(self) -> set[tuple[str, str]]:
        """Where the prompt went: host and path, in which hosts of the table need no version."""
        return {(host, one.target.replace("/v1/", "/")) for host, one in self.network.requests if b"Say hi" in one.body}


def run(setup: SetUp, folder: Path, options: tuple[str, ...] | None, turns: int = 0) -> Run:
    home, work = folder / "home", folder / "home" / "work"
    work.mkdir(parents=True)
    for name, what in setup.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(what if isinstance(what, str) else json.dumps(what))
    command = [program(setup.command[0]), *setup.command[1:]]
    if options is not None:
        command = [sys.executable, "-m", "recede.cli", "proxy", "--state", "none", *options, "--", *command]
    played = Played(turns)
    with makers(folder / "ca", played) as network:
        environment = {
            "PATH": PATH, "HOME": str(home), "LANG": "C.UTF-8",
            "TMPDIR": str(folder), "CI": "1", "NO_COLOR": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_ERROR_REPORTING": "1",
            **network.environment, **setup.variables,
        }  # fmt: skip
        done = subprocess.run(
            command,
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=150 + 10 * turns,
            stdin=subprocess.DEVNULL,
        )
    left = [path for path in folder.iterdir() if path.name.startswith("recede-")]
    assert left == [], "throw-away files are removed"
    return Run(played.model, network, done.returncode, done.stdout + done.stderr)


@pytest.mark.parametrize("name", SETUPS)
def test_an_agent_reaches_what_it_reaches_alone(name: str, tmp_path: Path) -> None:
    setup = SETUPS[name]
    alone = run(setup, tmp_path / "alone", None)
    assert {host for host, _ in alone.conversations()} == {setup.host}, (alone.network.hosts(), alone.said[-2_000:])
    through = run(setup, tmp_path / "through", ())
    assert through.network.hosts() <= alone.network.hosts(), through.said
    assert through.keys() <= alone.keys(), through.said
    assert through.conversations() == alone.conversations(), through.said[-3_000:]
    assert through.code == alone.code, through.said
    arrived = bool(re.search(r"recede: \d+ requests", through.said))
    assert arrived == setup.arrives and ("has sent nothing" in through.said) != setup.arrives, through.said
    assert setup.said in through.said, through.said
    said_by_recede = "\n".join(line for line in through.said.splitlines() if line.startswith("recede: "))
    assert KEY not in said_by_recede and "xai-0123456789" not in said_by_recede


@pytest.mark.parametrize("name", SETUPS)
def test_a_dry_run_starts_nothing_and_shows_no_key(name: str, tmp_path: Path) -> None:
    setup = SETUPS[name]
    done = run(setup, tmp_path / "dry", ("--dry-run",))
    assert done.network.requests == [] and done.code == 0, done.said
    assert KEY not in done.said and "xai-0123456789" not in done.said
    assert (f"https://{setup.host}" in done.said) or not setup.arrives, done.said


def _bad(url: str) -> Callable[[Any], Any]:
    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(one) for name, one in value.items()}
        if isinstance(value, list):
            return [changed(one) for one in value]
        return url if isinstance(value, str) and value.startswith("https://") else value

    return changed


def test_an_address_of_a_project_without_a_terminal_ends_before_anything_leaves(tmp_path: Path) -> None:
    for name, path in (("claude, settings", ".claude/settings.json"), ("qwen, env", ".qwen/settings.json")):
        setup = SETUPS[name]
        files = {f"work/{path}": _bad("https://evil.example/v1")(setup.files[path])}
        done = run(setup._replace(files=files), tmp_path / name, ())
        assert done.code == 2 and "evil.example" in done.said and path in done.said, done.said
        assert done.network.requests == []
