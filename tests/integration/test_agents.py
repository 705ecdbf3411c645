"""Real agents through the proxy, against a played provider: what they send, and that they end as without it.

Found on the PATH, or in the `node_modules/.bin` of the folder RECEDE_AGENTS: `npm install @anthropic-ai/claude-code
@openai/codex @google/gemini-cli opencode-ai @qwen-code/qwen-code @earendil-works/pi-coding-agent
@moonshot-ai/kimi-code @xai-official/grok cline`, with Node.js 22.19 or later: under Node.js 20 npm installs old ones
of some without a word. aider and mistral-vibe (Python 3.12), of PyPI, on the PATH. Nothing leaves this machine.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")

from proxied import proxying, recording
from test_proxy_summaries import changed, history_of, played, summary_in

import recede
from played import CORPUS_SIZES, LAST, TURNS, PlayedModel
from recede.proxy.launch import pointed
from support import unmarked

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]

SECONDS = 600  # for one run of an agent
EagerModel = partial(PlayedModel, thinks=False)  # since a mask that would cost reasoning waits
LINE = "A line of a file.\n"
EAGER = ("--keep", "2", "--boundary", "sliding")  # so that a few calls are enough for masks
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


def _claude(home: Path, model: str | None = None) -> list[str]:
    (home / "server.py").write_text(MCP_SERVER)
    server = {"command": sys.executable, "args": [str(home / "server.py")]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"facts": server}}))
    how = ["--allowedTools", "Bash", "--mcp-config", str(home / "mcp.json"), *(["--model", model] if model else [])]
    return [_program("claude"), "-p", "Do the work.", *how]


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
    return [_program("opencode"), "run", "-m", "anthropic/claude-opus-5-5", "Do the work."]


def _qwen(home: Path, **context: Any) -> list[str]:
    (home / ".qwen").mkdir()
    # In its terminal for commands it loses the output of some.
    settings = {"tools": {"shell": {"enableInteractiveShell": False}}, "context": context}
    (home / ".qwen" / "settings.json").write_text(json.dumps(settings))
    return [_program("qwen"), "-p", "Do the work.", "--yolo", "--auth-type", "openai"]


def _pi(home: Path) -> list[str]:
    return [_program("pi"), "-p", "--provider", "anthropic", "--model", "claude-opus-5-5", "Do the work."]


AGENTS = {
    "claude_code": _claude,
    "codex_with_functions": _codex_with_functions,
    "gemini_cli": _gemini,
    "opencode": _opencode,
    "qwen_code": _qwen,
    "pi": _pi,
}


class Run(NamedTuple):
    """What an agent did.

    Attributes:
        program: its path.
        stdout: what it said.
        stderr: what it and the proxy said beside that.
        model: the model that was played, with the requests that it has got.
    """

    program: str
    stdout: str
    stderr: str
    model: PlayedModel


def _run(
    command: list[str],
    home: Path,
    model: PlayedModel,
    options: tuple[str, ...] | None,
    said: str = "requests: saved",
    **variables: str,
) -> Run:
    """Run an agent, with the proxy of these options or without one; the proxy says so much at its end."""
    (home / "work").mkdir(exist_ok=True)
    with recording(model) as upstream:
        environment = {**_environment(home, upstream.url), **variables}
        if options is None:  # pointed at the provider itself in the same way
            to_run, environment, *_ = pointed(tuple(command), upstream.url, environment)
        else:
            to_run = (
                sys.executable,
                "-m",
                "recede.cli",
                "proxy",
                *options,
                "--upstream",
                upstream.url,
                "-v",
                "--",
                *command,
            )
        done = subprocess.run(
            to_run, cwd=home / "work", env=environment, capture_output=True, text=True, timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert done.returncode == 0 and LAST in done.stdout, (done.stdout[-2_000:], done.stderr[-2_000:])
    assert model.refused == []
    if options is not None:
        assert said in done.stderr and "figures at http://127.0.0.1:" in done.stderr
    return Run(command[0], done.stdout, done.stderr, model)


ROWS: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def table(pytestconfig: pytest.Config) -> Iterator[None]:
    """Print the table of docs/proxy.md, after the last test."""
    yield
    with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\n\n| agent, calls | model | bytes | cost |\n|---|---|--:|--:|", *ROWS, sep="\n")


def _row(run: Run, note: str, turns: int) -> str:
    """The agent with its version, its calls, and its model, which Gemini has in its path."""
    said = subprocess.run([run.program, "--version"], capture_output=True, text=True, timeout=60)
    version = re.search(r"\d+\.\d+\.\d+", said.stdout + said.stderr)
    model = run.model.bodies[-1].get("model") or run.model.requests[-1].target.rpartition("/")[2].partition(":")[0]
    return f"| {Path(run.program).name} {version[0] if version else ''}{note}, {turns} | `{model}` |"


def _both(
    agent: Any, folder: Path, turns: int = TURNS, sizes: tuple[int, ...] = (), note: str = "", **said: str
) -> tuple[Run, Run, float]:
    """Runs of an agent without and with the proxy, and what the second cost of the first."""
    runs = []
    for name, options in (("raw_", None), ("sent", ())):
        (folder / name).mkdir()
        runs.append(_run(agent(folder / name), folder / name, PlayedModel(turns, sizes), options, **said))
    raw, sent = runs
    assert turns < len(raw.model.requests) < turns + 10
    assert len(sent.model.requests) == len(raw.model.requests)
    bytes_of = [sum(len(one.body) for one in run.model.requests) for run in runs]
    cost = sent.model.input_usd / raw.model.input_usd
    ROWS.append(f"{_row(sent, note, turns)} {bytes_of[1] / bytes_of[0]:.2f} | {cost:.2f} |")
    return raw, sent, cost


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_an_agent_ends_as_without_the_proxy_and_sends_masked_requests(agent: Any, tmp_path: Path) -> None:
    raw, sent, cost = _both(agent, tmp_path)
    # Of a model that reads from the cache at a twentieth, sending again what is masked is worth less.
    assert cost < 1
    masker = recede.proxy.RequestMasker(keep=10)  # as if the agent had sent through it what it sends without
    requests = raw.model.requests
    expected = [json.loads(masker.mask("POST", one.target, {}, one.body).body) for one in requests]
    for with_proxy, masked in zip(sent.model.bodies, expected, strict=True):
        one, two = json.dumps(with_proxy), json.dumps(masked)
        assert one.count("old tool output cleared") == two.count("old tool output cleared")
        assert len(one) == pytest.approx(len(two), rel=0.001)  # ids, and times that a command took, differ
    moves = 0
    for before, after in pairwise(sent.model.bodies):
        one, two = unmarked(history_of(before)), unmarked(history_of(after))
        moves += json.dumps(two[: len(one) - 1]) != json.dumps(one[:-1])
    assert 1 <= moves <= 8, moves
    for with_proxy, without in zip(sent.model.bodies, raw.model.bodies, strict=True):
        history, whole = history_of(with_proxy), history_of(without)
        assert recede.check_pairs(history) == recede.check_pairs(whole)
        assert len(history) == len(whole)
        assert with_proxy.keys() == without.keys()
        assert json.dumps(history).count("thoughtSignature") == json.dumps(whole).count("thoughtSignature")
    last = json.dumps(history_of(sent.model.bodies[-1]))
    assert 10 <= last.count("old tool output cleared") < TURNS
    _check_money(raw, sent)


def test_codex_with_scripts_is_not_masked_since_it_does_not_pay(tmp_path: Path) -> None:
    """Its default model ends its cache entries at results, and charges more for writing them."""
    raw, sent, cost = _both(
        _codex, tmp_path, said="nothing masked, since it does not pay in sessions as short as these"
    )
    assert cost == pytest.approx(1, abs=0.001)  # ids, and times that a command took, differ
    assert not any("old tool output cleared" in json.dumps(body) for body in sent.model.bodies)
    for with_proxy, without in zip(sent.model.bodies, raw.model.bodies, strict=True):
        assert with_proxy.keys() == without.keys() and len(history_of(with_proxy)) == len(history_of(without))
    (whole,) = map(float, re.findall(r"for about \$([0-9.]+): nothing masked", sent.stderr))
    assert whole == pytest.approx(raw.model.usd, rel=0.03, abs=0.02)


def _check_money(raw: Run, sent: Run) -> None:
    """What the proxy says it saved is what the provider has charged less."""
    saved, whole = map(float, re.findall(r"about \$([0-9.]+) (?:of|lost on) \$([0-9.]+)", sent.stderr)[-1])
    saved = -saved if "lost on" in sent.stderr else saved
    assert whole == pytest.approx(raw.model.usd, rel=0.03, abs=0.02)
    assert whole - saved == pytest.approx(sent.model.usd, rel=0.03, abs=0.02)


def test_250_turns_of_claude_code_cost_half(tmp_path: Path) -> None:
    _, sent, cost = _both(_claude, tmp_path, 250, CORPUS_SIZES)
    # What is sent again costs half as much with a model that reads from the cache at a twentieth.
    assert cost < (0.6 if sent.model.bodies[-1]["model"] == "claude-opus-5-5" else 0.55)


# With Opus 5.5, which reads from the cache at a twentieth of its input, a summary pays too late here.
WITH_SUMMARIES = {"claude_code": partial(_claude, model="claude-sonnet-4-6"), "codex": _codex_with_functions}


@pytest.mark.parametrize("agent", WITH_SUMMARIES.values(), ids=WITH_SUMMARIES)
def test_250_turns_cost_less_with_summaries(agent: Any, tmp_path: Path) -> None:
    runs = []
    for name, options in (("alone", ()), ("both", ("--summaries",))):
        home = tmp_path / name
        home.mkdir()
        options = ("--state", str(home / "requests"), *options)
        runs.append(_run(agent(home), home, played(250), options))
    alone, both = (run.model for run in runs)
    assert any(map(summary_in, both.bodies)) and not any(map(summary_in, alone.bodies))
    assert len(changed(both.bodies)) == runs[1].stderr.count("the boundary moved")
    assert not any(recede.check_pairs(history_of(body)).findings for body in both.bodies)
    bytes_of = [sum(len(one.body) for one in model.requests) for model in (alone, both)]
    cost = both.usd / alone.usd
    ROWS.append(f"{_row(runs[1], ', summaries to masks alone', 250)} {bytes_of[1] / bytes_of[0]:.2f} | {cost:.3f} |")
    assert cost <= 0.85
    assert "calls for summaries, counted in, for $" in runs[1].stderr


# What the user has said


def _folder(home: Path) -> Path:
    """A folder with instructions of its own, and a file."""
    folder = home / "work" / "sub"
    folder.mkdir(parents=True)
    for name in ("CLAUDE.md", "AGENTS.md", "GEMINI.md"):
        (folder / name).write_text("Count in fives.\n")
    (folder / "a.txt").write_text(LINE * 60)
    return folder / "a.txt"


def _reading(path: Path) -> dict[str, Any]:
    return {"Read": {"file_path": str(path)}, "read": {"filePath": str(path)}, "read_file": {"file_path": str(path)}}


# Models that take no system prompt among the messages have what Claude Code adds in their results.
MODELS_OF_CLAUDE = ("claude-opus-5-5", "claude-sonnet-4-6")
WITH_INSTRUCTIONS = {
    **{f"claude_code, {name}": partial(_claude, model=name) for name in MODELS_OF_CLAUDE},
    "opencode": _opencode,
    "gemini_cli": _gemini,
}


@pytest.mark.parametrize("agent", WITH_INSTRUCTIONS.values(), ids=WITH_INSTRUCTIONS)
def test_instructions_of_a_folder_are_never_masked(agent: Any, tmp_path: Path) -> None:
    path = _folder(tmp_path)
    run = _run(agent(tmp_path), tmp_path, EagerModel(8, calls={1: _reading(path)}), EAGER)
    shown = ["Count in fives." in json.dumps(body) for body in run.model.bodies]
    assert shown == [False] * 2 + [True] * 7
    assert json.dumps(run.model.bodies[-1]).count("old tool output cleared") >= 4


@pytest.mark.parametrize("name", MODELS_OF_CLAUDE)
def test_what_is_said_while_claude_code_works_is_never_masked(name: str, tmp_path: Path) -> None:
    streams = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    command = [_program("claude"), "-p", *streams, "--allowedTools", "Bash", "--model", name]
    model, said = EagerModel(10), "Use the second table only."

    def say(stream: IO[str], text: str) -> None:
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        stream.write(json.dumps({"type": "user", "message": message}) + "\n")
        stream.flush()

    with (
        recording(model) as upstream,
        subprocess.Popen(
            [sys.executable, "-m", "recede.cli", "proxy", *EAGER, "--", *command], cwd=tmp_path, text=True,
            env=_environment(tmp_path, upstream.url), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as process,
    ):  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        say(process.stdin, "Do the work.")
        answers = 0
        for line in process.stdout:
            kind = json.loads(line)["type"]
            answers += kind == "assistant"
            if kind == "assistant" and answers == 2:
                say(process.stdin, said)
            elif kind == "result":
                process.stdin.close()
    assert process.returncode == 0
    shown = [said in json.dumps(body) for body in model.bodies]
    assert any(shown) and False not in shown[shown.index(True) :]
    assert json.dumps(model.bodies[-1]).count("old tool output cleared") >= 5


# What the agent was taught, asked and refused

SKILL = (
    "---\nname: sevens\ndescription: How to count.\n---\nCount in sevens. "
    + "Never in eights, and never in nines. " * 9
)
SKILLS = {
    "claude_code": (_claude, ".claude/skills"),
    "gemini_cli": (_gemini, ".gemini/skills"),
    "opencode": (_opencode, ".opencode/skills"),
    "qwen_code": (_qwen, ".qwen/skills"),
}


@pytest.mark.parametrize(("agent", "folder"), SKILLS.values(), ids=SKILLS)
def test_a_skill_is_never_masked(agent: Any, folder: str, tmp_path: Path) -> None:
    if agent is _opencode and shutil.which("rg") is None:
        pytest.skip("OpenCode fetches ripgrep where there is none")
    skill = tmp_path / "work" / folder / "sevens"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    load = {
        "Skill": {"skill": "sevens"},
        "activate_skill": {"name": "sevens"},
        "skill": {"name": "sevens", "skill": "sevens"},
    }
    run = _run(agent(tmp_path), tmp_path, EagerModel(8, calls={1: load}), EAGER)
    shown = ["Never in eights, and never" in json.dumps(body) for body in run.model.bodies]
    assert shown == [False] * 2 + [True] * 7
    assert json.dumps(run.model.bodies[-1]).count("old tool output cleared") >= 4


HOOK = """
import json, sys
if "forbidden" in json.load(sys.stdin)["tool_input"]["command"]:
    print("Ask the owner of the table before you count in it. " * 9, file=sys.stderr)
    sys.exit(2)
"""


def test_the_refusal_of_a_hook_is_never_masked(tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text(HOOK)
    hook = {"type": "command", "command": f"{sys.executable} {tmp_path / 'hook.py'}"}
    (tmp_path / ".claude").mkdir()
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps(settings))
    calls = {1: {"Bash": {"command": "echo forbidden", "description": "Count"}}}
    run = _run(_claude(tmp_path), tmp_path, EagerModel(8, calls=calls), EAGER)
    shown = ["Ask the owner of the table before" in json.dumps(body) for body in run.model.bodies]
    assert shown == [False] * 2 + [True] * 7
    assert json.dumps(run.model.bodies[-1]).count("old tool output cleared") >= 4


def test_the_answer_to_a_question_is_never_masked(tmp_path: Path) -> None:
    """Claude Code asks by its protocol for programs, as it does in an editor."""
    streams = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    command = [_program("claude"), "-p", *streams, "--allowedTools", "Bash", "--permission-prompt-tool", "stdio"]
    options = [{"label": name, "description": f"The {name} table."} for name in ("first", "second")]
    question = {"question": "Which table?", "header": "Table", "options": options, "multiSelect": False}
    model = EagerModel(8, calls={1: {"AskUserQuestion": {"questions": [question]}}})
    said = "Neither: take the third one, which is on the last page. " * 9
    with (
        recording(model) as upstream,
        subprocess.Popen(
            [sys.executable, "-m", "recede.cli", "proxy", *EAGER, "--", *command], cwd=tmp_path, text=True,
            env=_environment(tmp_path, upstream.url), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as process,
    ):  # fmt: skip
        assert process.stdin is not None and process.stdout is not None

        def write(value: Any) -> None:
            process.stdin.write(json.dumps(value) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]

        write({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "Do the work."}]}})
        for line in process.stdout:
            found = json.loads(line)
            if found["type"] == "control_request":
                given = {**found["request"]["input"], "answers": {"Which table?": said}}
                response = {"behavior": "allow", "updatedInput": given}
                answer = {"subtype": "success", "request_id": found["request_id"], "response": response}
                write({"type": "control_response", "response": answer})
            elif found["type"] == "result":
                process.stdin.close()
    assert process.returncode == 0
    shown = ["take the third one" in json.dumps(body) for body in model.bodies]
    assert shown == [False] * 2 + [True] * 7
    assert json.dumps(model.bodies[-1]).count("old tool output cleared") >= 4


# What the agent does with its own results


def test_a_file_that_claude_code_reads_again_is_shown(tmp_path: Path) -> None:
    """Some versions refer to the first result if the file is unchanged, others read it again."""
    path = tmp_path / "work" / "a.txt"
    path.parent.mkdir()
    path.write_text(LINE * 60)
    model = EagerModel(11, calls={1: _reading(path), 7: _reading(path)})
    bodies = [json.dumps(body) for body in _run(_claude(tmp_path), tmp_path, model, EAGER).model.bodies]
    assert not any(LINE[:-1] in body for body in bodies[5:8])  # it is masked
    assert all(body.count(f"60\\t{LINE[:-1]}") == 1 for body in bodies[8:10])


def test_an_agent_that_clears_its_results_costs_no_more(tmp_path: Path) -> None:
    limits: dict[str, Any] = {"clearContextOnIdle": {"toolResultsTotalCharsThreshold": 200_000}}  # 500,000 by default
    raw, _, cost = _both(partial(_qwen, **limits), tmp_path, note=", which clears past 200,000 characters")
    cleared = [json.dumps(body).count("[Old tool result content cleared]") for body in raw.model.bodies]
    assert cleared[0] == 0 and len(set(cleared)) >= 3 and cleared[-1] > 30
    assert cost < 1


def _tools(home: Path, search: str | None) -> list[str]:
    """The tools of the first request of Claude Code, whose tool search is off, or as it is by itself."""
    home.mkdir()
    model = PlayedModel(1)
    with recording(model) as upstream, proxying(upstream.url) as proxy:
        environment = _environment(home, upstream.url)
        del environment["ANTHROPIC_BASE_URL"]
        command, environment, *_ = pointed(tuple(_claude(home)), proxy.url, environment)
        if search is not None:
            environment["ENABLE_TOOL_SEARCH"] = search
        subprocess.run(command, cwd=home, env=environment, capture_output=True, timeout=180, stdin=subprocess.DEVNULL)
    return [tool["name"] for body in model.bodies for tool in body["tools"]]


def test_claude_code_searches_its_tools_instead_of_sending_all(tmp_path: Path) -> None:
    assert sum(name.startswith("mcp__facts__") for name in _tools(tmp_path / "off", "false")) >= 30
    names = _tools(tmp_path / "on", None)
    assert "ToolSearch" in names and not any(name.startswith("mcp__facts__") for name in names)


# Logins: played ones, since no account is at hand


def _token(claims: dict[str, Any]) -> str:
    """A token as a login gives it, signed by nobody."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=").decode() for one in ({"alg": "none"}, claims)
    ]
    return ".".join([*parts, "none"])


def test_codex_with_a_login_of_chatgpt_is_masked(tmp_path: Path) -> None:
    command = _codex(tmp_path)
    account = {"chatgpt_account_id": "account", "chatgpt_plan_type": "plus", "chatgpt_user_id": "user"}
    token = _token({"email": "a@b.c", "exp": int(time.time()) + 99_999, "https://api.openai.com/auth": account})
    tokens = {"id_token": token, "access_token": token, "refresh_token": "none", "account_id": "account"}
    login = {
        "OPENAI_API_KEY": None,
        "tokens": tokens,
        "last_refresh": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    (tmp_path / ".codex" / "auth.json").write_text(json.dumps(login))
    run = _run(command, tmp_path, EagerModel(8), EAGER, CODEX_API_KEY="", OPENAI_API_KEY="")
    # By this header requests go to ChatGPT, unless --upstream says otherwise, as here.
    assert {one.named("chatgpt-account-id") for one in run.model.requests} == {"account"}
    assert {one.target for one in run.model.requests} == {"/v1/responses"}
    assert json.dumps(run.model.bodies[-1]).count("old tool output cleared") >= 5


def test_claude_code_with_a_login_is_masked(tmp_path: Path) -> None:
    login = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-none"}
    run = _run(_claude(tmp_path), tmp_path, EagerModel(8), (*EAGER, "--summaries"), **login)
    assert run.stderr.count("belongs to its agent: its conversations get no summaries") == 1
    assert {one.named("authorization") for one in run.model.requests} == {"Bearer sk-ant-oat01-none"}
    assert json.dumps(run.model.bodies[-1]).count("old tool output cleared") >= 5


def test_aider_is_told_that_there_is_nothing_to_save(tmp_path: Path) -> None:
    command = [_program("aider"), "--message", "Do the work.", "--yes", "--no-git", "--model", "openai/gpt-4o"]
    with recording(PlayedModel(1)) as upstream:
        done = subprocess.run(
            [sys.executable, "-m", "recede.cli", "proxy", "--", *command], cwd=tmp_path, capture_output=True, text=True,
            env=_environment(tmp_path, upstream.url), timeout=180, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert LAST in done.stdout, done.stderr
    assert "aider sends no tool results, so nothing of its requests can be masked" in done.stderr
