"""Agents that are known by name: how each is pointed at a proxy, and which texts in its requests are its or its user's.

Each row was read from the version that it names. `ANTHROPIC_BASE_URL`, `OPENAI_BASE_URL`, `OPENAI_API_BASE` and
`GOOGLE_GEMINI_BASE_URL` are set for every command; a row has what its agent needs besides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["AGENTS", "MARKERS", "REFUSALS", "STUBS", "USER_TOOLS", "Agent"]


class Agent(NamedTuple):
    """Facts about a coding agent.

    Attributes:
        title: its name, as people write it.
        version: where the row was read.
        provider: where its requests usually go, a name of `recede.proxy.server.UPSTREAMS`; None: it takes several.
        arguments: what its command line gets, after the command; ``{url}`` is the address of the proxy, and
            ``{folder}`` that of `recede.proxy`.
        config: a variable that takes settings as JSON, and the settings.
        variables: further variables, unless they are set, as long as the requests go to the provider itself.
        sends_results: whether its requests have tool results, so that there is something to mask.
        user_tools: tools whose results carry the user's own words: answers to questions, approved or changed plans.
        refusals: how results begin that carry the user's own words on a call that was refused. Most are flagged as
            errors, for which some APIs have no field.
        markers: whole texts by which it clears old results itself.
        stubs: tools, and whole texts of results that refer to the result of an earlier call of the same arguments.
    """

    title: str
    version: str
    provider: str | None = None
    arguments: tuple[str, ...] = ()
    config: tuple[str, dict[str, Any]] | None = None
    variables: tuple[tuple[str, str], ...] = ()
    sends_results: bool = True
    user_tools: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    stubs: tuple[tuple[str, str], ...] = ()


_CLEARED = "[Old tool result content cleared]"

AGENTS = {
    "claude": Agent(
        "Claude Code",
        "2.1.197",
        "anthropic",
        # Its tool search is off at any other address than that of Anthropic, unless this says otherwise.
        variables=(("ENABLE_TOOL_SEARCH", "true"),),
        user_tools=("AskUserQuestion", "ExitPlanMode"),
        refusals=("The user doesn't want to proceed with this tool use.", "The user doesn't want to take this action"),
        markers=(_CLEARED,),
        stubs=(
            (
                "Read",
                "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead.",
            ),
            (
                "Read",
                "File unchanged since last read. The content from the earlier Read tool_result in this conversation is "
                "still current — refer to that instead of re-reading.",
            ),
        ),
    ),
    "codex": Agent(
        "Codex",
        "0.169.0",
        "openai",
        arguments=("-c", 'openai_base_url="{url}/v1"'),
        user_tools=("request_user_input", "request_user_input_async"),
    ),
    "gemini": Agent("Gemini CLI", "0.61.0", "gemini", user_tools=("ask_user", "exit_plan_mode")),
    "opencode": Agent(
        "OpenCode",
        "1.18.33",
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
        user_tools=("question", "plan_exit"),
        refusals=("The user rejected permission to use this specific tool call",),
        markers=(_CLEARED,),
    ),
    "qwen": Agent(
        "Qwen Code", "0.24.4", "openai", user_tools=("ask_user_question", "exit_plan_mode"), markers=(_CLEARED,)
    ),
    "pi": Agent("pi", "0.73.1", arguments=("--extension", "{folder}/pi.js")),
    "aider": Agent("aider", "0.86", sends_results=False),
    "cline": Agent("Cline", "3.0", user_tools=("ask_followup_question",)),
}
"""The known agents, by command."""


def _all(name: str) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(one for agent in AGENTS.values() for one in getattr(agent, name)))


USER_TOOLS: tuple[str, ...] = _all("user_tools")
"""Tools whose results carry the user's own words."""
REFUSALS: tuple[str, ...] = _all("refusals")
"""How results begin that carry the user's own words on a call that was refused."""
MARKERS: tuple[str, ...] = _all("markers")
"""Whole texts by which agents clear old results themselves."""
STUBS: tuple[tuple[str, str], ...] = _all("stubs")
"""Tools, and whole texts of their results that refer to an earlier result."""
