"""`recede proxy` as a process: with a command and alone, signals, exit codes, kill and restart."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and exit codes of POSIX")

from children import forked, in_fork, recede_command
from proxied import Answer, Request, answer_of, ask, chunked, recording

import recede
from recede._agents import AGENTS
from recede.cli.options import given
from recede.cli.proxy import proxy
from recede.proxy import ColdRequests, RequestMasker
from recede.proxy.launch import pointed, started
from recede.reduction._options import OPTIONS

COMMAND = [sys.executable, "-m", "recede.cli", "proxy"]
JSON = ("Content-Type", "application/json")
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def body(turns: int) -> bytes:
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    for number in range(turns):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "run", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x" * 4_000}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return json.dumps({"model": "claude-opus-5", "messages": messages}).encode()


class Running:
    """The proxy as a process of its own."""

    def __init__(self, upstream: str, state: Path | str, *arguments: str) -> None:
        command = [*COMMAND, "--port", "0", "--upstream", upstream, "--state", str(state), *arguments]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12 and newer: see children.py
            begin = forked(command, os.environ.copy())
            self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=begin)
        assert self.process.stderr is not None
        self.stderr = self.process.stderr
        line = self.stderr.readline()
        while "listening on" not in line:
            assert line, "it ended"
            line = self.stderr.readline()
        self.url = line.split("listening on ")[1].split(",")[0]

    def end(self, number: int) -> str:
        self.process.send_signal(number)
        said = self.stderr.read()
        self.process.wait(40)
        self.stderr.close()
        return said


@contextlib.contextmanager
def running(upstream: str, state: Path | str = "none", *arguments: str) -> Iterator[Running]:
    proxy = Running(upstream, state, *arguments)
    try:
        yield proxy
    finally:
        if proxy.process.poll() is None:
            proxy.end(signal.SIGKILL)


CHILD = """
import json, os, sys, urllib.request
names = "ANTHROPIC_BASE_URL OPENAI_BASE_URL OPENAI_API_BASE GOOGLE_GEMINI_BASE_URL".split()
print(json.dumps({name: os.environ[name] for name in names}), sys.stdin.read())
for path in ("/v1/messages", "/v1/chat/completions"):
    data = open(sys.argv[1], "rb").read()
    with urllib.request.urlopen(urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + path, data)) as answer:
        answer.read()
sys.exit(7)
"""


def test_a_command_has_its_variables_terminal_and_exit_code(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(body(40))
    with recording(lambda _: [answer_of(b"{}")]) as one, recording(lambda _: [answer_of(b"{}")]) as two:
        variables = {
            "ANTHROPIC_BASE_URL": one.url,
            "OPENAI_BASE_URL": two.url + "/v1/",
            "XDG_STATE_HOME": str(tmp_path),
        }
        child = [sys.executable, "-c", CHILD, tmp_path / "body"]
        done = recede_command("proxy", "--", *child, stdin=b"typed", **variables)
        assert done.returncode == 7, done.stderr
        found, _, typed = done.stdout.decode().strip().rpartition(" ")
        urls = json.loads(found)
        base = urls["ANTHROPIC_BASE_URL"]
        assert typed == "typed" and base.startswith("http://127.0.0.1:")
        assert urls["OPENAI_BASE_URL"] == urls["OPENAI_API_BASE"] == base + "/v1"
        assert urls["GOOGLE_GEMINI_BASE_URL"] == base
        assert [request.target for request in one.requests] == ["/v1/messages"]
        assert [request.target for request in two.requests] == ["/v1/chat/completions"]
        assert b"old tool output cleared" in one.requests[0].body
        assert b"recede: 2 requests: saved" in done.stderr and b"input tokens" in done.stderr
    state = tmp_path / "recede" / "requests"
    assert len(ColdRequests(state)) == 1  # both requests begin alike
    assert state.parent.stat().st_mode & 0o777 == 0o700


def test_a_command_that_does_not_exist_is_127(tmp_path: Path) -> None:
    done = recede_command("proxy", "--state", "none", "--", "no-such-command-here")
    assert done.returncode == 127 and b"no-such-command-here" in done.stderr


def test_a_signal_reaches_the_command(tmp_path: Path) -> None:
    script = "import signal, time\nprint('ready', flush=True)\ntime.sleep(30)"
    command = [*COMMAND, "--state", "none", "--", sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM


def test_an_interrupt_is_for_the_command(tmp_path: Path) -> None:
    """Ctrl-C reaches both processes: the command may take it for something else than an end."""
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(3))\n"
        "print('ready', flush=True)\ntime.sleep(30)"
    )
    command = [*COMMAND, "--state", "none", "--", sys.executable, "-c", script]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) == 3


def test_two_proxies_on_one_state_file_send_what_one_does_also_when_they_are_killed(tmp_path: Path) -> None:
    """Four conversations, whose requests go to either proxy in turn, with a pause after the 13th turn."""
    names, turns, state = "abcd", range(8, 32), tmp_path / "state"
    bodies = {(name, turn): body(turn).replace(b"toolu_", f"toolu_{name}".encode()) for name in names for turn in turns}
    now = [0.0]
    one = recede.proxy.RequestMasker(clock=lambda: now[0], upstream="http://127.0.0.1:1")
    expected = {}
    for (name, turn), data in sorted(bodies.items(), key=lambda item: item[0][1]):
        now[0] += 7_200.0 if (name, turn) == ("a", 14) else 1.0
        expected[name, turn] = one.mask("POST", "/v1/messages", {}, data).body
    before_pause, after_pause = threading.Barrier(5, timeout=100), threading.Barrier(5, timeout=100)
    wrong, retries = [], []
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(recording(lambda request: [answer_of(hashlib.sha256(request.body).digest())]))
        proxies = [stack.enter_context(running(upstream.url, state)) for _ in range(2)]

        def send(name: str, turn: int) -> None:
            for attempt in range(2_000):
                try:
                    url = proxies[(turn + attempt) % 2].url
                    got = ask(url, "POST", "/v1/messages", bodies[name, turn], [JSON])
                except (OSError, http.client.HTTPException):
                    retries.append(turn)
                    time.sleep(0.05)
                    continue
                if got.body != hashlib.sha256(expected[name, turn]).digest():
                    wrong.append((name, turn))
                return
            wrong.append((name, turn))

        def converse(name: str) -> None:
            for turn in turns:
                if turn == 14:
                    before_pause.wait()
                    after_pause.wait()
                send(name, turn)

        threads = [threading.Thread(target=converse, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        before_pause.wait()
        set_back(state, 7_200.0)
        for proxy in proxies:  # they read the whole file again; from then on what the other one appends
            ask(proxy.url, "POST", "/v1/messages/count_tokens", bodies["a", 13], [JSON])
        after_pause.wait()
        for place in (0, 1):
            count = len(upstream.requests)
            while len(upstream.requests) < count + 12 and any(thread.is_alive() for thread in threads):
                time.sleep(0.002)
            proxies[place].end(signal.SIGKILL)
            proxies[place].__init__(upstream.url, state)  # type: ignore[misc]
        for thread in threads:
            thread.join()
        for turn in (31, 14, 13, 20):
            send("a", turn)
    assert not wrong and retries
    assert len(ColdRequests(state)) == len(bodies)


def set_back(state: Path, seconds: float) -> None:
    """As if so much time had passed: the times of the ledger are set back, in a file that replaces it."""
    ledger, new = ColdRequests(state), state.with_name("new")
    for key, pause in ledger._entries.items():
        ledger._entries[key] = pause._replace(value=pause.value - 2 * int(seconds * 1_000))
    new.write_bytes(b"".join(ledger._written()))
    new.replace(state)


def test_sigterm_lets_running_streams_end_and_takes_no_more() -> None:
    go = threading.Event()

    def answer(_: Request) -> Answer:
        yield STREAM + chunked(b"data: 1\n\n")
        yield go
        yield chunked(b"data: 2\n\n") + b"0\r\n\r\n"

    with recording(answer) as upstream, running(upstream.url, "none", "-v") as proxy:
        port = int(proxy.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client, client.makefile("rb") as file:
            client.sendall(b"POST /v1/messages?key=secret HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n")
            client.sendall(b'{"messages":[]}')
            while b"data: 1" not in file.readline():
                pass
            proxy.process.send_signal(signal.SIGTERM)
            for _ in range(200):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                except ConnectionRefusedError:
                    break
                time.sleep(0.02)
            else:
                raise AssertionError("it still listens")
            go.set()
            assert file.read().endswith(b"data: 2\n\n\r\n0\r\n\r\n")
        said = proxy.stderr.read()
        assert proxy.process.wait(20) == 0
        proxy.stderr.close()
        assert "POST /v1/messages: 200" in said and "secret" not in said
        assert "recede: 1 requests" in said and "nothing masked" in said


@contextlib.contextmanager
def unanswered(url: str, count: int = 3) -> Iterator[list[socket.socket]]:
    """Clients that wait for an answer which never comes."""
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(count):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 40))
            client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n")
            client.sendall(b'{"messages":[]}')
            clients.append(client)
        yield clients


@pytest.mark.timeout(25)  # running requests would have 30 seconds
@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(first: int, second: int) -> None:
    never = threading.Event()
    with recording(lambda _: [never]) as upstream, running(upstream.url) as proxy, unanswered(proxy.url) as clients:
        while len(upstream.requests) < len(clients):
            time.sleep(0.01)
        proxy.process.send_signal(first)
        assert any("stopping" in line for line in iter(proxy.stderr.readline, ""))
        said = proxy.end(second)
        assert proxy.process.returncode == 0 and "no requests with a history" in said and "Traceback" not in said
        for client in clients:
            with contextlib.suppress(ConnectionError):
                assert client.recv(100) == b""


@pytest.mark.timeout(25)
def test_a_signal_after_the_command_has_ended_ends_at_once() -> None:
    """What the command has started, and left behind, may still wait for answers."""
    with recording(lambda _: [threading.Event()]) as upstream:
        left = "import os, urllib.request\nurllib.request.urlopen(os.environ['OPENAI_BASE_URL'] + '/responses', b'{}')"
        script = (
            "import os, subprocess, sys, time\n"
            f"subprocess.Popen([sys.executable, '-c', {left!r}], stderr=subprocess.DEVNULL)\n"
            "time.sleep(float('inf')) if os.read(0, 1) == b'' else None"
        )
        command = [*COMMAND, "--state", "none", "--upstream", upstream.url, "--", sys.executable, "-c", script]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin is not None
            while not upstream.requests:
                time.sleep(0.01)
            process.stdin.write(b"x")
            process.stdin.close()
            while subprocess.run(["pgrep", "-P", str(process.pid)], stdout=subprocess.DEVNULL).returncode == 0:
                time.sleep(0.01)
            while process.poll() is None:
                process.send_signal(signal.SIGTERM)
                time.sleep(0.05)
            assert process.returncode in (0, -signal.SIGTERM)  # the last one may come when it has ended


BY_URLLIB = "urllib.request.urlopen(urllib.request.Request(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages', b'{}'))"
BY_HTTPX = """import anthropic
anthropic.Anthropic(api_key='secret', max_retries=0).messages.create(model='m', max_tokens=1, messages=[])"""
NAMES = "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY".split()


@pytest.mark.parametrize(
    ("call", "names", "without", "expected"),
    [
        (BY_URLLIB, ["HTTP_PROXY"], {}, ["127.0.0.1", "127.0.0.1"]),
        (BY_HTTPX, ["ALL_PROXY"], {}, ["127.0.0.1", "127.0.0.1"]),
        (BY_HTTPX, ["HTTP_PROXY"], {"NO_PROXY": "a.example,.b"}, ["a.example,.b,127.0.0.1"] * 2),
        (BY_URLLIB, ["http_proxy", "all_proxy"], {"NO_PROXY": "a", "no_proxy": "b"}, ["a,127.0.0.1", "b,127.0.0.1"]),
        (BY_URLLIB, ["HTTP_PROXY"], {"no_proxy": "*"}, ["*", "*"]),
    ],
)
def test_the_key_of_the_command_does_not_go_to_the_proxy_of_the_network(
    call: str, names: list[str], without: dict[str, str], expected: list[str]
) -> None:
    answer = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": {}}
    content = ["Content-Type: application/json"]
    with (
        recording(lambda _: [answer_of(json.dumps(answer).encode(), "200 OK", *content)]) as provider,
        recording(lambda _: [answer_of(b"", "403 Forbidden")]) as network,
    ):
        script = f"import os, urllib.request\nprint(os.environ['NO_PROXY'], os.environ['no_proxy'])\n{call}"
        clean = {name: one for name, one in os.environ.items() if name.upper() not in NAMES}
        variables = {**clean, **dict.fromkeys(names, network.url), **without, "ANTHROPIC_BASE_URL": provider.url}
        # The proxy itself goes to the provider by the network's, as the environment says.
        command = [*COMMAND, "--state", "none", "--", sys.executable, "-c", script]
        done = in_fork(command, variables)
        assert done.stdout.decode().split() == expected, done.stderr
        assert all(one.target.startswith(provider.url) for one in network.requests), (
            "those of the command name the proxy"
        )
        assert len(provider.requests) + len(network.requests) == 1


def test_a_base_url_without_v1_stays_as_it_is() -> None:
    script = (
        "import os, urllib.request\n"
        "print(*(os.environ[name] for name in ('OPENAI_BASE_URL', 'OPENAI_API_BASE')))\n"
        "for path in ('/chat/completions', '/models'):\n"
        "    url = os.environ['OPENAI_BASE_URL'] + path\n"
        "    ask = urllib.request.Request(url, headers={'Authorization': 'Bearer x'})\n"
        "    urllib.request.urlopen(ask, b'{}' if 'chat' in path else None)"
    )
    command = ["proxy", "--state", "none", "--", sys.executable, "-c", script]
    with recording(lambda _: [answer_of(b"{}")]) as one:
        for given, ends in (
            ("/api/paas/v4", ""),
            ("/v1", "/v1"),
            ("/api/v1/", "/v1"),
            ("", ""),
            ("/v1beta/openai/", ""),
        ):
            done = recede_command(*command, OPENAI_BASE_URL=one.url + given)
            assert done.returncode == 0, done.stderr
            urls = done.stdout.decode().split()
            assert urls[0] == urls[1] and urls[0].count("/", 8) == ends.count("/") and urls[0].endswith(ends)
            base = given.rstrip("/")
            assert [request.target for request in one.requests] == [base + "/chat/completions", base + "/models"]
            one.requests.clear()


def test_what_is_wrong_is_a_line(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.write_text("must not be lost")
    done = recede_command("proxy", "--state", notes)
    assert (
        done.returncode == 1 and b"not a ledger of requests" in done.stderr and notes.read_text() == "must not be lost"
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = recede_command("proxy", "--state", "none", "--port", port)
        assert done.returncode == 2 and b"is taken" in done.stderr
    done = recede_command("proxy", "--state", "none", "--upstream", "nonsense")
    assert done.returncode == 2 and b"an upstream must be a URL" in done.stderr
    done = recede_command("proxy", "--state", "none", "--port", port, "--upstream", f"http://localhost:{port}")
    assert done.returncode == 2 and b"would come back to this proxy" in done.stderr


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["http://a", "http://b"], "two URLs are for the same requests"),
        (["openai=http://a", "openai=http://b"], "two URLs are for the same requests"),
        (["chat=http://a"], "no requests are called 'chat'; the names are anthropic, openai, gemini, chatgpt"),
        (["openai="], "an upstream must be a URL"),
        (["openai=http://u:secret@a"], "no user and password"),
    ],
)
def test_wrong_upstreams_are_named(typed: list[str], said: str) -> None:
    given = [word for one in typed for word in ("--upstream", one)]
    done = recede_command("proxy", "--state", "none", *given)
    assert done.returncode == 2 and said in done.stderr.decode() and b"secret" not in done.stderr


def test_an_upstream_with_a_name_is_that_of_its_form_and_others_go_elsewhere() -> None:
    script = (
        "import os, urllib.request\n"
        "for name, path in (('OPENAI_BASE_URL', '/responses'), ('ANTHROPIC_BASE_URL', '/v1/messages'),\n"
        "    ('GOOGLE_GEMINI_BASE_URL', '/v1beta/models/x:generateContent')):\n"
        "    urllib.request.urlopen(urllib.request.Request(os.environ[name] + path, b'{}'))"
    )
    with recording(lambda _: [answer_of(b"{}")]) as one, recording(lambda _: [answer_of(b"{}")]) as other:
        typed = ["--upstream", f"openai={one.url}", "--upstream", f"gemini={one.url}/g", "--upstream", other.url]
        done = recede_command("proxy", "--state", "none", *typed, "--", sys.executable, "-c", script)
        assert done.returncode == 0, done.stderr
        assert [request.target for request in one.requests] == ["/v1/responses", "/g/v1beta/models/x:generateContent"]
        assert [request.target for request in other.requests] == ["/v1/messages"]


def test_another_address_has_a_warning() -> None:
    command = [*COMMAND, "--state", "none", "--host", "0.0.0.0", "--port", "0", "--", sys.executable, "-c", "pass"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and "anyone who reaches 0.0.0.0" in done.stderr


# Agents that are known by name

AGENT = """#!{python}
import json, os, sys, urllib.request
names = [*"ANTHROPIC_BASE_URL ENABLE_TOOL_SEARCH OPENCODE_CONFIG_CONTENT".split()]
print(json.dumps({{"arguments": sys.argv[1:], **{{name: os.environ.get(name) for name in names}}}}))
"""


def agent(folder: Path, name: str, *arguments: str, **variables: str) -> tuple[dict[str, Any], str]:
    """What an agent of this name has been given, and what was said."""
    program = folder / name
    program.write_text(AGENT.format(python=sys.executable))
    program.chmod(0o755)
    done = recede_command("proxy", "--state", "none", "--", str(program), *arguments, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr.decode()


def test_codex_and_pi_get_arguments(tmp_path: Path) -> None:
    given, said = agent(tmp_path, "codex", "exec", "Go.")
    option = f'openai_base_url="{given["ANTHROPIC_BASE_URL"]}/v1"'
    assert given["arguments"] == ["-c", option, "exec", "Go."] and option in said
    given, _ = agent(tmp_path, "pi", "-p", "Go.")
    assert given["arguments"][0] == "--extension" and given["arguments"][2:] == ["-p", "Go."]
    assert "registerProvider" in Path(given["arguments"][1]).read_text()


def test_opencode_gets_settings_over_those_that_its_variable_has(tmp_path: Path) -> None:
    own = {"theme": "dark", "provider": {"anthropic": {"options": {"baseURL": "x", "timeout": 1}}, "own": {}}}
    given, _ = agent(tmp_path, "opencode", OPENCODE_CONFIG_CONTENT=json.dumps(own))
    found, url = json.loads(given["OPENCODE_CONFIG_CONTENT"]), given["ANTHROPIC_BASE_URL"]
    assert found["theme"] == "dark" and "own" in found["provider"]
    assert found["provider"]["anthropic"]["options"] == {"baseURL": f"{url}/v1", "timeout": 1}
    assert found["provider"]["google"]["options"]["baseURL"] == f"{url}/v1beta"


def test_an_agent_without_tool_results_is_told_so(tmp_path: Path) -> None:
    _, said = agent(tmp_path, "aider")
    assert "aider sends no tool results, so nothing of its requests can be masked" in said


def test_an_agent_that_sent_nothing_is_told_why_that_may_be_and_what_lasts(tmp_path: Path) -> None:
    """The port of a run ends with it: what is set in settings is the address of the service."""
    service = "start `recede proxy` (with `--upstream URL` if its provider is not Anthropic, OpenAI or Google), and "
    for name, why, setting in (
        ("claude", "if it has worked, its settings have another address (ANTHROPIC_BASE_URL in their env)", ""),
        ("codex", "if it has worked, its model_provider has no base_url", "base_url of that one to {url}/v1"),
        ("gemini", "it takes an address only with an API key that was chosen as its login", ""),
        ("cline", "Cline is not pointed at the proxy: it takes its address", "`cline auth -p openai -b {url}/v1"),
        ("copilot", "takes an address for a model of your own alone", "COPILOT_PROVIDER_BASE_URL={url}/v1"),
        ("kimi", "takes its address from its own variables", "KIMI_MODEL_BASE_URL={url}/v1"),
        ("droid", "takes an address for a model of your own", "baseUrl of that in customModels"),
        ("cn", "takes its address from its config.yaml", "apiBase of its model there to {url}/v1/"),
        ("grok", "takes its address from its config.toml", "GROK_XAI_API_BASE_URL={url}/v1"),
        ("vibe", "takes its address from its config.toml", "api_base of its provider there to {url}/v1"),
        ("mini", "its model is of another provider than Anthropic and OpenAI", "api_base in the model_kwargs"),
        ("gptme", "its model is of another provider than Anthropic and OpenAI", "OPENAI_BASE_URL={url}/v1"),
    ):
        given, said = agent(tmp_path, name)
        assert (
            why in said and setting.format(url="http://127.0.0.1:8787") in said and (service in said) == bool(setting)
        )
        assert "has sent nothing" in said and "{url}" not in said
        url = given["ANTHROPIC_BASE_URL"]
        shown = said.replace(f"figures at {url}", "").replace(f'openai_base_url="{url}', "")
        assert given["ANTHROPIC_BASE_URL"] not in shown


def test_a_command_that_nobody_knows_and_that_sent_nothing_is_told_so(tmp_path: Path) -> None:
    _, said = agent(tmp_path, "someone")
    assert "someone has sent nothing to the proxy; if it has asked a model, its address is in its code" in said
    assert "set its base URL to http://127.0.0.1:8787 (http://127.0.0.1:8787/v1 for OpenAI's API)" in said
    script = "client = {'base_url': 'https://api.deepseek.com'}"
    done = recede_command("proxy", "--state", "none", "--", sys.executable, "-c", script)
    assert f"{Path(sys.executable).name} has sent nothing to the proxy" in done.stderr.decode()


def test_grok_is_told_from_grok_cli_by_its_package(tmp_path: Path) -> None:
    for package, title in (("@vibe-kit/grok-cli", "grok-cli"), ("@xai-official/grok", "Grok Build")):
        folder = tmp_path / title / "node_modules" / package / "dist"
        folder.mkdir(parents=True)
        agent(folder, "index.js")
        (tmp_path / title / "grok").symlink_to(folder / "index.js")
        assert started((str(tmp_path / title / "grok"),)).agent == next(
            one for one in AGENTS.values() if one.title == title
        )
        assert started(("npx", package)).agent.title == title  # type: ignore[union-attr]
    (tmp_path / "cline").mkdir()
    agent(tmp_path / "cline", "someone")
    assert started((str(tmp_path / "cline" / "someone"),)).agent is None


def test_what_did_not_start_or_sends_nothing_is_not_told_so(tmp_path: Path) -> None:
    of_others = [
        agent(tmp_path, *command.split())[1]
        for command in (
            "pi list", "pi -h", "claude mcp list", "claude doctor", "codex login", "codex mcp add x", "gemini update",
            "gemini extensions list", "opencode auth login", "qwen mcp list", "cline auth", "npx @openai/codex login",
        )
    ]  # fmt: skip
    of_nothing = recede_command("proxy", "--state", "none", "--", str(tmp_path / "none" / "claude")).stderr.decode()
    assert "No such file" in of_nothing
    for one in (*of_others, of_nothing):
        assert "has sent nothing" not in one and "no requests" not in one


def test_subcommands_of_an_agent_are_no_prompts(tmp_path: Path) -> None:
    for words in (["list"], ["install", "npm:x"], ["update"], ["config"]):
        assert agent(tmp_path, "pi", *words)[0]["arguments"] == words
    assert agent(tmp_path, "pi", "list the files")[0]["arguments"][0] == "--extension"


@pytest.mark.parametrize(
    ("runner", "words", "place", "title"),
    [
        ("npx", ["-y", "@openai/codex@latest", "exec", "Go."], 2, "Codex"),
        ("npx", ["@openai/codex", "--", "exec"], 2, "Codex"),
        ("npx", ["--package", "@openai/codex", "codex", "exec"], 3, "Codex"),
        ("npm", ["exec", "--", "@openai/codex", "exec"], 3, "Codex"),
        ("bunx", ["@openai/codex"], 1, "Codex"),
        ("npx", ["@mariozechner/pi-coding-agent@0.73.1", "-p", "Go."], 1, "pi"),
        ("npx", ["-y", "@anthropic-ai/claude-code", "-p", "Go."], None, "Claude Code"),
        ("uvx", ["mini-swe-agent"], None, "mini-SWE-agent"),
        ("npx", ["eslint", "."], None, None),
    ],
)
def test_a_runner_of_packages_gets_what_its_agent_gets(
    runner: str, words: list[str], place: int | None, title: str | None, tmp_path: Path
) -> None:
    given, said = agent(tmp_path, runner, *words)
    found = given["arguments"]
    if place is None:
        assert found == words
    else:
        assert [*found[:place], *found[place + 2 :]] == words and found[place : place + 2][0] in ("-c", "--extension")
    assert (f"{title} has the proxy" in said) is (title is not None)


SENDING = "#!{python}\nimport json, os, sys, urllib.request\n{rest}"


def test_after_a_run_that_saved_a_line_says_how_to_always_do_so(tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(body(40))
    rest = (
        "data = open(sys.argv[1], 'rb').read()\n"
        "url = os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages'\n"
        "urllib.request.urlopen(urllib.request.Request(url, data)).read()\n"
    )
    with recording(lambda _: [answer_of(b"{}")]) as upstream:
        # With its options: without its upstream, keys would go to another provider.
        options = ["--state", "none", "--upstream", upstream.url]
        run = f"recede proxy --state none --upstream {upstream.url}"
        for name, option, line in (
            ("claude", [], f"to always do so: alias claude='{run} -- claude'"),
            ("claude", ["--keep", "9"], f"to always do so: alias claude='{run} --keep 9 -- claude'"),
            ("claude", ["--observe"], None),
            ("someone", [], None),
            ("npx", [], f"to always do so: alias claude='{run} -- npx @anthropic-ai/claude-code'"),
        ):
            program = tmp_path / name
            program.write_text(SENDING.format(python=sys.executable, rest=rest.replace("argv[1]", "argv[-1]")))
            program.chmod(0o755)
            words = ["@anthropic-ai/claude-code"] if name == "npx" else []
            command = [name, *words, str(tmp_path / "body")]
            path = f"{tmp_path}:{os.environ['PATH']}"
            done = recede_command("proxy", *options, *option, "--", *command, PATH=path)
            assert (line in done.stderr.decode()) if line else (b"always do so" not in done.stderr), done.stderr


def test_a_mistyped_option_is_an_error_with_a_hint(tmp_path: Path) -> None:
    done = recede_command("proxy", "--kep", "10", "--", sys.executable, "-c", "")
    assert done.returncode == 2 and b"has no option" in done.stderr and b"--keep" in done.stderr
    done = recede_command("proxy", "--state", "none", sys.executable, "-c", "import sys; sys.exit(5)", "--kep")
    assert done.returncode == 5  # what follows the command is its own


def test_a_state_that_cannot_be_used_is_said_and_the_agent_starts(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("must not be lost")
    (tmp_path / "file").write_text("")
    exits = ["--", sys.executable, "-c", "import sys; sys.exit(7)"]
    for options, variables, words in (
        (["--state", str(tmp_path / "notes")], {}, b"not a ledger of requests"),
        (["--state", str(tmp_path)], {}, b"in memory alone"),
        ([], {"XDG_STATE_HOME": str(tmp_path / "file")}, b"in memory alone"),
    ):
        done = recede_command("proxy", *options, *exits, **variables)
        assert done.returncode == 7 and words in done.stderr and b"in memory alone" in done.stderr, done.stderr
    assert (tmp_path / "notes").read_text() == "must not be lost"


def test_lines_of_the_log_are_all_shown_after_the_command() -> None:
    script = (
        "import os, urllib.request\nurl = os.environ['ANTHROPIC_BASE_URL']\n"
        "for number in range(40): urllib.request.urlopen(urllib.request.Request(f'{url}/v1/messages', b'{}')).read()"
    )
    with recording(lambda _: [answer_of(b"{}")]) as upstream:
        options = ["--state", "none", "--upstream", upstream.url, "-v"]
        done = recede_command("proxy", *options, "--", sys.executable, "-c", script)
    assert done.stderr.count(b"POST /v1/messages: 200") == 40


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_the_whole_group_reaches_the_command_once(name: str) -> None:
    """A command that takes a second one for haste would end with another code."""
    script = (
        "import os, signal, sys, time\nnumber = signal.Signals[sys.argv[1]]\n"
        "def end(*_):\n"
        "    signal.signal(number, lambda *_: os._exit(9))\n    time.sleep(0.3)\n    sys.exit(7)\n"
        "signal.signal(number, end)\nprint('ready', flush=True)\ntime.sleep(30)"
    )
    command = [*COMMAND, "--state", "none", "--", sys.executable, "-c", script, name]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "start_new_session": True}
    for _ in range(3):
        with subprocess.Popen(command, **pipes) as process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            os.killpg(process.pid, signal.Signals[name])
            assert process.wait(20) == 7


# Settings


def shown_help_or_error(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    (folder / "recede.toml").write_text(text)
    done = recede_command("proxy", *arguments, "--", sys.executable, "-c", "", XDG_CONFIG_HOME=str(folder))
    return done.returncode, done.stderr.decode()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python reads TOML from 3.11 on")
def test_settings_of_the_user_are_defaults(tmp_path: Path) -> None:
    text = '[proxy]\nstate = "none"\nport = 70000\n'
    code, said = shown_help_or_error(tmp_path, text)
    assert code == 2 and f"{tmp_path}/recede.toml: [proxy] port: " in said and "65535" in said
    text = f'[proxy]\nstate = "{tmp_path}/state"\nobserve = true\n'
    assert shown_help_or_error(tmp_path, text)[0] == 0 and (tmp_path / "state").is_file()
    assert shown_help_or_error(tmp_path, text, "--state", str(tmp_path / "typed"))[0] == 0
    assert (tmp_path / "typed").is_file()


EVERY_OPTION = """
[proxy]
port = 0
host = "127.0.0.1"
upstream = ["http://127.0.0.1:1", "openai=http://127.0.0.1:2"]
keep = 20
keep-by-tool = ["Read=20", "Bash=all"]
exclude-tool = ["Write", "Edit*"]
keep-errors = true
keep-matching = ["Kept"]
provider = "openai"
boundary = 5
max-overcost = "none"
max-result-chars = 20000
trigger-tokens = 1000
max-input-tokens = 100000
placeholder = "gone: {chars}"
state = "none"
summaries = "claude-haiku-4-5"
observe = true
verbose = true
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python reads TOML from 3.11 on")
def test_every_option_can_be_in_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed: list[str] = []
    for line in EVERY_OPTION.split("\n")[2:-1]:
        key, _, value = line.partition(" = ")
        values = json.loads(value)
        for one in values if isinstance(values, list) else [values]:
            typed += [f"--{key}"] if one is True else [f"--{key}", str(one)]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    expected = proxy.make_context("proxy", list(typed)).params
    shown = [one for one in proxy.params if not getattr(one, "hidden", False)]
    flags = {flag for one in shown for flag in one.opts if flag.startswith("--")}
    assert flags - {"--help", "--dry-run"} == set(typed) & flags  # what one start is to do
    (tmp_path / "recede.toml").write_text(EVERY_OPTION)
    found = proxy.make_context("proxy", []).params
    assert found == expected
    # Each setting is taken back by its flag.
    default = proxy.make_context("proxy", [], default_map={}).params
    names = {flag: one.name for one in shown for flag in one.opts if flag.startswith("--")}
    for flag in flags - {"--help"}:
        left = proxy.make_context("proxy", [f"--no-{flag[2:]}"]).params
        assert left == {**expected, names[flag]: default[names[flag]]}
    typed_none = proxy.make_context("proxy", ["--max-input-tokens", "none"]).params["max_input_tokens"]
    assert given({"max_input_tokens": typed_none}) == {"max_input_tokens": None}
    options = given({name: value for name, value in found.items() if name in OPTIONS})
    assert options["keep_by_tool"] == {"Read": 20, "Bash": None} and options["max_overcost"] is None
    RequestMasker(**options).close()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python reads TOML from 3.11 on")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[proxy]\nzzz = 3\n", "[proxy] has no option 'zzz'; it takes port, host, "),
        ("[proxy]\nkept = 3\n", "[proxy] has no option 'kept'; did you mean 'keep'?"),
        ('[proxy]\nexclude_tools = ["Read"]\n', "[proxy] has no option 'exclude_tools'; did you mean 'exclude-tool'?"),
        ("[proxy]\nkeep_errors = true\n", "[proxy] has no option 'keep_errors'; did you mean 'keep-errors'?"),
        ("[proxy]\nbudget = 3\n", "[proxy] has no option 'budget'; did you mean 'max-input-tokens'?"),
        ("[proxy]\nno-keep = 3\n", "[proxy] has no option 'no-keep'; did you mean 'keep'?"),
        ("keep = 3\n[proxy]\n", "'keep' is in no table: put it under [proxy]"),
        ("[other]\nkeep = 3\n", "there is no table [other]; what `recede proxy` takes is in [proxy]"),
        ('[proxy]\nexclude-tool = [""]\n', "--exclude-tool has the blank name '', which is of no tool"),
        ("[proxy]\nkeep = [3]\n", "[proxy] keep must be one value, not [3]"),
        ('[proxy]\nexclude-tool = "Read"\n', "[proxy] exclude-tool must be a list, not 'Read'"),
        ('[proxy]\nkeep-by-tool = ["Read"]\n', "[proxy] keep-by-tool: 'Read' is not TOOL=N"),
        ("[proxy]\nexclude-tool = [true]\n", "[proxy] exclude-tool must be a list, not [True]"),
        ("[proxy]\nkeep = true\n", "[proxy] keep must be one value, not True"),
        ('[proxy]\nobserve = "yes"\n', "[proxy] observe must be true or false, not 'yes'"),
        ('[proxy]\nkeep = "many"\n', "[proxy] keep: 'many' is no whole number"),
        ('[proxy]\nkeep-matching = ["*"]\n', "--keep-matching has '*', which any text matches"),
        ("proxy = 3\n", "proxy must be a table: [proxy]"),
        ("[proxy\n", "recede.toml: "),
        ("\ufeff[proxy]\nkept = 3\n", "[proxy] has no option 'kept'"),
        ("[proxy]\nkeep = " + "[" * 9_000, "recede.toml: it is nested too deeply"),
        ("[proxy]\nkeep = " + "7" * 5_000, "recede.toml: Exceeds the limit (4300 digits)"),
        ("[proxy]\nkeep = 0x" + "7" * 5_000, "[proxy] keep is too large a number"),
        ("#" * (1 << 20) + "\n", "recede.toml: it is larger than 1,048,576 bytes"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, text: str, expected: str) -> None:
    code, said = shown_help_or_error(tmp_path, text)
    assert code == 2 and expected in said and "Traceback" not in said, said


@pytest.mark.skipif(sys.version_info >= (3, 11), reason="later ones read TOML")
def test_settings_need_a_python_that_reads_them(tmp_path: Path) -> None:
    code, said = shown_help_or_error(tmp_path, "[proxy]\n")
    assert code == 2 and "is read by Python 3.11 and later alone" in said


def test_settings_and_state_of_the_working_folder_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "recede.toml").write_text("[proxy]\nport = 70000\n")
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config/recede.toml").write_text("[proxy]\nport = 70000\n")
    other = str(tmp_path / "other")
    for config, state, home in ((other, other, other), (".", ".", other), ("", "", "."), ("", ".", "./other")):
        environment = {**os.environ, "XDG_CONFIG_HOME": config, "XDG_STATE_HOME": state, "HOME": home}
        command = [*COMMAND, "--", sys.executable, "-c", ""]
        done = subprocess.run(command, cwd=tmp_path, env=environment, timeout=60, check=False, stderr=subprocess.PIPE)
        assert done.returncode == 0 and (b"in memory alone" in done.stderr) is (home != other), done.stderr
        assert (tmp_path / "other").is_dir() and not [*tmp_path.glob(".local"), *tmp_path.glob("recede")]


@pytest.mark.parametrize("name", ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"])
def test_a_base_url_with_a_query_is_named_and_not_shown(name: str) -> None:
    url = "https://user:word@gateway.example/v1?api-key=secret-1"
    done = recede_command("proxy", "--state", "none", "--", "true", **{name: url})
    said = done.stderr.decode()
    assert done.returncode == 2 and f"{name}: an upstream must be a URL without a query" in said
    assert "https://gateway.example" in said and "secret-1" not in said and "word" not in said


@pytest.mark.parametrize("given", ["[" * 90_000, '{"provider":' * 9_000, '{"number": ' + "7" * 5_000 + "}", "[", "3"])
def test_settings_of_an_agent_that_cannot_be_read_are_dropped(given: str) -> None:
    done = pointed(("opencode",), "http://127.0.0.1:1", {"OPENCODE_CONFIG_CONTENT": given})
    assert "127.0.0.1:1" in done.environment["OPENCODE_CONFIG_CONTENT"]
