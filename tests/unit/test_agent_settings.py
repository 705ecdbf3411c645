"""What an agent's files, variables and arguments say of its addresses, and what it gets for one run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the proxy needs aiohttp")
if sys.version_info < (3, 11):
    pytest.importorskip("tomli", reason="recede[proxy] brings it along")

from recede._agents import AGENTS
from recede.proxy._addresses import has_secrets
from recede.proxy._settings import parsed
from recede.proxy.launch import Plan, Pointed, of_project, planned, pointed

KEY = "sk-plain-0123456789"
PROXY = "http://127.0.0.1:1"
URL = "https://api.deepseek.com"


class Start:
    """A home with files, a folder in it, and an agent that starts there."""

    def __init__(self, home: Path, files: dict[str, Any], *command: str, **environment: str) -> None:
        self.home, self.folder = home, home / "work"
        self.folder.mkdir(exist_ok=True)
        for name, what in files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(what if isinstance(what, str) else json.dumps(what))
        self.command, self.environment = command, {"HOME": str(home), **environment}

    def plan(self, typed: tuple[str, ...] = ()) -> Plan:
        return planned(self.command, self.environment, self.folder, typed)

    def pointed(self, typed: tuple[str, ...] = ()) -> tuple[Plan, Pointed]:
        plan = self.plan(typed)
        return plan, pointed(self.command, PROXY, self.environment, plan)


def claude(url: str = f"{URL}/anthropic") -> dict[str, Any]:
    return {"env": {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": KEY}}


def only(plan: Plan) -> tuple[str, str]:
    """The one address of a plan, and its word."""
    ((one, word),) = plan.words.items()
    return one.url, word


def test_claude_settings_are_pointed_by_an_argument_that_has_no_key(tmp_path: Path) -> None:
    plan, done = Start(tmp_path, {".claude/settings.json": claude()}, "claude", "-p", "x").pointed()
    url, word = only(plan)
    assert url == f"{URL}/anthropic" and not of_project(plan)
    settings = {"env": {"ANTHROPIC_BASE_URL": f"{PROXY}/@{word}/anthropic"}}
    assert done.command == ("claude", "--settings", json.dumps(settings), "-p", "x")
    assert "ENABLE_TOOL_SEARCH" not in done.environment
    assert KEY not in json.dumps([done.command, done.said, done.added, done.files])


def test_claude_settings_in_order_local_project_user(tmp_path: Path) -> None:
    files = {".claude/settings.json": claude("https://user.example")}
    assert only(Start(tmp_path, files, "claude").plan())[0] == "https://user.example"
    files["work/.claude/settings.json"] = claude("https://project.example")
    plan = Start(tmp_path, files, "claude").plan()
    assert only(plan)[0] == "https://project.example" and len(of_project(plan)) == 1
    files["work/.claude/settings.local.json"] = claude("https://local.example")
    plan = Start(tmp_path, files, "claude").plan()
    assert only(plan)[0] == "https://local.example" and len(of_project(plan)) == 1
    typed = json.dumps({"env": {"ANTHROPIC_BASE_URL": "https://typed.example"}})
    assert only(Start(tmp_path, files, "claude", "--settings", typed).plan())[0] == "https://typed.example"
    for known, is_asked in (("https://local.example.org", True), ("https://local.example/", False)):
        files[".claude/settings.json"] = claude(known)  # the user says it, too
        assert bool(of_project(Start(tmp_path, files, "claude").plan())) == is_asked


def test_claude_settings_of_an_administrator_win_and_are_said(tmp_path: Path, monkeypatch: Any) -> None:
    row = AGENTS["claude"]
    files = (("managed", str(tmp_path / "managed.json")), *row.files)
    monkeypatch.setitem(AGENTS, "claude", row._replace(files=files))
    start = Start(tmp_path, {"managed.json": claude(), ".claude/settings.json": claude()}, "claude")
    plan, done = start.pointed()
    assert not plan.words and "managed settings" in done.said and "managed.json" in done.said


def test_claude_argument_of_its_user_is_kept_and_gets_the_address(tmp_path: Path) -> None:
    typed = {"model": "opus", "env": {"A": "b"}}
    for words in (["--settings", json.dumps(typed)], [f"--settings={json.dumps(typed)}"]):
        start = Start(tmp_path, {".claude/settings.json": claude()}, "claude", *words, "go")
        plan, done = start.pointed()
        _, word = only(plan)
        given = done.command[-2].removeprefix("--settings=")
        expected = {"model": "opus", "env": {"A": "b", "ANTHROPIC_BASE_URL": f"{PROXY}/@{word}/anthropic"}}
        assert json.loads(given) == expected and len(done.command) == len(start.command)
    files = {".claude/settings.json": claude(), "mine.json": claude("https://mine.example")}
    plan, done = Start(tmp_path, files, "claude", "--settings", str(tmp_path / "mine.json")).pointed()
    assert not plan.words and "has keys" in done.said and KEY not in done.said


def test_a_typed_upstream_goes_before_files(tmp_path: Path) -> None:
    start = Start(tmp_path, {"work/.claude/settings.json": claude("https://project.example")}, "claude")
    plan, done = start.pointed(("anthropic",))
    assert not plan.words and not of_project(plan)
    assert json.loads(done.command[2]) == {"env": {"ANTHROPIC_BASE_URL": PROXY}}


CODEX = """
openai_base_url = "https://gateway.example/v1"
[model_providers.ds]
base_url = "https://api.deepseek.com/v1"
http_headers = { Authorization = "Bearer sk-plain-0123456789" }
[model_providers.z]
base_url = "https://api.z.ai/api/paas/v4/"
"""


def test_codex_providers_each_get_a_path_of_their_own(tmp_path: Path) -> None:
    plan, done = Start(tmp_path, {".codex/config.toml": CODEX}, "codex", "exec", "x").pointed()
    words = {one.name: word for one, word in plan.words.items()}
    assert len(set(words.values())) == 3
    expected = {
        f'openai_base_url="{PROXY}/@{words["openai_base_url"]}/v1"',
        f'model_providers.ds.base_url="{PROXY}/@{words["model_providers.ds.base_url"]}/v1"',
        f'model_providers.z.base_url="{PROXY}/@{words["model_providers.z.base_url"]}/api/paas/v4/"',
    }
    assert {*done.command[2:-2:2]} == expected and done.command[-2:] == ("exec", "x")
    assert KEY not in json.dumps([done.command, done.said, done.added])
    assert dict(plan.words) != dict(Start(tmp_path, {}, "codex").plan().words)


def test_codex_without_files_has_its_default_and_typed_addresses_are_replaced_in_place(tmp_path: Path) -> None:
    _, done = Start(tmp_path, {}, "codex").pointed()
    assert done.command == ("codex", "-c", f'openai_base_url="{PROXY}/v1"')
    typed = 'openai_base_url="https://typed.example/v1"'
    for words in (("-c", typed), (f"--config={typed}",), (f"-c{typed}",)):
        plan, done = Start(tmp_path, {}, "codex", "exec", *words, "x").pointed()
        url, word = only(plan)
        assert url == "https://typed.example/v1"
        text = " ".join(done.command)
        assert text.count("base_url=") == 1 and f'openai_base_url="{PROXY}/@{word}/v1"' in text


def qwen_models(**more: Any) -> dict[str, Any]:
    one = {"id": "deepseek-v4-pro", "baseUrl": f"{URL}/v1", "envKey": "DSK", **more}
    return {"env": {"DSK": KEY}, "modelProviders": {"openai": [one, {"id": "other", "envKey": "DSK"}]}}


@pytest.mark.parametrize(
    "files",
    [
        {".qwen/.env": f"OPENAI_BASE_URL={URL}/v1\nOPENAI_API_KEY={KEY}\n"},
        {".env": f'export OPENAI_BASE_URL="{URL}/v1" # ours\n'},
        {".qwen/settings.json": {"env": {"OPENAI_BASE_URL": f"{URL}/v1", "OPENAI_API_KEY": KEY}}},
        {".qwen/settings.json": {"security": {"auth": {"baseUrl": f"{URL}/v1", "apiKey": KEY}}}},
        {".qwen/settings.json": f'{{ // ours\n"env": {{"OPENAI_BASE_URL": "{URL}/v1",}},}}'},
    ],
)
def test_qwen_base_url_of_each_file_is_pointed_by_an_argument(tmp_path: Path, files: Any) -> None:
    plan, done = Start(tmp_path, files, "qwen", "-p", "x").pointed()
    url, word = only(plan)
    assert url == f"{URL}/v1" and not of_project(plan)
    assert done.command == ("qwen", "--openai-base-url", f"{PROXY}/@{word}/v1", "-p", "x")
    assert KEY not in json.dumps([done.command, done.said, done.added])


def test_qwen_variable_of_the_environment_goes_before_its_files(tmp_path: Path) -> None:
    files = {".qwen/.env": f"OPENAI_BASE_URL={URL}/v1\n"}
    plan = Start(tmp_path, files, "qwen", OPENAI_BASE_URL="https://own.example/v1").plan()
    assert not plan.words  # it becomes the upstream


def test_qwen_model_providers_are_in_a_throw_away_file_without_keys(tmp_path: Path) -> None:
    plan, done = Start(tmp_path, {".qwen/settings.json": qwen_models()}, "qwen").pointed()
    _, word = only(plan)
    (text,) = done.files.values()
    listed = json.loads(text)["modelProviders"]["openai"]
    assert listed[0] == {"id": "deepseek-v4-pro", "baseUrl": f"{PROXY}/@{word}/v1", "envKey": "DSK"}
    assert listed[1] == {"id": "other", "envKey": "DSK"} and KEY not in text + done.said + str(done.added)
    for secret in ({"apiKey": KEY}, {"generationConfig": {"customHeaders": {"Authorization": KEY}}}):
        plan, done = Start(tmp_path, {".qwen/settings.json": qwen_models(**secret)}, "qwen").pointed()
        assert not plan.words and not done.files and "modelProviders do not come" in done.said


DASHSCOPE = "https://dashscope.aliyuncs.com/compatible-mode/v1"


def test_qwen_without_an_address_keeps_its_default(tmp_path: Path) -> None:
    settings = {".qwen/settings.json": {"security": {"auth": {"selectedType": "openai"}}}}
    for files, words, given in (
        ({}, ("--auth-type", "openai"), {}),
        (settings, (), {}),
        ({}, (), {"OPENAI_BASE_URL": DASHSCOPE}),
    ):
        (tmp_path / str(len(str(given)) + len(words))).mkdir()
        start = Start(tmp_path / str(len(str(given)) + len(words)), files, "qwen", *words, OPENAI_API_KEY=KEY, **given)
        plan, done = start.pointed()
        url, word = only(plan)
        own = f"{PROXY}/@{word}/compatible-mode/v1"
        assert url == DASHSCOPE and done.command == ("qwen", "--openai-base-url", own, *words)
        assert done.environment["DASHSCOPE_PROXY_BASE_URL"] == own  # else it sends no cache marks
        assert ("OPENAI_BASE_URL" in done.environment) == bool(given)
        _, done = start.pointed(("anthropic", "openai", "gemini"))
        assert done.command[2] == f"{PROXY}/v1" and "DASHSCOPE_PROXY_BASE_URL" not in done.environment


def test_qwen_without_a_login_gets_no_variable_that_chooses_one(tmp_path: Path) -> None:
    start = Start(tmp_path, {}, "qwen", OPENAI_API_KEY=KEY, OPENAI_MODEL="qwen4-max", ANTHROPIC_API_KEY=KEY)
    plan, done = start.pointed()
    assert not plan.words and done.command == ("qwen",)
    assert not {"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"} & {*done.environment}
    _, done = start.pointed(("anthropic", "openai", "gemini"))  # an upstream that was typed goes before that
    assert done.environment["OPENAI_BASE_URL"] == f"{PROXY}/v1"
    _, done = Start(tmp_path, {}, "qwen", "--auth-type", "openai-responses").pointed()
    assert done.environment["OPENAI_BASE_URL"] == f"{PROXY}/v1"


def test_qwen_models_without_an_address_are_left_alone(tmp_path: Path) -> None:
    """They go to OpenAI, and others of the same login to its default."""
    for kind in ("openai", "mine"):
        files = {".qwen/settings.json": {"modelProviders": {kind: [{"id": "gpt-5.4"}]}}}
        plan, done = Start(tmp_path, files, "qwen", "--auth-type", "openai").pointed()
        assert not plan.words and "--openai-base-url" not in done.command and "OPENAI_BASE_URL" not in done.environment
        assert "without a baseUrl do not come to the proxy" in done.said


def test_qwen_address_that_nobody_can_read_leaves_it_alone(tmp_path: Path) -> None:
    """Else the address of the proxy would go before it, and the key to another company."""
    for files in (
        {".qwen/.env": "OPENAI_BASE_URL=https://user:secret@host/v1\n"},
        {".qwen/.env": "OPENAI_BASE_URL=$(cat url)\n"},
        {".qwen/settings.json": "{broken"},
        {".qwen/settings.json": "[" * 5_000},
    ):
        (tmp_path / str(len(str(files)))).mkdir(exist_ok=True)
        start = Start(tmp_path / str(len(str(files))), files, "qwen")
        plan, done = start.pointed()
        assert not plan.words and done.command == ("qwen",) and done.environment == start.environment, files
        assert "is not pointed at the proxy" in done.said and "secret" not in done.said


def test_opencode_providers_of_files_and_of_its_own_table(tmp_path: Path) -> None:
    own = {"options": {"baseURL": "{env:GATEWAY}/openai", "apiKey": KEY}}
    files = {
        ".config/opencode/opencode.jsonc": {"provider": {"mine": own}},
        ".local/share/opencode/auth.json": {"groq": {"type": "api", "key": KEY}},
    }
    start = Start(tmp_path, files, "opencode", GATEWAY="https://gateway.example", DEEPSEEK_API_KEY=KEY)
    plan, done = start.pointed()
    words = {one.name: word for one, word in plan.words.items()}
    content = json.loads(done.environment["OPENCODE_CONFIG_CONTENT"])["provider"]
    urls = {name: one["options"]["baseURL"] for name, one in content.items()}
    assert urls["mine"] == f"{PROXY}/@{words['mine']}/openai"
    assert urls["deepseek"] == f"{PROXY}/@{words['deepseek']}" and "xai" not in urls
    assert urls["groq"] == f"{PROXY}/@{words['groq']}/openai/v1" and urls["anthropic"] == f"{PROXY}/v1"
    assert KEY not in json.dumps([done.command, done.said, done.added, content])


def test_opencode_address_of_a_project_above_is_asked_for(tmp_path: Path) -> None:
    project = {"provider": {"anthropic": {"options": {"baseURL": "https://evil.example/v1"}}}}
    for path in ("work/opencode.json", "work/.opencode/opencode.json"):
        home = tmp_path / str(len(path))
        home.mkdir()
        start = Start(home, {path: project}, "opencode")
        start.folder = home / "work" / "sub" / "deep"
        start.folder.mkdir(parents=True)
        plan = start.plan()
        assert [one.url for one in of_project(plan)] == ["https://evil.example/v1"], path
        (home / "work" / "sub" / ".git").mkdir()
        assert not of_project(start.plan())


def test_pi_gets_all_providers_by_its_extension(tmp_path: Path) -> None:
    models = {"providers": {"mine": {"baseUrl": f"{URL}/v1", "apiKey": KEY}, "xai": {"baseUrl": "https://own.example"}}}
    plan, done = Start(tmp_path, {".pi/agent/models.json": models}, "pi", "-p", "x").pointed()
    words = {one.name: (one.url, word) for one, word in plan.words.items()}
    given = json.loads(done.environment["RECEDE_PI_ADDRESSES"])
    assert given["mine"] == f"{PROXY}/@{words['mine'][1]}/v1" and words["xai"][0] == "https://own.example"
    assert given["deepseek"] == f"{PROXY}/@{words['deepseek'][1]}"
    assert done.command[1] == "--extension" and KEY not in json.dumps([done.command, given, done.said, done.added])


KIMI = f"""
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


def test_kimi_gets_address_and_key_by_variables_and_that_is_said(tmp_path: Path) -> None:
    plan, done = Start(tmp_path, {".kimi-code/config.toml": KIMI}, "kimi", "-p", "x").pointed()
    _, word = only(plan)
    names = ("KIMI_MODEL_NAME", "KIMI_MODEL_BASE_URL", "KIMI_MODEL_API_KEY", "KIMI_MODEL_MAX_CONTEXT_SIZE")
    assert [done.environment[name] for name in names] == ["kimi-k3", f"{PROXY}/@{word}/v1", KEY, "200000"]
    assert "it gets that of" in done.said and KEY not in json.dumps([done.command, done.said, done.added])
    login = KIMI.replace(f'api_key = "{KEY}"', 'oauth = { storage = "file", key = "x" }')
    plan, done = Start(tmp_path, {".kimi-code/config.toml": login}, "kimi").pointed()
    assert not plan.words and "it has a login" in done.said and "KIMI_MODEL_BASE_URL" not in done.environment


def test_grok_is_pointed_only_where_no_file_goes_before(tmp_path: Path) -> None:
    plan, done = Start(tmp_path, {}, "grok", XAI_API_KEY="xai-x").pointed()
    url, word = only(plan)
    assert url == "https://api.x.ai/v1" and done.environment["GROK_XAI_API_BASE_URL"] == f"{PROXY}/@{word}/v1"
    assert "GROK_MODELS_BASE_URL" not in done.environment  # by this it asks by another API
    for name in ("GROK_XAI_API_BASE_URL", "GROK_MODELS_BASE_URL"):
        given = {name: "https://own.example/v1", "XAI_API_KEY": "xai-x"}
        plan, done = Start(tmp_path, {}, "grok", **given).pointed()
        url, word = only(plan)
        assert url == given[name] and done.environment[name] == f"{PROXY}/@{word}/v1"
        assert len({"GROK_XAI_API_BASE_URL", "GROK_MODELS_BASE_URL"} & {*done.environment}) == 1
    assert not Start(tmp_path, {}, "grok").plan().words
    fixed = '[endpoints]\nmodels_base_url = "https://gateway.example/v1"\n'
    xai = '[endpoints]\nxai_api_base_url = "https://gateway.example/v1"\n'
    own = '[models]\ndefault = "mine"\n[model.mine]\nbase_url = "https://gateway.example/v1"\n'
    by_maker = """
[models]
default = "mine"
[model.mine]
model_provider = "p"
[model_providers.p]
base_url = "https://gateway.example/v1"
"""
    for text, name in (
        (fixed, "config"),
        (xai, "config"),
        (own, "config"),
        (by_maker, "config"),
        (fixed, "managed_config"),
    ):
        (tmp_path / name).mkdir(exist_ok=True)
        files = {f".grok/{name}.toml": text}
        start = Start(tmp_path / name, files, "grok", XAI_API_KEY="xai-x")
        plan, done = start.pointed()
        assert not plan.words and "no variable goes before it" in done.said and "gateway.example" in done.said


VIBE = """
[[providers]]
name = "ds"
api_base = "https://api.deepseek.com/v1"
api_key_env_var = "DEEPSEEK_API_KEY"
"""


def test_vibe_providers_are_replaced_by_a_variable(tmp_path: Path) -> None:
    plan, done = Start(tmp_path, {".vibe/config.toml": VIBE}, "vibe").pointed()
    words = {one.name: word for one, word in plan.words.items()}
    given = {one["name"]: one for one in json.loads(done.environment["VIBE_PROVIDERS"])}
    assert given["ds"] == {
        "name": "ds", "api_base": f"{PROXY}/@{words['ds']}/v1", "api_key_env_var": "DEEPSEEK_API_KEY",
    }  # fmt: skip
    assert given["mistral"]["api_base"] == f"{PROXY}/@{words['mistral']}/v1"
    # It would go to the origin of the address, without the word, and with the key.
    assert done.environment["VIBE_ENABLE_TELEMETRY"] == "false" and "its telemetry is off" in done.said
    plan = Start(tmp_path, {"work/.vibe/config.toml": VIBE.replace("api.deepseek.com", "evil.example")}, "vibe").plan()
    assert [one.url for one in of_project(plan)] == ["https://evil.example/v1"]


def of_cline(name: str = "openai-compatible", **settings: Any) -> dict[str, Any]:
    one = {"settings": {"provider": name, "model": "m", **settings}}
    other = {"settings": {"provider": "cline", "auth": {"refreshToken": "a-login"}}}
    known = {"lastUsedProvider": name, "providers": {name: one, "cline": other}}
    return {".cline/data/settings/providers.json": known}


def test_cline_gets_a_throw_away_file_without_keys(tmp_path: Path) -> None:
    start = Start(tmp_path, of_cline(apiKey=KEY, baseUrl=f"{URL}/v1"), "cline", "x")
    plan, done = start.pointed()
    url, word = only(plan)
    (text,) = done.files.values()
    known = json.loads(text)
    assert url == f"{URL}/v1" and known["lastUsedProvider"] == "openai-compatible"
    settings = known["providers"]["openai-compatible"]["settings"]
    assert settings == {"provider": "openai-compatible", "model": "m", "baseUrl": f"{PROXY}/@{word}/v1"}
    assert done.environment["CLINE_SESSION_BACKEND_MODE"] == "local" and done.environment["OPENAI_API_KEY"] == KEY
    # What Cline starts must not take that key elsewhere.
    assert done.environment["OPENAI_BASE_URL"] == done.environment["OPENAI_API_BASE"] == f"{PROXY}/@{word}/v1"
    assert "it gets that of" in done.said and "as OPENAI_API_KEY" in done.said
    assert KEY not in json.dumps([done.command, done.said, done.added, done.files]) and "a-login" not in text


def test_cline_key_of_the_environment_stays_for_other_programs(tmp_path: Path) -> None:
    start = Start(tmp_path, of_cline(apiKey=KEY, baseUrl=f"{URL}/v1"), "cline", OPENAI_API_KEY="sk-other")
    plan, done = start.pointed()
    assert not plan.words and not done.files and done.environment["OPENAI_API_KEY"] == "sk-other"
    assert f"start `recede proxy --upstream {URL}/v1`" in done.said and "http://127.0.0.1:8787/v1" in done.said


def test_cline_provider_of_its_own_table_has_its_address(tmp_path: Path) -> None:
    for name, key, url in (
        ("deepseek", {"apiKey": KEY}, f"{URL}/v1"),
        ("anthropic", {}, "https://api.anthropic.com/v1"),
    ):
        plan, done = Start(tmp_path, of_cline(name, **key), "cline").pointed()
        assert only(plan)[0] == url and ("DEEPSEEK_API_KEY" in done.environment) == bool(key), name
    plan, _ = Start(tmp_path, of_cline("anthropic"), "cline", "-P", "xai").pointed()
    assert only(plan)[0] == "https://api.x.ai/v1"
    plan = Start(tmp_path, of_cline("zai", apiKey=KEY, apiLine="china"), "cline").plan()
    assert not plan.words  # it has another address


@pytest.mark.parametrize(
    ("settings", "words", "said"),
    [
        ({"auth": {"accessToken": KEY}}, (), "no variable goes before"),
        ({"headers": {"X": KEY}}, (), "no variable goes before"),
        ({"apiKey": KEY}, ("--data-dir", "x"), "a folder that is typed"),
        ({"apiKey": KEY}, ("--zen",), "its hub sends"),
        ({"apiKey": KEY}, ("hub",), "its hub sends"),
    ],
)
def test_cline_that_cannot_be_pointed_says_why(
    tmp_path: Path, settings: dict[str, Any], words: tuple[str, ...], said: str
) -> None:
    files = of_cline(baseUrl=f"{URL}/v1", **settings)
    plan, done = Start(tmp_path, files, "cline", *words).pointed()
    assert not plan.words and not done.files and said in done.said and KEY not in json.dumps([done.said, done.added])
    assert done.environment.get("OPENAI_API_KEY") is None


def test_a_file_of_variables_beside_any_program_is_not_overridden(tmp_path: Path) -> None:
    start = Start(tmp_path, {"work/.env": "OPENAI_BASE_URL=https://own.example/v1\n"}, "python", "x.py")
    _, done = start.pointed()
    assert "OPENAI_BASE_URL" not in done.environment and "OPENAI_BASE_URL stand" in done.said
    assert done.environment["ANTHROPIC_BASE_URL"] == PROXY


def test_a_subcommand_that_asks_no_model_gets_nothing(tmp_path: Path) -> None:
    start = Start(tmp_path, {".claude/settings.json": claude()}, "claude", "mcp", "list")
    plan, done = start.pointed()
    assert not plan.words and done.command == start.command


@pytest.mark.parametrize("kind", ["a folder", "a link to itself", "large", "binary"])
def test_an_odd_settings_file_is_told_and_not_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    if kind == "a folder":
        path.mkdir()
    elif kind == "a link to itself":
        path.symlink_to(path)
    else:
        path.write_bytes(b'{"a": "' + b"x" * (1 << 20) + b'"}' if kind == "large" else bytes(range(256)))
    plan, done = Start(tmp_path, {}, "claude").pointed()
    assert not plan.words
    assert ("cannot be read" in done.said) == (kind in ("large", "binary"))


def test_parsed_takes_comments_trailing_commas_and_lines() -> None:
    text = '{"a": "http://x//y", /* no */ "b": [1, 2,], // c\n "c": "}",}'
    assert parsed("x.jsonc", text) == {"a": "http://x//y", "b": [1, 2], "c": "}"}
    assert parsed(".env", "# x\nA = 1\nexport B='x y' # z\nno line\n") == {"A": "1", "B": "x y"}
    assert parsed("x.toml", "[a]\nb = 1\n") == {"a": {"b": 1}}
    for name, broken in (("x.json", "[]"), ("x.json", "{"), ("x.toml", "a =")):
        with pytest.raises(ValueError, match=r"\S"):
            parsed(name, broken)


def test_has_secrets_by_name() -> None:
    for one in ({"apiKey": "x"}, {"a": [{"Authorization": "x"}]}, {"http_headers": {"X": "y"}}, {"auth_token": "x"}):
        assert has_secrets(one), one
    for other in ({"envKey": "X"}, {"api_key_env_var": "X"}, {"max_tokens": 1}, {"apiKey": ""}, {"headers": {}}):
        assert not has_secrets(other), other
