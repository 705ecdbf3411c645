"""Agents that are known by name: how each is pointed at a proxy, and which texts in its requests are its or its user's.

Each row was read from the version that it names: its tools and texts were seen there. `ANTHROPIC_BASE_URL`,
`OPENAI_BASE_URL`, `OPENAI_API_BASE` and `GOOGLE_GEMINI_BASE_URL` are set for every command; a row has what its agent
needs besides.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from recede._hosts import base_url


class Agent(NamedTuple):
    """Facts about a coding agent; ``{url}`` is the address of the proxy, and ``{folder}`` that of `recede.proxy`."""

    title: str  # its name, as people write it
    version: str  # where the row was read
    provider: str | None = None  # where requests usually go (`recede.proxy.server.UPSTREAMS`); None: it takes several
    user_agent: str = ""  # how the header User-Agent of its requests begins; empty: it has that of a common client
    package: str = ""  # the package that has it, as runners such as ``npx`` are given it
    compacts: bool = True  # whether it compacts a conversation by itself, by the tokens that the provider reports
    arguments: tuple[str, ...] = ()  # of its command line, after the command
    subcommands: tuple[str, ...] = ()  # those, by its pages, with which it does not converse, and takes no `arguments`
    config: tuple[str, dict[str, Any]] | None = None  # a variable that takes settings as JSON, and the settings
    # Its settings files that may name an address, the first one goes before the others: those that an administrator has
    # written, those of the user, those of the working folder, and of folders above it up to that of a repository.
    files: tuple[tuple[Literal["managed", "user", "project", "above"], str], ...] = ()
    providers: tuple[tuple[str, str, str], ...] = ()  # its own ones, the base URL of each, and the variable of its key
    otherwise: str = ""  # why its requests may not come to the proxy all the same
    setting: str = ""  # what to set then, for a proxy that lasts
    is_pointed: bool = True  # whether all this points it at a proxy
    sends_results: bool = True  # whether its requests have tool results, so that there is something to mask
    # Tools whose results carry the user's own words: answers to questions, approved or changed plans, instructions.
    user_tools: tuple[str, ...] = ()
    # Texts of results that carry the user's own words, as `keep_matching` has them: on a call that was refused (most
    # are errors, for which some APIs have no field), a message that was sent while a tool ran, the instructions of a
    # folder; and pointers to a full output on disk.
    user_texts: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()  # whole texts by which it clears old results itself; in them, ``*`` is any text
    stubs: tuple[tuple[str, str], ...] = ()  # tools, and texts of results that refer to an earlier call's result


_CLEARED = "[Old tool result content cleared]"


def _with_tail(*texts: str) -> tuple[str, ...]:
    """Also as Claude Code sends them to models that take no system prompt among the messages."""
    tail = "\n\n<system-reminder>\n<total_tokens>* tokens left</total_tokens>\n</system-reminder>"
    return (*texts, *(text + tail for text in texts))


def _at(*rows: tuple[str, str, str, str]) -> tuple[tuple[str, str, str], ...]:
    """List providers of an agent by name, host of the table, form of requests, and variable of the key."""
    return tuple((name, base_url(host, form) or "", variable) for name, host, form, variable in rows)


_OF_BOTH = _at(
    ("deepseek", "api.deepseek.com", "chat", "DEEPSEEK_API_KEY"),
    ("moonshotai", "api.moonshot.ai", "chat", "MOONSHOT_API_KEY"),
    ("moonshotai-cn", "api.moonshot.cn", "chat", "MOONSHOT_API_KEY"),
    ("xai", "api.x.ai", "chat", "XAI_API_KEY"),
    ("groq", "api.groq.com", "chat", "GROQ_API_KEY"),
    ("cerebras", "api.cerebras.ai", "chat", "CEREBRAS_API_KEY"),
    ("nvidia", "integrate.api.nvidia.com", "chat", "NVIDIA_API_KEY"),
    ("huggingface", "router.huggingface.co", "chat", "HF_TOKEN"),
)
# As its package has them; those whose models have addresses of their own are left out.
_OF_PI = (
    *_OF_BOTH,
    ("mistral", "https://api.mistral.ai", "MISTRAL_API_KEY"),
    ("fireworks", "https://api.fireworks.ai/inference", "FIREWORKS_API_KEY"),
    *_at(
        ("zai", "api.z.ai/api/coding", "chat", "ZAI_API_KEY"),
        ("zai-coding-cn", "open.bigmodel.cn/api/coding", "chat", "ZAI_CODING_CN_API_KEY"),
        ("kimi-coding", "api.kimi.com/coding", "chat", "KIMI_API_KEY"),
        ("minimax", "api.minimax.io", "anthropic", "MINIMAX_API_KEY"),
        ("minimax-cn", "api.minimaxi.com", "anthropic", "MINIMAX_CN_API_KEY"),
        ("together", "api.together.ai", "chat", "TOGETHER_API_KEY"),
        ("vercel-ai-gateway", "ai-gateway.vercel.sh", "anthropic", "AI_GATEWAY_API_KEY"),
        ("xiaomi", "api.xiaomimimo.com", "chat", "XIAOMI_API_KEY"),
    ),
)
# As models.dev had them in November 2026.
_OF_OPENCODE = (
    *_OF_BOTH,
    ("minimax", "https://api.minimax.io/anthropic/v1", "MINIMAX_API_KEY"),
    *_at(
        ("zai", "api.z.ai", "chat", "ZHIPU_API_KEY"),
        ("zai-coding-plan", "api.z.ai/api/coding", "chat", "ZHIPU_API_KEY"),
        ("zhipuai", "open.bigmodel.cn", "chat", "ZHIPU_API_KEY"),
        ("mistral", "api.mistral.ai", "chat", "MISTRAL_API_KEY"),
        ("openrouter", "openrouter.ai", "chat", "OPENROUTER_API_KEY"),
        ("fireworks-ai", "api.fireworks.ai", "chat", "FIREWORKS_API_KEY"),
        ("togetherai", "api.together.xyz", "chat", "TOGETHER_API_KEY"),
        ("alibaba", "dashscope-intl.aliyuncs.com", "chat", "DASHSCOPE_API_KEY"),
        ("opencode", "opencode.ai", "chat", "OPENCODE_API_KEY"),
    ),
)
# As its package has them, with the version.
_OF_CLINE = (
    ("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    ("gemini", "https://generativelanguage.googleapis.com/v1beta", "GOOGLE_GENERATIVE_AI_API_KEY"),
    ("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    ("minimax", "https://api.minimax.io/anthropic/v1", "MINIMAX_API_KEY"),
    *_at(
        ("openai-compatible", "api.openai.com", "chat", "OPENAI_API_KEY"),
        ("openai-native", "api.openai.com", "chat", "OPENAI_API_KEY"),
        ("moonshot", "api.moonshot.ai", "chat", "MOONSHOT_API_KEY"),
        ("xai", "api.x.ai", "chat", "XAI_API_KEY"),
        ("zai", "api.z.ai", "chat", "ZHIPU_API_KEY"),
        ("zai-coding-plan", "api.z.ai/api/coding", "chat", "ZHIPU_API_KEY"),
        ("openrouter", "openrouter.ai", "chat", "OPENROUTER_API_KEY"),
        ("groq", "api.groq.com", "chat", "GROQ_API_KEY"),
        ("cerebras", "api.cerebras.ai", "chat", "CEREBRAS_API_KEY"),
    ),
)

AGENTS = {
    "claude": Agent(
        "Claude Code",
        "2.1.332",
        "anthropic",
        "claude-cli/",
        "@anthropic-ai/claude-code",
        files=(
            ("managed", "/etc/claude-code/managed-settings.json"),
            ("managed", "/Library/Application Support/ClaudeCode/managed-settings.json"),
            ("managed", "C:/Program Files/ClaudeCode/managed-settings.json"),
            ("project", ".claude/settings.local.json"),
            ("project", ".claude/settings.json"),
            ("user", "{CLAUDE_CONFIG_DIR:~/.claude}/settings.json"),
        ),
        subcommands=("auth", "doctor", "install", "mcp", "plugin", "plugins", "setup-token", "update", "upgrade"),
        otherwise="its settings have another address (ANTHROPIC_BASE_URL in their env), or it uses Bedrock or Vertex",
        user_tools=("AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Skill"),
        user_texts=(
            "The user doesn't want to proceed with this tool use.",
            "The user doesn't want to take this action",
            "Permission for this action has been denied",
            "Permission for this action was denied",  # by its auto mode
            "Permission to use * denied*",  # by a rule, or a plugin
            "PreToolUse:* hook error: *",
            # With models that take no system prompt among the messages, reminders are in the results.
            "*<system-reminder>\n* while you were working:\n*</system-reminder>",
            "*<system-reminder>\nContents of *</system-reminder>",  # a CLAUDE.md
            "*<system-reminder>\ntool.call hook additional context: Contents of *</system-reminder>",  # an AGENTS.md
        ),
        markers=_with_tail(_CLEARED),
        stubs=tuple(
            ("Read", text)
            for text in _with_tail(
                "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead.",
                "File unchanged since last read. The content from the earlier Read tool_result in this conversation is "
                "still current — refer to that instead of re-reading.",
            )
        ),
    ),
    "codex": Agent(
        "Codex",
        "0.171.0",
        "openai",
        "codex",
        "@openai/codex",
        arguments=("-c", 'openai_base_url="{url}/v1"'),
        subcommands=("completion", "features", "login", "logout", "mcp", "sandbox"),
        # Its files of projects may name no address.
        files=(("user", "{CODEX_HOME:~/.codex}/config.toml"), ("user", "/etc/codex/config.toml")),
        otherwise="its model_provider has no base_url",
        setting="set the base_url of that one to {url}/v1",
        user_tools=("request_user_input", "request_user_input_async"),
    ),
    "gemini": Agent(
        "Gemini CLI",
        "0.61.0",
        "gemini",
        "GeminiCLI",
        "@google/gemini-cli",
        subcommands=("extensions", "hooks", "mcp", "skills", "update"),
        otherwise="it takes an address only with an API key that was chosen as its login: /auth, Use Gemini API Key",
        user_tools=("activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode"),
        user_texts=(
            "*\n\n--- Newly Discovered Project Context ---\n*--- End Project Context ---",  # a GEMINI.md
            "<tool_output_masked>",  # its own mask, which ends in "Full output available at: …"
        ),
    ),
    "opencode": Agent(
        "OpenCode",
        "1.18.33",
        user_agent="opencode/",
        package="opencode-ai",
        subcommands=("auth", "export", "import", "mcp", "models", "session", "stats", "uninstall", "upgrade"),
        config=(
            "OPENCODE_CONFIG_CONTENT",
            {
                "provider": {
                    "anthropic": {"options": {"baseURL": "{url}/v1"}},
                    "openai": {"options": {"baseURL": "{url}/v1"}},
                    "google": {"options": {"baseURL": "{url}/v1beta"}},
                }
            },
        ),
        files=(
            ("managed", "/etc/opencode/opencode.json"),
            ("above", ".opencode/opencode.jsonc"),
            ("above", ".opencode/opencode.json"),
            ("above", "opencode.jsonc"),
            ("above", "opencode.json"),
            ("user", "{OPENCODE_CONFIG:}"),
            ("user", "{XDG_CONFIG_HOME:~/.config}/opencode/opencode.jsonc"),
            ("user", "{XDG_CONFIG_HOME:~/.config}/opencode/opencode.json"),
            ("user", "{XDG_CONFIG_HOME:~/.config}/opencode/config.json"),
        ),
        providers=_OF_OPENCODE,
        otherwise="its model is of a provider whose address is not known",
        setting="set the baseURL of that one to {url}/v1",
        user_tools=("question", "plan_exit", "skill"),
        user_texts=(
            "The user rejected permission to use this specific tool call",
            "*<system-reminder>\nInstructions from: *</system-reminder>",  # an AGENTS.md
        ),
        markers=(_CLEARED,),
    ),
    "qwen": Agent(
        "Qwen Code",
        "0.24.4",
        "openai",
        "QwenCode/",
        "@qwen-code/qwen-code",
        subcommands=("extensions", "mcp"),
        files=(
            ("managed", "{QWEN_CODE_SYSTEM_SETTINGS_PATH:/etc/qwen-code/settings.json}"),
            ("project", ".qwen/settings.json"),
            ("user", "~/.qwen/settings.json"),
        ),
        otherwise="its settings have another address (baseUrl of a model, or of the login)",
        setting="set that to {url}/v1",
        user_tools=("ask_user_question", "enter_plan_mode", "exit_plan_mode", "skill"),
        markers=(_CLEARED,),
    ),
    "pi": Agent(
        "pi",
        "1.6.0",
        package="@earendil-works/pi-coding-agent",
        arguments=("--extension", "{folder}/pi.js"),
        subcommands=("config", "install", "list", "remove", "uninstall", "update"),
        files=(("user", "{PI_CODING_AGENT_DIR:~/.pi/agent}/models.json"),),
        providers=_OF_PI,
        otherwise="its model is of a provider whose address is not known",
        setting="set the baseUrl of that one to {url}/v1 in models.json",
    ),
    "aider": Agent("aider", "0.86", package="aider-chat", sends_results=False),
    "cline": Agent(
        "Cline",
        "3.0.65",
        package="cline",
        subcommands=("auth", "config", "doctor", "h", "history", "mcp", "plugin", "skill", "update", "version"),
        files=(
            ("user", "{CLINE_PROVIDER_SETTINGS_PATH:}"),
            ("user", "{CLINE_DATA_DIR:~/.cline/data}/settings/providers.json"),
            ("user", "{CLINE_DIR:~/.cline}/data/settings/providers.json"),
        ),
        providers=_OF_CLINE,
        otherwise="it takes its address from its login alone, for a provider with the API of OpenAI",
        setting="type `cline auth -p openai -b {url}/v1 -k KEY -m MODEL`, which stays",
        is_pointed=False,
        user_tools=("ask_followup_question", "ask_question", "skills"),  # the first one before 3.0
    ),
    "droid": Agent(
        "Droid",
        "0.215.0",
        user_agent="factory-cli/",
        package="droid",
        otherwise="it takes an address for a model of your own alone",
        setting="set the baseUrl of that in customModels of ~/.factory/settings.json to {url} (of OpenAI: {url}/v1)",
        is_pointed=False,
        user_tools=("AskUser", "ExitSpecMode", "Skill"),
    ),
    "cn": Agent(
        "Continue CLI",
        "1.5.47",
        package="@continuedev/cli",
        otherwise="it takes its address from its config.yaml",
        setting="set the apiBase of its model there to {url}/v1/",
        is_pointed=False,
        user_tools=("AskQuestion", "Skills"),
    ),
    "copilot": Agent(
        "Copilot CLI",
        "1.0.102",
        package="@github/copilot",
        otherwise="it takes an address for a model of your own alone",
        setting="set COPILOT_PROVIDER_BASE_URL={url}/v1 (with COPILOT_PROVIDER_TYPE=anthropic {url})",
        is_pointed=False,
        user_tools=("ask_user", "skill"),
    ),
    "kimi": Agent(
        "Kimi Code",
        "2.1.0",
        user_agent="kimi-code-cli/",
        package="@moonshot-ai/kimi-code",
        subcommands=("acp", "doctor", "export", "info", "login", "logout", "mcp", "plugin", "web"),
        files=(("user", "{KIMI_CODE_HOME:~/.kimi-code}/config.toml"),),
        otherwise="it takes its address from its own variables",
        setting="set KIMI_MODEL_BASE_URL={url}/v1, with KIMI_MODEL_NAME and KIMI_MODEL_API_KEY",
        is_pointed=False,
        user_tools=("AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Skill"),
    ),
    "grok": Agent(
        "Grok Build",
        "1.0.41",
        package="@xai-official/grok",
        files=(
            ("managed", "/etc/grok/requirements.toml"),
            ("user", "{GROK_HOME:~/.grok}/requirements.toml"),
            ("user", "{GROK_HOME:~/.grok}/config.toml"),
            ("user", "{GROK_HOME:~/.grok}/managed_config.toml"),
            ("managed", "/etc/grok/managed_config.toml"),
        ),
        otherwise="it takes its address from its config.toml, or its own variable",
        setting="set GROK_XAI_API_BASE_URL={url}/v1 (the URL of xAI is https://api.x.ai)",
        is_pointed=False,
    ),
    "grok-cli": Agent(  # its command is `grok`, too
        "grok-cli",
        "0.0.34",
        package="@vibe-kit/grok-cli",
        compacts=False,
        otherwise="it takes its address from its own variable",
        setting="set GROK_BASE_URL={url}/v1 (the URL of xAI is https://api.x.ai)",
        is_pointed=False,
    ),
    "vibe": Agent(
        "Vibe",
        "3.0.2",
        package="mistral-vibe",
        files=(("project", ".vibe/config.toml"), ("user", "{VIBE_HOME:~/.vibe}/config.toml")),
        otherwise="it takes its address from its config.toml",
        setting="set the api_base of its provider there to {url}/v1 (the URL of Mistral is https://api.mistral.ai)",
        is_pointed=False,
    ),
    "mini": Agent(
        "mini-SWE-agent",
        "2.4.6",
        package="mini-swe-agent",
        compacts=False,
        otherwise="its model is of another provider than Anthropic and OpenAI",
        setting="set api_base in the model_kwargs of its config to {url}/v1",
    ),
    "gptme": Agent(
        "gptme",
        "0.35.1",
        package="gptme",
        otherwise="its model is of another provider than Anthropic and OpenAI",
        setting="name the model openai/…, and set OPENAI_BASE_URL={url}/v1",
    ),
}
"""The known agents, by command; of two with one command, the second one by its package."""

USER_TOOLS: tuple[str, ...] = tuple(dict.fromkeys(tool for agent in AGENTS.values() for tool in agent.user_tools))
"""Tools whose results carry the user's own words, or instructions."""


class AgentTexts(NamedTuple):
    """Texts of results in the requests of some agents, as in their rows."""

    user_texts: tuple[str, ...]
    markers: tuple[str, ...]
    stubs: tuple[tuple[str, str], ...]


def agent_named(user_agent: str) -> Agent | None:
    """Find the agent that sends this header User-Agent; None if it names none that is known."""
    return next((one for one in AGENTS.values() if one.user_agent and user_agent.startswith(one.user_agent)), None)


def texts_of(agent: Agent | None, provider: str | None = None) -> AgentTexts:
    """Return the texts of an agent; of an unknown one, those of all agents that may send requests to a provider."""
    agents = [one for one in AGENTS.values() if provider is None or one.provider in (None, provider)]
    chosen = agents if agent is None else [agent]
    return AgentTexts(
        *(tuple(dict.fromkeys(one for each in chosen for one in getattr(each, name))) for name in AgentTexts._fields)
    )
